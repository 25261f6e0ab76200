"""Goals of ScienceWorld: parses the 26 task descriptions and follows the steps of each.

The sentence alone decides family, verb and target, because the agent gets nothing else.
``read_task`` reads from it the parts that a GoalSpec has no field for: the instrument, the boxes
and their conditions, the rooms.

``steps.yaml`` lists the steps of every kind of task. Each step has a target and names tests on the
belief (``TESTS`` below); it is done once one of them holds. A test reads only the belief, so the
pointer does not depend on the agent's route, and a replayed episode has the same pointers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import BaseModel, Field, TypeAdapter, ValidationError, model_validator

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
    measured_as,
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
    """The parts of a description; empty if it has none.

    Attributes:
        object: the target.
        boxes: the boxes, each with its condition.
        box_room: where they are.
        room: where the target, the seeds, the recipe or the animals are.
        instrument: the tool that the task requires a focus on.
        trait: the trait in a genetics task: ``green seed color``, ``tall plant height``.
    """

    object: str
    boxes: Boxes
    box_room: str
    room: str
    instrument: str
    trait: str

    @property
    def kind(self) -> str:
        """The word that all stages share: "orange" for an orange plant (seed, tree)."""
        return self.object.removesuffix(" plant")


class ProcedureStep(NamedTuple):
    """One sub-goal; a ``demanded`` one cannot be skipped.

    ``target`` is its target in words, ``words`` the whole step as an instruction, and ``when`` the
    condition under which it is done.
    """

    name: str
    target: str
    words: str
    about: Target
    done: Callable[[Belief], bool]
    demanded: bool
    when: str


# The placeholders in the texts of a step. The first four come from the step itself, ``an_object``
# is its object with an article, and ``order`` is the task's verb in plain words.
_BLANKS = {
    "object", "place", "which", "target", "an_object", "kind", "a_kind", "verb", "order", "room",
    "in_room", "box_room", "in_box_room", "box", "boxes", "choices", "number",
}  # fmt: skip
_ORDERS = {"change-state": "change the state of matter of"}


class StepRow(Strict, BaseModel):
    """One step of ``steps.yaml``, with placeholders that a task fills in."""

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
                raise ValueError(f"unknown placeholder '{{{min(unknown)}}}' in '{text}'")
        for test in self.done:
            if test.partition("(")[0] not in TESTS:
                raise ValueError(f"unknown test '{test}'; known tests: {', '.join(TESTS)}")
        return self


@cache
def read_steps() -> tuple[dict[str, list[StepRow]], dict[str, str]]:
    """The steps by kind of task, and their tests in words."""

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
        raise RpmsError(f"{STEPS}: tests: '{min(missing)}' has no text; describe when it holds")
    return steps, words


@lru_cache(maxsize=256)
def plan_for(sentence: str) -> tuple[ProcedureStep, ...]:
    """The steps of a task, filled in from its description."""
    _, verb, _ = _match(sentence)
    task = read_task(sentence)
    boxes = task.boxes
    blanks = {
        "object": task.object,
        "kind": task.kind,
        "a_kind": _article(task.kind),
        "verb": verb,
        "order": _ORDERS.get(verb, verb),
        "room": task.room,
        "in_room": _in_room(task.room),
        "box_room": task.box_room,
        "in_box_room": _in_room(task.box_room),
        "box": boxes[0][0] if boxes else "",
        "boxes": " or ".join(f"{name} ({when})" for name, when in boxes),
        "choices": " or ".join(f"the {name} if it is {when}" for name, when in boxes),
    }
    limits = {name: _limit(when) for name, when in boxes if " " in when}
    focus = focus_order(sentence)
    repeats = {"focus": focus, "between": focus[:-1]}
    plan = []
    steps, wording = read_steps()
    for row in steps[verb]:
        single = Focus(row.target, row.object, row.which)
        for number, (label, thing, which) in enumerate(repeats.get(row.each, [single]), start=1):
            filled = {**blanks, "number": str(number)}
            slots = Target(
                object=thing.format(**filled), place=row.place.format(**filled), which=which
            )
            target = label.format(**{**filled, **slots}).strip()
            if "{boxes}" in label:
                slots["limits"] = limits
            texts = {"target": target, "an_object": _article(slots["object"]), **slots}
            order = " ".join(row.words.format(**{**filled, **texts}).split())
            tests = _tests(task, [text.format(**filled) for text in row.done])
            when = ", or ".join(wording[name].format(what) for name, what in tests)
            # Goals are in lower case, and some names are not: "unknown substance B".
            spelled = re.search(re.escape(task.kind), sentence, re.I)
            words = order.replace(task.kind, spelled[0]) if spelled and task.kind else order
            plan.append(
                ProcedureStep(row.name, target, words, slots, _any(task, tests), row.demanded, when)
            )
    return tuple(plan)


def _article(noun: str) -> str:
    return f"{'an' if noun[:1] in 'aeiou' else 'a'} {noun}" if noun else ""


def _in_room(room: str) -> str:
    """``in the kitchen``, but just ``outside``."""
    return room if room in ("", "outside") else f"in the {room}"


def _limit(when: str) -> tuple[str, float, str]:
    """``above 50.0 degrees celsius``."""
    side, number, unit = when.split(" ", 2)
    return side, float(number), unit


def _any(task: ScienceTask, tests: Sequence[tuple[str, str]]) -> Callable[[Belief], bool]:
    """True if one of the tests holds."""
    return lambda belief: any(TESTS[name](belief, task, what) for name, what in tests)


def _tests(task: ScienceTask, texts: Sequence[str]) -> list[tuple[str, str]]:
    """The names of tests with their arguments; the task's object for one without."""
    read = [re.fullmatch(r"(\w+)(?:\((.+)\))?", text) for text in texts]
    return [(match[1], match[2] or task.object) for match in read if match]


