"""The tables about how it went: failure modes, steps, refusals and drift, memory, tokens."""

from __future__ import annotations

from collections.abc import Sequence

from rpms.evals.measures import average, mean, share
from rpms.evals.records import Episode
from rpms.evals.report.provenance import memory_sources
from rpms.evals.report.source import names, source_of
from rpms.evals.run_folder import Run
from rpms.evals.tables import Cell, Table, count, counted, label, linked, number, percent
from rpms.vocabulary.turn import ERRORS

AGENT_FAILURES = {
    "timeout": "timeout (step budget used up)",
    "wrong_termination": "wrong termination",
    "format": "format (most replies unreadable)",
}


def failure_table(run: Run) -> Table:
    """Why episodes were lost; errors of model and simulator stand apart."""
    played = {name: run.played(name) for name in run.conditions}

    def row(title: str, modes: Sequence[str]) -> list[Cell]:
        found = ([e for e in played[name] if e.failure_mode in modes] for name in played)
        return [label(title), *map(counted, found)]

    rows = [row(title, [mode]) for mode, title in AGENT_FAILURES.items()]
    rows.append(row("lost by the agent", list(AGENT_FAILURES)))
    rows += [row(f"{mode.replace('_', ' ')} (not the agent's)", [mode]) for mode in ERRORS]
    return Table(
        "failures", "Failure modes", source_of(run), ["", *map(names, run.conditions)], rows,
        notes=["Episodes lost to errors of the model or the simulator are no failures of the "
               "agent."],
    )  # fmt: skip


def step_table(run: Run) -> Table:
    """How long episodes take, over all and over those that were won."""
    rows = []
    for name in run.conditions:
        judged = run.judged(name)
        sides = [judged, [e for e in judged if e.success], [e for e in judged if not e.success]]
        found = [(mean([e.steps for e in side]), side) for side in sides]
        cells = (linked(number(m.value, ".1f", m.interval), side) for m, side in found)
        rows.append([label(names(name)), *cells])
    columns = ["condition", "steps, all", "steps, won", "steps, lost"]
    notes = ["Mean steps per episode with 95% bootstrap intervals over tasks."]
    return Table("steps", "Steps", source_of(run), columns, rows, notes=notes)


def reliability_table(run: Run) -> Table:
    """P1 and P2: refused actions per step, and steps whose belief contradicts the truth."""
    rows = []
    for name in run.conditions:
        judged = run.judged(name)
        steps = [e.steps for e in judged]
        found = [
            share([e.invalid_actions for e in judged], steps),
            share([e.repeated for e in judged], [e.invalid_actions for e in judged]),
            share([e.format_errors for e in judged], steps),
            share([e.drift_steps for e in judged], [e.checked_steps for e in judged]),
        ]
        behind = [
            [e for e in judged if e.invalid_actions],
            [e for e in judged if e.repeated],
            [e for e in judged if e.format_errors],
            [e for e in judged if e.drift_steps],
        ]
        cells = [
            linked(percent(m.value, m.interval), side)
            for m, side in zip(found, behind, strict=True)
        ]
        rows.append([label(names(name)), *cells, count(sum(e.checked_steps for e in judged))])
    columns = ["condition", "invalid actions (P1)", "of them repeated", "unreadable replies",
               "belief drift (P2)"]  # fmt: skip
    notes = [
        "P1: share of steps that the environment refused or that held no readable action; "
        "repeated: of those, the very action that the step before was refused. "
        "P2: share of checked steps at which the belief contradicts the simulator's true state. "
        "Intervals resample whole episodes.",
    ]
    return Table(
        "reliability", "Invalid actions and belief drift", source_of(run),
        [*columns, "checked steps"], rows, notes=notes,
    )  # fmt: skip


def memory_table(run: Run) -> Table | None:
    """What became of recalled memories; None where no condition uses memory."""
    used = [name for name in run.conditions if run.manifest.conditions[name].get("memory")]
    if not used:
        return None
    rows = []
    for name in used:
        judged = run.judged(name)
        recalled = sum(e.recalled for e in judged)
        steps = sum(e.steps for e in judged)
        fates = [
            sum(e.dropped_scf for e in judged),
            sum(e.dropped_arbitration for e in judged),
            sum(e.dropped_budget for e in judged),
            sum(e.warned for e in judged),
        ]
        parts = [percent(n / recalled if recalled else None, of=f"{n:,}") for n in fates]
        per_step = number(recalled / steps if steps else None, ".2f")
        rows.append([label(names(name)), count(recalled), per_step, *parts])
    columns = ["condition", "recalled", "per step", "dropped by SCF", "dropped by arbiter"]
    columns += ["no room", "warned"]
    notes = ["Sums over all steps: a memory recalled at ten steps counts ten times."]
    notes.append("No room: left out to keep the knowledge blocks within the paper's 1200 tokens.")
    notes += memory_sources(run)
    title = "What became of recalled memories"
    return Table("memory", title, source_of(run), columns, rows, notes=notes)


def token_table(run: Run) -> Table:
    """Tokens, calls, time and money."""
    rows = [
        [
            label(names(name)),
            *_tokens(judged := run.judged(name)),
            *_effort(run.played(name)),
            _money(judged, run.played(name)),
        ]
        for name in run.conditions
    ]
    columns = [
        "condition", "prompt tokens per episode", "of them cached", "output tokens",
        "knowledge per step", "model calls", "answered from cache", "seconds", "cost (USD)",
    ]  # fmt: skip
    notes = [
        "Means per episode, except model calls, cached answers and cost, which are sums over the "
        "condition, errors included. Cached tokens are those the provider says it reused.",
    ]
    notes += _sessions(run)
    cut = [e for name in run.conditions for e in run.played(name) if e.dropped_turns]
    if cut:
        notes.append(
            f"In {len(cut)} of {len(run.episodes)} episodes the context was too small for the "
            f"whole history: up to {max(e.dropped_turns for e in cut)} of the oldest turns were "
            "left out of a prompt."
        )
    if capped := sum(e.capped_replies for name in run.conditions for e in run.played(name)):
        notes.append(f"{capped} replies were longer than their tokens can be, and were cut off.")
    return Table("tokens", "Tokens and cost", source_of(run), columns, rows, notes=notes)


def _sessions(run: Run) -> list[str]:
    """What was paid in all: episodes that were cut short or played again are in no row."""
    sessions = run.manifest.sessions
    told = [session.spent for session in sessions if session.spent]
    if not told:
        return []
    which = "All" if len(told) == len(sessions) else f"{len(told)} of"
    paid = [one.usd for one in told if one.usd is not None]
    money = f" and ${sum(paid):.4f}" if paid else ""
    return [
        f"{which} {len(sessions)} sessions together spent {sum(one.tokens for one in told):,} "
        f"tokens{money}, episodes that were cut short or played again included."
    ]


def _tokens(judged: Sequence[Episode]) -> list[Cell]:
    prompt = sum(e.prompt_tokens for e in judged)
    cached = sum(e.cached_tokens for e in judged)
    steps = sum(e.steps for e in judged)
    known = sum(e.knowledge_tokens * e.steps for e in judged)
    return [
        number(average([e.prompt_tokens for e in judged]), ",.0f"),
        percent(cached / prompt if prompt else None),
        number(average([e.output_tokens for e in judged]), ",.0f"),
        number(known / steps if steps else None, ",.0f"),
    ]


def _effort(played: Sequence[Episode]) -> list[Cell]:
    return [
        count(sum(e.model_calls for e in played)),
        count(sum(e.cache_hits for e in played)),
        number(average([e.seconds for e in played]), ".1f"),
    ]


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
