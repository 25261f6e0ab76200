"""Goals of ScienceWorld: all 26 tasks read from their descriptions, and the way through them.

The sentence alone decides family, verb and target, because it is all the agent is given. What a
goal of this world has beyond a GoalSpec (instrument, boxes and when they apply, the order of focus)
is read from the same sentence by ``read_details``.

``steps.yaml`` lists the steps of every kind of task. Each says what it is about, as data, and names
tests on the belief, the functions below; it is done once one of them holds. Everything a test
needs is in the belief, so the pointer does not depend on how the agent got there, and an episode
that is replayed shows the same one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import BaseModel, Field, TypeAdapter, ValidationError, model_validator
from typing_extensions import TypedDict

from rpms.envs.scienceworld.things import (
    FOCUS,
    POURED,
    READ,
    RECIPE,
    SOWN,
    WAS,
    events,
    kinds,
    kinds_if_any,
    phase_of,
    same_thing,
    split_phase,
    states_of,
    temperature_of,
)  # fmt: skip
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import read_yaml
from rpms.vocabulary.goal import GoalSpec, SubGoal, Target
from rpms.vocabulary.naming import find, is_a, same_words
from rpms.vocabulary.spelling import Strict
from rpms.vocabulary.turn import Turn

STEPS = Path(__file__).with_name("steps.yaml")

Boxes = Sequence[tuple[str, str]]

_PHASE_CHANGES = ("boil", "melt", "freeze", "change-state")
_CHANGING = ("prepare_object", "transform_object", "verify_object")
_DEVICES = ("heater", "hearth", "cooler", "chiller")


class ScienceTask(NamedTuple):
    """What the tests may know of a task; ``boxes`` are names with the condition for each.

    ``trait`` is one that may be dominant: ``green seed color``, ``tall plant height``.
    """

    object: str
    boxes: Boxes
    trait: str = ""

    @property
    def kind(self) -> str:
        """The orange plant grows as orange seed and orange tree: what is in all the names."""
        return self.object.removesuffix(" plant")


class ProcedureStep(NamedTuple):
    """One sub-goal; a ``demanded`` one has to happen itself, whatever comes later.

    ``target`` names what it is about, ``words`` says the whole step as an order, and ``when`` says
    when it is done.
    """

    name: str
    target: str
    words: str
    about: Target
    done: Callable[[Belief], bool]
    demanded: bool
    when: str


# What the texts of a step can have filled in. The first four are what the step itself is about, and
# ``an_object`` is its object with an article; ``order`` is the task's verb as one says it.
_BLANKS = {
    "object", "place", "which", "target", "an_object", "kind", "a_kind", "verb", "order", "room",
    "in_room", "box_room", "in_box_room", "box", "boxes", "choices", "number",
}  # fmt: skip
_ORDERS = {"change-state": "change the state of matter of"}


class StepRow(Strict, BaseModel):
    """One step as ``steps.yaml`` has it, with blanks for what a task fills in."""

    name: str
    object: str = "{object}"
    place: str = ""
    which: str = ""
    target: str = "{object}"
    words: str = Field(min_length=1)
    done: list[str] = Field(min_length=1)
    demanded: bool = False
    each: Literal["", "focus", "between"] = ""

    @model_validator(mode="after")
    def _readable(self) -> StepRow:
        texts = (self.object, self.place, self.which, self.target, self.words, *self.done)
        for text in texts:
            if unknown := {*re.findall(r"\{(\w*)\}", text)} - _BLANKS:
                raise ValueError(f"nothing fills the blank '{{{min(unknown)}}}' in '{text}'")
        for test in self.done:
            if test.partition("(")[0] not in TESTS:
                raise ValueError(f"unknown test '{test}'; known: {', '.join(TESTS)}")
        return self


@cache
def read_steps() -> tuple[dict[str, list[StepRow]], dict[str, str]]:
    """The steps by kind of task, and their tests in words; a mistake is told with its place."""

    def flat(rows: object) -> Iterator[object]:
        for row in rows if isinstance(rows, list) else [rows]:
            yield from flat(row) if isinstance(row, list) else [row]

    data = read_yaml(STEPS)[1]
    parts = dict(data) if isinstance(data, dict) else {}
    texts = parts.pop("tests", {})
    try:
        steps = TypeAdapter(dict[str, list[StepRow]]).validate_python(
            {verb: list(flat(rows)) for verb, rows in parts.items()}
        )
        words = TypeAdapter(dict[str, str]).validate_python(texts)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise RpmsError(
            f"{STEPS}: {where}: {first['msg'].removeprefix('Value error, ')}"
        ) from error
    if missing := TESTS.keys() - words.keys():
        raise RpmsError(f"{STEPS}: tests: say in words when '{min(missing)}' holds")
    return steps, words


@lru_cache(maxsize=256)
def plan_for(sentence: str) -> tuple[ProcedureStep, ...]:
    """The steps for the kind of task that a description sets, filled in for it."""
    goal, details = parse_goal(sentence), read_details(sentence)
    verb, task = goal["state"] or "", _task(sentence)
    boxes = task.boxes
    blanks = {
        "object": task.object,
        "kind": task.kind,
        "a_kind": _article(task.kind),
        "verb": verb,
        "order": _ORDERS.get(verb, verb),
        "room": details["room"],
        "in_room": _in_room(details["room"]),
        "box_room": details["box_room"],
        "in_box_room": _in_room(details["box_room"]),
        "box": boxes[0][0] if boxes else "",
        "boxes": " or ".join(f"{name} ({when})" for name, when in boxes),
        "choices": " or ".join(f"the {name} if it is {when}" for name, when in boxes),
    }
    limits = {name: _limit(when) for name, when in boxes if " " in when}
    focus = _focus_order(sentence)
    repeats = {"focus": focus, "between": focus[:-1]}
    plan = []
    for row in read_steps()[0][verb]:
        own = Focus(row.target, row.object, row.which)
        for number, (named, thing, which) in enumerate(repeats.get(row.each, [own]), start=1):
            filled = {**blanks, "number": str(number)}
            about = Target(
                object=thing.format(**filled), place=row.place.format(**filled), which=which
            )
            target = named.format(**{**filled, **about}).strip()
            if "{boxes}" in named:
                about["limits"] = limits
            own_words = {"target": target, "an_object": _article(about["object"]), **about}
            order = " ".join(row.words.format(**{**filled, **own_words}).split())
            tests = [text.format(**filled) for text in row.done]
            done, when = _any(task, tests), _in_words(task, tests)
            words = _spelled(order, task.kind, sentence)
            plan.append(ProcedureStep(row.name, target, words, about, done, row.demanded, when))
    return tuple(plan)


def _article(noun: str) -> str:
    return f"{'an' if noun[:1] in 'aeiou' else 'a'} {noun}" if noun else ""


def _in_room(room: str) -> str:
    """``in the kitchen``; the one place that is no room is called ``outside``."""
    return room if room in ("", "outside") else f"in the {room}"


def _spelled(words: str, thing: str, sentence: str) -> str:
    """Names with the letters of the task: goals are kept in lower case, ``substance B`` is not."""
    found = re.search(re.escape(thing), sentence, re.I)
    return words.replace(thing, found[0]) if found and thing else words


def _task(sentence: str) -> ScienceTask:
    parts = _match(sentence)[2].groupdict()
    return ScienceTask(parts["o"], read_details(sentence)["boxes"], parts.get("t") or "")


def _limit(when: str) -> tuple[str, float, str]:
    """``above 50.0 degrees celsius``."""
    side, number, unit = when.split(" ", 2)
    return side, float(number), unit


def _any(task: ScienceTask, texts: Sequence[str]) -> Callable[[Belief], bool]:
    """Whether one of some tests holds; one without an argument is about the task's own object."""
    tests = [(TESTS[name], what) for name, what in _tests(task, texts)]
    return lambda belief: any(test(belief, task, what) for test, what in tests)