def current_step(steps: Sequence[ProcedureStep], belief: Belief) -> tuple[ProcedureStep, int]:
    """The first open step and its number, or the last step when all are done.

    Some steps can be skipped: a pot on the stove was obviously taken there. So a step also counts
    as done once a later one is, up to the next demanded step.
    """
    done = [step.done(belief) for step in steps]
    for number, step in enumerate(steps):
        end = number
        while end < len(steps) - 1 and not steps[end].demanded:
            end += 1
        if not any(done[number : end + 1]):
            return step, number
    return steps[-1], len(steps)


def _all_names(belief: Belief) -> Iterator[str]:
    """The names of everything the agent carries, sees or has seen."""
    yield from belief["holding"]
    yield from belief["visible"]
    yield from belief["last_seen"]


def _names_of(belief: Belief, target: str) -> list[str]:
    """The names under which a target was seen."""
    return [name for name in _all_names(belief) if same_thing(name, target)]


def _chain(belief: Belief, name: str) -> Iterator[str]:
    """The containers of a thing, from the inside out."""
    passed = {name}
    place = belief["last_seen"].get(find(belief["last_seen"], name) or "")
    while place is not None and place not in passed:
        passed.add(place)
        yield place
        place = belief["last_seen"].get(place)


def _around(belief: Belief, target: str) -> set[str]:
    """All containers around a target."""
    return {place for name in _names_of(belief, target) for place in _chain(belief, name)}


def is_kind(name: str, kind: str) -> bool:
    """Living things are recognized by their descriptions; all other things are not alive.

    The word for a young animal comes last: a bee hive is not one.
    """
    words = name.split()
    plant = is_a(words[-1], kinds("plants")) is True
    animal = words[0] in kinds("stages") or words[-1] in kinds("young")
    alive = plant or animal
    truth = {"plant": plant, "animal": animal, "living thing": alive}
    return truth.get(kind, not alive and name != "air")


def _carried(belief: Belief, thing: str) -> bool:
    """True for a thing in the inventory, or inside a carried thing."""
    around = [*_names_of(belief, thing), *_around(belief, thing)]
    return any(same_words(place, held) for place in around for held in belief["holding"])


def _chosen(belief: Belief) -> list[str]:
    """The thing first focused on, and its containers, because a plant moves in its pot."""
    first = events(belief, FOCUS)[:1]
    return [*first, *(place for thing in first for place in _chain(belief, thing))]


def _changed(belief: Belief, what: str) -> bool:
    """True if its name, and so its phase, changed since it was first seen."""
    return f"{split_phase(what)[0]}{WAS}" in map(str.lower, belief["flags"])


