"""The tables of behaviour: failures and their causes, steps, memories, the guard, tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rpms.envs import get_environment
from rpms.evals.analysis.causes import cause_rank
from rpms.evals.analysis.frames import Results
from rpms.evals.analysis.measures import share, task_mean
from rpms.evals.analysis.mechanisms import MECHANISMS, MEMORY, SELECTED
from rpms.evals.analysis.step_analysis import GUARDED, LEARNED, outcome_column
from rpms.evals.analysis.tables import (
    Cell,
    Table,
    count,
    counted,
    label,
    mean_cell,
    number,
    part_of,
    percent,
    share_cell,
)
from rpms.vocabulary.context import RunContext, condition_title
from rpms.vocabulary.output import quantity
from rpms.vocabulary.recall import CONFLICT_KINDS, EXTRA_KINDS, RECALL_OUTCOMES
from rpms.vocabulary.turn import ERRORS

if TYPE_CHECKING:
    from pandas import DataFrame

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


def failure_table(data: Results) -> Table:
    """One row per failure mode, one column per arm."""
    modes = dict(AGENT_FAILURES)
    ends_lost = get_environment(data.run.manifest.env).ends_lost
    if not (ends_lost or (data.episodes.failure_mode == STOPPED).any()):
        del modes[STOPPED]  # it cannot happen in this world
    rows: dict[str, Sequence[str]] = {
        **{title: [mode] for mode, title in modes.items()},
        "lost by the agent": [*AGENT_FAILURES],
        **{mode.replace("_", " "): [mode] for mode in ERRORS},
    }
    return Table(
        "failures", "Failure modes", ["failure mode", *map(condition_title, data.arms)],
        _counts(data, data.played, "failure_mode", rows), notes=[FAILURE_NOTE],
    )  # fmt: skip


def _counts(
    data: Results, episodes: DataFrame, column: str, rows: Mapping[str, Sequence[str]]
) -> list[list[Cell]]:
    """For each row the number of episodes of each arm with the row's values."""
    counts = episodes.groupby(["condition", column], observed=True).size().to_dict()
    return [
        [
            label(title),
            *(counted(sum(counts.get((arm, value), 0) for value in values),
                      ("c", arm), (column, ",".join(values))) for arm in data.arms),
        ]
        for title, values in rows.items()
    ]  # fmt: skip


def cause_table(data: Results) -> Table:
    """One row per cause of a lost episode, one column per arm."""
    lost = data.played[~data.played.success]
    kinds = sorted(lost.cause.unique(), key=lambda kind: (cause_rank(kind), kind))
    rows = {**{kind: [kind] for kind in kinds}, "not won": kinds}
    notes = [
        "Each episode that was not won has one cause, taken from its step log: the event that "
        "ended it, or the first failure after its last progress. The page shows the step."
    ]
    return Table(
        "causes", "Causes of lost episodes", ["cause", *map(condition_title, data.arms)],
        _counts(data, lost, "cause", rows), notes=notes, total=True,
    )  # fmt: skip


def step_table(data: Results) -> Table:
    """The paper's table of efficiency."""
    rows = []
    for name, side in data.sides.items():
        parts = (side, side[side.success], side[~side.success])
        means = (mean_cell(task_mean(part, "steps")) for part in parts)
        rows.append([label(condition_title(name)), *means])
    columns = ["condition", "steps, all", "steps, won", "steps, lost"]
    notes = ["Means per episode. Intervals resample tasks, each with all its episodes."]
    return Table("steps", "Steps per episode", columns, rows, notes=notes)


def error_table(data: Results) -> Table:
    rows = [
        [label(condition_title(name)), *_error_cells(side[side.logged.astype(bool)])]
        for name, side in data.sides.items()
    ]
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
    return Table("errors", title, columns, rows, notes=notes)


def _error_cells(logged: DataFrame) -> Iterator[Cell]:
    for part, whole in (
        ("invalid_actions", "steps"), ("repeated", "invalid_actions"), ("format_errors", "steps"),
        ("belief_error_steps", "checked_steps"),
    ):  # fmt: skip
        yield share_cell(share(logged, part, whole))
    yield count(logged.checked_steps.sum())
    yield mean_cell(task_mean(logged, "against_rule"), ".2f")


def mechanism_table(data: Results) -> Table:
    """What became of the memories between retrieval and prompt."""
    rows = [
        row for name, side in data.sides.items() if side.recalled.sum()
        for row in _mechanism_rows(side, condition_title(name))
    ]  # fmt: skip
    notes = [
        "Candidates are the memories at or above theta, counted at each step. Each is dropped once "
        "or printed: dropped because its roles have no names in this scene (not groundable), by "
        "state-consistent filtering (scf), by arbitration, with the kind of conflict, or by the "
        "selection (duplicate, over top-k, over token budget). Marked memories are printed with a "
        "warning. Prompts changed: the share of all steps whose prompt would have had other "
        "memories, or other marks on them, without this mechanism; for scf an upper bound, since "
        "what it dropped never came to arbitration. Where this is 0, switching the mechanism off "
        "cannot make a difference.",
    ]
    columns = ["condition", "mechanism", "candidates", "of all", "prompts changed"]
    title = "Mechanisms between memory and prompt"
    return Table("mechanisms", title, columns, rows, notes=notes, labels=2)