def _in_words(task: ScienceTask, texts: Sequence[str]) -> str:
    words = read_steps()[1]
    return ", or ".join(words[name].format(what) for name, what in _tests(task, texts))


def _tests(task: ScienceTask, texts: Sequence[str]) -> list[tuple[str, str]]:
    read = [re.fullmatch(r"(\w+)(?:\((.+)\))?", text) for text in texts]
    return [(match[1], match[2] or task.object) for match in read if match]


def current_step(steps: Sequence[ProcedureStep], belief: Belief) -> tuple[ProcedureStep, int]:
    """The first step still to do, and how many come before it; the last one when all are done.

    Some steps can be left out: a pot that stands on the stove was obviously taken there. So a step
    also counts as done once one after it is, up to the next that is demanded.
    """
    done = [step.done(belief) for step in steps]
    for number, step in enumerate(steps):
        end = number
        while end < len(steps) - 1 and not steps[end].demanded:
            end += 1
        if not any(done[number : end + 1]):
            return step, number
    return steps[-1], len(steps)


def _names_known(belief: Belief) -> Iterator[str]:
    """Everything the agent carries, sees or has seen."""
    yield from belief["holding"]
    yield from belief["visible"]
    yield from belief["last_seen"]


def _names_of(belief: Belief, target: str) -> list[str]:
    """The names under which a target is known."""
    return [name for name in _names_known(belief) if same_thing(name, target)]


