"""f_upd for ScienceWorld: the belief follows from commands and answers alone (Eq. 1).

Rooms come from the sentences of moving and from looks that list the agent itself (another room can
be looked at through an open door). The inventory follows the sentences about moved things; where
no text tells what is carried, the belief is marked as unsure until it is listed again.

"You move the orange to the bowl." does not say where the orange came from. The command may, or the
menu line it was chosen from, or the simulator's rule for ambiguous names: it asks for
disambiguation instead of acting. If the source is still open, the belief is marked as unsure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial

from rpms.envs.scienceworld import parse_view as view
from rpms.envs.scienceworld.goals import current_step, plan_for, read_task
from rpms.envs.scienceworld.things import (
    BROKEN,
    CARRYING,
    FOCUS,
    INVENTORY,
    POURED,
    READ,
    RECIPE,
    TASK,
    UNKNOWN_COMMAND,
    UNLISTED,
    UNSURE,
    WAS,
    add_event,
    events,
    kinds,
    note,
    note_reading,
    print_states,
    same_thing,
    states_of,
)  # fmt: skip
from rpms.vocabulary.belief import Belief, copy_belief, empty_belief, objects_at
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.goal import GoalSpec
from rpms.vocabulary.naming import find, is_a, same_words

_REJECTED = re.compile(
    r"No known action|Unknown action|It'?s not clear|I'm not sure how|You can't|That can't|"
    r"That (?:thing|container)|The door is not open|There is only one thing|Mixing the contents of|"
    r"The .*(?: is not (?:moveable|edible|movable|openable|closeable|something that)| isn't open|"
    r" can't be | does not contain any| appears broken)"
)
_UNREAD = (UNKNOWN_COMMAND, "Unknown action.")
_TASK = re.compile(r"^Your task is to .+$", re.M)
_WENT = re.compile(r"^You (?:move|teleport)(?: through the [\w ]+?)? to the ([\w ]+)\.$")
_MOVED = re.compile(r"^You (?:move|pour) the (.+) (?:in)?to the (.+?)\.$")
_EATEN = re.compile(r"^The (.+) was delicious\.$")
_SWITCHED = re.compile(r"^The (.+?) is (?:now|already) (open|closed|activated|deactivated)\.$")
_BROKEN = re.compile(r"^The (.+?) appears broken")
_FIRE = re.compile(r"^The (.+?) catches fire\.$")
_READING = re.compile(r"measures a temperature of (-?\d+ degrees celsius)")
_FOCUSED = re.compile(r"^You focus on the (.+?)\.$")
_RECIPE = re.compile(r"^To make .+?, you need to mix (.+?)\.?$", re.M)
_PRODUCT = re.compile(r"mix to produce (?:an? )?(.+?)\.$")
_DUG = re.compile(r"^You dig a hole in the ground, and place the (soil) nearby\.$")
_DUNKED = re.compile(r"^You dunk the .+, moving the liquids \((.+)\) to the (.+?)\.$")
# Ground is no container: things put on carried ground end up in the inventory.
_GROUND = "ground"
# Things that fly off or shed flowers and pollen while they are carried. A potted plant does not.
_RESTLESS = re.compile(r"\b(?:bee(?: \d+)?|flower|tree|plant)$")
_PLANE = "inclined plane"
_MENU = "Ambiguous request:"
_CHOICE = re.compile(r"^(\d+):\s*(.+?)\s*$", re.M)
# A menu line says where a thing is: "orange seed (in seed jar, in inventory, in agent, in hall)".
_PATH = re.compile(r"\(in ([^(),]+)[^()]*\)")
_VERB = re.compile(
    r"^(?:pick up|put down|move|put|pour|eat|drop|take|get|place|drink|consume)\s+(?:the )?"
)
_TARGET = re.compile(r"^(.+) (?:to|into|onto|in/on) .+$")
# "put X in Y" means "move X to Y", while "pick up X in Y" says which X.
_PUT_TARGET = re.compile(r"^(.+) (?:in|on) .+$")
_QUALIFIER = re.compile(r"^(.+) (?:in|on) (?!(?:the )?\w+ stage\b)(?:the )?(.+)$")


def first_belief(observation: str) -> Belief:
    """b_0 from the opening text: the first look and the task, if it is there.

    The text does not list the things carried from the start.
    """
    belief = empty_belief()
    belief["flags"][CARRYING] = UNLISTED
    view.look(belief, "look around", observation)
    if match := _TASK.search(observation):
        belief["flags"][TASK] = match[0]
    _point(belief)
    return belief


def update_belief(previous: Belief, action: str, observation: str) -> Belief:
    """b_t from (b_{t-1}, a_{t-1}, o_t)."""
    belief = copy_belief(previous)
    text = observation.strip()
    if text.startswith(_UNREAD):
        # A command that is not a number closes the menu, even if it is not understood.
        belief["disambiguation"] = belief["disambiguation"] if action.strip().isdecimal() else {}
        return belief
    if menu := read_menu(text):
        belief["disambiguation"] = menu
        return belief
    command = full_command(action, belief["disambiguation"])
    belief["disambiguation"] = {}
    if match := _WENT.match(text):
        view.arrive(belief, match[1])
    elif rejected(text) or not view.look(belief, command, text):
        _handle(belief, command, text)
        _operate(belief, command, text)
        _forget_moved_alikes(belief, previous)
    if _restless(belief) and not text.startswith(view.LISTED):
        belief["flags"][CARRYING] = UNSURE
    _point(belief)
    return belief


def _forget_moved_alikes(belief: Belief, previous: Belief) -> None:
    """Drop same-named things after one was moved: only the next look says which is where."""
    for text in [*belief["alike"]]:
        name = text.partition(" in ")[0]
        places = [(b["last_seen"].get(name), b["visible"].count(name)) for b in (previous, belief)]
        if places[0] != places[1]:
            del belief["alike"][text]


def _restless(belief: Belief) -> bool:
    """True if a carried thing may leave, multiply or fall apart without a message."""
    if "bee hive" in belief["holding"] and belief["containers"].get("bee hive") == "open":
        return True
    return any(_RESTLESS.search(name) for name in belief["holding"])


def rejected(observation: str) -> bool:
    """True if the simulator did not carry out the command. A menu is not a rejection."""
    return _REJECTED.match(observation.strip()) is not None


def rejection_reason(observation: str) -> str:
    """The simulator's reason for a rejection; empty if it could not read the command."""
    text = observation.strip()
    if not rejected(text) or text.startswith(_UNREAD):
        return ""
    return text.partition("\n")[0].partition(". ")[0].rstrip(".")


