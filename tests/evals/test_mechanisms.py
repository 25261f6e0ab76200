"""How much each mechanism did, by the memories in a step's log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rpms
from rpms.evals.analysis.mechanisms import MEMORY, changed_prompts, conflicts
from rpms.evals.analysis.report import read_report
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.recall import ConflictKind, Recall, drop, new_advice, new_recall


def snippet(*actions: str, score: float = 1.0) -> Recall:
    entry = {"id": "-".join(actions), "type": "success", "goal_signature": "a:b:c:d",
             "sub_goal_type": "x", "actions": [*actions]}  # fmt: skip
    return new_recall(entry, score, 1, new_advice([*actions]))


def removed(recall: Recall, kind: ConflictKind) -> Recall:
    return drop({**recall, "conflict": kind}, "arbitration", "no")


LOOK, GO, TAKE, OPEN = (snippet(word) for word in ("look", "go", "take", "open"))
MARKED: Recall = {**GO, "conflict": "in doubt", "warning": "check first"}


@pytest.mark.parametrize(
    ("recalls", "changed"),
    [
        ([LOOK, removed(GO, "impossible")], {"arbitration"}),
        ([LOOK, MARKED], {"arbitration"}),
        ([LOOK, drop(GO, "scf", "hand")], {"scf"}),
        ([LOOK, removed(GO, "redundant")], {"arbitration_extras"}),
        # A memory that the selection would have dropped anyway makes no difference.
        ([LOOK, removed(LOOK, "impossible")], set()),
        ([*(snippet(str(n)) for n in range(3)), removed(GO, "forbidden")], set()),
        ([LOOK, drop(GO, "not groundable", "nothing")], set()),
        ([], set()),
    ],
)
def test_a_mechanism_changed_a_prompt_only_if_other_memories_would_be_printed(
    recalls: list[Recall], changed: set[str]
) -> None:
    counts = changed_prompts([{"recalls": recalls}], RunContext(k=3).plain)
    assert {name for name, count in counts.items() if count} - {MEMORY} == changed
    assert counts[MEMORY] == bool(recalls)


def test_conflicts_are_counted_by_kind() -> None:
    recalls = [removed(GO, "impossible"), removed(TAKE, "impossible"), MARKED, LOOK]
    assert conflicts(recalls) == {"impossible": 2}


def test_the_report_says_how_often_a_mechanism_acted(tmp_path: Path) -> None:
    """Candidates are printed or dropped once, and an arm without a mechanism shows none of it."""
    none = RunContext.for_condition("D").with_(arbitration="none")
    extras = RunContext.for_condition("D").with_(arbitration_extras=True)
    arms: dict[str, Any] = {"D": RunContext(), "none": none, "extras": extras}
    rpms.evaluate(arms, out=tmp_path / "run", limit=2, execution=rpms.ExecutionOptions(workers=0))
    report = read_report([tmp_path / "run"])
    table = next(table for table in report.tables if table.id == "mechanisms")
    counts: dict[str, dict[str, int]] = {}
    for arm, mechanism, candidates, *_ in table.rows:
        counts.setdefault(arm.text, {})[mechanism.text] = candidates.value
    assert len(counts) == 3
    for each in counts.values():
        total = each.pop("candidates")
        parts = [n for name, n in each.items() if ":" not in name and name != "printed and marked"]
        assert total == sum(parts) > 0 and each["printed"] > 0
    assert counts["none"]["arbitration"] == counts["none"]["printed and marked"] == 0
    assert (
        counts["extras"]["arbitration extras"]
        > 0
        == counts["D rules+memory"].get("arbitration extras", 0)
    )
    assert any("arbitration extras changed" in line for line in report.verdict)
