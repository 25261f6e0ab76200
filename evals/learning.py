"""Learning: recorded trajectories -> memory entries. Pure, and independent of their order.

Each episode is replayed on paper: the belief is rebuilt from the recorded texts, the way to
every reached sub-goal becomes a success snippet, every refused action a lesson with the
precondition it violated, an action that ended the episode with a negative score a critical
failure, and every action template a schema with its counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rpms.envs import Environment, get_environment
from rpms.evals.records import EpisodeRecord
from rpms.memory_store import Entry, merge_entries, parse_entry
from rpms.nodes.manual import load_manual
from rpms.rules import (
    Manual,
    corrective_rule,
    fatal_rule,
    match_action,
    needed_actions,
)
from rpms.rules.predicates import parse_predicate, phrase
from rpms.rules.schema import ActionRule
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.goal import GoalSpec, SubGoal
from rpms.vocabulary.turn import Turn


def learn(records: Iterable[EpisodeRecord]) -> list[Entry]:
    """M from trajectories: what each of them teaches, merged."""
    return merge_entries(
        parse_entry({"id": "new", **lesson}) for record in records for lesson in lessons(record)
    )


def lessons(record: EpisodeRecord) -> Iterator[dict[str, Any]]:
    """Everything one episode teaches, before merging."""
    env = get_environment(record["env"])
    manual = load_manual(record["env"])
    goal = env.parse_goal(record["goal"])
    belief = env.first_belief(record["first_observation"])
    history: list[Turn] = []
    step = env.sub_goal(goal, belief, history)
    began, since = belief, list[str]()
    for number, turn in enumerate(record["history"], start=1):
        action = turn["action"]
        if not action:
            continue
        action = env.carried_out(action, belief, turn["observation"])
        if not action:
            belief = env.update_belief(belief, turn["action"], turn["observation"])
            continue
        signed = {"goal_signature": goal["signature"], "state_signature": env.print_state(belief)}
        yield from _schema(manual, action, turn["failed"])
        if turn["failed"]:
            yield _lesson(manual, action, turn["observation"], belief, signed)
        elif number == len(record["history"]) and record.get("score", 0.0) < 0:
            yield _critical(manual, action, goal, record["score"], signed)
        belief = env.update_belief(belief, turn["action"], turn["observation"])
        if turn["failed"]:
            continue
        history.append(
            Turn(step=number, thought="", action=action, observation=turn["observation"],
                 failed=False, reply="")
        )  # fmt: skip
        since.append(action)
        after = env.sub_goal(goal, belief, history)
        if _reached(manual, step, after, action, record, number):
            yield {
                **signed,
                "state_signature": env.print_state(began),
                **_snippet(manual, env, step, began, since),
            }
            began, since = belief, []
        step = after


def _reached(
    manual: Manual, before: SubGoal, after: SubGoal, action: str, record: EpisodeRecord, number: int
) -> bool:
    """Whether this action completed the sub-goal it served.

    The last action of a won episode did, even if the belief cannot tell.
    """
    matched = match_action(manual, action)
    served = matched is not None and manual.domain.advances.get(before["name"]) == matched[0].name
    won = record["success"] and number == len(record["history"])
    return served and (won or after["progress"] > before["progress"])


def _snippet(
    manual: Manual, env: Environment, step: SubGoal, began: Belief, since: list[str]
) -> dict[str, Any]:
    actions = needed_actions(manual, since)
    matched = match_action(manual, actions[-1])
    name, bindings = (matched[0].name, dict(matched[1])) if matched else ("", {})
    precondition = {**env.requirements(began, actions), "action_type": name}
    if "place" in bindings:
        precondition["tool_location"] = bindings["place"]
    return {
        "type": "success",
        "sub_goal_type": step["name"],
        "precondition": precondition,
        "actions": actions,
        "outcome": {name: bindings.get("object", "")},
        "success_count": 1,
    }


def _lesson(
    manual: Manual, action: str, observation: str, belief: Belief, signed: dict[str, str]
) -> dict[str, Any]:
    kind, rule = corrective_rule(manual, action, belief)
    return {
        **signed,
        "type": "failure",
        "failed_action": action,
        "failure_type": kind,
        "failure_message": observation,
        "corrective_rule": rule,
        "occurrence_count": 1,
    }


def _critical(
    manual: Manual, action: str, goal: GoalSpec, score: float, signed: dict[str, str]
) -> dict[str, Any]:
    """What happened is no refusal: the environment let it happen and ended the episode."""
    return {
        **signed,
        "type": "critical_failure",
        "failed_action": action,
        "failure_message": f"score = {score:.0f}, terminated",
        "corrective_rule": fatal_rule(manual, action, goal),
        "occurrence_count": 1,
    }


def _schema(manual: Manual, action: str, failed: bool) -> Iterator[dict[str, Any]]:
    matched = match_action(manual, action)
    if matched is None:
        return
    rule = matched[0]
    yield {
        "type": "schema",
        "action_template": _template(rule),
        "action_type": rule.name,
        "preconditions": _words(manual, rule, rule.preconditions),
        "effects": _words(manual, rule, rule.effects),
        "success_count": int(not failed),
        "failure_count": int(failed),
        "confidence": float(not failed),
    }


def _template(rule: ActionRule) -> str:
    """The syntax with a fixed tool filled in: ``cool {object} with fridge 1``."""
    template = rule.syntax
    for text in rule.preconditions:
        predicate = parse_predicate(text)
        if predicate.name == "kind":
            parameter, kind = predicate.arguments
            template = template.replace(f"{{{parameter}}}", f"{kind} 1")
    return template


def _words(manual: Manual, rule: ActionRule, texts: list[str]) -> list[str]:
    blanks = {name: name for name in rule.parameters}
    return [phrase(parse_predicate(text), blanks, manual.world) for text in texts]
