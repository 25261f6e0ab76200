"""What the steps of an episode add up to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rpms.envs.manuals import load_manual
from rpms.evals.analysis import step_analysis
from rpms.evals.analysis.step_analysis import (
    ANY_GOAL,
    KEPT,
    Analysis,
    analyse,
    in_prompt,
    read_analyses,
    source_type,
)
from rpms.evals.records.run_folder import read_run
from rpms.rules.verdicts import KNOWN_ACTION
from rpms.vocabulary.belief import empty_belief
from rpms.vocabulary.turn import ActionVerdict, Decision, FailureMode
from tests.evals.sample_runs import analysis_of, write_run

MANUAL = load_manual("alfworld")
AWAY = {"location": "shelf 1", "spots": {"shelf 1": ["shelf 1"]}}


def acted(action: str, failed: bool) -> dict[str, Any]:
    return {
        "action": action, "belief": {**empty_belief(), **AWAY}, "failed": failed, "step": 1,
        "belief_errors": [], "sub_goal": {"name": "find", "target": "mug", "progress": 0},
        "rules": {"universal": [], "environment": [], "situation": []}, "recalls": [],
    }  # fmt: skip


def analysed(
    *steps: dict[str, Any], mode: FailureMode | None = "timeout", **settings: Any
) -> Analysis:
    return analyse(steps, manual=MANUAL, settings=settings, mode=mode)


def test_filler_has_none_of_the_words_of_memories() -> None:
    step = {"recalls": [{"dropped_by": ""}, {"dropped_by": "scf"}]}
    assert in_prompt(step, {}) == step["recalls"][:1]
    assert in_prompt(step, {"memory_control": "filler"}) == []


def test_an_entry_comes_from_its_goal_or_names_its_source() -> None:
    for entry, source in (
        ({"goal_signature": "heat:mug", "source": "x"}, "heat"),
        ({"source": "insights"}, "insights"),
        ({}, ANY_GOAL),
        ({"goal_signature": ":"}, ANY_GOAL),
    ):
        assert source_type(entry, lambda printed: printed.partition(":")[0]) == source


def proposed(action: str, verdict: str, failed: bool, proposal: str = "") -> dict[str, Any]:
    """An action as its rule judged it and the environment answered."""
    judged = [[KNOWN_ACTION, "kept"], ["R-1", verdict]]
    return {**acted(action, failed), "judged": judged, "proposal": proposal or action}


def test_what_the_environment_accepts_against_a_rule_is_counted() -> None:
    steps = [
        proposed("look", "kept", failed=False),
        proposed("look", "broken", failed=True),
        proposed("look", "broken", failed=False),
        proposed("look", "broken", failed=False),
        proposed("look", "unsure", failed=False),
        proposed("look", "broken", failed=False, proposal="sing"),  # another one was played instead
        {**acted("sing", False), "judged": [[KNOWN_ACTION, "broken"]]},
    ]
    assert analysed(*steps).against_rule == 2


def test_rejected_actions_repeats_and_unreadable_replies_are_counted() -> None:
    turns = [("go", True), ("go", True), ("go", False), ("go", True), ("take", True),
             ("take", True), ("", True), ("", True)]  # fmt: skip
    analysis = analysed(*(acted(action, failed) for action, failed in turns))
    assert (analysis.invalid_actions, analysis.format_errors, analysis.repeated) == (7, 2, 2)


def decision(proposal: str, verdict: ActionVerdict, rule: str = "", step: int = 1) -> Decision:
    played = "" if verdict == "retried" else proposal
    reason = "" if verdict == "accepted" else "so it is"
    return Decision(step=step, proposal=proposal, verdict=verdict, rule=rule, reason=reason,
                    repair="", played=played)  # fmt: skip


DECISIONS = [
    [decision("open box", "retried", "R-1"), decision("open box", "fallback", "R-1")],
    [decision("open box", "retried", "R-1", 2), decision("go to box", "accepted", step=2)],
    [decision("", "retried", step=3), decision("sing", "retried", "R-2", 3),
     decision("look", "accepted", step=3)],
    [decision("look", "accepted", step=4)],
]  # fmt: skip
"""By step, what a guard made of the proposals."""


def test_what_a_guard_made_of_proposals_is_counted() -> None:
    steps = [{**acted("look", False), "decisions": each} for each in DECISIONS]
    analysis = analysed(*steps)
    assert (analysis.proposals, analysis.verdicts["retried"]) == (8, 4)
    assert (analysis.verdicts["fallback"], analysis.verdicts["overridden"]) == (1, 0)
    assert analysis.vetoes == {"R-1": 3, "R-2": 1, "procedure": 1}


def test_an_episode_without_steps_has_no_figures() -> None:
    analysis = analysed(mode="model_error")
    figures = {name: value for name, value in analysis.columns().items() if name != "logged"}
    texts = ("cause", "cause_text")
    assert not any(value for name, value in figures.items() if name not in texts)
    assert analysis.cause and analysis.cause.kind == "model error"


def test_analyses_are_kept_beside_the_run_and_made_anew_for_a_log_that_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same by several processes, by one, and from the file."""
    run = read_run(write_run(tmp_path, {"A": [False, False], "D": [True, True]}))

    def read_again(processes: int = 1) -> list[dict[str, Any]]:
        return [analysis.columns() for analysis in read_analyses(run, processes)]

    alone = read_again()
    (tmp_path / KEPT).unlink()
    monkeypatch.setattr(step_analysis, "MANY", 1)
    assert read_again(2) == alone and (tmp_path / KEPT).exists()
    monkeypatch.setattr(step_analysis, "read_log", lambda file: None)  # no log is read again
    assert read_again() == alone
    changed = run.log_file(next(iter(run.episodes.values())))
    changed.write_bytes(changed.read_bytes() + b" ")
    assert [row["logged"] for row in read_again()] == [False, True, True, True]
    (tmp_path / KEPT).write_bytes(b"damaged")
    assert not any(row["logged"] for row in read_again())


SCRIPT = """
import sys
import rpms
from rpms.evals.analysis import step_analysis

print("begun")
step_analysis.MANY = 1
print(len(rpms.load(sys.argv[1]).episodes), len(rpms.load(sys.argv[1]).steps))
"""


def test_a_script_that_loads_a_run_is_not_run_again_by_worker_processes(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run", {"A": [False, False], "D": [True, True]}))
    (tmp_path / "some_script.py").write_text(SCRIPT)
    words = [sys.executable, str(tmp_path / "some_script.py"), str(tmp_path / "run")]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == "begun" and done.stdout.count("begun") == 1
    keys = [step_analysis.key_of(run, episode) for episode in run.episodes.values()]
    found = step_analysis.analyse_apart(keys, 2)
    assert [found[key].columns() for key in keys] == [
        analysis_of(run, episode).columns() for episode in run.episodes.values()
    ]
