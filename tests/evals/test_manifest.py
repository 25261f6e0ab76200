from __future__ import annotations

import re
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

import rpms
from rpms.evals.records.schema import Manifest, Memory
from rpms.evals.running import manifest
from rpms.evals.running.manifest import (
    arm_label,
    commit,
    differences,
    make_manifest,
    merge_manifest,
    relabelled,
    rules_hash,
)
from rpms.evals.running.plan import RunPlan, make_plan
from rpms.memory_store import write_snapshot
from rpms.vocabulary.context import BUILT_IN, RunContext
from rpms.vocabulary.errors import RpmsError
from tests.evals.sample_runs import short_plan


def plan(conditions: str = "AD", limit: int = 2, **settings: Any) -> RunPlan:
    return short_plan(conditions, limit, **settings)


def test_a_manifest_says_what_was_run() -> None:
    written = make_manifest(plan())
    assert written.format == 2 and written.finished is None
    assert written.model_label == BUILT_IN["sim"]
    assert list(written.conditions) == ["A", "D"]
    assert written.conditions["D"]["rules"] and not written.conditions["A"]["memory"]
    assert [task.index for task in written.tasks] == [0, 1]
    assert all(task.id and task.type for task in written.tasks)
    assert len(written.hashes.rules) == 64 and list(written.hashes.memory) == ["D"]
    assert {"python", "rpms", "langgraph", "langchain-core"} <= set(written.versions)
    assert written.commit == commit() and re.fullmatch(r"[0-9a-f]{7,}(\+dirty)?", commit())


def test_the_same_settings_are_the_same_run(tmp_path: Path) -> None:
    first, other = make_manifest(plan()), make_manifest(plan(timeout_s=5.0))
    assert merge_manifest(tmp_path, first, other) == first


def test_the_manifest_names_the_plans_that_the_run_followed(tmp_path: Path) -> None:
    assert "plan" not in make_manifest(plan()).settings
    old, new = (make_manifest(replace(plan(), name=name)) for name in ("paper-2x2", "mine.yaml"))
    assert old.settings["plan"] == "paper-2x2"
    both = merge_manifest(tmp_path, old, new)
    assert both.settings["plan"] == "paper-2x2, mine.yaml"
    assert merge_manifest(tmp_path, both, old) == both


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"max_steps": 7}, "condition A max_steps: 0 before, 7 now"),
        ({"model": "openai:x"}, "condition A model: sim before, openai:x now"),
        ({"base_url": "http://h/v1"}, "condition A base_url: nothing before, http://h/v1 now"),
    ],
)
def test_other_settings_are_refused_with_the_differences(
    changed: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(RpmsError) as refused:
        merge_manifest(tmp_path, make_manifest(plan()), make_manifest(plan(**changed)))
    assert message in str(refused.value) and "\n" not in str(refused.value)


def test_a_run_grows_by_tasks_arms_trials_and_repeats(tmp_path: Path) -> None:
    first = make_manifest(plan("AD", 2))
    more = make_manifest(replace(plan("BD", 3), trials=2, repeats=4))
    merged = merge_manifest(tmp_path, first, more)
    assert list(merged.conditions) == ["A", "D", "B"]
    assert [task.index for task in merged.tasks] == [0, 1, 2]
    assert (merged.settings["trials"], merged.settings["repeats"]) == (2, 4)
    assert list(merged.hashes.memory) == ["D"]
    fewer = merge_manifest(tmp_path, merged, make_manifest(plan("A", 1)))
    assert fewer == merged


def test_another_memory_is_refused_but_another_place_of_it_is_not(tmp_path: Path) -> None:
    mine, same, other = (tmp_path / name for name in ("mine.jsonl", "same.jsonl", "other.jsonl"))
    for file, source in ((mine, "x"), (same, "x"), (other, "y")):
        write_snapshot(file, "alfworld", [], [source], learned_by=["openai:m"])
    first = make_manifest(plan(memory_file=str(mine)))
    assert differences(first, make_manifest(plan(memory_file=str(same)))) == []
    changes = differences(first, make_manifest(plan(memory_file=str(other))))
    assert len(changes) == 1 and changes[0].startswith("hashes memory of D: ")
    changed = first.model_copy(deep=True)
    changed.hashes.rules = "0" * 64
    assert [text.split(":")[0] for text in differences(first, changed)] == ["hashes rules"]
    header = Memory(sources=["x"], learned_by=["openai:m"], entries=0)
    assert first.memories == {first.hashes.memory["D"]: header}


def test_an_arm_with_another_manual_is_another_arm() -> None:
    def of(name: str, rules: str) -> Manifest:
        made = make_manifest(replace(plan("A", 1), conditions={name: RunContext()}), recorded=True)
        made.hashes.rules_of = {name: rules}
        return made

    first, second, third = ("a" * 64, "b" * 64, "bbbb" + "c" * 60)
    run = of("desk", first)
    for rules, label in (
        (first, "desk"),
        (second, "desk (2)"),
        (third, "desk (3)"),
        (second, "desk (2)"),
    ):
        fresh = of("desk", rules)
        assert arm_label("desk", run, fresh) == label
        run = merge_manifest(Path(), run, relabelled(fresh, "desk", label))
    assert list(run.hashes.rules_of.values()) == [first, second, third]


def test_a_plan_needs_something_to_do() -> None:
    with pytest.raises(RpmsError, match="--limit"):
        plan(limit=-1)
    with pytest.raises(RpmsError, match="no arms"):
        make_plan("alfworld", "generated_unseen", {}, 1)


def test_the_rules_have_one_checksum_for_one_manual(tmp_path: Path) -> None:
    file = tmp_path / "universal.yaml"
    file.write_text("rules: [{id: U-FAIL-001, text: Never again.}]")
    plain, own = rules_hash("alfworld"), rules_hash("alfworld", str(tmp_path))
    shorter = rules_hash("alfworld", str(tmp_path), "domain,U-FAIL-002")
    assert len({plain, own, shorter, rules_hash("alfworld", "", "domain")}) == 4
    assert shorter == rules_hash("alfworld", str(tmp_path), "U-FAIL-002, domain")
    file.write_text("rules: [{id: U-FAIL-001, text: Never ever.}]")
    assert rules_hash("alfworld", str(tmp_path)) != own
    with pytest.raises(RpmsError, match="no rule or tier 'domian'"):
        rules_hash("alfworld", "", "domian")


def test_a_checkout_that_was_never_installed_has_a_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(manifest, "version", unknown)
    assert make_manifest(plan()).versions["rpms"] == rpms.__version__
