"""The beginner's habits in a household, and how the knowledge blocks improve on them."""

from __future__ import annotations

import re
from typing import NamedTuple
from zlib import crc32

from rpms.models.sim.reading import REFUSED, View, kind, names

ATTENTION = 3
"""How many of its own turns the planner remembers when no state block tells it more."""

CONTAINERS = {"cabinet", "drawer", "fridge", "microwave", "safe"}
TOOLS = {"heat": "microwave", "cool": "fridge", "clean": "sinkbasin"}
LESSONS = {"heat": "D-HEAT-001", "cool": "D-COOL-001", "clean": "D-CLEAN-001"}


class Task(NamedTuple):
    """The task sentence as the planner reads it."""

    thing: str
    verb: str
    target: str
    number: int
    look: bool


class Situation(NamedTuple):
    """What the planner believes, from the state block or from what it still remembers."""

    here: str
    reach: set[str]
    held: str
    seen: dict[str, str]
    closed: str
    visited: list[str]


def decide(view: View, whim: int = 0) -> tuple[str, str]:
    """A thought and an action; another ``whim`` is another beginner with the same habits."""
    view = view._replace(whim=whim)
    task = read_task(view.task)
    now = assess(view)
    refused = bool(view.turns) and view.turns[-1][1].startswith(REFUSED)
    if refused and (fix := _recover(view, now)):
        return fix
    if now.held and kind(now.held) == task.thing:
        return _serve(view, task, now)
    if now.held:
        return f"I hold {now.held}, which is not needed.", f"put {now.held} in/on {now.here}"
    if task.look and "D-EXAM-001" not in view.rules and (lamp := _habit_lamp(view, task, now)):
        return lamp
    return _fetch(view, task, now)


def read_task(sentence: str) -> Task:
    """Object, destination and what has to be done to the object."""
    words = sentence.lower()
    if found := re.match(
        r"(?:look at|examine)(?: the| a| some)? (\w+) (?:under|with) the (\w+)", words
    ):
        return Task(found[1], "", found[2], 1, True)
    verb = next((v for v, w in (("heat", "heat |hot "), ("cool", "cool "), ("clean", "clean "))
                 if re.search(rf"\b(?:{w})", words)), "")  # fmt: skip
    parts = re.match(
        r"(?:put|find|heat|cool|clean) (?:a |some |two )?(?:hot |cool |clean )?(\w+)", words
    )
    return Task(
        thing=parts[1] if parts else "",
        verb=verb,
        target=words.rstrip(".").split()[-1] if words else "",
        number=2 if " two " in f" {words} " else 1,
        look=False,
    )


def assess(view: View) -> Situation:
    """The state block where there is one, else the last few turns."""
    recent = view.turns[-ATTENTION:]
    here = held = ""
    for action, observation in view.turns:
        if observation.startswith(REFUSED):
            continue
        if action.startswith("go to "):
            here = action[6:]
        if found := re.match(r"You pick up the (\w+ \d+)", observation):
            held = found[1]
        if observation.startswith("You put the "):
            held = ""
    seen: dict[str, str] = {}
    for _, observation in recent:
        if found := re.search(
            r"(?:On|The) the (\w+ \d+)|On the (\w+ \d+)|The (\w+ \d+) is open", observation
        ):
            place = next(name for name in found.groups() if name)
            seen.update(dict.fromkeys(names(observation.partition("you see")[2]), place))
        if found := re.match(r"You put the (\w+ \d+) in/on the (\w+ \d+)", observation):
            seen[found[1]] = found[2]
        if found := re.match(r"You pick up the (\w+ \d+)", observation):
            seen.pop(found[1], None)
    closed = ""
    for _, observation in recent:
        if found := re.search(r"The (\w+ \d+) is closed", observation):
            closed = found[1]
        elif not observation.startswith(REFUSED):
            closed = ""
    reach = {here}
    visited = [action[6:] for action, _ in recent if action.startswith("go to ")]
    if view.state:
        here = view.state.get("Location", here)
        reach = {here, *names(view.state.get("Within reach", ""))}
        held = view.state.get("Holding", "nothing").replace("nothing", "")
        seen.update(dict(re.findall(r"(\w+ \d+) at (\w+ \d+)", view.state.get("Seen", ""))))
        closed = here if here in names(view.state.get("Closed", "")) else closed
        if "U-SEARCH-002" in view.rules:
            visited = names(view.state.get("Searched", ""))
    return Situation(here, reach, held, seen, closed, visited)


def _recover(view: View, now: Situation) -> tuple[str, str] | None:
    """After a refusal: with a diagnosis do what was missing, without one try a habit."""
    action = view.turns[-1][0]
    if "U-FAIL-002" in view.rules:
        if found := re.match(r"be at (\w+ \d+)", view.needs):
            return f"I must be at {found[1]} first.", f"go to {found[1]}"
        if found := re.search(r"(\w+ \d+) is at this very spot", view.needs):
            return f"{found[1]} is right here.", f"examine {found[1]}"
        return None
    if now.closed and now.here and not action.startswith("open "):
        return "Maybe it has to be open.", f"open {now.closed}"
    if len(view.turns) > 1 and view.turns[-2][0] == action:
        return "That does not work. Let me look around.", "look"
    once_more = bool(action) and _coin(view, 3) == 0
    return ("That should have worked. Once more.", action) if once_more else None


