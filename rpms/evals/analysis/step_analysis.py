"""The analysis of an episode's step log, made for reports, pages and frames.

The record of an episode keeps only what happened. Every count of its steps is computed here, so
that an improved measure applies to old runs too.

**Failures.** Every action that the environment rejected, and the action that ended an episode
before the goal, has a kind, from the knowledge in the prompt at that step. The first that applies:

ignored: a rule in the prompt said that the action cannot work or is forbidden; or a memory in the
    prompt said so (a lesson against this action, a schema of it whose preconditions do not hold);
    or the action is not in the list of actions that every prompt shows.
wrong: a memory in the prompt advised this action (a snippet that begins with it, a schema of it
    whose preconditions all hold); or the action's preconditions are in the prompt, all of them
    held in the belief, and the environment rejected the action.
missing: nothing in the prompt decided it.

If the rule folder of a run is missing or has changed, the current manual is used.
"""

from __future__ import annotations

import gc
import gzip
import hashlib
import json
import multiprocessing
import os
import pickle
import re
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast, get_args

from rpms.envs import get_environment
from rpms.envs.manuals import load_manual
from rpms.evals.analysis.causes import Cause, find_cause
from rpms.evals.analysis.mechanisms import changed_prompts, conflicts
from rpms.evals.records.checksums import rules_hash
from rpms.evals.records.run_folder import Run, read_log
from rpms.evals.records.schema import Episode
from rpms.rules import Manual, match_action
from rpms.rules.predicates import evaluate, parse_predicate
from rpms.rules.verdicts import KNOWN_ACTION, verdicts_on
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import json_bytes, stamp_of, write_whole
from rpms.vocabulary.goal import GoalSpec
from rpms.vocabulary.naming import Truth
from rpms.vocabulary.recall import RECALL_OUTCOMES
from rpms.vocabulary.turn import FailureMode

Step = Mapping[str, Any]
Kind = Literal["missing", "wrong", "ignored"]
KINDS: tuple[Kind, ...] = get_args(Kind)
NOTHING_REJECTED = "nothing rejected"
LESSONS = ("failure", "critical_failure")
ADVISING = ("success", *LESSONS)
"""Types of entries that arbitration checks against the rules; schemas and finds advise nothing."""
UNJUDGED = ("not groundable", "scf")
"""Outcomes before arbitration; all others come after it."""
LEARNED = "learned"
GUARDED = ("retried", "fallback", "replaced", "overridden")
"""The counted verdicts of the guard."""
MANY = 500
"""Below this number of episodes, starting processes takes longer than reading the step logs."""
KEPT = "frame.json.gz"
"""In a run folder: the analyses of its episodes, each with the key that it was made for."""
BY_NAME = ("conflicts", "changed", "vetoes", "broken", "advice")
"""Counts by a name of the log, which are dicts in the frame."""