def _handle(belief: Belief, command: str, text: str) -> None:
    """Follow things that change place: moved, poured out, eaten."""
    if match := _EATEN.match(text):
        _leave(belief, command, match[1])
    elif match := _MOVED.match(text):
        thing, place = _listed_name(belief, command, match[1]), match[2]
        if thing.startswith("contents of the "):
            _pour(belief, thing.removeprefix("contents of the "), place)
            return
        _leave(belief, command, thing)
        if _into_inventory(belief, place):
            belief["holding"].append(thing)
        else:
            view.put(belief, thing, place)
    elif match := _DUG.match(text):
        view.put(belief, match[1], belief["location"] or "")
    elif match := _DUNKED.match(text):
        for liquid in match[1].split(", "):
            view.put(belief, liquid, match[2])


def _listed_name(belief: Belief, command: str, printed: str) -> str:
    """The name that a look lists: an answer may say "the seed" for a round green seed."""
    command_name = _QUALIFIER.sub(r"\1", _TARGET.sub(r"\1", _VERB.sub("", command)))
    listed = (*belief["last_seen"], *belief["visible"])
    longer = (name for name in listed if name.lower() == command_name and printed not in listed)
    return next((name for name in longer if name.endswith(printed)), printed)


def _leave(belief: Belief, command: str, thing: str) -> None:
    """Remove a thing from its place: the inventory, or a place in view."""
    carried = from_inventory(belief, command, thing)
    if carried is None:
        belief["flags"][CARRYING] = UNSURE
        carried = not command.startswith("pick up")
    held = find(belief["holding"], thing)
    if carried and held is not None:
        belief["holding"].remove(held)
    elif carried:
        belief["flags"].setdefault(CARRYING, UNSURE)
    elif source_of(command) not in belief["holding"]:
        view.remove(belief, thing)


def _pour(belief: Belief, source: str, place: str) -> None:
    """Move the believed contents of one thing to another."""
    things = objects_at(belief, source)
    if _into_inventory(belief, place):
        # Contents are stored by name, so five seeds look like one until a listing.
        belief["holding"] += things
        belief["flags"][CARRYING] = UNSURE
    for thing in things:
        belief["last_seen"][thing] = place
    if place != INVENTORY and place not in belief["places"]:
        note(belief, place, [*states_of(belief, place), POURED])


def _into_inventory(belief: Belief, place: str) -> bool:
    return place == INVENTORY or (place == _GROUND and _GROUND in belief["holding"])


