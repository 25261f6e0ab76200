"""Extract memory entries from recorded trajectories. Pure, and independent of their order.

The belief of each episode is rebuilt from its recorded texts. The entries are:

- a success snippet: the actions from a change of the hand to each sub-goal that was reached;
- a failure lesson: a rejected action and the precondition it violated;
- a critical failure: an action that ended the episode with a negative score;
- a schema: the evidence of every use of an action;
- a find: the objects seen in a place.

Neither an answer given in a lost episode nor a path with a call that the policy forbids becomes a
success, even if the tool executed it. Roles replace the names of the scene.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise, permutations, product
from typing import Any, NamedTuple

from rpms.envs import Environment, get_environment
from rpms.envs.manuals import load_manual
from rpms.memory_store import Entry, merge_entries, parse_entry
from rpms.memory_store.entries import CriticalFailure, Success
from rpms.memory_store.grounding import FATAL, NOT_UNDERSTOOD, UNEXPLAINED
from rpms.memory_store.roles import (
    goes_nowhere,
    roles_in,
    to_roles,
    useful_actions,
    without_repeats,
)
from rpms.rules import Manual, already_done, check_action, match_action, needed_actions
from rpms.rules.answers import belief_after
from rpms.rules.predicates import Predicate, evaluate, parse_predicate
from rpms.rules.schema import ActionRule
from rpms.rules.wording import need
from rpms.vocabulary.belief import Belief, copy_belief, kind_of
from rpms.vocabulary.goal import PAPER, GoalSpec, SubGoal
from rpms.vocabulary.turn import EpisodeRecord, RecordedTurn, Turn

# Predicates recorded before and after each use of an action, by their number of parameters.
LITERALS: dict[int, tuple[str, ...]] = {
    0: ("hand_empty",),
    1: ("at", "holding", "open", "closed", "here", "visible", "activated"),
    2: ("in",),
}
# A path with more actions than this is cut to those since the last sub-goal.
LONGEST = 12


class ReplayedEpisode(NamedTuple):
    """A recorded episode, its environment and goal, and the manual that explains it."""

    record: EpisodeRecord
    env: Environment
    manual: Manual
    goal: GoalSpec

    def roles_of(self, actions: list[str], role_of: Mapping[str, str]) -> list[str] | None:
        """The actions as templates; None if one handles a thing without a role in the goal."""
        signature = self.env.read_signature(self.goal["signature"])
        return to_roles(self.manual, signature, actions, role_of, self.env.individual)


class ReplayedAction(NamedTuple):
    """One action of an episode, and the manual's rule for it with the names that it was used with.

    ``before`` and ``after`` are the beliefs around it, ``step`` and ``next_step`` the sub-goals.
    ``role_of`` has the environment's own roles of names until then. A ``fatal`` action was not
    rejected: the environment executed it and ended the episode with a negative score.
    """

    turn: RecordedTurn
    action: str
    rule: ActionRule | None
    names: Mapping[str, str]
    before: Belief
    after: Belief
    step: SubGoal
    next_step: SubGoal
    role_of: Mapping[str, str]
    fatal: bool

    @property
    def executed(self) -> bool:
        return not (self.turn["failed"] or self.fatal)


class Start(NamedTuple):
    """A point where a snippet may begin: its belief, and the number of actions before it."""

    belief: Belief
    played: int


def learn(records: Iterable[EpisodeRecord], manual: Manual | None = None) -> list[Entry]:
    """Extract M from trajectories: the entries of each episode, merged.

    ``manual`` explains rejections and removes detours; by default it is the environment's shipped
    one. Entries record whether it helped. A manual with nothing but the syntax of commands leaves
    rejections unexplained and keeps all detours.
    """
    played = list(records)
    keys = get_environment(played[0]["env"]).keys if played else PAPER
    taught = (lesson for record in played for lesson in lessons(record, manual))
    return merge_entries((parse_entry({"id": "new", **lesson}) for lesson in taught), keys)


def lessons(record: EpisodeRecord, manual: Manual | None = None) -> Iterator[dict[str, Any]]:
    """Yield the entries of one episode, before merging."""
    env = get_environment(record["env"])
    goal = env.parse_goal(record["goal"])
    episode = ReplayedEpisode(record, env, manual or load_manual(record["env"]), goal)
    uses = replay(episode)
    yield from _finds(env.first_belief(record["first_observation"]), uses)
    for use in uses:
        yield from _schema(episode, use)
        yield from _failure(episode, use)
    yield from _successes(episode, [use for use in uses if use.executed])


def replay(episode: ReplayedEpisode) -> list[ReplayedAction]:
    """Rebuild the belief and the sub-goal around each action of an episode."""
    record, env, manual, goal = episode
    history: list[Turn] = []
    uses: list[ReplayedAction] = []
    belief = env.first_belief(record["first_observation"])
    step, role_of = env.sub_goal(goal, belief, history), dict[str, str]()
    for number, turn in enumerate(record["history"], start=1):
        if not turn["action"]:
            continue
        before, observation = belief, turn["observation"]
        action = env.carried_out(turn["action"], before, observation)
        role_of = role_of | {name: role for role, name in env.role_names(before).items()}
        belief = belief_after(env, manual, before, turn)
        if not action:
            continue
        fatal = number == len(record["history"]) and record.get("score", 0.0) < 0
        rule, names = match_action(manual, action) or (None, {})
        use = ReplayedAction(turn, action, rule, names, before, belief, step, step, role_of, fatal)
        if use.executed:
            history.append(
                Turn(step=number, thought="", action=action, observation=observation,
                     failed=False, reply="")
            )  # fmt: skip
            step = env.sub_goal(goal, belief, history)
        uses.append(use._replace(next_step=step))
    return uses


def _finds(first: Belief, uses: list[ReplayedAction]) -> Iterator[dict[str, Any]]:
    """Yield a find for each place that was searched for the first time."""
    moments = [(first, set[str]())]
    moments += [(use.after, set(use.before["searched"])) for use in uses if use.executed]
    for belief, searched in moments:
        for place in belief["searched"]:
            if place in searched or place not in belief["places"]:
                continue
            things = {thing for thing, where in belief["last_seen"].items() if where == place}
            things |= set(belief["spots"].get(place, [])) - set(belief["places"])
            objects = dict.fromkeys(sorted({kind_of(thing) for thing in things}), 1)
            yield {"type": "found", "place": kind_of(place), "looked": 1, "objects": objects}


def _failure(episode: ReplayedEpisode, use: ReplayedAction) -> Iterator[dict[str, Any]]:
    """Yield a failure lesson for a rejected action, a critical failure for a fatal one.

    There is none if the action handled a thing without a role in the goal or took place at no
    place, or if it was rejected because its effect held already.
    """
    record, env, manual, goal = episode
    action, before = use.action, use.before
    if use.executed or goes_nowhere(manual, action, before):
        return
    templates = episode.roles_of([action], use.role_of)
    if not templates or (use.turn["failed"] and _needless(manual, use)):
        return
    if use.turn["failed"]:
        reason = _lesson(manual, use)
    else:
        reason = {
            "type": "critical_failure",
            "failure_message": f"score = {record['score']:.0f}, terminated",
            "corrective_rule": FATAL.format(record["score"]),
        }
    yield {
        "goal_signature": goal["signature"],
        "state_signature": env.print_state(before),
        "failed_action": action,
        "lifted": templates[-1],
        "manual": bool(reason.get("violated")),
        **reason,
    }


def _successes(episode: ReplayedEpisode, uses: list[ReplayedAction]) -> Iterator[dict[str, Any]]:
    """Yield the snippets that end at each sub-goal that the executed actions reached."""
    record, env, manual, _ = episode
    played, beliefs = [use.action for use in uses], [use.before for use in uses]
    first = Start(env.first_belief(record["first_observation"]), 0)
    by_hand, by_sub_goal = [first], first
    for count, use in enumerate(uses, start=1):
        won_by = record["success"] and use.turn is record["history"][-1]
        if _reached(manual, use, won_by):
            if env.embodied:
                useful = useful_actions(manual, env)
                paths = _paths(manual, useful, by_hand, by_sub_goal, played[:count])
            else:
                paths = _calls(manual, use.step["name"], by_sub_goal, played[:count], beliefs)
            for start, path in paths:
                actions = without_repeats(path)
                if record["success"] or not any(gives_answer(manual, each) for each in actions):
                    yield from _snippet(episode, use, start.belief, actions, won_by)
            by_sub_goal = Start(use.after, count)
        if bool(use.before["holding"]) != bool(use.after["holding"]):
            start = Start(use.after, count)
            by_hand = [*by_hand, start] if use.after["holding"] else [start]


def _paths(
    manual: Manual, goals: set[str], by_hand: list[Start], by_sub_goal: Start, played: list[str]
) -> list[tuple[Start, list[str]]]:
    """Return the paths from each change of the hand to this point, without detours.

    A state signature records only the hand, so a path needs every action since it changed. If all
    paths are too long, the one from the last sub-goal is returned.
    """
    paths = [(s, needed_actions(manual, played[s.played :], goals)) for s in by_hand]
    short = [(start, path) for start, path in paths if len(path) <= LONGEST]
    last = needed_actions(manual, played[by_sub_goal.played :], goals)
    return short or [(by_sub_goal, last)]


def _calls(
    manual: Manual, step: str, since: Start, played: list[str], beliefs: list[Belief]
) -> list[tuple[Start, list[str]]]:
    """Return the calls of a sub-goal in an environment without a body, as one path.

    The path keeps the calls that the procedure lists and that have an effect, and always the last
    one. Switches that were switched back are left out. The path starts in the belief before its
    first call, plus the facts that were learned before a later one.
    """
    applicable = {each.action for each in manual.domain.applicable.get(step, [])}
    kept, undone = list[int](), set[str]()
    for number in range(since.played, len(played)):
        rule, names = match_action(manual, played[number]) or (None, {})
        if rule is None:
            continue
        last, action = number == len(played) - 1, played[number]
        back = not last and _switched_back(manual, rule, names, beliefs[number + 1])
        undone |= {action} if back else set()
        useful = rule.effects and (back or not already_done(manual, action, beliefs[number]))
        if not manual.knows(rule) or (
            (useful or last) and (not applicable or rule.name in applicable)
        ):
            kept.append(number)
    for action in undone:
        numbers = [n for n in kept if played[n] == action]
        spare = numbers if len(numbers) % 2 == 0 else numbers[:-1]
        kept = [n for n in kept if n not in spare or n == len(played) - 1]
    broken = any(check_action(manual, played[n], beliefs[n]).verdict == "broken" for n in kept)
    if broken or not kept:
        return []
    began = _found_out(manual, [beliefs[n] for n in kept])
    return [(Start(began, kept[0]), [played[n] for n in kept])]


def _switched_back(
    manual: Manual, rule: ActionRule, names: Mapping[str, str], after: Belief
) -> bool:
    """Return True if the state a call should change still holds after it."""
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
    """Return the first belief, with the facts that later ones add about shared things."""
    belief = copy_belief(beliefs[0])
    for later, thing in product(beliefs[1:], manual.environment.things):
        facts = [fact for fact in belief["flags"].get(thing, "").split(", ") if fact]
        for fact in later["flags"].get(thing, "").split(", "):
            families = [family for family in manual.facts.alternatives if fact in family]
            if fact and not any({*facts} & family for family in families) and fact not in facts:
                facts.append(fact)
        belief["flags"] |= {thing: ", ".join(facts)} if facts else {}
    return belief


def _reached(manual: Manual, use: ReplayedAction, won_by: bool) -> bool:
    """Return True if this action completed the current sub-goal.

    The last action of a won episode always did, even if the belief does not show it. If the manual
    does not list the action of a sub-goal, the action that increased the progress did.
    """
    before, after, serving = use.step, use.next_step, manual.domain.advances
    served = use.rule is not None and (not serving or serving.get(before["name"]) == use.rule.name)
    further = after["progress"] > before["progress"]
    if not serving:  # it may have advanced a later sub-goal
        further = further and after["name"] != before["name"]
    return served and (won_by or further)


def _snippet(
    episode: ReplayedEpisode, use: ReplayedAction, belief: Belief, actions: list[str], won_by: bool
) -> Iterator[dict[str, Any]]:
    """Yield the snippet of a path; none if it handles things without a role in the goal."""
    record, env, manual, goal = episode
    templates = episode.roles_of(actions, use.role_of)
    if templates is None:
        return
    name = use.rule.name if use.rule else ""
    precondition = {**env.requirements(belief, actions), "action_type": name}
    if "place" in use.names:
        precondition["tool_location"] = use.names["place"]
    yield {
        "goal_signature": goal["signature"],
        "state_signature": env.print_state(belief),
        "type": "success",
        "manual": use.rule is not None and manual.knows(use.rule),
        "sub_goal_type": use.step["name"],
        "precondition": precondition,
        "actions": actions,
        "lifted": templates,
        "outcome": {name: use.names.get("object", "")},
        "won": record["success"],
        "solves": won_by,
    }


def gives_answer(manual: Manual, action: str) -> bool:
    """Return True if an action gives an answer that cannot be taken back."""
    matched = match_action(manual, action)
    return matched is not None and bool(matched[0].verified)


def _needless(manual: Manual, use: ReplayedAction) -> bool:
    """Return True if an action was rejected because its effect held already.

    Going to the current place, or opening an open door, teaches nothing.
    """
    rule = use.rule
    if rule is None or not manual.knows(rule):
        return False
    lacking = [p for p in rule.needs if evaluate(p, use.before, manual.facts, use.names) is False]
    return bool(lacking) and all(_undone_by(rule, predicate) for predicate in lacking)


def _undone_by(rule: ActionRule, lacking: Predicate) -> bool:
    """Return True if the action itself ends the missing condition: ``closed`` for opening."""
    opposite = {"closed": "open", "open": "closed"}.get(lacking.name)
    ended = lacking._replace(positive=not lacking.positive)
    other = lacking._replace(name=opposite) if opposite else ended
    return ended in rule.outcomes or other in rule.outcomes


def _lesson(manual: Manual, use: ReplayedAction) -> dict[str, Any]:
    """Return a failure lesson: the rejected action and the preconditions that may explain it."""
    diagnosis = check_action(manual, use.action, use.before).checked
    violated = [str(each.condition) for each in diagnosis.unmet or diagnosis.unsure]
    if use.rule is None:
        kind, words = "unknown_action", NOT_UNDERSTOOD.format(use.action.split()[0])
    elif violated:
        placeholders = {name: f"<{name}>" for name in use.names}
        needs = (need(parse_predicate(text), placeholders, manual.facts) for text in violated)
        kind, words = "precondition_not_met", f"needs {'; '.join(needs)}"
    else:
        kind, words = "unexplained", UNEXPLAINED
    return {
        "type": "failure",
        "violated": violated,
        "failure_type": kind,
        "failure_message": use.turn["observation"],
        "corrective_rule": words,
    }


def _schema(episode: ReplayedEpisode, use: ReplayedAction) -> Iterator[dict[str, Any]]:
    """Yield one use of an action: the literals over its parameters before it, and after success.

    In an environment without a body, the literals are the recorded facts about the named things and
    about things that any action may change.
    """
    env, manual, rule, names = episode.env, episode.manual, use.rule, use.names
    if rule is None or use.fatal:
        return
    worked = use.executed
    shown = worked and env.embodied  # ids are of no kind
    kinds = {name: {kind_of(text): 1} for name, text in names.items()} if shown else {}
    plain = worked and not env.embodied
    words = {n: {text: 1} for n, text in names.items() if plain and not env.individual(text)}

    prefixes = env.changed_by(use.action)

    def truths(belief: Belief) -> dict[str, bool | None]:
        if not env.embodied:
            return _noted(manual, names, belief, prefixes)
        literals = _literals(tuple(rule.parameters))
        return {t: evaluate(parse_predicate(t), belief, manual.facts, names) for t in literals}

    earlier, later = truths(use.before), truths(use.after) if worked else {}
    if not env.embodied and worked:  # only facts that it changed, not those it merely revealed
        earlier, later = ({f: x[f] for f in x if y.get(f) is not None and x[f] != y[f]}
                    for x, y in ((earlier, later), (later, earlier)))  # fmt: skip
        if not later:
            return
    yield {
        "type": "schema",
        "action_template": rule.syntax,
        "action_type": rule.name,
        "uses": [
            {
                "before": {t: held for t, held in earlier.items() if held is not None},
                "worked": worked,
                "after": [t for t, held in later.items() if held],
            }
        ],
        "kinds": kinds,
        "words": words,
        "success_count": int(worked),
        "failure_count": int(not worked),
        "confidence": float(worked),
    }


def _noted(
    manual: Manual, names: Mapping[str, str], belief: Belief, prefixes: tuple[str, ...]
) -> dict[str, bool | None]:
    """Return the facts with these prefixes about the named things and the shared ones.

    Alternatives of a recorded fact are false.
    """
    things = {**names, **{thing: thing for thing in manual.environment.things}}
    truths = dict[str, bool | None]()
    for name, thing in things.items():
        facts_on_record = belief["flags"].get(thing, "").split(", ")
        facts = [fact for fact in facts_on_record if fact and fact.startswith(prefixes)]
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


def says_something(entry: Entry) -> bool:
    """Return False for a schema without preconditions and effects."""
    return entry.type != "schema" or bool(entry.preconditions or entry.effects)


def unearned(entries: Sequence[Entry], env: Environment) -> Iterator[tuple[Entry, str]]:
    """Yield each entry that should not be recalled as it is, and its fault.

    Learning creates none of them; a file that was edited by hand may contain some.
    """
    manual = load_manual(env.name)
    fatal = {
        (entry.goal_signature, entry.lifted or entry.failed_action): entry.id
        for entry in entries
        if isinstance(entry, CriticalFailure)
    }
    for entry in entries:
        if not says_something(entry):
            yield entry, "it says neither what the action needs nor what it does"
        if not isinstance(entry, Success):
            continue
        steps = entry.lifted or entry.actions
        if ended := fatal.get((entry.goal_signature, steps[-1])):
            yield entry, f"its last action ended an episode with the same goal badly ({ended})"
        if repeated := [a for a, b in pairwise(steps) if a == b]:
            yield entry, f"'{repeated[0]}' stands twice in a row"
        if not entry.won and any(gives_answer(manual, action) for action in entry.actions):
            yield entry, "it gives an answer, and its episode is not marked as won"
        for step in entry.lifted:
            matched = match_action(manual, step)
            names = matched[1].values() if matched else ()
            if foreign := [n for n in names if not roles_in(n) and env.individual(n)]:
                yield entry, f"'{foreign[0]}' means another thing in another task"
                break