def _decided(belief: Belief, what: str, boxes: Boxes) -> bool:
    """True once the readings show on which side of the limit it melts.

    Liquid below the limit means that it melts below it; solid above the limit, above it. The last
    reading has to be on the same side, because the answer is chosen by it. A reading at the limit
    decides nothing: the thermometer prints whole degrees.
    """
    last, limits = temperature_of(belief, what), [_limit(when)[1] for _, when in boxes]
    if last is None or not limits:
        return False
    if last < min(limits):
        return any(read < min(limits) for read in measured_as(belief, what, "liquid"))
    return last > max(limits) and any(
        read > max(limits) for read in measured_as(belief, what, "solid")
    )


def _running(belief: Belief, what: str) -> bool:
    """True if it is in a device that runs; coolers run unless they were switched off."""
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
    """True if all ingredients of the recipe are in one container."""
    places = [
        {belief["last_seen"].get(name) for name in _names_of(belief, ingredient)}
        for ingredient in events(belief, RECIPE)
    ]
    return len(places) > 1 and bool(set.intersection(*places) - {None, belief["location"]})


def _products(belief: Belief) -> list[str]:
    return [name for name in belief["flags"] if "made" in states_of(belief, name)]


def _colours(name: str) -> set[str]:
    """The words of a colour: a look lists "green-blue", the answer says "blue green"."""
    return set(name.lower().replace("-", " ").split())


def _planted(belief: Belief, kind: str) -> int:
    """The number of flower pots with a seed or a plant of a kind in them."""
    pots = (flag for name, flag in belief["flags"].items() if is_a(name, kinds("flower_pot")))
    return sum(kind in contents.lower() for contents in pots)


def _in_bloom(belief: Belief, pots: Sequence[str], part: str) -> list[str]:
    """The states of a part on the blooming plants of these pots: ``purple flower``."""
    contents = [states_of(belief, pot) for pot in dict.fromkeys(pots)]
    blooming = (states for states in contents if "reproducing stage" in states)
    return [state for states in blooming for state in states if state.endswith(part)]


# Second word of a trait ("tall plant height") -> the part that shows it.
_SHOWS = {"seed": "seed", "flower": "flower", "leaf": "leaves", "plant": "height"}


def _offspring(belief: Belief, trait: str) -> list[str]:
    """The observed trait of the next generation: its seeds, or the plant from one of them."""
    part, pots = trait.split()[1], events(belief, SOWN)
    return _in_bloom(belief, pots if part == "seed" else pots[2:], _SHOWS[part])


def _watered(belief: Belief) -> bool:
    pots = [name for name, states in belief["flags"].items() if POURED in states]
    pots.append(belief["last_seen"].get("water", ""))
    return any(is_a(name, kinds("flower_pot")) for name in pots)


# The tests that ``done`` in steps.yaml names. Arguments: the belief, the task, the test's argument.
TESTS: dict[str, Callable[[Belief, ScienceTask, str], bool]] = {
    "of_kind": lambda b, _, kind: any(is_kind(name, kind) for name in _all_names(b)),
    "known": lambda b, _, what: bool(_names_of(b, what)),
    # Some young animals have other names: a tadpole is a frog.
    "called": lambda b, _, word: any(
        word in name.lower() or is_a(name, kinds_if_any(word)) for name in _all_names(b)
    ),
    "ending": lambda b, _, word: any(name.endswith(word) for name in _all_names(b)),
    "carried": lambda b, _, what: _carried(b, what),
    "focused": lambda b, _, what: any(same_thing(name, what) for name in events(b, FOCUS)),
    "focused_times": lambda b, _, times: len(events(b, FOCUS)) >= int(times),
    "chosen_taken": lambda b, *_: any(find(b["holding"], name) for name in _chosen(b)),
    "chosen_in": lambda b, _, place: place in _chosen(b)[1:],
    "answered": lambda b, task, _: bool(set(events(b, FOCUS)) & {name for name, _ in task.boxes}),
    "boxed": lambda b, task, what: bool(_around(b, what) & {name for name, _ in task.boxes}),
    # The thing cools or warms on the way, so the last reading must be from this room.
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
    # The planes on which a block was observed.
    "watched": lambda b, task, times: (
        sum(task.object in name and " the plane" in s for name, s in b["flags"].items())
        >= int(times)
    ),
}


