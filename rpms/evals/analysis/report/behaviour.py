"""The tables of behaviour: failures and their causes, steps, memories, the guard, tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from rpms.envs import get_environment
from rpms.evals.analysis.causes import Cause, cause_rank
from rpms.evals.analysis.measures import average, share, task_mean
from rpms.evals.analysis.mechanisms import MECHANISMS, MEMORY, SELECTED
from rpms.evals.analysis.report.source import source_of
from rpms.evals.analysis.step_analysis import GUARDED, Analysis, analyses, analysis_of
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
from rpms.nodes.arbitration_extras import EXTRA_KINDS
from rpms.vocabulary.context import RunContext, condition_title
from rpms.vocabulary.output import quantity
from rpms.vocabulary.recall import CONFLICT_KINDS, RECALL_OUTCOMES
from rpms.vocabulary.turn import ERRORS

STOPPED = "wrong_termination"
AGENT_FAILURES = {
    "timeout": "timeout",
    STOPPED: "stopped before the goal",
    "format": "format",
}
FAILURE_NOTE = (
    "Timeout: the episode used all its steps. Stopped before the goal (the paper's wrong "
    "Env-done): the environment or the agent ended the episode; no row if the games of this "
    "environment end only when they are won. Format: most replies had no readable action. Model "
    "errors and infrastructure errors are not failures of the agent; such episodes are left out of "
    "every rate."
)


def failure_modes(run: Run) -> dict[str, Sequence[str]]:
    """The failure modes of each row or column; without those that cannot happen in this world."""
    modes = dict(AGENT_FAILURES)
    ended = any(episode.failure_mode == STOPPED for episode in run.episodes.values())
    if not (ended or get_environment(run.manifest.env).ends_lost):
        del modes[STOPPED]
    return {
        **{title: [mode] for mode, title in modes.items()},
        "lost by the agent": [*AGENT_FAILURES],
        **{mode.replace("_", " "): [mode] for mode in ERRORS},
    }


def failure_table(run: Run) -> Table:
    ends = {name: [(e.failure_mode or "", e) for e in run.played(name)] for name in run.conditions}
    return Table(
        "failures", "Failure modes", source_of(run),
        ["failure mode", *map(condition_title, run.conditions)], _counts(ends, failure_modes(run)),
        notes=[FAILURE_NOTE],
    )  # fmt: skip


def _counts(
    episodes: Mapping[str, Sequence[tuple[str, Episode]]], rows: Mapping[str, Sequence[str]]
) -> list[list[Cell]]:
    """For each row, the number of episodes of each condition that are of the row's kinds."""
    return [
        [label(title), *(counted([e for kind, e in side if kind in kinds])
                         for side in episodes.values())]
        for title, kinds in rows.items()
    ]  # fmt: skip


def cause_of(run: Run, episode: Episode) -> Cause | None:
    """The cause of a lost episode; None if it was won."""
    return None if episode.success else analysis_of(run, episode).cause


def cause_table(run: Run) -> Table | None:
    """One row per cause, one column per condition; None if no episode was lost."""
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
        "Each episode that was not won has one cause, taken from its step log: the event that "
        "ended it, or the first failure after its last progress. The page shows the step."
    ]
    return Table(
        "causes", "Causes of lost episodes", source_of(run),
        ["cause", *map(condition_title, run.conditions)], rows, notes=notes, total=True,
    )  # fmt: skip


def step_table(run: Run) -> Table:
    """The paper's table of efficiency."""
    rows = []
    for name in run.conditions:
        judged = run.judged(name)
        won, lost = ([e for e in judged if e.success is success] for success in (True, False))
        means = [(side, task_mean(side, lambda e: e.steps)) for side in (judged, won, lost)]
        cells = (linked(number(m.value, ".1f", m.interval), side) for side, m in means)
        rows.append([label(condition_title(name)), *cells])
    columns = ["condition", "steps, all", "steps, won", "steps, lost"]
    notes = ["Means per episode. Intervals resample tasks, each with all its episodes."]
    return Table("steps", "Steps per episode", source_of(run), columns, rows, notes=notes)


def error_table(run: Run) -> Table:
    rows = [[label(condition_title(name)), *_error_cells(run, name)] for name in run.conditions]
    columns = ["condition", "rejected actions (P1)", "repeated rejections", "format errors"]
    columns += ["belief errors (P2)", "checked steps", "against a rule"]
    notes = [
        "Rejected actions (P1): share of steps whose action the "
        "environment rejected or whose reply had no readable action. Repeated rejections: share of "
        "those that repeat the action rejected one step before. Format errors: share of steps "
        "without a readable action. Belief errors (P2): share of checked steps at which the belief "
        "contradicts the simulator's true state. Against a rule: actions per episode that broke "
        "their own rule and that the environment accepted. Intervals resample tasks, each with all "
        "its episodes.",
    ]
    title = "Rejected actions and belief errors"
    return Table("errors", title, source_of(run), columns, rows, notes=notes)