def _chain(belief: Belief, name: str) -> Iterator[str]:
    """What a thing is in, and what that is in, from the inside out."""
    passed = {name}
    here = belief["last_seen"].get(find(belief["last_seen"], name) or "")
    while here is not None and here not in passed:
        passed.add(here)
        yield here
        here = belief["last_seen"].get(here)


def _around(belief: Belief, target: str) -> set[str]:
    """All that is known to be around a target."""
    return {place for name in _names_of(belief, target) for place in _chain(belief, name)}


def is_kind(name: str, kind: str) -> bool:
    """Living things show in how they are described; all else that can be named is not alive.

    The name of a kind's young comes last: a bee hive is none.
    """
    words = name.split()
    plant = is_a(words[-1], kinds("plants")) is True
    animal = words[0] in kinds("stages") or words[-1] in kinds("young")
    alive = plant or animal
    truth = {"plant": plant, "animal": animal, "living thing": alive}
    return truth.get(kind, not alive and name != "air")


def _carried(belief: Belief, what: str) -> bool:
    """It is in the inventory, or in something that is."""
    around = [*_names_of(belief, what), *_around(belief, what)]
    return any(same_words(place, held) for place in around for held in belief["holding"])


def _chosen(belief: Belief) -> list[str]:
    """What was chosen by focusing on it, and all it is in; a plant travels in its pot."""
    first = events(belief, FOCUS)[:1]
    return [*first, *(place for thing in first for place in _chain(belief, thing))]


def _changed(belief: Belief, what: str) -> bool:
    """Its name has changed since it was first seen, so it has changed its phase."""
    return f"{split_phase(what)[0]}{WAS}" in map(str.lower, belief["flags"])


def _decided(belief: Belief, what: str, boxes: Boxes) -> bool:
    """Liquid below the limit: it melts below it. Solid above the limit: it melts above it.

    At the limit itself nothing is decided: the thermometer prints whole degrees. Under its plain
    name a substance is solid, unless the vocabulary lists it as a liquid.
    """
    reading, phase = temperature_of(belief, what), phase_of(belief, what)
    phase = phase or ("liquid" if is_a(what, kinds("liquid")) else "solid")
    limits = [_limit(when)[1] for _, when in boxes]
    if reading is None or not limits:
        return False
    sides = {"liquid": reading < min(limits), "solid": reading > max(limits)}
    return sides.get(phase, False)


def _running(belief: Belief, what: str) -> bool:
    """It is in a device that works; coolers do, unless they were switched off."""
    around = _around(belief, what)
    fire = any("on fire" in states_of(belief, name) for name in (*around, "wood"))
    for place in around:
        states = states_of(belief, place)
        if is_a(place, kinds("heater")) and "activated" in states:
            return True
        if is_a(place, kinds("hearth")) and fire:
            return True
        if is_a(place, kinds("cooler", "chiller")) and "deactivated" not in states:
            return True
    return False


def _together(belief: Belief) -> bool:
    """All ingredients the recipe named are in one and the same container."""
    places = [
        {belief["last_seen"].get(name) for name in _names_of(belief, ingredient)}
        for ingredient in events(belief, RECIPE)
    ]
    return len(places) > 1 and bool(set.intersection(*places) - {None, belief["location"]})


def _products(belief: Belief) -> list[str]:
    return [name for name in belief["flags"] if "made" in states_of(belief, name)]


def _colours(name: str) -> set[str]:
    """What is then listed as green-blue is announced as "blue green"."""
    return set(name.lower().replace("-", " ").split())


