"""Learning: recorded trajectories -> memory entries. Pure, and independent of their order.

Each episode is replayed on paper: the belief is rebuilt from the recorded texts, the way from a
state of the hand to every reached sub-goal becomes a success snippet, every rejected action a
lesson with the precondition it violated, an action that ended the episode with a negative score a
critical failure (and nothing else), every use of an action evidence for its schema, and what was
seen in a place a find. An answer that a lost episode gave is not told as a success, nor is a way
with a call that the policy forbids and the tool let pass. Everything is told with roles for the
names of the one home it happened in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import permutations, product
from typing import Any, NamedTuple

from rpms.envs import Environment, get_environment
from rpms.envs.manuals import load_manual
from rpms.guard.answers import belief_after
from rpms.memory_store import Entry, merge_entries, parse_entry
from rpms.memory_store.grounding import FATAL, NOT_UNDERSTOOD, UNEXPLAINED
from rpms.memory_store.roles import goes_nowhere, lift, wanted, without_repeats
from rpms.rules import Manual, already_done, check_action, match_action, needed_actions
from rpms.rules.predicates import Predicate, evaluate, parse_predicate
from rpms.rules.schema import ActionRule
from rpms.rules.wording import need
from rpms.vocabulary.belief import Belief, copy_belief, kind_of
from rpms.vocabulary.goal import PAPER, SubGoal
from rpms.vocabulary.turn import EpisodeRecord, Turn

# What is noted of the belief before and after each use of an action, by number of parameters.
LITERALS: dict[int, tuple[str, ...]] = {
    0: ("hand_empty",),
    1: ("at", "holding", "open", "closed", "here", "visible", "activated"),
    2: ("in",),
}
# A way of more actions than that is told from its last sub-goal on.
LONGEST = 12


class Start(NamedTuple):
    """Where a snippet may begin: the belief then, and how many actions had been played."""

    belief: Belief
    played: int


def learn(records: Iterable[EpisodeRecord], manual: Manual | None = None) -> list[Entry]:
    """M from trajectories: what each of them teaches, merged.

    ``manual`` is what refusals are explained and detours known by; the one shipped with their world
    by default. Entries say whether it helped to make them. With nothing but the syntax of commands
    a refusal stays unexplained, and a way is told with all its detours.
    """
    played = list(records)
    keys = get_environment(played[0]["env"]).keys if played else PAPER
    taught = (lesson for record in played for lesson in lessons(record, manual))
    return merge_entries((parse_entry({"id": "new", **lesson}) for lesson in taught), keys)


def lessons(record: EpisodeRecord, manual: Manual | None = None) -> Iterator[dict[str, Any]]:
    """Everything one episode teaches, before merging."""
    env = get_environment(record["env"])
    manual = manual or load_manual(record["env"])
    goal = env.parse_goal(record["goal"])
    belief = env.first_belief(record["first_observation"])
    history: list[Turn] = []
    step = env.sub_goal(goal, belief, history)
    by_hand, by_sub_goal = [Start(belief, 0)], Start(belief, 0)
    played, beliefs, own = list[str](), list[Belief](), dict[str, str]()
    gamma = env.read_signature(goal["signature"])
    yield from _finds(belief, set())
    for number, turn in enumerate(record["history"], start=1):
        action = turn["action"]
        if not action:
            continue
        action = env.carried_out(action, belief, turn["observation"])
        before, known = belief, set(belief["searched"])
        own |= {name: role for role, name in env.role_names(before).items()}
        belief = belief_after(env, manual, before, turn)
        if not action:
            continue
        signed = {"goal_signature": goal["signature"], "state_signature": env.print_state(before)}
        fatal = number == len(record["history"]) and record.get("score", 0.0) < 0
        if not fatal:
            yield from _used(manual, env, action, before, None if turn["failed"] else belief)
        # Nothing if it was about a thing that the goal does not ask for, or that is no place.
        nowhere = goes_nowhere(manual, action, before)
        lifted = None if nowhere else lift(manual, gamma, [action], own, env.individual)
        needless = turn["failed"] and _needless(manual, action, before)
        if lifted and not needless and (turn["failed"] or fatal):
            if turn["failed"]:
                why = _lesson(manual, action, turn["observation"], before)
            else:  # no refusal: the environment let it happen and ended the episode
                why = {
                    "type": "critical_failure",
                    "failure_message": f"score = {record['score']:.0f}, terminated",
                    "corrective_rule": FATAL.format(record["score"]),
                }
            helped = bool(why.get("violated"))
            lesson = {"failed_action": action, "lifted": lifted[-1], "manual": helped, **why}
            yield {**signed, **lesson}
        if turn["failed"] or fatal:
            continue
        yield from _finds(belief, known)
        history.append(
            Turn(step=number, thought="", action=action, observation=turn["observation"],
                 failed=False, reply="")
        )  # fmt: skip
        played.append(action)
        beliefs.append(before)
        after = env.sub_goal(goal, belief, history)
        if _reached(manual, step, after, action, record, number=number):
            if env.embodied:
                ways = _ways(manual, wanted(manual, env), by_hand, by_sub_goal, played)
            else:
                ways = _calls(manual, step["name"], by_sub_goal, played, beliefs)
            for start, way in ways:
                began = start.belief
                signed["state_signature"] = env.print_state(began)
                way = without_repeats(way)
                if record["success"] or not any(gives_answer(manual, action) for action in way):
                    ended = {
                        "won": record["success"],
                        "solves": record["success"] and number == len(record["history"]),
                    }
                    yield from _snippet(
                        manual, env, step, began, way, signed=signed, own=own, ended=ended
                    )
            by_sub_goal = Start(belief, len(played))
        if bool(before["holding"]) != bool(belief["holding"]):
            now = Start(belief, len(played))
            by_hand = [*by_hand, now] if belief["holding"] else [now]
        step = after


def _ways(
    manual: Manual, goals: set[str], by_hand: list[Start], by_sub_goal: Start, played: list[str]
) -> list[tuple[Start, list[str]]]:
    """The way to here from each state of the hand it began with, detours left out.

    From the last sub-goal only where that is too long a story: a state signature tells of the
    hand, not of what was done since, so what was done has to be told.
    """
    ways = [(s, needed_actions(manual, played[s.played :], goals)) for s in by_hand]
    short = [(start, way) for start, way in ways if len(way) <= LONGEST]
    last = needed_actions(manual, played[by_sub_goal.played :], goals)
    return short or [(by_sub_goal, last)]


def _calls(
    manual: Manual, step: str, since: Start, played: list[str], beliefs: list[Belief]
) -> list[tuple[Start, list[str]]]:
    """Where there is no body: the calls that the procedure has for a step and that change things.

    The last one of its calls is told in any case. What was switched back again is left out. It
    began in what was known when the first of them was chosen, and found out before a later one.
    """
    service = {each.action for each in manual.domain.applicable.get(step, [])}
    kept, undone = list[int](), set[str]()
    for number in range(since.played, len(played)):
        rule, names = match_action(manual, played[number]) or (None, {})
        if rule is None:
            continue
        last, action = number == len(played) - 1, played[number]
        back = not last and _switched_back(manual, rule, names, beliefs[number + 1])
        undone |= {action} if back else set()
        useful = rule.effects and (back or not already_done(manual, action, beliefs[number]))
        if not manual.knows(rule) or ((useful or last) and (not service or rule.name in service)):
            kept.append(number)
    for action in undone:
        numbers = [n for n in kept if played[n] == action]
        spare = numbers if len(numbers) % 2 == 0 else numbers[:-1]
        kept = [n for n in kept if n not in spare or n == len(played) - 1]
    broken = any(check_action(manual, played[n], beliefs[n]).verdict == "fails" for n in kept)
    if broken or not kept:
        return []
    began = _found_out(manual, [beliefs[n] for n in kept])
    return [(Start(began, kept[0]), [played[n] for n in kept])]


def _switched_back(
    manual: Manual, rule: ActionRule, names: Mapping[str, str], after: Belief
) -> bool:
    """Whether a call left the state that it is to change: a switch that was right already."""
    changed = (
        before
        for before in rule.needs
        for outcome in rule.outcomes
        if before.name == outcome.name == "state"
        for family in manual.facts.alternatives
        if {before.arguments[1], outcome.arguments[1]} <= family
    )
    return any(evaluate(before, after, manual.facts, names) for before in changed)


def _found_out(manual: Manual, beliefs: list[Belief]) -> Belief:
    """The first belief, with what later ones add of things that any action may speak of."""
    belief = copy_belief(beliefs[0])
    for later, thing in product(beliefs[1:], manual.environment.things):
        known = [fact for fact in belief["flags"].get(thing, "").split(", ") if fact]
        for fact in later["flags"].get(thing, "").split(", "):
            families = [family for family in manual.facts.alternatives if fact in family]
            if fact and not any({*known} & family for family in families) and fact not in known:
                known.append(fact)
        belief["flags"] |= {thing: ", ".join(known)} if known else {}
    return belief


def _reached(
    manual: Manual, before: SubGoal, after: SubGoal, action: str, record: EpisodeRecord, number: int
) -> bool:
    """Whether this action completed the sub-goal it served.

    The last action of a won episode did, even if the belief cannot tell. Where nothing says which
    action serves it, the one that brought the goal further did.
    """
    matched = match_action(manual, action)
    serving = manual.domain.advances
    served = matched is not None and (not serving or serving.get(before["name"]) == matched[0].name)
    won = record["success"] and number == len(record["history"])
    further = after["progress"] > before["progress"]
    if not serving:  # it may have done a later step's work
        further = further and after["name"] != before["name"]
    return served and (won or further)


def _snippet(
    manual: Manual,
    env: Environment,
    step: SubGoal,
    began: Belief,
    actions: list[str],
    signed: Mapping[str, str],
    own: Mapping[str, str],
    ended: Mapping[str, bool],
) -> Iterator[dict[str, Any]]:
    gamma = env.read_signature(signed["goal_signature"])
    lifted = lift(manual, gamma, actions, own, env.individual)
    if lifted is None:  # it handles things that the goal does not ask for, or only that task has
        return
    matched = match_action(manual, actions[-1])
    name, bindings = (matched[0].name, dict(matched[1])) if matched else ("", {})
    precondition = {**env.requirements(began, actions), "action_type": name}
    if "place" in bindings:
        precondition["tool_location"] = bindings["place"]
    yield {
        **signed,
        "type": "success",
        "manual": matched is not None and manual.knows(matched[0]),
        "sub_goal_type": step["name"],
        "precondition": precondition,
        "actions": actions,
        "lifted": lifted,
        "outcome": {name: bindings.get("object", "")},
        **ended,
    }


def gives_answer(manual: Manual, action: str) -> bool:
    """Whether an action gives an answer that cannot be taken back."""
    matched = match_action(manual, action)
    return matched is not None and bool(matched[0].verified)


def _needless(manual: Manual, action: str, belief: Belief) -> bool:
    """Whether a rejection says only that what the action would do was so already.

    Going where one is, or opening what is open, teaches nothing.
    """
    matched = match_action(manual, action)
    if matched is None or not manual.knows(matched[0]):
        return False
    rule, names = matched
    lacking = [p for p in rule.needs if evaluate(p, belief, manual.facts, names) is False]
    return bool(lacking) and all(_undone_by(rule, predicate) for predicate in lacking)


def _undone_by(rule: ActionRule, lacking: Predicate) -> bool:
    """Whether what is lacking is just what the action itself ends: ``closed`` for opening."""
    opposite = {"closed": "open", "open": "closed"}.get(lacking.name)
    ended = lacking._replace(positive=not lacking.positive)
    other = lacking._replace(name=opposite) if opposite else ended
    return ended in rule.outcomes or other in rule.outcomes


def _lesson(manual: Manual, action: str, observation: str, belief: Belief) -> dict[str, Any]:
    """What was refused, and the condition that did not hold, or that may not have held."""
    diagnosis = check_action(manual, action, belief).checked
    violated = list(diagnosis.violated_predicates or diagnosis.unsure_predicates)
    matched = match_action(manual, action)
    if matched is None:
        kind, words = "unknown_action", NOT_UNDERSTOOD.format(action.split()[0])
    elif violated:
        blanks = {name: f"<{name}>" for name in matched[1]}
        needs = (need(parse_predicate(text), blanks, manual.facts) for text in violated)
        kind, words = "precondition_not_met", f"needs {'; '.join(needs)}"
    else:
        kind, words = "unexplained", UNEXPLAINED
    return {
        "type": "failure",
        "violated": violated,
        "failure_type": kind,
        "failure_message": observation,
        "corrective_rule": words,
    }


def _used(
    manual: Manual, env: Environment, action: str, before: Belief, after: Belief | None
) -> Iterator[dict[str, Any]]:
    """One use of an action: the literals over its parameters before, and after if it worked.

    Where there is no body, facts noted of what it names, and of what any action may change.
    """
    matched = match_action(manual, action)
    if matched is None:
        return
    rule, names = matched
    worked = after is not None
    shown = worked and env.embodied  # ids are of no kind
    kinds = {name: {kind_of(text): 1} for name, text in names.items()} if shown else {}
    plain = worked and not env.embodied
    words = {n: {text: 1} for n, text in names.items() if plain and not env.individual(text)}

    about = env.changed_by(action)

    def truths(belief: Belief) -> dict[str, bool | None]:
        if not env.embodied:
            return _noted(manual, names, belief, about)
        literals = _literals(tuple(rule.parameters))
        return {t: evaluate(parse_predicate(t), belief, manual.facts, names) for t in literals}

    was, now = truths(before), truths(after) if after else {}
    if not env.embodied and worked:  # of so many facts only those that it changed: not found out
        was, now = ({f: x[f] for f in x if y.get(f) is not None and x[f] != y[f]}
                    for x, y in ((was, now), (now, was)))  # fmt: skip
        if not now:
            return
    yield {
        "type": "schema",
        "action_template": rule.syntax,
        "action_type": rule.name,
        "uses": [
            {
                "before": {t: held for t, held in was.items() if held is not None},
                "worked": worked,
                "after": [t for t, held in now.items() if held],
            }
        ],
        "kinds": kinds,
        "words": words,
        "success_count": int(worked),
        "failure_count": int(not worked),
        "confidence": float(worked),
    }


def _noted(
    manual: Manual, names: Mapping[str, str], belief: Belief, about: tuple[str, ...]
) -> dict[str, bool | None]:
    """Facts that begin so on record of what an action names, and of what any action may change.

    What one of them excludes is known not to be so.
    """
    things = {**names, **{thing: thing for thing in manual.environment.things}}
    truths = dict[str, bool | None]()
    for name, thing in things.items():
        known = belief["flags"].get(thing, "").split(", ")
        facts = [fact for fact in known if fact and fact.startswith(about)]
        rivals = (family for family in manual.facts.alternatives if {*facts} & family)
        truths |= {f"state({name}, {fact})": False for family in rivals for fact in sorted(family)}
        truths |= {f"state({name}, {fact})": True for fact in facts}
    return truths


@cache
def _literals(parameters: tuple[str, ...]) -> tuple[str, ...]:
    texts = [
        f"{name}({', '.join(chosen)})" if chosen else name
        for arity, names in LITERALS.items()
        for name in names
        for chosen in permutations(parameters, arity)
    ]
    return tuple(sorted(texts))


def _finds(belief: Belief, known: set[str]) -> Iterator[dict[str, Any]]:
    """What was seen in each place that has just been looked into for the first time."""
    for place in belief["searched"]:
        if place in known or place not in belief["places"]:
            continue
        things = {thing for thing, where in belief["last_seen"].items() if where == place}
        things |= set(belief["spots"].get(place, [])) - set(belief["places"])
        kinds = sorted({kind_of(thing) for thing in things})
        objects = dict.fromkeys(kinds, 1)
        yield {"type": "found", "place": kind_of(place), "looked": 1, "objects": objects}
