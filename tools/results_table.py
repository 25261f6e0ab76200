"""Write the tables of several tunings into README.md and docs/results.md.

    python -m tools.results_table runs/played-? --corrected runs/replayed-? --commit 31782c9e

The runs have the same tasks, and a tuning of the model each; those of ``--corrected`` have some of
the arms, played after a round of correction. The pages have places for the tables between comments.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import rpms
from rpms.evals.analysis.measures import holm, pair

ROOT = Path(__file__).resolve().parents[1]
ARMS = {
    "A": ("A baseline", "A: the task, one solved example and the history"),
    "S": ("S state", "S: A, and the state of the game"),
    "B": ("B rules", "B: S, and rules"),
    "C": ("C memory", "C: S, and memory"),
    "D": ("D rules+memory", "D: S, rules and memory"),
    "D extras": ("D with `arbitration_extras`", ""),
    "D neither": ("D without filter and arbiter", ""),
    "D h3": ("D, the last 3 turns (`history=3`)", ""),
    "C+verify": ("C+verify", ""),
    "D+verify": ("D+verify", "D with the guard"),
}
PAIRS = {
    ("A", "S"): "", ("S", "B"): "", ("S", "C"): "", ("B", "D"): "", ("C", "D"): "",
    ("D neither", "D"): "scf arbitration", ("D", "D extras"): "arbitration_extras",
    ("D", "D h3"): "", ("C", "C+verify"): "", ("D", "D+verify"): "", ("C+verify", "D+verify"): "",
}  # fmt: skip
MECHANISMS = {"scf": "the filter", "arbitration": "the arbiter", "arbitration_extras": "the extras"}
NOT_RUN = "| the paper's models: Llama, Claude Sonnet, GPT | not run |\n"


def arms_of(runs: list[str]) -> dict[str, Any]:
    """The episodes of each arm."""
    episodes = rpms.load(runs).episodes
    if episodes.is_error.any():
        raise SystemExit("results_table: some episodes ended in an error; run them again first")
    return dict(iter(episodes.groupby("condition", observed=True)))


def tables(sides: dict[str, Any], commit: str) -> tuple[str, str]:
    """The tables of the README and of the results page."""
    tunings, games = sides["A"].run.nunique(), sides["A"].task.nunique()
    made = f"SmolLM2-135M, {tunings} tunings, {games} games of valid_seen, commit {commit}"
    short = "| ALFWorld, games of valid_seen: what the prompt contains | games won |\n|---|---|\n"
    whole = (
        f"| | games won of {games}, by tuning | success, mean | SD over tunings | rejected actions "
        "| steps per episode | prompt tokens per step | per episode | seconds per step |\n"
        f"{'|---' * 9}|\n"
    )
    for arm, (name, brief) in ARMS.items():
        side = sides[arm]
        won = side.groupby("run").success.sum()
        steps, rate = side.steps.sum(), side.success.mean()
        short += f"| {brief} | {rate:.1%} |\n" if brief else ""
        whole += (
            f"| {name} | {', '.join(map(str, won))} | {rate:.1%} | {100 * (won / games).std():.1f} "
            f"| {side.invalid_actions.sum() / steps:.1%} | {side.steps.mean():.1f} "
            f"| {side.prompt_tokens.sum() / steps:,.0f} | {side.prompt_tokens.mean():,.0f} "
            f"| {side.seconds.sum() / steps:.2f} |\n"
        )
    short += f"{NOT_RUN}\n*Mean of the tunings. {made}.*\n"
    whole += f"\n*{made}. Many episodes were played at once: the seconds compare arms only.*\n\n"
    return short, whole + comparisons(sides) + "\n" + by_type(sides)


def corrected(first: dict[str, Any], second: dict[str, Any]) -> str:
    """What a round of correction changed, for the arms that were played again."""
    arms = [arm for arm in ARMS if arm in second]
    found = {arm: pair(first[arm], second[arm], "success") for arm in arms}
    lines = (
        "| | games won, by tuning | success before | after | rejected actions before | after "
        f"| points | games better : worse | p, Holm |\n{'|---' * 9}|\n"
    )
    for (arm, test), p in zip(found.items(), holm([t.p for t in found.values()]), strict=True):
        sides = first[arm], second[arm]
        won = ", ".join(map(str, second[arm].groupby("run").success.sum()))
        rates = [f"{side.success.mean():.1%}" for side in sides]
        rejected = [f"{side.invalid_actions.sum() / side.steps.sum():.1%}" for side in sides]
        lines += (
            f"| {ARMS[arm][0]} | {won} | {' | '.join([*rates, *rejected])} "
            f"| {100 * (test.difference.value or 0):+.1f} | {test.only_second}:{test.only_first} "
            f"| {p:.4f} |\n"
        )
    return lines


def comparisons(sides: dict[str, Any]) -> str:
    """Paired tests over games, with the share of prompts that the mechanism in question changed."""
    found = {(a, b): pair(sides[a], sides[b], "success") for a, b in PAIRS}
    lines = (
        "| first, second | second - first, points [95% interval over games] | games better : worse "
        "| p | p, Holm | prompts changed |\n|---|---|---|---|---|---|\n"
    )
    for (names, test), p in zip(found.items(), holm([t.p for t in found.values()]), strict=True):
        gain, interval = test.difference.value or 0.0, test.difference.interval
        between = f" [{100 * interval.low:+.1f}, {100 * interval.high:+.1f}]" if interval else ""
        active = [
            f"{MECHANISMS[mechanism]} {changed(sides[names[1]], mechanism):.1%}"
            for mechanism in PAIRS[names].split()
        ]
        lines += (
            f"| {', '.join(names)} | {100 * gain:+.1f}{between} "
            f"| {test.only_second}:{test.only_first} | {test.p:.4f} | {p:.4f} "
            f"| {', '.join(active)} |\n"
        )
    return lines


def changed(side: Any, mechanism: str) -> float:
    """The share of an arm's prompts that a mechanism changed."""
    counts = side.changed.map(lambda count: count.get(mechanism, 0))
    return float(counts.sum() / side.logged_steps.sum())


def by_type(sides: dict[str, Any]) -> str:
    """Games won by task type."""
    types = sorted(sides["A"].type.unique())
    lines = f"| won | {' | '.join(types)} |\n{'|---' * (len(types) + 1)}|\n"
    for arm, (name, _) in ARMS.items():
        won = sides[arm].groupby("type", observed=True).success.mean()
        lines += f"| {name} | {' | '.join(f'{won[kind]:.0%}' for kind in types)} |\n"
    return lines


def write(page: str, name: str, table: str) -> None:
    """Put a table into its place on a page."""
    start, file = f"<!-- table:{name} -->\n", ROOT / page
    place = re.compile(f"{start}.*?(<!-- /table:{name} -->)", re.S)
    before, end, after = place.split(file.read_text(encoding="utf-8"))
    file.write_text(f"{before}{start}{table}{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", help="run folders, one a tuning")
    parser.add_argument("--corrected", nargs="+", default=[], help="the same, after a correction")
    parser.add_argument("--commit", required=True, help="the commit that played them")
    asked = parser.parse_args()
    played = arms_of(asked.runs)
    short, whole = tables(played, asked.commit)
    write("README.md", "valid_seen", short)
    write("docs/results.md", "valid_seen", whole)
    if asked.corrected:
        write("docs/results.md", "corrected", corrected(played, arms_of(asked.corrected)))