def _planted(belief: Belief, kind: str) -> int:
    """How many flower pots have a seed or a plant of a kind in them."""
    pots = (flag for name, flag in belief["flags"].items() if is_a(name, kinds("flower_pot")))
    return sum(kind in contents.lower() for contents in pots)


def _in_bloom(belief: Belief, pots: Sequence[str], part: str) -> list[str]:
    """What the plants of some pots show of a part, once they bear flowers: ``purple flower``."""
    contents = [states_of(belief, pot) for pot in dict.fromkeys(pots)]
    blooming = (states for states in contents if "reproducing stage" in states)
    return [state for states in blooming for state in states if state.endswith(part)]


# Where a trait shows, by its second word: "tall plant height".
_SHOWS = {"seed": "seed", "flower": "flower", "leaf": "leaves", "plant": "height"}


def _offspring(belief: Belief, trait: str) -> list[str]:
    """What is seen of a trait in the next generation: its seeds, or the plant from one of them."""
    part, pots = trait.split()[1], events(belief, SOWN)
    return _in_bloom(belief, pots if part == "seed" else pots[2:], _SHOWS[part])


def _watered(belief: Belief) -> bool:
    pots = [name for name, states in belief["flags"].items() if POURED in states]
    pots.append(belief["last_seen"].get("water", ""))
    return any(is_a(name, kinds("flower_pot")) for name in pots)


def _watched(belief: Belief, plane: str) -> int:
    """On how many planes a block has been watched."""
    return sum(plane in name and " the plane" in s for name, s in belief["flags"].items())


# The words of the manual's ``done``: the belief, the task, and what the word is about.
TESTS: dict[str, Callable[[Belief, ScienceTask, str], bool]] = {
    "of_kind": lambda b, _, kind: any(is_kind(name, kind) for name in _names_known(b)),
    "known": lambda b, _, what: bool(_names_of(b, what)),
    # Some young have names of their own: a tadpole is a frog.
    "called": lambda b, _, word: any(
        word in name.lower() or is_a(name, kinds_if_any(word)) for name in _names_known(b)
    ),
    "ending": lambda b, _, word: any(name.endswith(word) for name in _names_known(b)),
    "carried": lambda b, _, what: _carried(b, what),
    "focused": lambda b, _, what: any(same_thing(name, what) for name in events(b, FOCUS)),
    "focused_times": lambda b, _, times: len(events(b, FOCUS)) >= int(times),
    "chosen_taken": lambda b, *_: any(find(b["holding"], name) for name in _chosen(b)),
    "chosen_in": lambda b, _, place: place in _chosen(b)[1:],
    "answered": lambda b, task, _: bool(set(events(b, FOCUS)) & {name for name, _ in task.boxes}),
    "boxed": lambda b, task, what: bool(_around(b, what) & {name for name, _ in task.boxes}),
    # The thing cools or warms on the way: only the reading of this moment tells about it.
    "measured_in": lambda b, task, room: (
        temperature_of(b, task.object) is not None and events(b, READ)[-1:] == [room]
    ),
    "changed": lambda b, _, what: _changed(b, what),
    "became": lambda b, t, phase: phase_of(b, t.object) == phase and _changed(b, t.object),
    "decided": lambda b, task, what: _decided(b, what, task.boxes),
    "in_device": lambda b, _, what: any(is_a(at, kinds(*_DEVICES)) for at in _around(b, what)),
    "running": lambda b, _, what: _running(b, what),
    "recipe_read": lambda b, *_: bool(events(b, RECIPE)),
    "together": lambda b, *_: _together(b),
    "made": lambda b, _, what: _colours(what) in map(_colours, _products(b)),
    "made_ending": lambda b, _, word: any(name.endswith(word) for name in _products(b)),
    "planted": lambda b, task, times: _planted(b, task.kind) >= int(times),
    "seeds_ripe": lambda b, *_: bool(_in_bloom(b, events(b, SOWN), "seed")),
    "inherited": lambda b, task, _: bool(_offspring(b, task.trait)),
    "watered": lambda b, *_: _watered(b),
    "grown": lambda b, _, kind: any(
        kind in name.lower() and "reproducing" in states for name, states in b["flags"].items()
    ),
    "loaded": lambda b, task, _: any(task.object in place for place in b["last_seen"].values()),
    "watched": lambda b, task, times: _watched(b, task.object) >= int(times),
}


FAMILIES = ["F1", "F2", "F3", "F4"]


