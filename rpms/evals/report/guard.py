"""What rules made of the agent's actions, and whether what they said against one was of use."""

from __future__ import annotations

from collections import Counter

from rpms.evals.measures import share
from rpms.evals.report.source import names, source_of
from rpms.evals.run_folder import Run
from rpms.evals.tables import Cell, Table, count, label, percent

# Verdicts, as the columns name them.
GUARDED = {
    "asked_again": "asked again",
    "fell_back": "fell back",
    "replaced": "replaced",
    "insisted": "played against a rule",
}


def guard_table(run: Run) -> Table | None:
    """What rules made of proposed actions; None where no condition has a guard."""
    used = [n for n in run.conditions if run.manifest.conditions[n].get("guard", "off") != "off"]
    if not used:
        return None
    vetoes: dict[str, Counter[str]] = {}
    rows = []
    for name in used:
        judged = run.judged(name)
        total = sum(e.proposals for e in judged)
        vetoes[name] = sum((Counter(e.vetoes) for e in judged), Counter())
        fates = [sum(getattr(e, fate) for e in judged) for fate in GUARDED]
        parts = [percent(n / total if total else None, of=f"{n:,}") for n in fates]
        rules = ", ".join(f"{rule} {n / total:.1%}" for rule, n in vetoes[name].most_common(6))
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


def veto_table(run: Run) -> Table | None:
    """Per rule: what the model proposed next after it was told a veto; None where none was told."""
    rows: list[list[Cell]] = []
    for name in run.conditions:
        told = [e.after_veto for e in run.judged(name) if e.after_veto]
        for rule in sorted({rule for one in told for rule in one}):
            found = [one[rule] for one in told if rule in one]
            vetoes = [one[0] for one in found]
            feasible, same = (share([one[n] for one in found], vetoes) for n in (1, 2))
            rows.append([
                label(names(name)), label(rule), count(sum(vetoes)),
                percent(feasible.value, feasible.interval), percent(same.value, same.interval),
            ])  # fmt: skip
    if not rows:
        return None
    columns = ["condition", "rule", "vetoes", "next proposal feasible", "the same again"]
    notes = [
        "Vetoes that were told to the model, and its next proposal within the same step. Feasible: "
        "no rule speaks against it any more. Intervals resample whole episodes.",
    ]
    title = "What the model proposed after a veto"
    return Table("vetoes", title, source_of(run), columns, rows, notes=notes)
