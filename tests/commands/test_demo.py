"""The demo shows every mechanism at work, counted from the runs' own logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from rpms.evals.mechanisms import TITLES, mechanism_table, step_counts
from rpms.evals.report import read_report
from tests.command_line import Rpms

ARBITER = {TITLES["dropped_arbitration"], TITLES["warned"]}


@pytest.mark.engine
@pytest.mark.parametrize("env", ["alfworld", "scienceworld"])
def test_every_mechanism_shows(env: str, tmp_path: Path, rpms: Rpms) -> None:
    said = " ".join(rpms("demo", "--env", env, "--out", tmp_path).out.split())
    (page,) = tmp_path.glob(f"demo-*-{env}/report.html")
    assert "not a language model" in said and page.name in said
    table = mechanism_table(read_report(page.parent).run)
    found = {row[0].text: [cell.value for cell in row[1:]] for row in table.rows}
    assert list(found) == list(TITLES.values())
    # Which of its two words the arbiter has occasion for depends on what a world's memory says:
    # advice in names of this home is seldom unsure, so in one world it removes, in the other it
    # warns. All the rest is at work in each.
    idle = {title for title, counts in found.items() if not any(counts)}
    assert idle <= ARBITER and idle != ARBITER
    by_condition = {
        name: {row[0].text: row[number].value for row in table.rows}
        for number, name in enumerate(table.columns) if number
    }  # fmt: skip
    # Each mechanism works where it is switched on, and nowhere else.
    for name, counts in by_condition.items():
        assert bool(counts["memories recalled"]) is (name[0] in "CD")
        assert name[0] in "BD" or not counts["refusals explained"]
        assert bool(counts["vetoed by the guard"]) is ("+" in name)
    assert len(read_report(page.parent).run.manifest.tasks) >= 4


def test_a_refusal_counts_as_explained_only_by_the_prompt_that_follows() -> None:
    said = {"situation": [{"id": "S", "text": "'dance' was refused: music."}]}
    quiet: dict[str, list[dict[str, str]]] = {"situation": []}
    steps = [
        {"failed": True, "action": "dance", "rules": quiet},
        {"failed": True, "action": "sing", "rules": said},
        {"failed": False, "action": "look", "rules": said},
    ]
    assert step_counts(steps)["explained"] == 1
    assert step_counts(steps)["refused"] == 2
    assert step_counts(steps)["vetoed"] == step_counts(steps)["circles"] == 0


def test_circles_are_the_vetoes_that_cite_the_principle_against_them() -> None:
    decision = {"step": 1, "proposal": "x", "verdict": "asked_again", "played": "", "reason": "r"}
    steps = [
        {"failed": False, "action": "x", "decisions": [{**decision, "rule": "U-FAIL-001"}]},
        {"failed": False, "action": "y", "decisions": [{**decision, "rule": "O-ACT-001"}]},
    ]
    counts = step_counts(steps)
    assert (counts["vetoed"], counts["circles"]) == (2, 1)
