"""Each example of a variant of one's own, run as its page says: ten tasks, two arms, a report.

One is played whole and in processes; of the others fewer tasks will do.
"""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import rpms
from rpms import RunContext, build_graph, load_manual, stream_episode
from rpms.evals.records.run_folder import read_run
from rpms.vocabulary.imports import load_object
from rpms.vocabulary.recall import Recall, new_advice, new_recall

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "variants"
WHOLE, FEW = "own_scf", 3
VERDICT = ("Figures are", "Among the models", "D my-filter vs D")
# Their labels, and what the report says of them.
SCRIPTS = {
    "own_scf": (["D", "mine"], "mine has nodes scf from own_scf:scf ("),
    "own_manual": (["mine", "B without U-FAIL-001"], "rules: "),
    "own_model": (["B", "B wanderer"], "B wanderer has model from own_model:make_model ("),
    "rival_memory": (
        ["D", "D trajectories"],
        "sim, alfworld generated_seen, 3 tasks, 1 round of ",
    ),
}


@pytest.mark.engine
@pytest.mark.parametrize("script", SCRIPTS)
def test_an_example_is_evaluated_and_says_what_it_swapped(
    script: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    if script != WHOLE:
        request.getfixturevalue("no_workers")
        for name in ("evaluate", "learn"):
            fewer = partial(_with_few_tasks, getattr(rpms, name))
            monkeypatch.setattr(rpms, name, fewer)
    labels, swapped = SCRIPTS[script]
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(FOLDER)  # as Python does for a script
    runpy.run_path(str(FOLDER / f"{script}.py"), run_name="__main__")
    out = capsys.readouterr().out
    assert swapped in out and "## Results by condition" in out
    run = read_run(tmp_path / "runs" / script.replace("_", "-"))
    assert run.conditions == labels and run.complete
    tasks = 10 if script == WHOLE else FEW
    assert [len(run.manifest.tasks), *(len(run.judged(n)) for n in labels)] == [tasks] * 3


@pytest.mark.engine
def test_the_script_of_the_page_answers_with_a_verdict_a_figure_and_a_table(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    no_workers: None,
) -> None:
    """As written, but for the number of homes."""
    page = (ROOT / "docs" / "evaluation.md").read_text("utf-8")
    script = page.partition("```py\n")[2].partition("```")[0]
    assert "limit=30, spread=True" in script
    (tmp_path / "my_filter.py").write_text(script)
    play = rpms.evaluate
    monkeypatch.setattr(rpms, "evaluate", lambda *arms, **more: play(*arms, **{**more, "limit": 1}))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    runpy.run_path("my_filter.py", run_name="__main__")
    out = capsys.readouterr().out
    assert "means over 3 runs: seed 1, seed 2, seed 3." in out
    assert "D my-filter vs D: no significant difference" in out and "1 task, 3 runs, " in out
    assert re.search(r"prompts differ at \d+ of \d+ shared steps\.", out)
    block = page.partition("```text\nFigures are means over 3 runs")[2].partition("```")[0]
    block = f"Figures are means over 3 runs{block}"
    verdict = [line for line in out.splitlines() if line.startswith(VERDICT)]
    assert [*map(unnumbered, block.splitlines())] == [*map(unnumbered, verdict)]
    assert (tmp_path / "my-filter.pdf").read_bytes().startswith(b"%PDF")
    table = (tmp_path / "my-filter.tex").read_text()
    assert "D my-filter & " in table and "has nodes scf from my_filter:scf (" in table


def unnumbered(line: str) -> str:
    """A line of the verdict without the figures that depend on the number of homes."""
    return re.sub(r"[\d,]*\d", "N", line).replace("tasks", "task")


def _with_few_tasks(play: Callable[..., Any], *arms: Any, limit: int, **settings: Any) -> Any:
    """As the script asks for, but for the number."""
    assert limit >= 10
    return play(*arms, limit=FEW, **settings)


def test_the_overlay_of_the_example_is_in_the_manual() -> None:
    manual = load_manual("alfworld", str(FOLDER / "own_manual"))
    assert "MY-SEARCH-001" in [rule.id for rule in manual.domain.rules]


@pytest.fixture
def own_scf(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(FOLDER)
    return load_object("own_scf:scf", "the stage")


def needing(*needs: str) -> Recall:
    return new_recall({"id": "m", "type": "schema"}, 1.0, 1, new_advice(["look"], needs=[*needs]))


def test_the_own_filter_does_what_is_said_of_it(own_scf: Any) -> None:
    recalls = [needing("you to hold mug 1"), needing("your hand to be empty"),
               needing("you not to hold mug 1"), needing("it to be so that you hold it"),
               needing()]  # fmt: skip
    empty = own_scf({"recalls": recalls, "belief": {"holding": []}})["recalls"]
    assert [recall["dropped_by"] for recall in empty] == ["scf", "", "", "", ""]
    assert empty[0]["reason"] == "the hand is empty, and it needs you to hold mug 1"
    full = own_scf({"recalls": recalls, "belief": {"holding": ["apple 1"]}})["recalls"]
    assert full == recalls


@pytest.mark.engine
def test_the_own_filter_has_occasion_to_drop(own_scf: Any) -> None:
    graph, context = build_graph({"scf": own_scf}), RunContext(memory_form="roles")
    for event in stream_episode(5, split="generated_unseen", context=context, graph=graph):
        for recall in event.get("recalls", []):
            reason = recall["reason"] if recall["dropped_by"] == "scf" else ""
            if reason.startswith("the hand is empty, and it needs you to hold"):
                return
    raise AssertionError("nothing was dropped in a whole episode")