@dataclass(frozen=True)
class Analysis:
    """The figures of one episode's steps.

    Attributes:
        logged: the step log could be read; without it every count is 0.
        invalid_actions: actions that the environment rejected, and replies without an action.
        format_errors: replies from which no action could be read.
        repeated: rejected actions that repeat the action rejected one step before.
        knowledge_tokens: the mean tokens of rules, state and memories in a prompt.
        dropped_turns: the maximal number of turns that were left out of a prompt.
        belief_error_steps: steps at which the belief contradicted the true state.
        checked_steps: steps at which belief and true state were compared.
        recalled: candidates from memory, summed over the steps.
        dropped: candidates that were not shown, by outcome.
        warned: memories that were shown with a warning.
        conflicts: candidates that arbitration dropped, by kind of conflict.
        changed: steps at which a mechanism changed the memories in the prompt, by mechanism.
        logged_steps: steps in the log.
        proposals: actions that the guard judged.
        verdicts: the guard's verdicts, counted.
        vetoes: vetoes, by rule.
        judged: proposals of the model that the manual judged, in arms without rules too.
        broken: proposals that broke a rule, by rule.
        against_rule: actions that broke their own rule and that the environment accepted.
        rejected: rejected actions by kind: missing, wrong or ignored knowledge.
        lost_by: the dominant kind of a lost episode.
        kinds: the kind of each step's failure; empty for a step without one.
        advice: the outcomes of arbitration, by kind of advice.
        cause: the cause of a lost episode.
    """

    logged: bool = False
    invalid_actions: int = 0
    format_errors: int = 0
    repeated: int = 0
    knowledge_tokens: float = 0.0
    dropped_turns: int = 0
    belief_error_steps: int = 0
    checked_steps: int = 0
    recalled: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    warned: int = 0
    conflicts: Mapping[str, int] = field(default_factory=dict)
    changed: Mapping[str, int] = field(default_factory=dict)
    logged_steps: int = 0
    proposals: int = 0
    verdicts: Mapping[str, int] = field(default_factory=dict)
    vetoes: Mapping[str, int] = field(default_factory=dict)
    judged: int = 0
    broken: Mapping[str, int] = field(default_factory=dict)
    against_rule: int = 0
    rejected: Mapping[str, int] = field(default_factory=dict)
    lost_by: str = ""
    kinds: Sequence[str] = ()
    advice: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    cause: Cause | None = None

    def columns(self) -> dict[str, Any]:
        """The figures as columns of a row; counts by rule, conflict and mechanism stay dicts."""
        plain = {n: v for n, v in vars(self).items() if isinstance(v, int | float | str)}
        cause = self.cause or Cause("", 0, "")
        return {
            **plain,
            **{outcome_column(name): self.dropped.get(name, 0)
               for name in RECALL_OUTCOMES if name},
            **{verdict: self.verdicts.get(verdict, 0) for verdict in GUARDED},
            **{f"rejected_{kind}": self.rejected.get(kind, 0) for kind in KINDS},
            **{name: getattr(self, name) for name in BY_NAME},
            "cause": cause.kind, "cause_step": cause.step, "cause_text": cause.text,
        }  # fmt: skip


