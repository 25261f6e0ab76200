"""Arms with code and files of their own, played here, in worker processes and on Ray."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import rpms
from rpms.evals.run_layout import EPISODES
from rpms.evals.variants import ALL, Variant, as_variant, load_stages, swapped_in
from rpms.nodes.context import RunContext
from rpms.vocabulary.errors import RpmsError

STAGES = """
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage


def scf(state):
    return {"recalls": [{**one, "dropped_by": "scf", "reason": "mine"} for one in state["recalls"]]}


def forever():
    while True:
        yield AIMessage("Thought: mine.\\nAction: look")


def make_model(seed=0):
    return GenericFakeChatModel(messages=forever())


def not_a_model():
    return 7


stages = {"scf": scf}
made = lambda: {"scf": scf}
wrong = {"no_such_stage": scf}
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of the user's own, beside the folder the run is started from."""
    name = f"variant_{abs(hash(tmp_path))}"  # a process imports a module once
    (tmp_path / f"{name}.py").write_text(STAGES)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return name


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / EPISODES).read_text().splitlines()]


@pytest.mark.engine
@pytest.mark.parametrize(
    "execution",
    [
        rpms.ExecutionOptions(workers=0),
        rpms.ExecutionOptions(workers=2),
        rpms.ExecutionOptions(workers=1, ray="local"),
    ],
    ids=["inline", "processes", "ray"],
)
def test_own_stages_and_an_own_model_are_played(
    execution: rpms.ExecutionOptions, module: str, tmp_path: Path
) -> None:
    if execution.ray:
        pytest.importorskip("ray")
    arms: dict[str, rpms.Arm] = {
        "D": RunContext(max_steps=4),
        "mine": Variant(RunContext(max_steps=4), nodes=f"{module}:stages"),
        "theirs": Variant(RunContext(max_steps=4), model=f"{module}:make_model"),
    }
    report = rpms.evaluate(arms, out=tmp_path / "run", limit=2, execution=execution, show=False)
    found = {(line["condition"], line["task"]): line for line in lines(tmp_path / "run")}
    assert len(found) == 6 and report.run.complete
    mine = [line for (label, _), line in found.items() if label == "mine"]
    assert sum(line["recalled"] for line in mine) > 0
    assert all(line["dropped_scf"] == line["recalled"] for line in mine)
    theirs = [line for (label, _), line in found.items() if label == "theirs"]
    assert {turn["action"] for line in theirs for turn in line["history"]} == {"look"}
    swapped = report.run.manifest.swapped
    assert swapped["mine"]["nodes scf"]["path"] == f"{module}:stages"
    assert swapped["theirs"]["model"]["path"] == f"{module}:make_model"
    for table in report.tables:
        assert f"mine has nodes scf from {module}:stages (" in table.source
    assert "make_model" in report.run.manifest.model_label


def own_scf(state: dict[str, Any]) -> dict[str, Any]:
    """A stage of this very module."""
    return state


def test_a_function_of_a_module_is_known_by_its_path() -> None:
    paths = Variant(nodes={"scf": own_scf}).paths()
    assert paths == {"scf": f"{__name__}:own_scf"}


@pytest.mark.parametrize(
    ("variant", "said"),
    [
        (Variant(nodes={"scf": lambda state: state}), "stage 'scf' cannot travel"),
        (Variant(model=rpms.SimPlanner()), "the model cannot travel"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_travel_is_refused_with_what_to_do(variant: Variant, said: str) -> None:
    with pytest.raises(RpmsError, match=rf"{said}.*package\.module:name"):
        rpms.evaluate({"mine": variant}, out="never", limit=1)


@pytest.mark.parametrize(
    ("arm", "said"),
    [
        ({"nodes": "{}:wrong"}, "no stage called no_such_stage"),
        ({"nodes": "{}:scf"}, "a function without arguments that makes one"),
        ({"nodes": "{}:nothing"}, "cannot load the stages"),
        ({"model": "{}:not_a_model"}, "makes a int, not a LangChain chat model"),
        ({"rules": "/no/such/folder"}, "/no/such/folder"),
        ({"memory": "/no/such/file"}, "/no/such/file"),
    ],
)
def test_what_is_wrong_with_an_arm_is_said_before_anything_is_played(
    arm: dict[str, str], said: str, module: str, tmp_path: Path
) -> None:
    variant = Variant(**{name: path.format(module) for name, path in arm.items()})  # type: ignore[arg-type]
    with pytest.raises(RpmsError, match=said):
        rpms.evaluate({"mine": variant}, out=tmp_path / "run", limit=1, show=False)
    assert not (tmp_path / "run" / EPISODES).exists()


def test_a_function_may_make_the_stages(module: str) -> None:
    assert list(load_stages({ALL: f"{module}:made"})) == ["scf"]


def test_a_changed_file_has_another_hash(module: str, tmp_path: Path) -> None:
    def told() -> str:
        return swapped_in(RunContext(), {ALL: f"{module}:stages"})["nodes scf"]["hash"]

    before = told()
    assert before == told()
    (tmp_path / f"{module}.py").write_text(STAGES + "# changed")
    assert told() != before


def test_an_arm_is_settings_or_a_variant() -> None:
    assert as_variant(RunContext(k=1)).settings().k == 1
    with pytest.raises(RpmsError, match="not a str"):
        as_variant("D")  # type: ignore[arg-type]