class GoalDetails(TypedDict):
    """What the description says beyond the GoalSpec; empty where it says nothing.

    Attributes:
        instrument: the tool the task demands to focus on.
        room: where the target, the seeds, the recipe or the animals are.
        boxes: the boxes, each with its condition.
        box_room: where they are.
        focus: what has to be focused on, in this order.
    """

    instrument: str
    room: str
    boxes: list[tuple[str, str]]
    box_room: str
    focus: list[str]


_TEMPLATES: list[tuple[str, str, re.Pattern[str]]] = [
    (family, verb, re.compile(pattern))
    for family, verb, pattern in (
        ("F1", "find", r"find a\(n\) (?P<o>[\w -]+?)\. first, focus on the thing\. "
         r"then, move it to the (?P<d>\w+ box) in the [\w ]+\."),
        ("F2", "measure-temperature", r"measure the temperature of (?P<o>[\w ]+?), which is "),
        ("F2", "measure-melting-point", r"measure the melting point of (?P<o>[\w ]+?), which is "),
        ("F3", "boil", r"boil (?P<o>[\w ]+)\."),
        ("F3", "melt", r"melt (?P<o>[\w ]+)\."),
        ("F3", "freeze", r"freeze (?P<o>[\w ]+)\."),
        ("F3", "change-state", r"change the state of matter of (?P<o>[\w ]+)\."),
        ("F3", "mix", r"use chemistry to create the substance '(?P<o>[^']+)'\."),
        ("F3", "mix-paint", r"use chemistry to create (?P<o>[\w-]+ paint)\."),
        ("F4", "grow", r"grow an? (?P<o>[\w ]+ plant) from seed\."),
        ("F4", "grow-fruit", r"grow an? (?P<o>[\w ]+)\. this will require growing"),
        ("F4", "lifespan-longest-shortest",
         r"find the (?P<o>animal) with the longest life span, then the shortest life span\."),
        ("F4", "lifespan-longest", r"find the (?P<o>animal) with the longest life span\."),
        ("F4", "lifespan-shortest", r"find the (?P<o>animal) with the shortest life span\."),
        ("F4", "life-stages", r"focus on the (?P<n>\d+ )?life stages of the (?P<o>[\w ]+), "),
        ("F4", "inclined-plane-angle", r"determine which of the two (?P<o>inclined plane)s "
         r"\([^()]+\) has the (?P<q>\w+ angle)\."),
        ("F4", "inclined-plane-friction", r"determine which of the two (?P<o>inclined plane)s "
         r"\([^()]+\) has the (?P<q>\w+ friction)\."),
        ("F4", "genetics", r"determine whether (?P<t>[\w ]+) is a dominant or recessive trait in "
         r"the (?P<o>[\w ]+ plant)\."),
    )
]  # fmt: skip

_ROOM = re.compile(
    r"(?:which is located around the|can be found in the|might be found near the|located|"
    r"animals are in the) '?(?P<r>[\w ]+?)'?(?: location)?\."
)
_BOX = re.compile(
    r"if [^.]*?((?:above|below) -?\d+\.\d+ degrees celsius|dominant|recessive), "
    r"(?:focus on|place it in) the (\w+ box)"
)
_BOX_ROOM = re.compile(r"the boxes are located around the ([\w ]+?)\.")
_INSTRUMENT = re.compile(r"first, focus on the (thermometer)\.")


def parse_goal(sentence: str) -> GoalSpec:
    """Template parsing of the task description; one of no known shape is an error."""
    family, verb, match = _match(sentence)
    target = match["o"]
    return GoalSpec(
        sentence=sentence.strip(),
        type=family,
        object=target,
        state=verb,
        count=1,
        destination=match.groupdict().get("d") or "",
        signature=f"{family}:{verb}:{target}",
    )


def read_details(sentence: str) -> GoalDetails:
    """The parts of the description that the GoalSpec has no field for."""
    parts = _match(sentence)[2].groupdict()
    text = _plain(sentence)
    boxes = [(name, when) for when, name in _BOX.findall(text)]
    instrument = _INSTRUMENT.search(text)
    room, box_room = _ROOM.search(text), _BOX_ROOM.search(text)
    return GoalDetails(
        instrument=instrument[1] if instrument else "",
        room=room["r"] if room else "",
        boxes=[(parts["d"], "always")] if parts.get("d") else boxes,
        box_room=box_room[1] if box_room else "",
        focus=[focus.words.format(**focus._asdict()) for focus in _focus_order(sentence)],
    )


