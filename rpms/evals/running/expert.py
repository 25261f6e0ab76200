"""An expert without a model: it acts by the manual's procedure, whose reasons are the thoughts.

The expert takes the best applicable action of the manual's procedure, as the control ``first`` does
with guard procedure. With memory it searches first where memory says such things were found. It is
a stage: ``graph`` builds the agent with it. ``temperature`` is the rate
at which it makes a mistake on purpose and then recovers. Its decisions are training data for a
model. Only learning splits may be used for that (``evals/running/learning_splits.py``).
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from rpms.envs import get_environment
from rpms.envs.manuals import load_manual
from rpms.evals.records.schema import Step
from rpms.graph.build import RpmsGraph, build_graph
from rpms.guard.procedure import applicable_actions, find_violation, nameable
from rpms.nodes.guard_check import vetoed_proposals
from rpms.nodes.state import EpisodeState, decision_point, settings_of
from rpms.prompts.reply import read_reply
from rpms.rules.conditions import DecisionPoint
from rpms.rules.predicates import evaluate, parse_predicate
from rpms.rules.verdicts import check_action, forbidden_by, match_action
from rpms.vocabulary.belief import Belief, copy_belief, fingerprint, in_order, kind_of
from rpms.vocabulary.goal import GoalSpec
from rpms.vocabulary.recall import Recall, surviving
from rpms.vocabulary.turn import ActionVerdict, Decision, Turn, Usage, rejected_since

NOTHING = Usage(prompt_tokens=0, cached_tokens=0, output_tokens=0, replayed=False)
TRIES = 20
DEEP = 3
"""After this many actions without effect the situation and the prompt do not change any more."""
WRONG = 0.4
"""The share of wrong answers among the mistakes made when an answer is due."""
LOST = "nothing else is left to try"
MISTAKE = "a mistake made on purpose"


def llm_call(state: EpisodeState) -> EpisodeState:
    """The stage ``llm_call``: the best action with its reason, or at times a mistake.

    The setting ``temperature`` is the rate of mistakes. Mistakes and guesses, which must not be
    learned, are recorded as decisions. The replies of an episode are deterministic.
    """
    context = settings_of(state)
    belief_key, step = fingerprint(state["belief"]), state["steps"] + 1
    earlier = state["played_in"].get(belief_key, [])
    vetoed = vetoed_proposals(state)
    point = decision_point(state)._replace(repeated_here=(*earlier, *vetoed))
    best, reason = _choose(point, state["recalls"])
    rng = random.Random(f"{context.seed}|{state['split']}|{state['task']}|{step}|{len(vetoed)}")
    action = best
    if _may_err(state) and rng.random() < context.temperature:
        action = _mistake(state["env"], point, best, rng) or best
    elif rng.random() < 0.5:
        action = _repeated_mistake(state) or best
    reply = _reply(reason, action, context.rules)
    thought, _ = read_reply(reply, ())
    update = EpisodeState(reply=reply, thought=thought, action=action, usage=NOTHING)
    if action != best:
        update["decisions"] = [_decision(step, best, "replaced", MISTAKE, action)]
    elif reason == LOST:
        update["decisions"] = [_decision(step, best, "overridden", LOST, action)]
    if context.guard == "off":  # otherwise the guard records it
        update["played_in"] = {**state["played_in"], belief_key: [*earlier, action]}
    return update


def graph() -> RpmsGraph:
    """The agent with the expert in place of a model."""
    return build_graph({"llm_call": llm_call})


def corrections(env: str, goal: GoalSpec, steps: Iterable[Step]) -> Iterator[tuple[Step, str]]:
    """The expert's reply at each step of an episode, from its step log.

    A model that learns from correct actions only does not learn to recover from its own mistakes.
    Guesses are left out, and so are replies to a situation that was answered before; in a loop the
    reply is repeated as deep as a prompt of the last few turns can show.
    """
    world, manual = get_environment(env), load_manual(env)
    history: list[Turn] = []
    actions: defaultdict[str, list[str]] = defaultdict(list)
    no_effect: list[str] = []
    before, answered = "", set[tuple[str, str, int]]()
    for step in steps:
        belief = copy_belief(cast(Belief, step["belief"]))
        key = fingerprint(belief)
        no_effect = [*no_effect, history[-1]["action"]] if key == before else []
        sub_goal = world.sub_goal(goal, belief, history)
        rejected = {turn["action"] for turn in rejected_since(history, no_effect)}
        point = DecisionPoint(
            manual, goal, sub_goal, belief, no_effect, tuple(actions[key]), rejected
        )
        printed = any(step.get("rules", {}).values())
        best, reason = _choose(point, cast(list[Recall], step.get("recalls", [])))
        answer = (key, best, min(len(no_effect), DEEP))
        if reason != LOST and answer not in answered:
            yield step, _reply(reason, best, printed)
        answered.add(answer)
        actions[key].append(step["action"])
        before = key
        history.append(
            Turn(step=step["step"], thought=step["thought"], action=step["action"],
                 observation=step["result"], failed=step["failed"], reply="")
        )  # fmt: skip


_CITED = re.compile(r" \[[A-Z][A-Z0-9]*(?:-[A-Z0-9]+)+\]")


def _reply(reason: str, action: str, rules: bool) -> str:
    """The reply; its thought cites rule ids only if the prompt prints the rules."""
    reason = reason if rules else _CITED.sub("", reason)
    return f"Thought: {reason[0].upper()}{reason[1:]}.\nAction: {action}"


def _decision(
    step: int, proposal: str, verdict: ActionVerdict, reason: str, played: str
) -> Decision:
    return Decision(
        step=step, proposal=proposal, verdict=verdict, rule="", reason=reason, repair="",
        played=played,
    )  # fmt: skip


def _choose(point: DecisionPoint, recalls: Sequence[Recall]) -> tuple[str, str]:
    choices = applicable_actions(point)
    if not choices:
        return point.manual.domain.idle or "look around", LOST
    best = choices[0]
    if remembered := _as_remembered(point, best["action"], recalls):
        return remembered, f"{point.sub_goal['target']} was found in such places before"
    return best["action"], best["reason"]


def _may_err(state: EpisodeState) -> bool:
    """True except at the start and right after a mistake, which is repeated or recovered from."""
    last = [d["reason"] for d in state["decisions"] if d["step"] >= state["steps"]]
    return bool(state["history"]) and not {MISTAKE, LOST} & {*last}


def _repeated_mistake(state: EpisodeState) -> str:
    """The last mistake if it was vetoed once or rejected, as models repeat such actions.

    A rejected one is repeated up to DEEP times.
    """
    mistakes = [d for d in state["decisions"] if d["reason"] == MISTAKE]
    turns = state["history"][-DEEP:]
    if mistakes and mistakes[-1]["step"] > state["steps"]:  # in this step, so it was vetoed
        return mistakes[-1]["played"] if state["retries"] == 1 else ""
    if not mistakes or mistakes[-1]["step"] != state["steps"] or not turns[-1]["failed"]:
        return ""
    action, actions = mistakes[-1]["played"], [turn["action"] for turn in turns]
    # After a mistake that a guard vetoed, the rejected action is another one.
    return action if actions[-1] == action and actions != [action] * DEEP else ""


def known_names(belief: Belief) -> list[str]:
    """The names that an action may be about."""
    return [*belief["places"], *belief["last_seen"], *belief["holding"], *belief["visible"]]


def _mistake(env: str, point: DecisionPoint, right: str, rng: random.Random) -> str:
    """A step that is too early, a number too far, or else any action with names of the belief.

    If an answer is due, the mistake is at times a wrong answer, which ends the episode and which
    memory learns from. Forbidden actions are never tried, because the rule says all there is to
    learn. In an environment with ids, names have the type of the parameter.
    """
    belief = point.belief
    if (wrong := _wrong_answers(point, right)) and rng.random() < WRONG:
        return rng.choice(wrong)
    if (too_far := _counted_on(point, right)) and rng.random() < 0.3:
        return rng.choice(too_far)
    if (early := _early_steps(env, point)) and rng.random() < 0.5:
        return rng.choice(early)
    things = known_names(belief)
    embodied = get_environment(env).embodied
    for _ in range(TRIES if things else 0):
        rule = rng.choice(point.manual.actions)
        pools = [things if embodied else _candidates(env, point, name) for name in rule.parameters]
        if not all(pools) or not (embodied or rule.effects):
            continue
        names = dict(zip(rule.parameters, map(rng.choice, pools), strict=True))
        action = rule.syntax.format(**names)
        if action != right and forbidden_by(point.manual, action, point.goal) is None:
            return action
    return ""


def _candidates(env: str, point: DecisionPoint, parameter: str) -> list[str]:
    """The names that fit a parameter: things flagged as such, roles, and words of the manual.

    A ``line`` is a thing that the belief flags as a line, or the role of the ticket's line; for a
    ``mode`` the manual has a category of ``modes``.
    """
    belief = point.belief
    flagged = [name for name, facts in belief["flags"].items()
               if f"a {parameter}" in facts.split(", ")]  # fmt: skip
    roles = [name for role, name in get_environment(env).role_names(belief).items()
             if parameter in role.split()]  # fmt: skip
    words = point.manual.domain.categories.get(f"{parameter}s", [])
    return list(dict.fromkeys([*flagged, *roles, *words]))


def _wrong_answers(point: DecisionPoint, right: str) -> list[str]:
    """The due answer with every other visible thing instead; empty if no answer is due."""
    rule, names = match_action(point.manual, right) or (None, {})
    if rule is None or not rule.verified:
        return []
    wrong = []
    for thing in dict.fromkeys(point.belief["visible"]):
        other = {**names, rule.verified: thing}
        conditions = map(parse_predicate, rule.verified_when)
        is_answer = all(evaluate(c, point.belief, point.manual.facts, other) for c in conditions)
        action = rule.syntax.format(**other)
        if action != right and is_answer and forbidden_by(point.manual, action, point.goal) is None:
            wrong.append(action)
    return wrong


def _counted_on(point: DecisionPoint, right: str) -> list[str]:
    """The right action with a number after the last of its kind, as of a model that counts on.

    After ``drawer 3``, the last one, models search ``drawer 4``.
    """
    rule, names = match_action(point.manual, right) or (None, {})
    if rule is None:
        return []
    actions, numbered = [], [*map(in_order, nameable(point))]
    for parameter, name in names.items():
        kind, last = in_order(name)
        last = max([last, *(number for other, number in numbered if other == kind)])
        if last:
            actions.append(rule.syntax.format(**{**names, parameter: f"{kind} {last + 1}"}))
    return [action for action in actions if forbidden_by(point.manual, action, point.goal) is None]


def _early_steps(env: str, point: DecisionPoint) -> list[str]:
    """Steps of the plan that fail in the current belief, as of a model that ignores the state."""
    rules = {rule.name: rule for rule in point.manual.actions}
    actions = dict[str, None]()
    for step, _ in get_environment(env).plan(point.goal):
        rule = rules.get(point.manual.demanded(step["name"]))
        in_goal = step["target"].lower() in point.goal["sentence"].lower()
        if rule and in_goal and len(rule.parameters) == 1:
            actions[rule.syntax.format(**{rule.parameters[0]: step["target"]})] = None
    return [a for a in actions if check_action(point.manual, a, point.belief).verdict == "broken"]


def _as_remembered(point: DecisionPoint, action: str, recalls: Sequence[Recall]) -> str:
    """A walk of a search, redirected to a place where memory has found the thing; else empty.

    Only a walk to a place that is not searched yet is redirected: what can be done where the agent
    stands, such as opening a drawer, is done there. Memory counts as much if the prompt also prints
    the manual's usual places: an expert that ignored it there would teach to ignore it.
    """
    rule, names = match_action(point.manual, action) or (None, {})
    unsearched = {*point.belief["places"]} - {*point.belief["searched"]}
    walks = rule is not None and [outcome.name for outcome in rule.outcomes] == ["at"]
    if rule is None or not walks or not {*names.values()} <= unsearched:
        return ""
    for recall in surviving(recalls):
        if recall["entry"].get("object") != point.sub_goal["target"]:
            continue
        for advice in recall["advice"]["places"]:  # "shelf (3 of 4 searched; here: shelf 1)"
            kind = advice.partition(" (")[0]
            for place in sorted(unsearched, key=in_order):
                search = rule.syntax.format(**dict.fromkeys(names, place))
                if kind_of(place) == kind and find_violation(point, search) is None:
                    return search
    return ""