def named_sums(side: DataFrame, column: str) -> dict[str, int]:
    """The sums of a column of counts by name, the most frequent first."""
    import pandas

    sums = pandas.DataFrame([*side[column]]).sum().sort_values(ascending=False, kind="stable")
    return {str(name): int(n) for name, n in sums.items()}


def _mechanism_rows(side: DataFrame, title: str) -> Iterator[Sequence[Cell]]:
    kinds = named_sums(side, "conflicts")
    outcomes: dict[str, int] = {
        name: int(side[outcome_column(name)].sum()) for name in RECALL_OUTCOMES if name
    }  # fmt: skip
    total, extras = int(side.recalled.sum()), sum(kinds.get(kind, 0) for kind in EXTRA_KINDS)
    outcomes["arbitration"] -= extras

    def row(mechanism: str, candidates: int, acts: str = "") -> Sequence[Cell]:
        changed = _changed_share(side, acts) if acts else None
        return [label(title), label(mechanism), count(candidates), percent(candidates / total),
                percent(changed)]  # fmt: skip

    yield row("candidates", total)
    yield row("not groundable", outcomes["not groundable"])
    yield row("scf", outcomes["scf"], "scf")
    yield row("arbitration", outcomes["arbitration"], "arbitration")
    for kind in CONFLICT_KINDS:
        if kinds.get(kind) and kind not in EXTRA_KINDS:
            yield row(f"arbitration: {kind}", kinds[kind])
    if extras:
        yield row("arbitration extras", extras, "arbitration_extras")
    for outcome in SELECTED:
        yield row(outcome, outcomes[outcome])
    yield row("printed", total - sum(outcomes.values()) - extras, MEMORY)
    yield row("printed and marked", int(side.warned.sum()))


def activity(data: Results, first: str, second: str) -> list[str]:
    """How often each mechanism acted whose setting differs between two arms, in words."""
    words, default = [], RunContext().plain
    for mechanism in (MEMORY, *MECHANISMS):
        values = {data.run.settings(arm).get(mechanism, default[mechanism])
                  for arm in (first, second)}  # fmt: skip
        if len(values) == 1:
            continue
        shares = {arm: _changed_share(data.sides[arm], mechanism) for arm in (first, second)}
        arm = max(shares, key=lambda name: shares[name] or 0)
        if (changed := shares[arm]) is not None:
            name = mechanism.replace("_", " ")
            words.append(f"{name} changed {changed:.1%} of the prompts of {arm}")
    return words


def _changed_share(side: DataFrame, mechanism: str) -> float | None:
    """The share of the steps whose prompt a mechanism changed; None without logs."""
    steps = int(side.logged_steps.sum())
    return named_sums(side, "changed").get(mechanism, 0) / steps if steps else None


def conflict_table(data: Results) -> Table:
    """Planted and learned advice that reached arbitration."""
    rows = [row for name, side in data.sides.items() for row in _conflict_rows(side, name)]
    notes = [
        "Candidates are the snippets and lessons that reached arbitration, counted at each step. "
        "Planted: rule is advice that a rule forbids by construction; corrupted is advice changed "
        "as by the memory control of that name; goal is advice for a sub-goal that this type of "
        "goal does not have. Corrupted and goal advice need not contradict a rule at every step. "
        "Learned is the unchanged memory: a removal loses sound advice, unless the advice could "
        "not be followed at that step.",
        "Shown: in the prompt, with or without a warning. Entries: distinct entries per episode. "
        "Always caught: entries that were removed or shown with a warning every time.",
    ]
    columns = ["condition", "advice", "success rate", "candidates", "removed", "warned",
               "shown", "entries", "always caught"]  # fmt: skip
    return Table("conflict", "Planted conflicts", columns, rows, labels=2, notes=notes)


def _conflict_rows(side: DataFrame, name: str) -> Iterator[list[Cell]]:
    """A row for each kind of advice; a condition without memory has one row with its success."""
    success, outcomes = percent(task_mean(side, "success").value), dict[str, Counter[str]]()
    for advice in side.advice:
        for kind, outcome in advice.items():
            outcomes.setdefault(kind, Counter()).update(outcome)
    from rpms.memory_store.controls import CONTRADICTIONS

    titles = {**{kind: f"planted: {kind}" for kind in CONTRADICTIONS}, LEARNED: LEARNED}
    for kind in [kind for kind in titles if kind in outcomes] or [""]:
        outcome = outcomes.get(kind, Counter())
        candidates, entries = outcome["candidates"], outcome["entries"]
        yield [
            *(label(condition_title(name)), label(titles.get(kind, "")), success),
            count(candidates),
            *(part_of(outcome[result], candidates) for result in ("removed", "warned", "shown")),
            *(count(entries), part_of(outcome["caught"], entries)),
        ]


