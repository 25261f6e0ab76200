"""What the steps of an episode say: which rules were kept, why actions failed, what went wrong.

**Rules.** The manual judges every proposal before any guard does: the Tier-3 rule of the action (do
its preconditions hold in the belief?) and the rules that forbid some actions of that kind under the
goal. Rules without a machine-readable part (most of Tiers 1 and 2) are not judged. The manual
judges in every condition, so that a baseline that was told nothing can be compared.

**Failures.** Every action that the world refused, and the one that ended an episode badly, is also
judged from what stood in the prompt at that step. The first of these that is true:

ignored: a rule in the prompt definitely said that it could not work or must not be done; or a
    memory in the prompt said so (a lesson against this very action, a schema of it whose needs
    definitely do not hold); or it is no action of the list that every prompt shows.
wrong: a memory in the prompt said to do this very action now (a snippet that begins with it, a
    schema of it whose needs all hold); or a rule in the prompt names what the action needs, all
    of it held in the belief, and the world refused it all the same.
missing: nothing in the prompt settled it.

**Causes.** An error of the model or the world, unreadable replies and a last action that ended the
task speak for themselves. An episode that used up its steps went wrong after its last progress:
from the first step at which the goal had come as far as it ever came. Whatever happened first from
there on is the cause:

repeated refusal: an action was refused and later refused again, word for word.
drift: the belief contradicted the true state.
undone: the goal had come further than where it stood at the end.
in circles: most steps repeated an action with nothing new believed since it was last taken.

Where none of these happened, the sub-goal was missed; or, if the last progress came in the last
quarter of the episode, the steps ran out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

from rpms.rules import Manual, check_action, forbidding_rules, match_action
from rpms.rules.predicates import evaluate, parse_predicate
from rpms.rules.world_manual import load_manual
from rpms.vocabulary.belief import Belief, fingerprint
from rpms.vocabulary.goal import GoalSpec
from rpms.vocabulary.naming import Truth
from rpms.vocabulary.recall import RECALL_OUTCOMES, Recall
from rpms.vocabulary.turn import ERRORS, Decision, FailureMode

Step = Mapping[str, Any]
Verdict = Literal["kept", "broken", "unsure"]

KNOWN_ACTION = "known action"
"""Stands for the list of actions in the system prompt, which every condition is shown."""
_VERDICTS: dict[str, Verdict] = {"holds": "kept", "fails": "broken", "unknown": "unsure"}


class StepJudgement(NamedTuple):
    """One rule on one proposal."""

    rule: str
    verdict: Verdict


def judging_manual(env: str, settings: Mapping[str, Any]) -> Manual:
    """The manual that judges an episode, by its world and the settings it was played under."""
    known = {name: settings.get(name, "") for name in ("rules_dir", "without_rules")}
    return load_manual(env, known["rules_dir"], known["without_rules"])


def judge(manual: Manual, proposal: str, belief: Belief, goal: GoalSpec) -> list[StepJudgement]:
    """Every rule that speaks of a proposal; none where no action could be read."""
    if not proposal:
        return []
    if belief["disambiguation"]:
        # A request was asked back: the number of a choice is the one answer there is a rule for.
        rule, meant = manual.environment.disambiguation.rule, proposal in belief["disambiguation"]
        answer = [StepJudgement(rule, "kept" if meant else "broken")] if rule else []
        if meant:
            return [StepJudgement(KNOWN_ACTION, "kept"), *answer]
        return [*answer, *judge(manual, proposal, {**belief, "disambiguation": {}}, goal)]
    diagnosis = check_action(manual, proposal, belief)
    if diagnosis.verdict == "no_such_action":
        return [StepJudgement(KNOWN_ACTION, "broken")]
    judgements = [StepJudgement(KNOWN_ACTION, "kept")]
    judgements.append(StepJudgement(diagnosis.rule, _VERDICTS[diagnosis.verdict]))
    hits: dict[str, bool] = {}
    for rule, hit in forbidding_rules(manual, proposal, goal):
        hits[rule] = hits.get(rule, False) or hit
    return [
        *judgements,
        *(StepJudgement(rule, "broken" if hit else "kept") for rule, hit in hits.items()),
    ]


def prediction_counts(steps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """An episode's line: how each action's rule foretold what the world made of the action.

    ``foretold`` has ``[called possible, refused after all, called impossible, accepted after all]``
    for each rule, over the actions that were played as they were proposed.
    """
    predictions: dict[str, list[int]] = {}
    for step in steps:
        judged = step.get("judged", [])
        # The list of actions speaks first, then the action's own rule; forbidding rules foretell
        # nothing: what they forbid is possible.
        if len(judged) < 2 or not step["action"] or step["action"] != step.get("proposal"):
            continue
        rule, verdict = judged[1]
        if verdict == "unsure":
            continue
        row = predictions.setdefault(rule, [0, 0, 0, 0])
        possible = verdict == "kept"
        row[0 if possible else 2] += 1
        row[1 if possible else 3] += step["failed"] == possible
    return {"foretold": dict(sorted(predictions.items()))}


Kind = Literal["missing", "wrong", "ignored"]
KINDS: tuple[Kind, ...] = get_args(Kind)
NOTHING_REFUSED = "nothing refused"
LESSONS = ("failure", "critical_failure")


def in_prompt(step: Mapping[str, Any], settings: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The memories whose words the model could read at this step."""
    if settings.get("memory_control") == "filler":
        return []
    return [recall for recall in step.get("recalls", []) if not recall["dropped_by"]]


