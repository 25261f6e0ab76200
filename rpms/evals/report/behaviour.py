"""The tables about how it went: failures and their causes, steps, the guard, refusals, tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from rpms.evals.measures import average, share, task_mean
from rpms.evals.records import Episode
from rpms.evals.report.source import names, source_of
from rpms.evals.run_folder import Run, read_log
from rpms.evals.step_analysis import (
    KINDS,
    NOT_RECORDED,
    NOTHING_REFUSED,
    Cause,
    cause_rank,
    find_cause,
    outcome_field,
)
from rpms.evals.tables import Cell, Table, count, counted, label, linked, number, part_of, percent
from rpms.rules.world_manual import load_manual
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import stamp_of
from rpms.vocabulary.output import quantity
from rpms.vocabulary.recall import RECALL_OUTCOMES
from rpms.vocabulary.turn import ERRORS, FailureMode

AGENT_FAILURES = {
    "timeout": "timeout (step budget used up)",
    "wrong_termination": "wrong termination",
    "format": "format (most replies unreadable)",
}
# Verdicts, as the columns name them.
GUARDED = {
    "retries": "asked again",
    "fallback": "fell back",
    "replaced": "replaced",
    "overridden": "played against a rule",
}
CACHED_CAUSES = 20_000
"""In memory: a run that is watched is read again and again."""


def failure_table(run: Run) -> Table:
    """Why episodes were lost; errors of model and simulator stand apart."""
    ends = {name: [(e.failure_mode or "", e) for e in run.played(name)] for name in run.conditions}
    modes = {title: [mode] for mode, title in AGENT_FAILURES.items()}
    modes["lost by the agent"] = [*AGENT_FAILURES]
    modes |= {f"{mode.replace('_', ' ')} (not the agent's)": [mode] for mode in ERRORS}
    return Table(
        "failures", "Failure modes", source_of(run), ["", *map(names, run.conditions)],
        _counts(ends, modes),
        notes=["Episodes lost to errors of the model or the simulator are no failures of the "
               "agent."],
    )  # fmt: skip


def _counts(
    episodes: Mapping[str, Sequence[tuple[str, Episode]]], rows: Mapping[str, Sequence[str]]
) -> list[list[Cell]]:
    """How many episodes of each condition are of a row's kinds."""
    return [
        [label(title), *(counted([e for kind, e in side if kind in kinds])
                         for side in episodes.values())]
        for title, kinds in rows.items()
    ]  # fmt: skip


def cause_of(run: Run, episode: Episode) -> Cause | None:
    """Where an episode went wrong; None if it was won."""
    if episode.success or episode.failure_mode is None:
        return None
    file, settings = run.log_file(episode), run.manifest.conditions[episode.condition]
    own = (str(settings.get(name) or "") for name in ("rules_dir", "without_rules"))
    mode, error = episode.failure_mode, episode.error
    return _find_cause(file, stamp_of(file), mode, error, run.manifest.env, *own)


@lru_cache(maxsize=CACHED_CAUSES)
def _find_cause(
    file: Path, stamp: tuple[int, int], mode: FailureMode, error: str, env: str, *rules: str
) -> Cause:
    """One log is read once, as long as it is not written anew."""
    log = read_log(file) or {}
    try:
        manual = load_manual(env, *rules)
    except RpmsError:  # the rules of that arm are gone; only names of actions are taken from them
        manual = load_manual(env)
    try:
        return find_cause(mode, error, log.get("steps", []), manual)
    except (KeyError, TypeError, ValueError, AttributeError):  # a log of another shape
        return NOT_RECORDED


def cause_table(run: Run) -> Table | None:
    """Causes down, conditions across; None where nothing was lost."""
    lost = {
        name: [(cause.kind, e) for e in run.played(name) if (cause := cause_of(run, e))]
        for name in run.conditions
    }
    kinds = sorted({kind for side in lost.values() for kind, _ in side},
                   key=lambda kind: (cause_rank(kind), kind))  # fmt: skip
    if not kinds:
        return None
    rows = _counts(lost, {**{kind: [kind] for kind in kinds}, "not won": kinds})
    notes = [
        "The one cause of each episode that was not won, from its step log: what ended it, or what "
        "came first after its last progress. The page names the step of every one."
    ]
    return Table(
        "causes", "Where lost episodes went wrong", source_of(run),
        ["cause", *map(names, run.conditions)], rows, notes=notes, total=True,
    )  # fmt: skip