def _operate(belief: Belief, command: str, text: str) -> None:
    """Follow doors, devices, readings, focus and mixtures."""
    if match := _SWITCHED.match(text):
        name, state = match[1], match[2]
        if state in ("activated", "deactivated"):
            # Devices that switch themselves off do so without a message, so they are left out.
            if not is_a(name, kinds("self_stopping")):
                note(belief, name, [state])
        else:
            view.set_door(belief, command, name, "open" if state == "open" else "closed")
    elif match := _BROKEN.match(text):
        note(belief, match[1], [*states_of(belief, match[1]), BROKEN])
    elif match := _FIRE.match(text):
        note(belief, match[1], ["on fire"])
    elif match := _READING.search(text):
        note_reading(belief, view.resolve(belief, command.rpartition(" on ")[2]), match[1])
        belief["events"] = [event for event in belief["events"] if event["kind"] != READ]
        add_event(belief, READ, belief["location"] or "")
    elif match := _FOCUSED.match(text):
        add_event(belief, FOCUS, _focused_on(belief, command, match[1]))
    elif match := _RECIPE.search(text):
        belief["events"] = [event for event in belief["events"] if event["kind"] != RECIPE]
        for ingredient in match[1].split(", "):
            add_event(belief, RECIPE, ingredient)
    elif match := _PRODUCT.search(text):
        _mix(belief, command, match[1])


def _focused_on(belief: Belief, command: str, printed: str) -> str:
    """The name that a look lists: the answer may say "plant" for a tree."""
    listed = [*belief["visible"], *belief["holding"], *belief["last_seen"]]
    name = command.removeprefix("focus on ")
    return name if name in listed else printed


def _mix(belief: Belief, command: str, product: str) -> None:
    place = view.resolve(belief, command.removeprefix("mix "))
    for used in objects_at(belief, place):
        view.remove(belief, used)
        # There may be more of it elsewhere in view; the next look says where.
        belief["last_seen"].pop(used, None)
    note(belief, product, ["made"])
    view.put(belief, product, place)
    if place == INVENTORY:
        belief["flags"][CARRYING] = UNSURE


def _point(belief: Belief) -> None:
    """Set the pointer into the procedure, unless the task is unknown."""
    with suppress(RpmsError):
        plan = plan_for(belief["flags"].get(TASK, ""))
        belief["progress"] = current_step(plan, belief)[1]


def describe_belief(belief: Belief, goal: GoalSpec) -> list[str]:
    """The [Current State] lines: the paper's line first, then facts for the next decision."""
    carried = ", ".join(belief["holding"])
    if belief["flags"].get(CARRYING) == UNSURE:
        carried = f"{carried or 'nothing'} (not sure: 'inventory' lists it)"
    elif belief["flags"].get(CARRYING) == UNLISTED:
        more = "perhaps things from the start ('inventory' lists them)"
        carried = f"{carried}, and {more}" if carried else more
    first = f"Room: {belief['location'] or 'unknown'}  Carrying: {carried or 'nothing'}"
    shut = [name for name, door in belief["containers"].items() if door == "closed"]
    near = (*belief["visible"], *belief["holding"])
    parts = {
        "Focused on": events(belief, FOCUS),
        "Your last command was ambiguous": (
            ["answer with a number of its list"] if belief["disambiguation"] else []
        ),
        "Closed": [name for name in shut if name in near or name.startswith("door to ")],
        "States when last seen": _relevant_states(belief, goal),
        **_slides(belief),
        "Seen": _target_places(belief, goal),
        "Looked around": [place for place in belief["searched"] if place in belief["places"]],
    }
    return [first, *(f"{name}: {', '.join(texts)}" for name, texts in parts.items() if texts)]


def recap(belief: Belief) -> dict[str, list[str]]:
    """The results of looks and of the recipe, for prompts that do not show those turns.

    Finished steps are left out: they belong to the procedure, which not every condition has.
    """
    seen, held, doors = belief["last_seen"], belief["holding"], belief["containers"]
    carried = [*filter(partial(states_of, belief), held), *(n for n in seen if seen[n] in held)]
    at_hand, rooms = dict.fromkeys([*carried, *belief["visible"]]), dict[str, list[str]]()
    for name in (name for name in seen if name not in at_hand):
        room = view.room_of(belief, name) or "an unknown place"
        rooms.setdefault(f"Seen in {room}", []).append(name)
    return {
        "Recipe": events(belief, RECIPE),
        "Exits": [name.removeprefix("door to ") for name in doors if name.startswith("door to ")],
        "Not looked around": [room for room in belief["places"] if room not in belief["searched"]],
        "Seen here": _situate(belief, at_hand, f"in {belief['location']}"),
        **{
            label: _situate(belief, rooms[label], label.removeprefix("Seen "))
            for label in reversed(rooms)
        },
    }