def _serve(view: View, task: Task, now: Situation) -> tuple[str, str]:
    """Holding the object: transform it if needed, then bring it where it belongs."""
    if task.look:
        lamps = [thing for thing in now.seen if kind(thing) == task.target]
        if lamps:
            place = now.seen[lamps[0]]
            if place in now.reach:
                return f"The {lamps[0]} is here.", f"use {lamps[0]}"
            return f"The {lamps[0]} is at {place}.", f"go to {place}"
        return _search(view, now, task.target, ["desk", "sidetable", "dresser", "shelf"])
    if task.verb and not _done(view, task.verb, now.held):
        return _transform(view, task, now)
    return _place(view, task, now)


def _done(view: View, verb: str, held: str) -> bool:
    """With a goal block the sub-goal tells; otherwise only what is still remembered."""
    if view.sub_goal:
        return view.sub_goal == "place_object"
    return any(o.startswith(f"You {verb} the {held}") for _, o in view.turns[-ATTENTION:])


def _transform(view: View, task: Task, now: Situation) -> tuple[str, str]:
    tool = next((p for p in view.places if kind(p) == TOOLS[task.verb]), f"{TOOLS[task.verb]} 1")
    if tool not in now.reach:
        return f"I need the {tool} to {task.verb} it.", f"go to {tool}"
    command = f"{task.verb} {now.held} with {tool}"
    if LESSONS[task.verb] in view.rules:
        return f"{LESSONS[task.verb]}: it stays in my hand.", command
    if task.verb in view.schemas:
        return f"I know how to {task.verb}: with it in my hand.", command
    # A beginner treats the tool as a container: in it goes. Having just taken the object back
    # out, it tries the command instead.
    if any(action.startswith(f"put {now.held}") for action, _ in view.turns[-ATTENTION:]):
        return f"Let me {task.verb} it now.", command
    if now.closed == tool:
        return f"The {tool} is closed.", f"open {tool}"
    return f"Put it in to {task.verb} it.", f"put {now.held} in/on {tool}"


def _place(view: View, task: Task, now: Situation) -> tuple[str, str]:
    targets = [p for p in view.places if kind(p) == task.target]
    if kind(now.here) == task.target:
        if now.closed == now.here and ("D-CONT-001" in view.rules or _coin(view, 2)):
            return f"The {now.closed} is closed.", f"open {now.closed}"
        return "This is the place.", f"put {now.held} in/on {now.here}"
    used = [place for thing, place in now.seen.items() if kind(thing) == task.thing]
    goal = next((p for p in targets if p in used), targets[-1] if targets else now.here)
    return f"It belongs to the {task.target}.", f"go to {goal}"


def _fetch(view: View, task: Task, now: Situation) -> tuple[str, str]:
    """Empty-handed: take the object where it was seen, or search for it."""
    for thing, place in now.seen.items():
        delivered = kind(place) == task.target and not task.look and not task.verb
        if kind(thing) != task.thing or delivered:
            continue
        if place not in now.reach:
            return f"I saw {thing} at {place}.", f"go to {place}"
        if now.closed == place:
            return f"The {place} is closed.", f"open {place}"
        return f"There is {thing}.", f"take {thing} from {place}"
    return _search(view, now, task.thing, view.likely)


def _habit_lamp(view: View, task: Task, now: Situation) -> tuple[str, str] | None:
    """A beginner turns on the lamp as soon as it sees one, before it has the object."""
    lamps = [t for t, place in now.seen.items() if kind(t) == task.target and place == now.here]
    tried = any(action.startswith("use ") for action, _ in view.turns[-ATTENTION:])
    return ("Here is the lamp.", f"use {lamps[0]}") if lamps and not tried else None


def _search(view: View, now: Situation, thing: str, likely: list[str]) -> tuple[str, str]:
    """The next place to look: by the rules' order where there is one, else by whim."""
    if now.closed and ("D-CONT-001" in view.rules or _coin(view, 2)):
        return f"The {now.closed} is closed.", f"open {now.closed}"
    if not view.places:
        return "I do not see where to go.", "look"
    left = [p for p in view.places if p not in now.visited and p != now.here]
    hinted = _hints(view, thing)
    if not left:
        left = [p for p in view.places if p != now.here] or view.places
    if "U-SEARCH-001" in view.rules:
        rank = {name: position for position, name in enumerate([*hinted, *likely])}
        left.sort(key=lambda p: (rank.get(kind(p), len(rank)), kind(p), _turn(view, p)))
        place = left[0]
    elif known := [p for p in left if kind(p) in hinted]:
        place = known[0]
    else:
        # By habit surfaces are tried first; drawers and cabinets only now and then.
        surfaces = [p for p in left if kind(p) not in CONTAINERS]
        choice = surfaces if surfaces and _coin(view, 4) else left
        place = choice[_coin(view, len(choice))]
    return f"Look for {thing} at {place}.", f"go to {place}"


def _turn(view: View, place: str) -> int:
    """Numbers in order; another beginner goes through them in another order."""
    number = int(place.split()[1])
    return crc32(f"{view.whim}:{place}".encode()) if view.whim else number


def _hints(view: View, thing: str) -> list[str]:
    """Kinds of places where past successes took such a thing."""
    found = []
    for snippet in view.snippets:
        for action in snippet:
            taken = re.match(r"take (\w+) \d+ from (\w+) \d+", action)
            if taken and taken[1] == thing:
                found.append(taken[2])
    return found


def _coin(view: View, sides: int) -> int:
    """Whim without chance: the same prompt always gives the same choice."""
    trail = "|".join(action for action, _ in view.turns[-ATTENTION:])
    text = f"{view.whim}|{view.task}|{len(view.turns)}|{trail}"
    return crc32(text.encode()) % max(1, sides)