def _error_cells(run: Run, name: str) -> Iterator[Cell]:
    judged = run.judged(name)
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


def mechanism_table(run: Run) -> Table | None:
    """What became of the memories between retrieval and prompt; None if no condition has any."""
    rows: list[Sequence[Cell]] = []
    for name in run.conditions:
        counts = [*analyses(run, run.judged(name)).values()]
        if total := sum(each.recalled for each in counts):
            rows += _mechanism_rows(counts, total, condition_title(name))
    if not rows:
        return None
    notes = [
        "Candidates are the memories at or above theta, counted at each step. Each is dropped once "
        "or printed: dropped because its roles have no names in this scene (not groundable), by "
        "state-consistent filtering (scf), by arbitration, with the kind of conflict, or by the "
        "selection (duplicate, over top-k, over token budget). Marked memories are printed with a "
        "warning. Prompts changed: the share of all steps whose prompt would have had other "
        "memories without this mechanism; for scf an upper bound, since what it dropped never came "
        "to arbitration. Where this is 0, switching the mechanism off cannot make a difference.",
    ]
    columns = ["condition", "mechanism", "candidates", "of all", "prompts changed"]
    title = "Mechanisms between memory and prompt"
    return Table("mechanisms", title, source_of(run), columns, rows, notes=notes, labels=2)


def _mechanism_rows(counts: Sequence[Analysis], total: int, title: str) -> Iterator[Sequence[Cell]]:
    steps = sum(each.logged_steps for each in counts)
    kinds = {kind: sum(each.conflicts.get(kind, 0) for each in counts) for kind in CONFLICT_KINDS}
    outcomes: dict[str, int] = {
        outcome: sum(each.dropped[outcome] for each in counts) for outcome in RECALL_OUTCOMES
        if outcome
    }  # fmt: skip
    extras = sum(kinds[kind] for kind in EXTRA_KINDS)
    outcomes["arbitration"] -= extras

    def row(mechanism: str, candidates: int, acts: str = "") -> Sequence[Cell]:
        changed = sum(each.changed.get(acts, 0) for each in counts) / steps if acts else None
        return [label(title), label(mechanism), count(candidates), percent(candidates / total),
                percent(changed)]  # fmt: skip

    yield row("candidates", total)
    yield row("not groundable", outcomes["not groundable"])
    yield row("scf", outcomes["scf"], "scf")
    yield row("arbitration", outcomes["arbitration"], "arbitration")
    for kind in CONFLICT_KINDS:
        if kinds[kind] and kind not in EXTRA_KINDS:
            yield row(f"arbitration: {kind}", kinds[kind])
    if extras:
        yield row("arbitration extras", extras, "arbitration_extras")
    for outcome in SELECTED:
        yield row(outcome, outcomes[outcome])
    yield row("printed", total - sum(outcomes.values()) - extras, MEMORY)
    yield row("printed and marked", sum(each.warned for each in counts))


def activity(run: Run, first: str, second: str) -> list[str]:
    """How often each mechanism acted whose setting differs between two arms, in words."""
    words, default = [], RunContext().plain
    for mechanism in (MEMORY, *MECHANISMS):
        values = {run.settings(arm).get(mechanism, default[mechanism]) for arm in (first, second)}
        if len(values) == 1:
            continue
        shares = {arm: changed_share(run, arm, mechanism) for arm in (first, second)}
        arm = max(shares, key=lambda name: shares[name] or 0)
        if (share := shares[arm]) is not None:
            name = mechanism.replace("_", " ")
            words.append(f"{name} changed {share:.1%} of the prompts of {arm}")
    return words


def changed_share(run: Run, arm: str, mechanism: str) -> float | None:
    """The share of an arm's steps whose prompt a mechanism changed; None without logs."""
    counts = analyses(run, run.judged(arm)).values()
    steps = sum(each.logged_steps for each in counts)
    return sum(each.changed.get(mechanism, 0) for each in counts) / steps if steps else None


