"""What the step log of an episode adds up to: computed when a report, a page or a frame is made.

The record of an episode keeps what happened; every count of its steps comes from here, so that a
better measure also holds for the runs that were made before it.

**Failures.** Every action that the environment rejected, and the one that ended an episode badly,
is judged from what stood in the prompt at that step. The first of these that is true:

ignored: a rule in the prompt definitely said that it could not work or must not be done; or a
    memory in the prompt said so (a lesson against this very action, a schema of it whose needs
    definitely do not hold); or it is no action of the list that every prompt shows.
wrong: a memory in the prompt said to do this very action now (a snippet that begins with it, a
    schema of it whose needs all hold); or a rule in the prompt names what the action needs, all
    of it held in the belief, and the environment rejected it all the same.
missing: nothing in the prompt settled it.

A rule folder that is gone, or has changed since, is judged by the manual at hand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args

from rpms.envs import get_environment
from rpms.envs.manuals import load_manual
from rpms.evals.analysis.causes import Cause, find_cause
from rpms.evals.records.run_folder import Run, read_log
from rpms.evals.records.schema import Episode, JobKey
from rpms.memory_store.contradictions import contradiction_kind
from rpms.rules import Manual, match_action
from rpms.rules.judgement import KNOWN_ACTION, StepJudgement, judge
from rpms.rules.predicates import evaluate, parse_predicate
from rpms.vocabulary.belief import empty_belief
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import stamp_of
from rpms.vocabulary.goal import GoalSpec
from rpms.vocabulary.naming import Truth
from rpms.vocabulary.recall import RECALL_OUTCOMES
from rpms.vocabulary.turn import FailureMode

Step = Mapping[str, Any]
Kind = Literal["missing", "wrong", "ignored"]
KINDS: tuple[Kind, ...] = get_args(Kind)
NOTHING_REFUSED = "nothing refused"
LESSONS = ("failure", "critical_failure")
ADVISING = ("success", *LESSONS)
"""Entries that the arbiter holds against the rules; schemas and finds advise nothing."""
UNJUDGED = ("not groundable", "scf")
"""Outcomes that an entry meets before the arbiter sees it; every other one comes after."""
LEARNED = "learned"
GUARDED = ("retried", "fallback", "replaced", "overridden")
"""Verdicts of the guard that are counted."""
CACHED = 20_000
"""Analyses in memory: tables, verdict and page ask for the same ones."""


@dataclass(frozen=True)
class Analysis:
    """What the steps of one episode add up to.

    Attributes:
        logged: the step log could be read; without one every count is 0.
        invalid_actions: actions that the environment rejected, and replies without an action.
        format_errors: replies from which no action could be read.
        repeated: rejected actions that are the very action rejected in the step before.
        knowledge_tokens: mean per prompt of what rules, state and memories took.
        dropped_turns: the most turns that were left out of a prompt.
        belief_error_steps: steps at which the belief contradicted the true state.
        checked_steps: steps at which the two were compared.
        recalled: candidates from memory, summed over the steps.
        dropped: of these, by outcome, those that were not shown.
        warned: of those shown, the ones with a warning.
        proposals: actions that the guard judged.
        verdicts: by verdict, what it made of them.
        vetoes: by rule, how often it spoke against one.
        against_rule: actions that their own rule called impossible and the environment accepted.
        refused: rejected actions by kind: was knowledge missing, wrong or ignored?
        lost_by: the kind that dominates a lost episode.
        kinds: by step, the kind of its failure; empty where nothing failed.
        advice: by kind of advice, what arbitration made of it.
        cause: where a lost episode went wrong.
    """

    logged: bool
    invalid_actions: int
    format_errors: int
    repeated: int
    knowledge_tokens: float
    dropped_turns: int
    belief_error_steps: int
    checked_steps: int
    recalled: int
    dropped: Mapping[str, int]
    warned: int
    proposals: int
    verdicts: Mapping[str, int]
    vetoes: Mapping[str, int]
    against_rule: int
    refused: Mapping[str, int]
    lost_by: str
    kinds: Sequence[str]
    advice: Mapping[str, Counter[str]]
    cause: Cause | None

    def columns(self) -> dict[str, Any]:
        """One figure or word each, for a row about the episode."""
        plain = {n: v for n, v in vars(self).items() if isinstance(v, int | float | str)}
        return {
            **plain,
            **{f"dropped_{outcome.replace(' ', '_')}": n for outcome, n in self.dropped.items()},
            **self.verdicts,
            **{f"refused_{kind}": n for kind, n in self.refused.items()},
        }


def analyse(
    steps: Sequence[Step],
    *,
    manual: Manual,
    goal: GoalSpec,
    settings: Mapping[str, Any],
    mode: FailureMode | None = None,
    error: str = "",
    logged: bool = True,
) -> Analysis:
    """Every figure that the steps of an episode give.

    Args:
        steps: of its log.
        manual: what judges its failures and names its last action.
        goal: of its task.
        settings: those of its condition.
        mode: how it was lost; None where it was won.
        error: what broke down, if something did.
        logged: the steps are all of it.
    """
    kinds = failure_kinds(steps, manual, goal, settings, mode)
    recalls = [recall for step in steps for recall in step.get("recalls", [])]
    outcomes = Counter(str(recall["dropped_by"]) for recall in recalls)
    for step in steps:
        outcomes.update(step.get("truncated", {}))
    decisions = [decision for step in steps for decision in step.get("decisions", [])]
    verdicts = Counter(decision["verdict"] for decision in decisions)
    vetoes = Counter(d["rule"] or "procedure" for d in decisions if d["reason"])
    tokens = [step["knowledge_tokens"] for step in steps if "knowledge_tokens" in step]
    rejected = [step["action"] if step["failed"] else "" for step in steps]
    refused = Counter(k for step, k in zip(steps, kinds, strict=True) if step["failed"] and k)
    return Analysis(
        logged=logged,
        invalid_actions=sum(step["failed"] for step in steps),
        format_errors=sum(step["failed"] and not step["action"] for step in steps),
        repeated=sum(bool(action) and action == last for last, action in pairwise(rejected)),
        knowledge_tokens=round(sum(tokens) / len(tokens), 1) if tokens else 0.0,
        dropped_turns=max((step.get("dropped_turns", 0) for step in steps), default=0),
        belief_error_steps=sum(bool(step["belief_errors"]) for step in steps),
        checked_steps=sum(bool(step.get("truth")) for step in steps),
        recalled=outcomes.total(),
        dropped={outcome: outcomes[outcome] for outcome in RECALL_OUTCOMES if outcome},
        warned=sum(bool(r["warning"]) for r in recalls if not r["dropped_by"]),
        proposals=len(decisions),
        verdicts={verdict: verdicts[verdict] for verdict in GUARDED},
        vetoes=dict(sorted(vetoes.items())),
        against_rule=sum(map(_is_against_rule, steps)),
        refused={kind: refused[kind] for kind in KINDS},
        lost_by=_dominant(kinds, refused, mode) if mode else "",
        kinds=kinds,
        advice=_advice_outcomes(recalls),
        cause=find_cause(mode, error, steps, kinds, manual) if mode else None,
    )


def analysis_of(run: Run, episode: Episode) -> Analysis:
    """The analysis of an episode; a log is read once, as long as it is not written anew."""
    settings, file = run.manifest.conditions[episode.condition], run.log_file(episode)
    names = ("rules_dir", "without_rules", "memory_control")
    chosen = tuple((name, str(settings.get(name) or "")) for name in names)
    told = (episode.goal, episode.failure_mode, episode.error)
    return _analysis_of(file, stamp_of(file), run.manifest.env, chosen, *told)


def analyses(run: Run, episodes: Iterable[Episode]) -> dict[JobKey, Analysis]:
    """Those of the episodes whose step log can be read: no figure of steps counts the others."""
    found = {episode.key: analysis_of(run, episode) for episode in episodes}
    return {key: analysis for key, analysis in found.items() if analysis.logged}


@lru_cache(maxsize=CACHED)
def _analysis_of(
    file: Path,
    _stamp: tuple[int, int],
    env: str,
    chosen: tuple[tuple[str, str], ...],
    goal: str,
    mode: FailureMode | None,
    error: str,
) -> Analysis:
    settings, log = dict(chosen), read_log(file)
    try:
        manual = load_manual(env, settings["rules_dir"], settings["without_rules"])
    except RpmsError:  # the rules of that arm are gone
        manual = load_manual(env)
    about: dict[str, Any] = {
        "manual": manual, "goal": _goal(env, goal), "settings": settings, "mode": mode,
        "error": error,
    }  # fmt: skip
    try:
        return analyse(log["steps"] if log else (), **about, logged=log is not None)
    except (KeyError, TypeError, ValueError, AttributeError):  # a log of another shape
        return analyse((), **about, logged=False)


def _goal(env: str, sentence: str) -> GoalSpec:
    """The goal as the environment reads it; one that it no longer reads has no rules of its own."""
    try:
        return get_environment(env).parse_goal(sentence)
    except RpmsError:
        return GoalSpec(sentence=sentence, type="", object="", state=None, count=1, destination="",
                        signature="")  # fmt: skip


def _is_against_rule(step: Step) -> bool:
    """Of actions played as proposed; the list of actions speaks first, then the action's rule.

    Forbidding rules predict nothing: what they forbid is possible.
    """
    judged = step.get("judged", [])
    if len(judged) < 2 or not step["action"] or step["action"] != step.get("proposal"):
        return False
    return judged[1][1] == "broken" and not step["failed"]


def in_prompt(step: Step, settings: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The memories whose words the model could read at this step."""
    if settings.get("memory_control") == "filler":
        return []
    return [recall for recall in step.get("recalls", []) if not recall["dropped_by"]]


