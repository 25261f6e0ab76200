from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from rpms.evals.manifest import check_same, commit, differences, make_manifest
from rpms.evals.plan import RunPlan, make_plan
from rpms.evals.presets import letters
from rpms.memory_store import write_snapshot
from rpms.models.sim import LABEL
from rpms.nodes.context import RunContext
from rpms.vocabulary.errors import RpmsError


def plan(conditions: str = "AD", limit: int = 2, **settings: Any) -> RunPlan:
    contexts = letters(list(conditions), RunContext(**settings))
    return make_plan("alfworld", "generated_unseen", contexts, limit)


def test_a_manifest_says_what_was_run() -> None:
    made = make_manifest(plan(), workers=3)
    assert made["format"] == 1 and made["finished"] is None and made["workers"] == 3
    assert made["model_label"] == LABEL
    assert list(made["conditions"]) == ["A", "D"]
    assert made["conditions"]["D"]["rules"] and not made["conditions"]["A"]["memory"]
    assert [task["index"] for task in made["tasks"]] == [0, 1]
    assert all(isinstance(task["id"], str) and task["type"] for task in made["tasks"])
    assert len(made["hashes"]["rules"]) == 64 and list(made["hashes"]["memory"]) == ["D"]
    assert {"python", "rpms", "langgraph", "langchain-core"} <= set(made["versions"])
    assert made["commit"] == commit() != "unknown"


def test_the_same_settings_are_the_same_run(tmp_path: Path) -> None:
    other = make_manifest(plan(timeout_s=5.0), workers=1, ray="auto")
    check_same(tmp_path, make_manifest(plan(), workers=7), other)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"conditions": "AB"}, "conditions: A, D before, A, B now"),
        ({"limit": 3}, "settings limit: 2 before, 3 now; tasks: 2 before, 3 now"),
        ({"scf": "off"}, "conditions: A, D before, A, D scf=off now"),
        ({"max_steps": 7}, "settings max_steps: 50 before, 7 now"),
        ({"model": "openai:x"}, "model: sim before, openai:x now"),
        ({"base_url": "http://h/v1"}, "base_url: nothing before, http://h/v1 now"),
    ],
)
def test_other_settings_are_refused_with_the_differences(
    changed: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(RpmsError) as refused:
        check_same(tmp_path, make_manifest(plan()), make_manifest(plan(**changed)))
    assert said in str(refused.value) and "\n" not in str(refused.value)


def test_another_memory_is_refused_but_another_place_of_it_is_not(tmp_path: Path) -> None:
    one, same, other = (tmp_path / name for name in ("one.jsonl", "same.jsonl", "other.jsonl"))
    for file, told in ((one, "x"), (same, "x"), (other, "y")):
        write_snapshot(file, "alfworld", [], [told], learned_by=["openai:m"])
    first = make_manifest(plan(memory_file=str(one)))
    assert differences(first, make_manifest(plan(memory_file=str(same)))) == []
    found = differences(first, make_manifest(plan(memory_file=str(other))))
    assert len(found) == 1 and found[0].startswith("hashes memory D: ")
    told = {"sources": ["x"], "learned_by": ["openai:m"], "entries": 0}
    assert first["memories"] == {first["hashes"]["memory"]["D"]: told}


def test_changed_rules_and_other_tasks_are_noticed() -> None:
    made = make_manifest(plan())
    other = copy.deepcopy(made)
    other["hashes"]["rules"] = "0" * 64
    other["tasks"][1]["id"] = "elsewhere"
    found = differences(made, other)
    assert [text.split(":")[0] for text in found] == ["hashes rules", "tasks"]
    assert found[1].endswith("elsewhere now")


def test_a_plan_needs_something_to_do() -> None:
    with pytest.raises(RpmsError, match="--limit"):
        plan(limit=-1)
    with pytest.raises(RpmsError, match="no conditions"):
        make_plan("alfworld", "generated_unseen", {}, 1)