def step_table(run: Run) -> Table:
    """How long episodes take, and P1 and P2: refused actions, and beliefs that the truth denies."""
    rows = []
    for name in run.conditions:
        judged = run.judged(name)
        lengths = [judged, [e for e in judged if e.success], [e for e in judged if not e.success]]
        cells = []
        for side in lengths:
            steps = task_mean(side, lambda e: e.steps)
            cells.append(linked(number(steps.value, ".1f", steps.interval), side))
        for part, whole in (
            ("invalid_actions", "steps"),
            ("repeated", "invalid_actions"),
            ("format_errors", "steps"),
            ("drift_steps", "checked_steps"),
        ):
            rate = share(judged, part, whole)
            behind = [e for e in judged if getattr(e, part)]
            cells.append(linked(percent(rate.value, rate.interval), behind))
        broken = task_mean(judged, lambda e: sum(n[3] for n in e.foretold.values()))
        passed = number(broken.value, ".2f", broken.interval)
        rows.append(
            [label(names(name)), *cells, count(sum(e.checked_steps for e in judged)), passed]
        )
    columns = ["condition", "steps, all", "steps, won", "steps, lost", "invalid actions (P1)"]
    columns += ["of them repeated", "unreadable replies", "belief drift (P2)", "checked steps"]
    columns += ["against a rule"]
    notes = [
        "Mean steps per episode. P1: share of steps that the environment refused or that held no "
        "readable action; repeated: of those, the very action that the step before was refused. "
        "P2: share of checked steps at which the belief contradicts the simulator's true state. "
        "Against a rule: actions per episode that a rule of theirs spoke against and the world let "
        "pass. Intervals resample tasks, each with all its episodes.",
    ]
    title = "Steps, invalid actions and belief drift"
    return Table("steps", title, source_of(run), columns, rows, notes=notes)


def recall_outcome_table(run: Run) -> Table | None:
    """What became of the memories near the goal; None where no condition recalls any."""
    used = [n for n in run.conditions if any(e.recalled for e in run.judged(n))]
    if not used:
        return None
    outcomes = [outcome for outcome in RECALL_OUTCOMES if outcome]
    rows = []
    for name in used:
        judged = run.judged(name)
        total = sum(e.recalled for e in judged)
        dropped = [sum(getattr(e, outcome_field(outcome)) for e in judged) for outcome in outcomes]
        warned = [e for e in judged if e.warned]
        parts = [part_of(n, total) for n in (*dropped, total - sum(dropped))]
        spoken = linked(part_of(sum(e.warned for e in warned), total), warned)
        rows.append([label(names(name)), count(total), *parts, spoken])
    notes = [
        "Entries at or above theta at each step, and the share with each outcome: not groundable "
        "in names of this scene, dropped by the state filter (scf) or the arbiter, covered by a "
        "rule that the same prompt prints, contradicted by another memory, a duplicate of one, "
        "over the top k of its type, or over the token budget. The shares "
        "and what was shown add up to 100%; warned are those of the shown that carry a warning.",
    ]
    columns = ["condition", "candidates", *outcomes, "shown", "warned"]
    return Table("outcomes", "What became of memories", source_of(run), columns, rows, notes=notes)


def guard_table(run: Run) -> Table | None:
    """What rules made of proposed actions; None where no condition has a guard."""
    used = [n for n in run.conditions if run.manifest.conditions[n].get("guard", "off") != "off"]
    if not used:
        return None
    rows = []
    for name in used:
        judged = run.judged(name)
        total = sum(e.proposals for e in judged)
        vetoes = sum((Counter(e.vetoes) for e in judged), Counter[str]())
        parts = [part_of(sum(getattr(e, outcome) for e in judged), total) for outcome in GUARDED]
        rules = ", ".join(f"{rule} {n / total:.1%}" for rule, n in vetoes.most_common(6))
        rows.append([label(names(name)), count(total), *parts, label(rules or "-")])
    columns = ["condition", "proposals", *GUARDED.values()]
    notes = [
        "Share of proposed actions. The last column names the rules that spoke against proposals "
        "most often; 'procedure' means that nothing forbade the action but it served no sub-goal. "
        "Fell back: asking again did not help, and what was played is in docs/guard.md.",
    ]
    return Table(
        "guard", "What rules made of the agent's actions", source_of(run),
        [*columns, "vetoes by rule"], rows, notes=notes,
    )  # fmt: skip


def refusal_table(run: Run) -> Table | None:
    """Refused actions and lost episodes: was the knowledge missing, wrong or ignored?"""
    known = {name: [e for e in run.judged(name) if e.refused] for name in run.conditions}
    if not any(known.values()):
        return None
    rows = []
    for name, episodes in known.items():
        refused = sum((Counter(e.refused) for e in episodes), Counter[str]())
        lost = [e for e in episodes if e.failure_mode]
        sides = [[e for e in lost if e.lost_by == kind] for kind in (*KINDS, NOTHING_REFUSED)]
        row = [label(names(name)), count(refused.total())]
        row += [part_of(refused[kind], refused.total()) for kind in KINDS]
        row.append(counted(lost))
        rows.append([*row, *(linked(part_of(len(side), len(lost)), side) for side in sides)])
    columns = ["condition", "actions refused", *KINDS, "episodes lost"]
    notes = [
        "Ignored: a rule or a memory in the prompt definitely spoke against the action, or it was "
        "no action of the list. Wrong: a memory in the prompt said to do it, or all that the rule "
        "in the prompt asks for held in the belief, and the world refused it. Missing: nothing in "
        "the prompt settled it. A lost episode counts under the kind of most of its refused "
        "actions, or of the action that ended it.",
    ]
    return Table(
        "lacking", "Knowledge missing, wrong or ignored", source_of(run),
        [*columns, *(f"{kind} (episodes)" for kind in KINDS), NOTHING_REFUSED], rows, notes=notes,
    )  # fmt: skip