def outcome_column(outcome: str) -> str:
    """The column that counts the candidates with this outcome."""
    return f"dropped_{re.sub('[ -]', '_', outcome)}"


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
    """Compute the figures of an episode.

    Args:
        steps: the steps of its log.
        manual: the manual that judges failures and names the last action.
        goal: the goal of the task.
        settings: the settings of the condition.
        mode: the failure mode; None for a won episode.
        error: the error that ended the episode; empty for none.
        logged: False if the log could not be read.
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
    counts = Counter(k for step, k in zip(steps, kinds, strict=True) if step["failed"] and k)
    judged = [dict(step.get("judged", [])) for step in steps]
    broken = Counter(rule for rules in judged for rule in rules if rules[rule] == "broken")
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
        conflicts=conflicts(recalls),
        changed=changed_prompts(steps, settings),
        logged_steps=len(steps),
        proposals=len(decisions),
        verdicts={verdict: verdicts[verdict] for verdict in GUARDED},
        vetoes=dict(sorted(vetoes.items())),
        judged=sum(map(bool, judged)),
        broken=dict(sorted(broken.items())),
        against_rule=sum(map(_is_against_rule, steps)),
        rejected={kind: counts[kind] for kind in KINDS},
        lost_by=_dominant(kinds, counts, mode) if mode else "",
        kinds=kinds,
        advice=_advice_outcomes(recalls),
        cause=find_cause(mode, error, steps, kinds, manual) if mode else None,
    )


class AnalysisKey(NamedTuple):
    """Everything that determines the analysis of an episode, besides this package."""

    file: Path
    stamp: tuple[int, int]
    env: str
    chosen: tuple[tuple[str, str], ...]
    goal: str
    mode: FailureMode | None
    error: str


_ANALYSES: dict[AnalysisKey, Analysis] = {}
_FOLDERS: set[Path] = set()
"""The run folders whose kept analyses were read."""


def key_of(run: Run, episode: Episode) -> AnalysisKey:
    settings, file = run.manifest.conditions[episode.condition], run.log_file(episode)
    chosen = tuple((name, str(settings.get(name, default))) for name, default in READ.items())
    chosen += (("manual", _manual_hash(run.manifest.env, *(text for _, text in chosen[:2]))),)
    ending = (episode.goal, episode.failure_mode, episode.error)
    return AnalysisKey(file, stamp_of(file), run.manifest.env, chosen, *ending)


READ = {
    name: RunContext().plain[name]
    for name in ("rules_dir", "without_rules", "memory_control", "memory_method", "k")
}
"""The settings that an analysis reads, with the values of runs that are older than a setting."""


@cache
def _manual_hash(env: str, rules_dir: str, without: str) -> str:
    try:
        return rules_hash(env, rules_dir, without)
    except RpmsError:
        return ""  # the rules of that arm are missing


def analysis_of(run: Run, episode: Episode) -> Analysis:
    """The analysis of an episode; a log is read again only if its file has changed."""
    key = key_of(run, episode)
    if key not in _ANALYSES:
        _ANALYSES[key] = _analysis_by(key)
    return _ANALYSES[key]


def read_analyses(run: Run, processes: int = 1) -> list[Analysis]:
    """The analyses of all episodes of a run, which are kept beside it."""
    keys = [key_of(run, episode) for episode in run.episodes.values()]
    folders = {key.file.parents[2] for key in keys}
    for folder in folders - _FOLDERS:
        _ANALYSES.update(_kept(folder))
        _FOLDERS.add(folder)
    missing = [key for key in keys if key not in _ANALYSES]
    if processes > 1 and len(missing) >= MANY:
        _ANALYSES.update(analyse_apart(missing, processes))
    _ANALYSES.update((key, _analysis_by(key)) for key in missing if key not in _ANALYSES)
    for folder in {key.file.parents[2] for key in missing}:
        _keep(folder, {key: _ANALYSES[key] for key in keys if key.file.parents[2] == folder})
    return [_ANALYSES[key] for key in keys]


def analyse_apart(keys: Sequence[AnalysisKey], processes: int) -> dict[AnalysisKey, Analysis]:
    """Analyse in several processes, started by one that is not the user's script.

    Worker processes import the script that starts them, and would run it again.
    """
    code = f"from {__name__} import serve_analyses; serve_analyses({processes})"
    path = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=pickle.dumps(keys),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=path,
        check=False,
    )
    if done.returncode != 0:  # the caller analyses them itself, where an error has its place
        return {}
    return dict(zip(keys, pickle.loads(done.stdout), strict=True))


def serve_analyses(processes: int) -> None:
    """Answer the keys of standard input with their analyses, both pickled."""
    keys = pickle.load(sys.stdin.buffer)
    answer = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nothing that is printed joins the answer
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        found = list(pool.map(_analysis_by, keys, chunksize=50))
    with os.fdopen(answer, "wb") as file:
        pickle.dump(found, file)


def _kept(folder: Path) -> Iterator[tuple[AnalysisKey, Analysis]]:
    """The kept analyses of a run folder; none if this package or a manual has changed since."""
    try:
        kept = json.loads(gzip.decompress((folder / KEPT).read_bytes()))
        if kept["code"] != _code():
            return
        for key, values in kept["analyses"]:
            (file, stamp, env, chosen, *ending), cause = key, values.pop("cause")
            setting = tuple((str(name), str(value)) for name, value in chosen)
            made_for = AnalysisKey(folder / file, tuple(stamp), env, setting, *ending)
            yield made_for, Analysis(**values, cause=Cause(*cause) if cause else None)
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError):  # missing or damaged
        return


def _keep(folder: Path, analyses: Mapping[AnalysisKey, Analysis]) -> None:
    rows = [
        [[str(key.file.relative_to(folder)), *key[1:]], vars(analysis)]
        for key, analysis in analyses.items()
    ]
    data = json_bytes({"code": _code(), "analyses": rows})
    with suppress(OSError, RpmsError):  # in a folder that cannot be written nothing is kept
        write_whole(folder / KEPT, gzip.compress(data, compresslevel=1, mtime=0))


@cache
def _code() -> str:
    """A checksum of the stamps of this package's code and manuals."""
    package = Path(__file__).parents[2]
    files = sorted(file for kind in ("py", "yaml") for file in package.rglob(f"*.{kind}"))
    stamps = [(str(file), stamp_of(file)) for file in files]
    return hashlib.sha256(repr(stamps).encode()).hexdigest()