def shown_rules(step: Step) -> set[str]:
    """The ids of the rules in the prompt."""
    tiers: Mapping[str, Sequence[Any]] = step.get("rules", {})
    return {
        rule if isinstance(rule, str) else rule["id"] for tier in tiers.values() for rule in tier
    }


def kind_of_failure(
    step: Step,
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
    # A log of an earlier version may lack what beliefs have since.
    judged = judge(manual, action, {**empty_belief(), **step["belief"]}, goal)
    shown = {KNOWN_ACTION, *shown_rules(step)}
    advice = {_advice_on(recall, step, manual) for recall in in_prompt(step, settings)}
    if False in advice or any(verdict == "broken" and rule in shown for rule, verdict in judged):
        return "ignored"
    matched = match_action(manual, action)
    allowed = matched and StepJudgement(matched[0].id, "kept") in judged and matched[0].id in shown
    return "wrong" if True in advice or (refused and allowed) else "missing"


def _advice_on(recall: Mapping[str, Any], step: Step, manual: Manual) -> Truth:
    """What a memory says about the action of this step: do it now, do not, or nothing.

    Advice is what is left to do: only its first action is advised now.
    """
    entry, advised = recall["entry"], recall.get("advice", {}).get("actions", [])
    if step["action"] not in advised[:1]:
        return None
    if entry.get("type") in LESSONS:
        return False
    return _needs_hold(entry, step, manual) if entry.get("type") == "schema" else True


def _needs_hold(entry: Mapping[str, Any], step: Step, manual: Manual) -> Truth:
    """Whether what a schema says its action needs holds in the belief; unsure if told in words."""
    matched = match_action(manual, step["action"])
    if matched is None or not entry.get("uses") or not entry["preconditions"]:
        return None
    needs = [parse_predicate(text) for text in entry["preconditions"]]
    truths = [evaluate(need, step["belief"], manual.facts, matched[1]) for need in needs]
    return False if False in truths else None if None in truths else True


def failure_kinds(
    steps: Sequence[Step],
    manual: Manual,
    goal: GoalSpec,
    settings: Mapping[str, Any],
    mode: FailureMode | None,
) -> list[str]:
    """The kind of every step's failure; unreadable replies are no actions."""
    fatal = len(steps) - 1 if mode == "wrong_termination" else None
    return [
        kind_of_failure(step, manual, goal, settings, step["failed"])
        if step["action"] and (step["failed"] or number == fatal)
        else ""
        for number, step in enumerate(steps)
    ]


def _dominant(kinds: Sequence[str], refused: Counter[str], mode: FailureMode) -> str:
    """The commonest kind; of equals, what was nearest at hand: ignored, then wrong.

    What ended an episode badly outweighs all that was merely rejected before.
    """
    if mode == "wrong_termination" and kinds and kinds[-1]:
        return kinds[-1]
    if not refused.total():
        return NOTHING_REFUSED
    return max(reversed(KINDS), key=lambda kind: refused[kind])


def _advice_outcomes(recalls: Iterable[Mapping[str, Any]]) -> dict[str, Counter[str]]:
    """What became of each kind of advice that came before the arbiter, planted or learned."""
    outcomes: dict[str, Counter[str]] = {}
    slips: dict[str, bool] = {}
    for recall in recalls:
        if recall["entry"].get("type") not in ADVISING or recall["dropped_by"] in UNJUDGED:
            continue
        entry = str(recall["entry"].get("id"))
        removed, warned = recall["dropped_by"] == "arbitration", bool(recall["warning"])
        outcome = outcomes.setdefault(contradiction_kind(entry) or LEARNED, Counter())
        outcome.update(candidates=1, removed=removed, warned=warned, shown=not recall["dropped_by"])
        slips[entry] = slips.get(entry, False) or not (removed or warned)
    for entry, slipped in slips.items():
        outcomes[contradiction_kind(entry) or LEARNED].update(entries=1, caught=not slipped)
    return outcomes


ANY_GOAL = "any goal"
"""Where an entry is not about one goal: what an action needs, what was found where."""


def source_type(entry: Mapping[str, Any], read_type: Callable[[str], str]) -> str:
    """The goal type an entry was learned from; an entry without a goal may name its source.

    ``read_type`` gives the goal type of a printed goal signature, in the world's own way.
    """
    if printed := entry.get("goal_signature"):
        return read_type(str(printed)) or ANY_GOAL
    return str(entry.get("source") or ANY_GOAL)
