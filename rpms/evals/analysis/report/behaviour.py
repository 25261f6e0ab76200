"""The tables about how it went: failures and their causes, steps, the guard, tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from rpms.evals.analysis.causes import Cause, cause_rank
from rpms.evals.analysis.measures import average, share, task_mean
from rpms.evals.analysis.report.source import names, source_of
from rpms.evals.analysis.step_analysis import analyses, analysis_of
from rpms.evals.analysis.tables import (
    Cell,
    Table,
    count,
    counted,
    label,
    linked,
    number,
    part_of,
    percent,
)
from rpms.evals.records.run_folder import Run
from rpms.evals.records.schema import Episode
from rpms.vocabulary.output import quantity
from rpms.vocabulary.recall import RECALL_OUTCOMES
from rpms.vocabulary.turn import ERRORS

AGENT_FAILURES = {
    "timeout": "timeout (step budget used up)",
    "wrong_termination": "wrong termination",
    "format": "format (most replies unreadable)",
}
# Verdicts, as the columns name them.
GUARDED = {
    "retried": "retried",
    "fallback": "fell back",
    "replaced": "replaced",
    "overridden": "played against a rule",
}


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
    return None if episode.success else analysis_of(run, episode).cause


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
    rows = [[label(names(name)), *_step_cells(run, name)] for name in run.conditions]
    columns = ["condition", "steps, all", "steps, won", "steps, lost", "invalid actions (P1)"]
    columns += ["of them repeated", "unreadable replies", "belief errors (P2)", "checked steps"]
    columns += ["against a rule"]
    notes = [
        "Mean steps per episode. P1: share of steps that the environment refused or that held no "
        "readable action; repeated: of those, the very action that the step before was refused. "
        "P2: share of checked steps at which the belief contradicts the simulator's true state. "
        "Against a rule: actions per episode that a rule of theirs spoke against and the world let "
        "pass. Intervals resample tasks, each with all its episodes.",
    ]
    title = "Steps, rejected actions and belief errors"
    return Table("steps", title, source_of(run), columns, rows, notes=notes)


def _step_cells(run: Run, name: str) -> Iterator[Cell]:
    judged = run.judged(name)
    for side in (judged, [e for e in judged if e.success], [e for e in judged if not e.success]):
        steps = task_mean(side, lambda e: e.steps)
        yield linked(number(steps.value, ".1f", steps.interval), side)
    counts = analyses(run, judged)
    logged = [e for e in judged if e.key in counts]
    shares: list[tuple[Callable[[Episode], int], Callable[[Episode], int]]] = [
        (lambda e: counts[e.key].invalid_actions, lambda e: e.steps),
        (lambda e: counts[e.key].repeated, lambda e: counts[e.key].invalid_actions),
        (lambda e: counts[e.key].format_errors, lambda e: e.steps),
        (lambda e: counts[e.key].belief_error_steps, lambda e: counts[e.key].checked_steps),
    ]
    for part, whole in shares:
        rate = share(logged, part, whole)
        yield linked(percent(rate.value, rate.interval), filter(part, logged))
    yield count(sum(analysis.checked_steps for analysis in counts.values()))
    broken = task_mean(logged, lambda e: counts[e.key].against_rule)
    yield number(broken.value, ".2f", broken.interval)


def recall_outcome_table(run: Run) -> Table | None:
    """What became of the memories near the goal; None where no condition recalls any."""
    outcomes, rows = [outcome for outcome in RECALL_OUTCOMES if outcome], []
    for name in run.conditions:
        judged = run.judged(name)
        counts = analyses(run, judged)
        if not (total := sum(each.recalled for each in counts.values())):
            continue
        dropped = [sum(each.dropped[outcome] for each in counts.values()) for outcome in outcomes]
        parts = [part_of(n, total) for n in (*dropped, total - sum(dropped))]
        warned = [e for e in judged if e.key in counts and counts[e.key].warned]
        spoken = linked(part_of(sum(counts[e.key].warned for e in warned), total), warned)
        rows.append([label(names(name)), count(total), *parts, spoken])
    if not rows:
        return None
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
        counts = analyses(run, run.judged(name)).values()
        total = sum(each.proposals for each in counts)
        vetoes = sum((Counter(each.vetoes) for each in counts), Counter[str]())
        parts = [
            part_of(sum(each.verdicts[outcome] for each in counts), total) for outcome in GUARDED
        ]
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


def token_table(run: Run) -> Table:
    """Tokens, calls, time and money."""
    rows = []
    for name in run.conditions:
        judged, played = run.judged(name), run.played(name)
        counts = analyses(run, judged)
        logged = [e for e in judged if e.key in counts]
        prompt, steps = sum(e.prompt_tokens for e in judged), sum(e.steps for e in logged)
        cached = sum(e.cached_tokens for e in judged)
        known = sum(counts[e.key].knowledge_tokens * e.steps for e in logged)
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
    dropped = (each.dropped_turns for each in analyses(run, played).values())
    if cut := [turns for turns in dropped if turns]:
        yield (
            f"In {len(cut)} of {len(run.episodes)} episodes the context was too small for the "
            f"whole history: up to {max(cut)} of the oldest turns were left out of a prompt."
        )
    if capped := sum(e.capped_replies for e in played):
        yield f"Cut off, as longer than their tokens can be: {quantity(capped, 'reply')}."