@contextmanager
def _paused_collection() -> Iterator[None]:
    """Without garbage collection: the many objects of a log have no cycles and are freed at once.

    Python would walk through all of them many times, which doubles the time of reading.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@_paused_collection()
def _analysis_by(key: AnalysisKey) -> Analysis:
    """Read and analyse a step log."""
    settings, log, env = dict(key.chosen), read_log(key.file), key.env
    try:
        manual = load_manual(env, settings["rules_dir"], settings["without_rules"])
    except RpmsError:  # the rules of that arm are missing
        manual = load_manual(env)
    arguments: dict[str, Any] = {
        "manual": manual, "goal": _goal(env, key.goal), "settings": settings, "mode": key.mode,
        "error": key.error,
    }  # fmt: skip
    try:
        return analyse(log["steps"] if log else (), **arguments, logged=log is not None)
    except (KeyError, TypeError, ValueError, AttributeError):  # a log of another shape
        return analyse((), **arguments, logged=False)


def _goal(env: str, sentence: str) -> GoalSpec:
    """The parsed goal; one that the environment cannot parse has no type."""
    try:
        return get_environment(env).parse_goal(sentence)
    except RpmsError:
        return GoalSpec(sentence=sentence, type="", object="", state=None, count=1, destination="",
                        signature="")  # fmt: skip


def _is_against_rule(step: Step) -> bool:
    """True if an action that was executed as proposed broke its own rule and was accepted.

    The first judgement is that of the list of actions, the second that of the action's rule.
    """
    judged = step.get("judged", [])
    if len(judged) < 2 or not step["action"] or step["action"] != step.get("proposal"):
        return False
    return judged[1][1] == "broken" and not step["failed"]


def in_prompt(step: Step, settings: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The memories whose text was in the prompt of this step."""
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
    rejected: bool = True,
) -> Kind:
    """The kind of failure of this step's action: missing, wrong or ignored knowledge.

    If the action was not ``rejected`` but ended the episode, its rule was right to call it
    possible.
    """
    action = step["action"]
    verdicts = verdicts_on(manual, action, cast(Belief, step["belief"]), goal)
    shown = {KNOWN_ACTION, *shown_rules(step)}
    advice = {_advice_on(recall, step, manual) for recall in in_prompt(step, settings)}
    if False in advice or any(verdicts.get(rule) == "broken" for rule in shown):
        return "ignored"
    matched = match_action(manual, action)
    rule = matched[0].id if matched else ""
    allowed = verdicts.get(rule) == "kept" and rule in shown
    return "wrong" if True in advice or (rejected and allowed) else "missing"


def _advice_on(recall: Mapping[str, Any], step: Step, manual: Manual) -> Truth:
    """True if a memory advises this step's action, False if it advises against it, else None.

    Only the first action of the advice is advised for this step.
    """
    entry, advised = recall["entry"], recall.get("advice", {}).get("actions", [])
    if step["action"] not in advised[:1]:
        return None
    if entry.get("type") in LESSONS:
        return False
    return _needs_hold(entry, step, manual) if entry.get("type") == "schema" else True


def _needs_hold(entry: Mapping[str, Any], step: Step, manual: Manual) -> Truth:
    """The truth of a schema's preconditions in the belief; None if it is unknown."""
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
    """The kind of every step's failure; empty for unreadable replies and steps without one."""
    fatal = len(steps) - 1 if mode == "wrong_termination" else None
    return [
        kind_of_failure(step, manual, goal, settings, step["failed"])
        if step["action"] and (step["failed"] or number == fatal)
        else ""
        for number, step in enumerate(steps)
    ]


def _dominant(kinds: Sequence[str], rejected: Counter[str], mode: FailureMode) -> str:
    """The most frequent kind; of equals ignored, then wrong.

    The action that ended the episode outweighs all rejected ones.
    """
    if mode == "wrong_termination" and kinds and kinds[-1]:
        return kinds[-1]
    if not rejected.total():
        return NOTHING_REJECTED
    return max(reversed(KINDS), key=lambda kind: rejected[kind])


def _advice_outcomes(recalls: Iterable[Mapping[str, Any]]) -> dict[str, Counter[str]]:
    """The outcomes of planted and learned advice that reached arbitration, by kind."""
    from rpms.memory_store.contradictions import contradiction_kind  # slow, as in mechanisms.py

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
"""The source type of entries without a goal: schemas and finds."""


def source_type(entry: Mapping[str, Any], read_type: Callable[[str], str]) -> str:
    """The goal type an entry was learned from; an entry without a goal may name its source.

    ``read_type`` is the environment's function from a printed goal signature to its type.
    """
    if printed := entry.get("goal_signature"):
        return read_type(str(printed)) or ANY_GOAL
    return str(entry.get("source") or ANY_GOAL)