FAMILIES = ["F1", "F2", "F3", "F4"]


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
    """Parse the task description by templates; raise an error when none matches."""
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


def read_task(sentence: str) -> ScienceTask:
    """The parts of the description, which tests and the belief need."""
    parts = _match(sentence)[2].groupdict()
    text = _plain(sentence)
    boxes = [(name, when) for when, name in _BOX.findall(text)]
    instrument = _INSTRUMENT.search(text)
    room, box_room = _ROOM.search(text), _BOX_ROOM.search(text)
    return ScienceTask(
        object=parts["o"],
        boxes=[(parts["d"], "always")] if parts.get("d") else boxes,
        box_room=box_room[1] if box_room else "",
        room=room["r"] if room else "",
        instrument=instrument[1] if instrument else "",
        trait=parts.get("t") or "",
    )


class Focus(NamedTuple):
    """A thing to focus on: its wording, its name, and which one of its kind."""

    words: str
    object: str
    which: str = ""


def focus_order(sentence: str) -> list[Focus]:
    """The things to focus on, in order.

    For a tertiary colour the last sentence of the description is wrong: it says "focus on the green
    paint" although the green-blue paint counts. The intermediate colour comes first, the paint that
    the task names second.
    """
    _, verb, match = _match(sentence)
    parts = match.groupdict()
    target = Focus("{object}", parts["o"])
    if verb in ("measure-temperature", "measure-melting-point"):
        return [Focus("{object}", "thermometer"), target]
    if verb == "mix-paint" and "intermediate" in _plain(sentence):
        return [Focus("{which} {object}", "paint", "intermediate"), target]
    if verb == "grow":
        return [Focus("{object}", "seed")]
    if verb.startswith("lifespan"):
        spans = [f"{which} life span" for which in verb.split("-")[1:]]
        return [Focus("{object} with the {which}", target.object, span) for span in spans]
    if verb == "life-stages":
        # Plants go through four stages; for animals the description gives the number.
        stages = [f"life stage {n}" for n in range(1, int(parts["n"] or 4) + 1)]
        return [Focus("{object} in {which}", target.object, stage) for stage in stages]
    if verb.startswith("inclined-plane"):
        return [Focus("{object} with the {which}", target.object, parts["q"])]
    return [] if verb == "genetics" else [target]


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
    """The current step of the canonical procedure, and the progress in percent.

    The belief already contains the relevant history (focus, readings, the recipe), so this pointer
    equals the one in the belief. The text gives the last reading beside the conditions of the
    boxes, and the last phase beside the target phase; the agent has to compare them.
    """
    plan = plan_for(goal["sentence"])
    step, done = current_step(plan, belief)
    words, slots = step.words, step.about
    if step.name in ("place_answer", "answer_box"):
        reading = temperature_of(belief, goal["object"])
        words += f"; last reading: {reading:g} degrees celsius" if reading is not None else ""
    if goal["state"] in _PHASE_CHANGES and step.name in _CHANGING:
        phase = phase_of(belief, goal["object"])
        words += f"; when last seen it was {phase}" if phase else ""
    if step.name == "answer_box" and (trait := read_task(goal["sentence"]).trait):
        offspring = _offspring(belief, trait)
        words += f"; the offspring has: {', '.join(dict.fromkeys(offspring))}" if offspring else ""
        shown = any(trait.split()[0] in seen.split() for seen in offspring)
        slots = Target(object="", which="dominant" if shown else "recessive")
    progress = 100 * done // len(plan)
    return SubGoal(name=step.name, target=step.target, progress=progress, about=slots, words=words)


_ONE_BOX = re.compile(r"move it to the (\w+ box) in the ([\w ]+)\.")


def roles_of(sentence: str) -> dict[str, str]:
    """The roles that the sentence alone assigns: its only box, and the rooms it names.

    If the answer is one of several boxes, the result of the task decides which.
    """
    text = _plain(sentence)
    roles = {}
    if room := _ROOM.search(text):
        roles["the room that the task names"] = room["r"]
    if box := _ONE_BOX.search(text):
        roles |= {"the task's box": box[1], "the box's room": box[2]}
    return roles
