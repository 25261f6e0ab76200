"""ALFWorld: every kind of line that its prompts print, and the games' own facts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from rpms.envs.manuals import load_manual
from rpms.rules import can_work, match_action
from rpms.rules.predicates import Predicate, StaticFacts, evaluate, parse_predicate
from rpms.vocabulary.belief import Belief, kind_of
from tests.truth.playing import Moment
from tests.truth.reading import (
    REJECTED,
    Kind,
    is_so,
    kind,
    learned_faults,
    rejection_faults,
    times_faults,
    true_always,
)

NAME = r"[a-z]+ \d+"
# The whole manual judges what memory has learned, also where a run has no rules.
MANUAL = load_manual("alfworld")


def truth_of(moment: Moment, *names: str) -> Belief:
    """The belief of somebody who knows everything."""
    belief = moment.env.true_belief(moment.game.facts(), names)
    assert belief is not None
    return belief


def here(moment: Moment) -> list[str]:
    truth = truth_of(moment)
    return [*([truth["location"]] if truth["location"] else []), *truth["reachable"]]


def inside(moment: Moment, thing: str, place: str) -> bool:
    return ("inreceptacle", (thing, place)) in set(moment.game.facts())


def listed(text: str) -> list[str]:
    return re.findall(NAME, text)


# The state block.


@kind("state", r"Location: (.+)")
def location(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    known = here(moment) or [moment.env.nowhere]
    return is_so(match[1] in known, f"truly at {known}")


@kind("state", r"Within reach: (.+)")
def reach(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    return [f"{p} is not at this spot" for p in listed(match[1]) if p not in here(moment)]


@kind("state", r"Holding: (.+)")
def holding(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    truly = truth_of(moment)["holding"]
    return is_so(match[1] == (", ".join(truly) or "nothing"), f"truly {truly}")


@kind("state", r"(Open|Closed): (.+)")
def doors(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    truly = truth_of(moment)["containers"]
    door = match[1].lower()
    return [f"{p} is {truly.get(p)}" for p in listed(match[2]) if truly.get(p) != door]


@kind("state", r"Known: (.+)")
def states(moment: Moment, match: re.Match[str]) -> Iterator[str]:
    truly, thing = truth_of(moment)["flags"], ""
    for part in match[1].split(", "):
        thing, _, state = part.rpartition(" is ") if " is " in part else (thing, "", part)
        if state not in truly.get(thing, "").split(", "):
            yield f"{thing} is not {state}, but {truly.get(thing)}"


@kind("state", r"Seen: (.+)")
def seen(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    pairs = re.findall(rf"({NAME}) at ({NAME})", match[1])
    wrong = [pair for pair in pairs if not inside(moment, *pair)]
    return [f"{thing} is not at {place}" for thing, place in wrong]


@kind("state", r"Searched: (.+)")
def searched(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    texts = "\n".join(turn["observation"] for turn in moment.state["history"])
    shown = {p for p in listed(match[1])
             if f"On the {p}, you see" in texts or f"{p} is open. In it" in texts}  # fmt: skip
    return [f"{p} was never shown" for p in listed(match[1]) if p not in shown]


@kind("state", r"Rejected here \((.+)\): (.+)")
def recap(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    failed = {turn["action"] for turn in moment.state["history"] if turn["failed"]}
    return [f"'{a}' was not rejected" for a in match[2].split(", ") if a not in failed]


@kind("state", r"Here: (.+)")
def around(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    spot = here(moment)
    return [f"{thing} is not here" for thing in re.findall(rf"({NAME})(?: at {NAME})?", match[1])
            if not any(inside(moment, thing, place) for place in spot)]  # fmt: skip


# The goal and the sub-goal.


@kind("goal", r"Goal: (.+)|Type: (.+)|Progress: \d+%")
def goal(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    spec = moment.state["goal"]
    if match[1]:
        return is_so(match[1] == spec["sentence"], "another goal")
    return is_so(match[2] in (None, spec["type"]), "another type")


TOOLS = {
    "heat_object": ("hot", "microwave"), "cool_object": ("cool", "fridge"),
    "clean_object": ("clean", "sinkbasin"),
}  # fmt: skip


@kind(
    "goal",
    r"Current sub-goal: (\w+): ([^(,]+)(?:, (?:at|in/on) ([^(,]+)|, at any place that takes it)?"
    r"(?: \(you are (?:at (.+)|(there)|.+)\))?",
)
def sub_goal(moment: Moment, match: re.Match[str]) -> Iterator[str]:
    """The next end of this goal's procedure, where it happens, and where the agent is."""
    truth, goal, spot = truth_of(moment), moment.state["goal"], here(moment)
    step, thing, place = match[1], match[2].strip(), (match[3] or "").strip()
    if step != "free_hand":
        procedure = MANUAL.domain.procedures[goal["type"]]
        yield from is_so(step in procedure, f"no step of {goal['type']}")
    if match[4]:
        yield from is_so(match[4] in spot, f"truly at {spot}")
    if match[5]:
        yield from is_so(place in spot, f"truly at {spot}")
    if place:
        yield from is_so(place in truth["places"], f"no {place} here")
    if step in ("find_object", "find_lamp"):
        wanted = goal["destination"] if step == "find_lamp" else goal["object"]
        yield from is_so(thing == wanted, f"the goal names {wanted}")
    elif step == "free_hand":
        yield from is_so([thing.removeprefix("put down ")] == truth["holding"], "not held")
    elif step in ("take_object", "use_lamp"):
        yield from is_so(inside(moment, thing, place), f"{thing} is not at {place}")
    else:
        yield from is_so([thing] == truth["holding"], f"truly holding {truth['holding']}")
        state, tool = TOOLS.get(step, ("", goal["destination"]))
        yield from is_so(kind_of(place) == tool, f"it takes a {tool}")
        reached = state and state in truth["flags"].get(thing, "").split(", ")
        yield from is_so(not reached, f"{thing} is {state} already")