def shown_rules(step: Mapping[str, Any]) -> set[str]:
    """The ids of the rules in the prompt."""
    tiers: Mapping[str, Sequence[Any]] = step.get("rules", {})
    return {
        rule if isinstance(rule, str) else rule["id"] for tier in tiers.values() for rule in tier
    }


def kind_of_failure(
    step: Mapping[str, Any],
    manual: Manual,
    goal: GoalSpec,
    settings: Mapping[str, Any],
    refused: bool = True,
) -> Kind:
    """Missing, wrong or ignored, for the action of this step.

    An action that was not ``refused`` but ended the episode badly was possible, as its rule said:
    that rule was not wrong.
    """
    action = step["action"]
    judged = judge(manual, action, step["belief"], goal)
    shown = {KNOWN_ACTION, *shown_rules(step)}
    advice = {_advice_on(recall, step, manual) for recall in in_prompt(step, settings)}
    if False in advice or any(verdict == "broken" and rule in shown for rule, verdict in judged):
        return "ignored"
    matched = match_action(manual, action)
    allowed = matched and StepJudgement(matched[0].id, "kept") in judged and matched[0].id in shown
    return "wrong" if True in advice or (refused and allowed) else "missing"


def _advice_on(recall: Mapping[str, Any], step: Mapping[str, Any], manual: Manual) -> Truth:
    """What a memory says about the action of this step: do it now, do not, or nothing.

    Advice is what is left to do: only its first action is advised now.
    """
    entry, advised = recall["entry"], recall.get("advice", {}).get("actions", [])
    if step["action"] not in advised[:1]:
        return None
    if entry.get("type") in LESSONS:
        return False
    return _needs_hold(entry, step, manual) if entry.get("type") == "schema" else True


def _needs_hold(entry: Mapping[str, Any], step: Mapping[str, Any], manual: Manual) -> Truth:
    """Whether what a schema says its action needs holds in the belief; unsure if told in words."""
    matched = match_action(manual, step["action"])
    if matched is None or not entry.get("uses") or not entry["preconditions"]:
        return None
    needs = [parse_predicate(text) for text in entry["preconditions"]]
    truths = [evaluate(need, step["belief"], manual.facts, matched[1]) for need in needs]
    return False if False in truths else None if None in truths else True


def mark_failures(
    steps: Sequence[dict[str, Any]],
    manual: Manual,
    goal: GoalSpec,
    settings: Mapping[str, Any],
    failure_mode: str | None,
) -> None:
    """Note the kind on every step whose action failed; unreadable replies are no actions."""
    for step in steps:
        fatal = failure_mode == "wrong_termination" and step is steps[-1]
        if step["action"] and (step["failed"] or fatal):
            step["lacked"] = kind_of_failure(step, manual, goal, settings, step["failed"])