class Focus(NamedTuple):
    """Something that has to be focused on: how it is said, the thing, and which of its like."""

    words: str
    object: str
    which: str = ""


def _focus_order(sentence: str) -> list[Focus]:
    """What the description wants focused on. Its last sentence misnames a mixed paint's goal.

    For a tertiary colour it says "focus on the green paint" although the green-blue paint counts:
    the intermediate colour comes first and the paint that was asked for second.
    """
    _, verb, match = _match(sentence)
    parts = match.groupdict()
    itself = Focus("{object}", parts["o"])
    if verb in ("measure-temperature", "measure-melting-point"):
        return [Focus("{object}", "thermometer"), itself]
    if verb == "mix-paint" and "intermediate" in _plain(sentence):
        return [Focus("{which} {object}", "paint", "intermediate"), itself]
    if verb == "grow":
        return [Focus("{object}", "seed")]
    if verb.startswith("lifespan"):
        spans = [f"{which} life span" for which in verb.split("-")[1:]]
        return [Focus("{object} with the {which}", itself.object, span) for span in spans]
    if verb == "life-stages":
        # Plants go through four stages; for animals the description gives the number.
        stages = [f"life stage {n}" for n in range(1, int(parts["n"] or 4) + 1)]
        return [Focus("{object} in {which}", itself.object, stage) for stage in stages]
    if verb.startswith("inclined-plane"):
        return [Focus("{object} with the {which}", itself.object, parts["q"])]
    return [] if verb == "genetics" else [itself]


@lru_cache(maxsize=1024)
def _match(sentence: str) -> tuple[str, str, re.Match[str]]:
    text = _plain(sentence)
    for family, verb, pattern in _TEMPLATES:
        if match := pattern.match(text):
            return family, verb, match
    raise RpmsError(
        f"cannot read the goal '{sentence.strip()}': it follows none of the ScienceWorld task "
        "descriptions (boil/melt/measure/find/grow/use chemistry/determine ...)"
    )


def _plain(sentence: str) -> str:
    text = " ".join(sentence.lower().split())
    text = text.removeprefix("task description: ").removeprefix("your task is to ")
    return text if text.endswith(".") else f"{text}."


def sub_goal(goal: GoalSpec, belief: Belief, history: Sequence[Turn]) -> SubGoal:
    """The current step of the canonical procedure, and how far it has come in percent.

    What the history tells (focus, readings, the recipe) has been folded into the belief as it
    happened, so that the pointer in the belief and this one cannot differ. Where a reading decides
    between boxes, it is said beside their conditions, and the phase beside the one that is wanted:
    to compare them is the agent's part.
    """
    plan = plan_for(goal["sentence"])
    step, done = current_step(plan, belief)
    words, about = step.words, step.about
    if step.name in ("place_answer", "answer_box"):
        reading = temperature_of(belief, goal["object"])
        words += f"; last reading: {reading:g} degrees celsius" if reading is not None else ""
    if goal["state"] in _PHASE_CHANGES and step.name in _CHANGING:
        phase = phase_of(belief, goal["object"])
        words += f"; when last seen it was {phase}" if phase else ""
    if step.name == "answer_box" and (trait := _task(goal["sentence"]).trait):
        offspring = _offspring(belief, trait)
        words += f"; the offspring has: {', '.join(dict.fromkeys(offspring))}" if offspring else ""
        shown = any(trait.split()[0] in seen.split() for seen in offspring)
        about = Target(object="", which="dominant" if shown else "recessive")
    progress = 100 * done // len(plan)
    return SubGoal(name=step.name, target=step.target, progress=progress, about=about, words=words)


_ONE_BOX = re.compile(r"move it to the (\w+ box) in the ([\w ]+)\.")


def roles_of(sentence: str) -> dict[str, str]:
    """Who plays a part in a task, by the sentence alone: its one box, and the rooms it names.

    Where the answer is one of several boxes, which one it is depends on what is found out.
    """
    text = _plain(sentence)
    roles = {}
    if room := _ROOM.search(text):
        roles["the room that the task names"] = room["r"]
    if box := _ONE_BOX.search(text):
        roles |= {"the task's box": box[1], "the box's room": box[2]}
    return roles