def guard_table(run: Run) -> Table | None:
    """The guard's verdicts on proposed actions; None if no condition has a guard."""
    guarded = [n for n in run.conditions if run.manifest.conditions[n].get("guard", "off") != "off"]
    if not guarded:
        return None
    rows = []
    for name in guarded:
        counts = analyses(run, run.judged(name)).values()
        total = sum(each.proposals for each in counts)
        vetoes = sum((Counter(each.vetoes) for each in counts), Counter[str]())
        parts = [
            part_of(sum(each.verdicts[outcome] for each in counts), total) for outcome in GUARDED
        ]
        rules = ", ".join(f"{rule} {n / total:.1%}" for rule, n in vetoes.most_common(6))
        rows.append([label(condition_title(name)), count(total), *parts, label(rules or "-")])
    columns = ["condition", "proposals", *GUARDED, "vetoes by rule"]
    notes = [
        "Shares are of proposed actions. Retried: the action was vetoed and the model was asked "
        "again. Fallback: asking again did not help, so the guard chose the action as described in "
        "docs/guard.md. Replaced: the guard executed an applicable action instead. Overridden: the "
        "action was executed although it was vetoed. The last column lists the rules with the most "
        "vetoes; 'procedure' means that no rule forbade the action but it was not applicable to "
        "the sub-goal.",
    ]
    return Table("guard", "Guard decisions", source_of(run), columns, rows, notes=notes)


def token_table(run: Run) -> Table:
    rows = []
    for name in run.conditions:
        judged, episodes = run.judged(name), run.played(name)
        counts = analyses(run, judged)
        logged = [e for e in judged if e.key in counts]
        prompt, steps = sum(e.prompt_tokens for e in judged), sum(e.steps for e in logged)
        cached = sum(e.cached_tokens for e in judged)
        knowledge = sum(counts[e.key].knowledge_tokens * e.steps for e in logged)
        rows.append([
            label(condition_title(name)),
            number(average([e.prompt_tokens for e in judged]), ",.0f"),
            percent(cached / prompt if prompt else None),
            number(average([e.output_tokens for e in judged]), ",.0f"),
            number(knowledge / steps if steps else None, ",.0f"),
            count(sum(e.model_calls for e in episodes)),
            count(sum(e.cache_hits for e in episodes)),
            number(average([e.seconds for e in episodes]), ".1f"),
            _cost(judged, episodes),
        ])  # fmt: skip
    columns = [
        "condition", "prompt tokens", "cached tokens", "output tokens",
        "knowledge tokens per step", "model calls", "cache hits", "seconds", "cost (USD)",
    ]  # fmt: skip
    notes = [
        "Prompt tokens, output tokens and seconds are means per episode. Model calls, cache hits "
        "(replies from the local response cache) and cost are sums over the condition, episodes "
        "with errors included. Cached tokens: share of prompt tokens that the provider reports as "
        "reused.",
        *_cost_notes(run),
    ]
    return Table("tokens", "Tokens and cost", source_of(run), columns, rows, notes=notes)


def _cost(judged: Sequence[Episode], episodes: Sequence[Episode]) -> Cell:
    prices = [e.cost_usd for e in episodes if e.cost_usd is not None]
    if not prices:
        return Cell("unknown", value={"value": None})
    wins = sum(e.success for e in judged)
    total = sum(prices)
    note = f"{total / wins:.4f} per win" if wins else ""
    if len(prices) < len(episodes):
        note = f"{note}, price of {len(episodes) - len(prices)} unknown".removeprefix(", ")
    return Cell(f"{total:.4f}", note, {"value": total, "per_win": total / wins if wins else None})


def _cost_notes(run: Run) -> Iterator[str]:
    """The cost of all sessions, and prompts or replies that were cut."""
    sessions = run.manifest.sessions
    if bills := [session.spent for session in sessions if session.spent]:
        which = "All" if len(bills) == len(sessions) else f"{len(bills)} of"
        who = f"{which} {len(sessions)} sessions together" if sessions[1:] else "The session"
        paid = [bill.usd for bill in bills if bill.usd is not None]
        money = f" and ${sum(paid):.4f}" if paid else ""
        yield (
            f"{who} spent {sum(bill.tokens for bill in bills):,} tokens{money}, "
            "including episodes that were interrupted or run again."
        )
    episodes = [e for name in run.conditions for e in run.played(name)]
    dropped = (each.dropped_turns for each in analyses(run, episodes).values())
    if cut := [turns for turns in dropped if turns]:
        yield (
            f"In {len(cut)} of {len(run.episodes)} episodes the context was too small for the "
            f"whole history; up to {max(cut)} of the oldest turns were left out of a prompt."
        )
    if capped := sum(e.capped_replies for e in episodes):
        yield f"Truncated because longer than the token limit: {quantity(capped, 'reply')}."