def guarded_arms(data: Results) -> list[str]:
    return [arm for arm in data.arms if data.run.settings(arm).get("guard", "off") != "off"]


def guard_table(data: Results) -> Table:
    """The guard's verdicts on proposed actions."""
    rows = []
    for name in guarded_arms(data):
        sums, vetoes = data.sides[name][["proposals", *GUARDED]].sum(), named_sums(
            data.sides[name], "vetoes")  # fmt: skip
        total = int(sums.proposals)
        parts = [part_of(int(sums[outcome]), total) for outcome in GUARDED]
        rules = ", ".join(f"{rule} {n / total:.1%}" for rule, n in [*vetoes.items()][:6])
        rows.append([label(condition_title(name)), count(total), *parts, label(rules or "-")])
    columns = ["condition", "proposals", *GUARDED, "vetoes by rule"]
    notes = [
        "Shares are of proposed actions. Retried: the action was vetoed and the model was asked "
        "again. Fallback: asking again did not help, so the guard chose the action as described in "
        "docs/how-it-works.md. Replaced: the guard executed an applicable action instead. "
        "Overridden: the action was executed although it was vetoed. The last column lists the "
        "rules with the most vetoes; 'procedure' means that no rule forbade the action but it was "
        "not applicable to the sub-goal.",
    ]
    return Table("guard", "Guard decisions", columns, rows, notes=notes)


def token_table(data: Results) -> Table:
    rows = []
    for name, side in data.sides.items():
        played, logged = data.played[data.played.condition == name], side[side.logged.astype(bool)]
        prompt, steps = side.prompt_tokens.sum(), logged.steps.sum()
        means = side[["prompt_tokens", "output_tokens", "seconds"]].astype(float).mean()
        means = means.to_dict() if len(side) else dict.fromkeys(means.index)
        knowledge = (logged.knowledge_tokens * logged.steps).sum()
        rows.append([
            label(condition_title(name)),
            number(means["prompt_tokens"], ",.0f"),
            percent(side.cached_tokens.sum() / prompt if prompt else None),
            number(means["output_tokens"], ",.0f"),
            number(knowledge / steps if steps else None, ",.0f"),
            count(played.model_calls.sum()),
            count(played.cache_hits.sum()),
            number(means["seconds"], ".1f"),
            _cost(side, played),
        ])  # fmt: skip
    columns = [
        "condition", "prompt tokens", "cached tokens", "output tokens",
        "knowledge tokens per step", "model calls", "cache hits", "seconds", "cost (USD)",
    ]  # fmt: skip
    notes = [
        "Prompt tokens, output tokens and seconds are means per episode. Model calls, cache hits "
        "(replies from the file of --cache) and cost are sums over the condition, episodes "
        "with errors included. Cached tokens: share of prompt tokens that the provider reports as "
        "reused.",
        *_cost_notes(data),
    ]
    return Table("tokens", "Tokens and cost", columns, rows, notes=notes)


def _cost(judged: DataFrame, played: DataFrame) -> Cell:
    prices = played.cost_usd.dropna()
    if prices.empty:
        return Cell("unknown", value={"value": None})
    wins, total = int(judged.success.sum()), float(prices.sum())
    note = f"{total / wins:.4f} per win" if wins else ""
    if len(prices) < len(played):
        note = f"{note}, price of {len(played) - len(prices)} unknown".removeprefix(", ")
    return Cell(f"{total:.4f}", note, {"value": total, "per_win": total / wins if wins else None})


def _cost_notes(data: Results) -> Iterator[str]:
    """The cost of all sessions, and prompts or replies that were cut."""
    sessions = data.run.manifest.sessions
    if bills := [session.spent for session in sessions if session.spent]:
        which = "All" if len(bills) == len(sessions) else f"{len(bills)} of"
        who = f"{which} {len(sessions)} sessions together" if sessions[1:] else "The session"
        paid = [bill.usd for bill in bills if bill.usd is not None]
        money = f" and ${sum(paid):.4f}" if paid else ""
        yield (
            f"{who} spent {sum(bill.tokens for bill in bills):,} tokens{money}, "
            "including episodes that were interrupted or run again."
        )
    dropped = data.played.dropped_turns
    if cut := int((dropped > 0).sum()):
        yield (
            f"In {cut} of {len(data.episodes)} episodes the context was too small for the "
            f"whole history; up to {dropped.max()} of the oldest turns were left out of a prompt."
        )
    if capped := int(data.played.capped_replies.sum()):
        yield f"Truncated because longer than the token limit: {quantity(capped, 'reply')}."