def prediction_table(run: Run) -> Table | None:
    """The rules of actions that the world contradicted, and how often; None without such."""
    counts: dict[str, Counter[int]] = {}
    for name in run.conditions:
        for episode in run.judged(name):
            for rule, foretold in episode.foretold.items():
                counts.setdefault(rule, Counter()).update(dict(enumerate(foretold)))
    wrong = {rule: n for rule, n in sorted(counts.items()) if n[1] + n[3]}
    if not wrong:
        return None
    rows = [
        [label(rule), count(n[0]), part_of(n[1], n[0]), count(n[2]), part_of(n[3], n[2])]
        for rule, n in wrong.items()
    ]
    notes = [
        "Over all conditions, of the actions played as proposed where the belief settles all that "
        "the rule asks for. A refusal of what a rule calls possible means that it leaves out a "
        "condition, and an acceptance of what it calls impossible that it has a false one.",
    ]
    return Table(
        "predictions", "Rules that turned out wrong", source_of(run),
        ["rule", "called possible", "refused after all", "called impossible",
         "accepted after all"], rows, notes=notes,
    )  # fmt: skip


def token_table(run: Run) -> Table:
    """Tokens, calls, time and money."""
    rows = []
    for name in run.conditions:
        judged, played = run.judged(name), run.played(name)
        prompt, steps = sum(e.prompt_tokens for e in judged), sum(e.steps for e in judged)
        cached = sum(e.cached_tokens for e in judged)
        known = sum(e.knowledge_tokens * e.steps for e in judged)
        rows.append([
            label(names(name)),
            number(average([e.prompt_tokens for e in judged]), ",.0f"),
            percent(cached / prompt if prompt else None),
            number(average([e.output_tokens for e in judged]), ",.0f"),
            number(known / steps if steps else None, ",.0f"),
            count(sum(e.model_calls for e in played)),
            count(sum(e.cache_hits for e in played)),
            number(average([e.seconds for e in played]), ".1f"),
            _money(judged, played),
        ])  # fmt: skip
    columns = [
        "condition", "prompt tokens per episode", "of them cached", "output tokens",
        "knowledge per step", "model calls", "answered from cache", "seconds", "cost (USD)",
    ]  # fmt: skip
    notes = [
        "Means per episode, except model calls, cached answers and cost, which are sums over the "
        "condition, errors included. Cached tokens are those the provider says it reused.",
        *_left_out(run),
    ]
    return Table("tokens", "Tokens and cost", source_of(run), columns, rows, notes=notes)


def _money(judged: Sequence[Episode], played: Sequence[Episode]) -> Cell:
    prices = [e.cost_usd for e in played if e.cost_usd is not None]
    if not prices:
        return Cell("unknown", value={"value": None})
    wins = sum(e.success for e in judged)
    total = sum(prices)
    note = f"{total / wins:.4f} per win" if wins else ""
    if len(prices) < len(played):
        note = f"{note}, price of {len(played) - len(prices)} unknown".removeprefix(", ")
    return Cell(f"{total:.4f}", note, {"value": total, "per_win": total / wins if wins else None})


def _left_out(run: Run) -> Iterator[str]:
    """What no row holds: episodes that were cut short or played again, turns and replies cut."""
    sessions = run.manifest.sessions
    if bills := [session.spent for session in sessions if session.spent]:
        which = "All" if len(bills) == len(sessions) else f"{len(bills)} of"
        who = f"{which} {len(sessions)} sessions together" if sessions[1:] else "The one session"
        paid = [bill.usd for bill in bills if bill.usd is not None]
        money = f" and ${sum(paid):.4f}" if paid else ""
        yield (
            f"{who} spent {sum(bill.tokens for bill in bills):,} tokens{money}, "
            "episodes that were cut short or played again included."
        )
    played = [e for name in run.conditions for e in run.played(name)]
    if cut := [e.dropped_turns for e in played if e.dropped_turns]:
        yield (
            f"In {len(cut)} of {len(run.episodes)} episodes the context was too small for the "
            f"whole history: up to {max(cut)} of the oldest turns were left out of a prompt."
        )
    if capped := sum(e.capped_replies for e in played):
        yield f"Cut off, as longer than their tokens can be: {quantity(capped, 'reply')}."