def _situate(belief: Belief, names: Iterable[str], default: str) -> list[str]:
    """Each thing with place and state: ``water in metal pot (liquid)``.

    A container that such a text names is not listed again.
    """
    texts, alike = list[str](), belief["alike"]
    for name in (name for name in names if name != "air"):
        states, place = states_of(belief, name), belief["last_seen"].get(name)
        if _PLANE in name:  # has a separate line
            states = []
        if is_a(name, kinds("flower_pot")):  # its contents are listed separately
            states = [state for state in states if state == POURED]
        if name not in belief["visible"] and belief["containers"].get(name) == "closed":
            states.append("closed")
        # The place of another thing of that name is not that of a carried one.
        where = f"in {place}" if place and name not in belief["holding"] else default
        portions = {f"{name} {where}": print_states(states)}
        portions |= {text: s for text, s in alike.items() if text.startswith(f"{name} in ")}
        for text, state in portions.items():
            texts.append(text.removesuffix(f" {default}") + (f" ({state})" if state else ""))
    return [text for text in texts if not any(other.endswith(f" in {text}") for other in texts)]


def _relevant_states(belief: Belief, goal: GoalSpec) -> list[str]:
    """Things that run, burn, are broken or were made, and every state of the target."""
    texts = []
    for name in belief["flags"]:
        if name in (TASK, CARRYING) or name.endswith(WAS):
            continue
        states = states_of(belief, name)
        notable = {"activated", BROKEN, "on fire", "made"} & set(states)
        if _PLANE not in name and (notable or same_thing(name, goal["object"])):
            texts.append(f"{name} ({print_states(states)})")
    return texts


def _slides(belief: Belief) -> dict[str, list[str]]:
    """The last position of a block on each plane. It may have left the plane since."""
    planes = (name for name in belief["flags"] if _PLANE in name and not name.endswith(WAS))
    return {f"Last seen on {name}": states_of(belief, name) for name in planes}


def _target_places(belief: Belief, goal: GoalSpec) -> list[str]:
    """The places where the target, the instrument and the boxes were last seen."""
    task = read_task(goal["sentence"])
    targets = [goal["object"], task.instrument, *(name for name, _ in task.boxes)]
    seen = []
    for name, place in belief["last_seen"].items():
        if any(want and same_thing(name, want) for want in targets):
            room = view.room_of(belief, name)
            seen.append(f"{name} in {place}" + (f" ({room})" if room not in (None, place) else ""))
    return seen


def print_state(belief: Belief) -> str:
    """The printed state signature: ``room=kitchen|inventory=empty|progress=0``."""
    truncated = belief["flags"].get(CARRYING) == UNLISTED
    carried = ",".join(sorted(belief["holding"])) or ("unknown" if truncated else "empty")
    room = belief["location"] or "unknown"
    return f"room={room}|inventory={carried}|progress={belief['progress']}"


def read_menu(observation: str) -> dict[str, str]:
    """The choices of an ambiguous request by number; empty for any other text."""
    return dict(_CHOICE.findall(observation)) if observation.startswith(_MENU) else {}


def full_command(action: str, choices: Mapping[str, str]) -> str:
    """The command itself, or the menu line that a bare number chooses."""
    command = " ".join(action.lower().split())
    return choices.get(str(int(command)), command) if command.isdecimal() else command


def carried_out(action: str, belief: Belief, observation: str) -> str:
    """The unambiguous command that was carried out: ``focus on apple seed in seed jar``."""
    if read_menu(observation.strip()):
        return ""
    command = full_command(action, belief["disambiguation"])
    # Letters keep their case where the agent wrote the command itself.
    return _PATH.sub(r"in \1", command) if command != " ".join(action.lower().split()) else action


def source_of(command: str) -> str:
    """The container that a command or its menu line takes a thing out of."""
    if path := _PATH.search(command):
        return path[1]
    object_text = _VERB.sub("", command)
    if match := _TARGET.match(object_text):
        object_text = match[1]
    match = _QUALIFIER.match(object_text)
    return match[2] if match else ""


def from_inventory(belief: Belief, command: str, thing: str) -> bool | None:
    """True if the thing that a command moved or used up was in the inventory; None if unknown."""
    held = find(belief["holding"], thing)
    if path := _PATH.search(command):
        return path[1] == INVENTORY
    object_text = _VERB.sub("", command)
    puts = re.match(r"(?:put|place) (?!down )", command)
    if match := _TARGET.match(object_text) or (puts and _PUT_TARGET.match(object_text)):
        object_text = match[1]
    if match := _QUALIFIER.match(object_text):
        return match[2] == INVENTORY
    if held is None:
        return False
    alike = [name for name in belief["visible"] if same_words(name, thing)]
    if not alike and belief["visible"]:
        return True
    # Words that the name lacks may distinguish two things ("cup containing red paint").
    return True if set(object_text.split()) <= set(thing.lower().split()) else None