def failure_counts(steps: Sequence[Mapping[str, Any]], failure_mode: str | None) -> dict[str, Any]:
    """An episode's line: refused actions by kind, and the kind that dominates a lost episode."""
    refused = Counter(step["lacked"] for step in steps if step["failed"] and step["lacked"])
    return {
        "refused": {kind: refused[kind] for kind in KINDS},
        "lost_by": _dominant(steps, refused, failure_mode) if failure_mode else "",
    }


def _dominant(steps: Sequence[Mapping[str, Any]], refused: Counter[str], failure_mode: str) -> str:
    """The commonest kind; of equals, what was nearest at hand: ignored, then wrong.

    What ended an episode badly outweighs all that was merely refused before.
    """
    if failure_mode == "wrong_termination" and steps and steps[-1]["lacked"]:
        return str(steps[-1]["lacked"])
    if not refused.total():
        return NOTHING_REFUSED
    return max(reversed(KINDS), key=lambda kind: refused[kind])


ANY_GOAL = "any goal"
"""Where an entry is not about one goal: what an action needs, what was found where."""


def source_type(entry: Mapping[str, Any], read_type: Callable[[str], str]) -> str:
    """The goal type an entry was learned from; an entry without a goal may name its source.

    ``read_type`` gives the goal type of a printed goal signature, in the world's own way.
    """
    if printed := entry.get("goal_signature"):
        return read_type(str(printed)) or ANY_GOAL
    return str(entry.get("source") or ANY_GOAL)


def outcome_field(outcome: str) -> str:
    """The field of an episode's line that counts a outcome."""
    return f"dropped_{outcome.replace(' ', '_')}"