@kind("goal", r"Current sub-goal: (\w+) - (.+)")
def sub_goal_of_the_paper(moment: Moment, match: re.Match[str]) -> Iterator[str]:
    """The listing of the paper names the end alone."""
    step, names = match[1], listed(match[2])
    if step in ("take_object", "use_lamp"):
        yield from is_so(inside(moment, *names), f"{names} are not together")
    elif names:
        yield from is_so(names[:1] == truth_of(moment)["holding"], "it is not held")


# Rules.


@kind("rules", r"\[[UD]-(?!LOC)[\w-]+\] .+|\[O-(?:SEARCH|FAIL|COOL|CLEAN|PLACE|TWO|EXAM)-\d+\] .+")
def principle(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    return true_always(moment, match)


@kind("rules", r"\[(?:D-LOC|O-LOC|O-TOOL|O-DEST)-\d+\] (.+?): (.+)")
def places(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    truly = truth_of(moment)["places"]
    return [f"no {place} here" for place in listed(match[2]) if place not in truly]


@kind("rules", r"\[(O-ACT-\d+)\] .+")
def action_line(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    """Held against the game by what became of the last action (``needs_hold``)."""
    return is_so(match[1] in {rule.id for rule in moment.manual.actions}, "no such action")


@kind("situation", r"- OS-001: Holding (.+) - no other object can be taken until it is put down\.")
def full_hand(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    return is_so([match[1]] == truth_of(moment)["holding"], "another thing is held")


@kind("situation", r"- S-002: Hands empty - can pick up an object\.")
def empty_hand(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    return is_so(not truth_of(moment)["holding"], "the hand is full")


@kind("situation", rf"- OS-003: ({NAME}) is closed - open it before looking, taking or putting\.")
def closed_here(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    closed = truth_of(moment)["containers"].get(match[1]) == "closed"
    return is_so(closed and match[1] in here(moment), "it is not here and closed")


# The last action.


@kind("last_action", REJECTED.pattern)
def rejected(moment: Moment, match: re.Match[str]) -> Iterator[str]:
    yield from times_faults(moment, match)
    yield from reason_faults(moment, match["action"], match["reason"])


def reason_faults(moment: Moment, action: str, reason: str) -> Iterator[str]:
    """What is false in the reason for a rejection, or for a veto."""
    truth = truth_of(moment, *listed(action))
    spot = {
        rf"({NAME}) is at this very spot: examine or open ({NAME}) from here": lambda m, found: (
            is_so(found[1] in here(m), f"{found[1]} is not at this spot")
        )
    }
    holds = partial(evaluated, truth, moment.manual.facts)
    yield from rejection_faults(moment, action, reason, holds, fact_fault, spot)


def evaluated(
    truth: Belief, facts: StaticFacts, predicate: Predicate, names: Mapping[str, str]
) -> bool | None:
    return evaluate(predicate, truth, facts, names)


def fact_fault(moment: Moment, fact: str) -> str:
    """What is false about a fact; empty if nothing is."""
    if " and " in fact:
        return "; ".join(filter(None, (fact_fault(moment, part) for part in fact.split(" and "))))
    truth = truth_of(moment, *listed(fact))
    if fact == "you are at none of the places yet":
        return "" if not here(moment) else f"at {here(moment)}"
    if match := re.fullmatch(r"you are at (.+?)(?: already)?", fact):
        return "" if match[1] in here(moment) else f"truly at {here(moment)}"
    if match := re.fullmatch(r"you hold (.+)", fact):
        truly = ", ".join(truth["holding"]) or "nothing"
        return "" if match[1] == truly else f"truly holding {truly}"
    if match := re.fullmatch(r"(.+) is (open|closed)", fact):
        return (
            "" if truth["containers"].get(match[1]) == match[2] else f"{match[1]} is not {match[2]}"
        )
    if match := re.fullmatch(r"(.+) has no door", fact):
        return "" if match[1] not in truth["containers"] else f"{match[1]} has a door"
    if match := re.fullmatch(rf"({NAME}) was last seen at ({NAME})", fact):
        return "" if inside(moment, match[1], match[2]) else f"{match[1]} is not there"
    if match := re.fullmatch(rf"it was not there when ({NAME}) was searched", fact):
        return "" if match[1] in moment.state["belief"]["searched"] else "it was never searched"
    if match := re.fullmatch(r"a (\w+) does not take a (\w+)", fact):
        need = parse_predicate("can_contain(place, thing)")
        names = {"place": f"{match[1]} 1", "thing": f"{match[2]} 1"}
        return "" if evaluate(need, truth, moment.manual.facts, names) is False else "it does"
    return "nobody can check this fact"


# Memory.


@kind("memory", r"From here, a similar task (?:was solved by|went on with): (.+)")
def snippet(moment: Moment, match: re.Match[str]) -> Iterator[str]:
    truth, steps = truth_of(moment), match[1].split(" -> ")
    things = {thing for name, row in moment.game.facts() if name == "inreceptacle" for thing in row}
    known = {*truth["places"], *things, *truth["holding"]}
    for step in steps:
        yield from (f"no {name} here" for name in listed(step) if name not in known)
    first = match_action(moment.manual, steps[0])
    if first and first[0].name == "go_to" and moment.context.rules:
        yield from is_so(first[1]["place"] not in here(moment), "it begins where the agent is")


@kind("memory", r"OK: (\w+): (.+)|FOUND: .+|AVOID: (.+)|SCHEMA: (.+)")
def recorded(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    """In the names of another home: held to one voice, not to this home."""
    return true_always(moment, match)


@kind("memory", r"Rule: (?:needs .+|it was rejected in a similar task, the reason is not known)")
def recorded_rule(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    return true_always(moment, match)


@kind(
    "memory",
    r"Learned: (.+?)(?: needs (.+?))?(?:; afterwards (.+?))?(?: \(worked in \d+ of \d+ tries\))?",
)
def learned(moment: Moment, match: re.Match[str]) -> Iterator[str]:
    """What memory noticed must be so by the game's rules, or follow from them."""
    follows = {"here", "visible", "hand_empty", "holding"}
    yield from learned_faults(MANUAL, match[1], match[2], match[3], follows)


@kind("memory", r"In other tasks, (\w+) was found in: (.+)")
def found(moment: Moment, match: re.Match[str]) -> Iterator[str]:
    truth = truth_of(moment)
    for sort, held, looked, names in re.findall(
        r"(\w+) \((\d+) of (\d+) searched held one; here: ([^)]+?)(?: and \d+ more)?\)", match[2]
    ):
        yield from is_so(int(held) <= int(looked), "more finds than searches")
        for place in listed(names):
            yield from is_so(place in truth["places"] and kind_of(place) == sort, f"no {place}")
            unsearched = place not in moment.state["belief"]["searched"]
            yield from is_so(unsearched, f"{place} was searched already")


@kind("memory", r"In a similar task '(.+)' was rejected; the reason is not known")
def unexplained(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    return true_always(moment, match)


@kind("memory", r"WARNING \[(.+?)\]: check first that (.+); that is not known yet")
def warning(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    return is_so(match[1] in {rule.id for rule in moment.manual.actions}, "no such rule")


@kind("memory", r"WARNING \[(.+?)\]: by the rules '(.+)' can work now")
def allowed(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    truth = truth_of(moment, *listed(match[2]))
    return is_so(can_work(moment.manual, match[2], truth) is not False, "it cannot")


# The guard's offers: reasons that say how things are.


@kind("offered", r"\d+\. (.+?) \((.+)\)")
def offer(moment: Moment, match: re.Match[str]) -> Iterator[str]:
    truth, reason = truth_of(moment, *listed(match[1])), match[2]
    if found := re.match(
        rf"({NAME}) (?:is|holds the object and is|is the destination and is) closed", reason
    ):
        closed = truth["containers"].get(found[1]) == "closed"
        yield from is_so(closed, f"{found[1]} is not closed")
    if found := re.match(rf"the (?:object was seen|lamp is) at ({NAME})", reason):
        kinds = {moment.state["goal"]["object"], moment.state["goal"]["destination"]}
        there = [row[0] for name, row in moment.game.facts()
                 if name == "inreceptacle" and row[1] == found[1]]  # fmt: skip
        yield from is_so(any(kind_of(thing) in kinds for thing in there), "nothing such is there")


KINDS: list[Kind] = [each for each in globals().values() if isinstance(each, Kind)]


def needs_hold(moment: Moment, truth_before: Belief | None) -> Iterator[str]:
    """What the manual prints that an action needs, against what the game made of the last one."""
    if truth_before is None or not moment.state["history"]:
        return
    last = moment.state["history"][-1]
    matched = match_action(moment.manual, last["action"])
    if matched is None:
        return
    rule, names = matched
    truths = [evaluate(p, truth_before, moment.manual.facts, names) for p in rule.needs]
    if last["failed"] and all(truths) and rule.effects and not rule.if_refused:
        yield f"{moment.where}: '{last['action']}' was rejected, and all its needs were met"
    if not last["failed"] and False in truths:
        yield f"{moment.where}: '{last['action']}' worked, and {rule.id} says it could not"