def memory_counts(steps: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """What became of the candidates, summed over the steps: the outcomes add up to ``recalled``."""
    recalls: list[Recall] = [recall for step in steps for recall in step.get("recalls", [])]
    outcomes = Counter(str(recall["dropped_by"]) for recall in recalls)
    for step in steps:
        outcomes.update(step.get("truncated", {}))
    dropped = {outcome_field(outcome): outcomes[outcome] for outcome in RECALL_OUTCOMES if outcome}
    warned = sum(bool(recall["warning"]) for recall in recalls if not recall["dropped_by"])
    return {"recalled": outcomes.total(), **dropped, "warned": warned}


def decision_counts(decisions: Sequence[Decision]) -> dict[str, Any]:
    """What the guard made of the proposals, and which rules spoke against them."""
    verdicts = Counter(decision["verdict"] for decision in decisions)
    rules = Counter(decision["rule"] or "procedure" for decision in decisions if decision["reason"])
    return {
        "proposals": len(decisions),
        "retries": verdicts["retried"],
        "replaced": verdicts["replaced"],
        "fallback": verdicts["fallback"],
        "overridden": verdicts["overridden"],
        "vetoes": dict(sorted(rules.items())),
    }


UNKNOWN = "not recorded"
CAUSES = (
    "wrong", "repeated refusal", "belief_errors", "undone", "in circles", "missed sub-goal",
    "out of steps", "unreadable replies", UNKNOWN, *(mode.replace("_", " ") for mode in ERRORS),
)  # fmt: skip
"""In the order of the tables; a wrong last action is called by its name, as ``wrong focus``."""
LATE = 4
"""One part of so many: progress within the last one counts as getting on until the end."""
ADVICE = {"ignored": ", against what the prompt said", "wrong": ", as the prompt advised"}
"""What stood in the prompt about an action that failed."""


class Cause(NamedTuple):
    """Where an episode went wrong; step 0 where no step is to blame."""

    kind: str
    step: int
    text: str


NOT_RECORDED = Cause(UNKNOWN, 0, "there is no step log that could tell where it went wrong")


def cause_rank(kind: str) -> int:
    """Where a kind of cause stands in a table."""
    return CAUSES.index(kind) if kind in CAUSES else 0


def find_cause(mode: FailureMode, error: str, steps: Sequence[Step], manual: Manual) -> Cause:
    """The cause of an episode that ended in ``mode``; the manual names its last action."""
    if mode in ERRORS:
        kind = mode.replace("_", " ")
        return Cause(kind, len(steps), " ".join(error.split()) or f"the episode ended in a {kind}")
    if not steps:
        return NOT_RECORDED
    if mode == "format":
        return _unreadable(steps)
    if mode == "wrong_termination":
        return _wrong_end(steps[-1], manual)
    return _stuck(steps, manual)


def _unreadable(steps: Sequence[Step]) -> Cause:
    unread = [step["step"] for step in steps if not step["action"]]
    first = unread[0] if unread else 0
    text = f"{len(unread)} of {len(steps)} replies held no readable action, the first at step"
    return Cause("unreadable replies", first, f"{text} {first}")


def _wrong_end(step: Step, manual: Manual) -> Cause:
    if not step["action"]:
        return Cause("wrong end", step["step"], f"the agent stopped at step {step['step']}")
    # The number of a choice that was offered stands for what was chosen.
    action = step["belief"].get("asked", {}).get(step["action"], step["action"])
    matched = match_action(manual, action)
    name = matched[0].name.replace("_", " ") if matched else "last action"
    text = f"'{action}' ended the task at step {step['step']}{_advised(step)}"
    return Cause(f"wrong {name}", step["step"], text)


def _advised(step: Step) -> str:
    return ADVICE.get(step.get("lacked", ""), "")


def _stuck(steps: Sequence[Step], manual: Manual) -> Cause:
    """What came first after the last progress; of two at one step, the first of the list."""
    best = max(map(_progress, steps))
    since = next(i for i, step in enumerate(steps) if _progress(step) == best)
    after = steps[since:]
    causes = [
        *_refusals(after),
        *_belief_errors(after),
        *_undone(after, best),
        *_circles(after, manual),
    ]
    kind, step, text = min(causes or [_missed(steps, since)], key=lambda cause: cause.step)
    last = steps[-1]["sub_goal"]
    goal = " ".join(filter(None, (last["name"].replace("_", " "), last["target"])))
    return Cause(kind, step, f"{text} (at the end {last['progress']}% done, {goal})")


def _progress(step: Step) -> int:
    return int(step["sub_goal"]["progress"])


def _refusals(after: Sequence[Step]) -> Iterator[Cause]:
    often = Counter(step["action"] for step in after if step["failed"] and step["action"])
    for step in after:
        again = often[step["action"]] - 1
        if step["failed"] and again > 0:
            times = "once more" if again == 1 else f"{again} times more"
            text = f"'{step['action']}' was refused at step {step['step']} and {times}"
            yield Cause("repeated refusal", step["step"], text + _advised(step))
            return


def _belief_errors(after: Sequence[Step]) -> Iterator[Cause]:
    for step in after:
        if step["belief_errors"]:
            text = f"the belief was wrong at step {step['step']}: {step['drift'][0]}"
            yield Cause("belief_errors", step["step"], text)
            return


def _undone(after: Sequence[Step], best: int) -> Iterator[Cause]:
    """Progress is what was believed before an action, so the last best step is the one to blame."""
    if _progress(after[-1]) < best:
        last = [step for step in after if _progress(step) == best][-1]
        text = f"it had come to {best}% before '{last['action']}' at step {last['step']}"
        yield Cause("undone", last["step"], text)


def _circles(after: Sequence[Step], manual: Manual) -> Iterator[Cause]:
    seen: set[tuple[str, str]] = set()
    again: list[Step] = []
    for step in after:
        matched = match_action(manual, step["action"])
        if matched and matched[0].repeatable:  # waiting is no walk in circles
            continue
        now = (step["action"], fingerprint(step["belief"]))
        if now in seen:
            again.append(step)
        seen.add(now)
    if len(again) * 2 > len(after):
        first = again[0]
        text = f"'{first['action']}' again at step {first['step']} with nothing new known; "
        text += f"{len(again)} of the last {len(after)} steps were such repeats"
        yield Cause("in circles", first["step"], text)


def _missed(steps: Sequence[Step], since: int) -> Cause:
    number, since_then = steps[since]["step"], len(steps) - since
    if since_then * LATE <= len(steps):
        return Cause("out of steps", number, f"last progress at step {number} of {len(steps)}")
    text = f"no progress in the {since_then} steps from step {number} on"
    return Cause("missed sub-goal", number, text)
