"""What the steps of an episode add up to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rpms.envs import get_environment
from rpms.envs.manuals import load_manual
from rpms.evals.analysis import step_analysis
from rpms.evals.analysis.step_analysis import (
    ANY_GOAL,
    KEPT,
    NOTHING_REJECTED,
    Analysis,
    analyse,
    analysis_of,
    in_prompt,
    read_analyses,
    source_type,
)
from rpms.evals.records.run_folder import read_run
from rpms.rules.verdicts import KNOWN_ACTION
from rpms.vocabulary.belief import empty_belief
from rpms.vocabulary.turn import ActionVerdict, Decision, FailureMode
from tests.evals.sample_runs import write_run

ENV = get_environment("alfworld")
MANUAL = load_manual("alfworld")
COOL = ENV.parse_goal("cool some mug and put it in shelf.")
ACTIONS = {rule.name: rule.id for rule in MANUAL.actions}
FRIDGE = {"location": "fridge 1", "containers": {"fridge 1": "open"}}


TAKE = "take mug 1 from fridge 1"
SEEN = {**FRIDGE, "last_seen": {"mug 1": "fridge 1"}, "searched": ["fridge 1"]}
AWAY = {"location": "shelf 1", "spots": {"shelf 1": ["shelf 1"]}}
USES = [{"before": {}, "worked": True}]


def acted(
    action: str, belief: dict[str, Any], rules: tuple[str, ...] = (), memories: Any = (),
    failed: bool = True,
) -> dict[str, Any]:  # fmt: skip
    return {
        "action": action, "belief": {**empty_belief(), **belief}, "failed": failed, "step": 1,
        "belief_errors": [], "sub_goal": {"name": "find", "target": "mug", "progress": 0},
        "rules": {"universal": [], "environment": list(rules), "situation": []},
        "recalls": list(memories),
    }  # fmt: skip


def memory(kind: str, *actions: str, dropped: str = "", **entry: Any) -> dict[str, Any]:
    return {"entry": {"id": "m", "type": kind, **entry}, "advice": {"actions": list(actions)},
            "dropped_by": dropped, "warning": ""}  # fmt: skip


def analysed(
    *steps: dict[str, Any], mode: FailureMode | None = "timeout", **settings: Any
) -> Analysis:
    return analyse(steps, manual=MANUAL, goal=COOL, settings=settings, mode=mode)


def kinds(*steps: dict[str, Any], **changes: Any) -> list[str]:
    return [*analysed(*steps, **changes).kinds]


RULE = (ACTIONS["take"],)


LESSON = memory("failure", TAKE)
FIRST, LATER = memory("success", TAKE, "go to shelf 1"), memory("success", "look", TAKE)
SCHEMA = memory("schema", TAKE, preconditions=["at(place)"], uses=USES)


@pytest.mark.parametrize(("step", "kind"), [
    (acted(TAKE, AWAY, RULE), "ignored"),           # the rule was there
    (acted(TAKE, AWAY), "missing"),                 # it was not
    (acted(TAKE, SEEN, RULE), "wrong"),             # all it needs held, and yet
    (acted(TAKE, SEEN), "missing"),                 # no rule said that it would work
    (acted("put mug 1 in/on fridge 1", {"location": "fridge 1", "holding": ["mug 1"]},
           (ACTIONS["put"],)), "missing"),          # is it open? nobody knows
    (acted("levitate", AWAY), "ignored"),           # on no list
    (acted(TAKE, AWAY, RULE, failed=False), ""),    # nothing failed
    (acted("", AWAY, RULE), ""),                    # no action could be read
    (acted(TAKE, SEEN, (), [FIRST]), "wrong"),      # it said: do this now
    (acted(TAKE, SEEN, (), [LATER]), "missing"),    # it said: do this afterwards
    (acted(TAKE, SEEN, (), [LESSON]), "ignored"),   # it said: do not
    (acted(TAKE, SEEN, (), [FIRST, LESSON]), "ignored"),    # both
    (acted(TAKE, AWAY, (), [SCHEMA]), "ignored"),   # it named the need that is not met
    (acted(TAKE, SEEN, (), [SCHEMA]), "wrong"),     # it named too few
    (acted(TAKE, SEEN, (), [memory("schema", TAKE, preconditions=["be there"])]),
     "missing"),                                    # in words
    (acted(TAKE, SEEN, (), [memory("failure", TAKE, dropped="scf")]), "missing"),  # nobody read it
    # A rule that was there outweighs a memory that misled.
    (acted(TAKE, AWAY, RULE, [FIRST]), "ignored"),
])  # fmt: skip
def test_the_kind_of_a_failure(step: dict[str, Any], kind: str) -> None:
    assert kinds(step) == [kind]


def test_filler_has_the_length_of_memories_and_none_of_their_words() -> None:
    only = acted(TAKE, SEEN, (), [memory("success", TAKE)])
    assert kinds(only, memory_control="filler") == ["missing"]
    assert in_prompt(only, {"memory_control": "filler"}) == []


def test_what_ends_an_episode_badly_was_possible_and_may_still_have_been_forbidden() -> None:
    belief = {**FRIDGE, "holding": ["mug 1"]}
    put = "put mug 1 in/on fridge 1"
    both = (ACTIONS["put"], "O-COOL-001")
    for rules, kind in ((both, "ignored"), (both[:1], "missing"), ((), "missing")):
        last = acted(put, belief, rules, failed=False)
        steps = [acted(TAKE, SEEN, RULE), last]
        assert kinds(*steps, mode="wrong_termination") == ["wrong", kind]
        analysis = analysed(*steps, mode="wrong_termination")
        assert (analysis.lost_by, analysis.rejected["wrong"]) == (kind, 1)


def test_a_lost_episode_counts_under_its_commonest_kind() -> None:
    missing, wrong, ignored = (
        acted(TAKE, SEEN),
        acted(TAKE, SEEN, RULE),
        acted(TAKE, AWAY, RULE),
    )
    for steps, kind in (
        ([missing, missing, wrong], "missing"),
        ([missing, wrong, ignored], "ignored"),
        ([missing, wrong], "wrong"),
        ([], NOTHING_REJECTED),
    ):
        assert analysed(*steps).lost_by == kind
        assert analysed(*steps, mode=None).lost_by == ""


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
    return {**acted(action, AWAY, failed=failed), "judged": judged, "proposal": proposal or action}


def test_what_the_environment_accepts_against_a_rule_is_counted() -> None:
    steps = [
        proposed("look", "kept", failed=False),
        proposed("look", "broken", failed=True),
        proposed("look", "broken", failed=False),
        proposed("look", "broken", failed=False),
        proposed("look", "unsure", failed=False),
        proposed("look", "broken", failed=False, proposal="sing"),  # another one was played instead
        {**acted("sing", AWAY, failed=False), "judged": [[KNOWN_ACTION, "broken"]]},
    ]
    assert analysed(*steps).against_rule == 2


def test_rejected_actions_repeats_and_unreadable_replies_are_counted() -> None:
    turns = [("go", True), ("go", True), ("go", False), ("go", True), ("take", True),
             ("take", True), ("", True), ("", True)]  # fmt: skip
    analysis = analysed(*(acted(action, AWAY, failed=failed) for action, failed in turns))
    assert (analysis.invalid_actions, analysis.format_errors, analysis.repeated) == (7, 2, 2)
    assert sum(analysis.rejected.values()) == 5


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
    steps = [{**acted("look", AWAY, failed=False), "decisions": each} for each in DECISIONS]
    analysis = analysed(*steps)
    assert (analysis.proposals, analysis.verdicts["retried"]) == (8, 4)
    assert (analysis.verdicts["fallback"], analysis.verdicts["overridden"]) == (1, 0)
    assert analysis.vetoes == {"R-1": 3, "R-2": 1, "procedure": 1}


def test_an_episode_without_steps_has_no_figures() -> None:
    analysis = analysed(mode="model_error")
    figures = {name: value for name, value in analysis.columns().items() if name != "logged"}
    texts = ("lost_by", "cause", "cause_text")
    assert not any(value for name, value in figures.items() if name not in texts)
    assert analysis.cause and analysis.cause.kind == "model error"


def test_analyses_are_kept_beside_the_run_and_made_anew_for_a_log_that_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same by several processes, by one, and from the file."""
    run = read_run(write_run(tmp_path, {"A": [False, False], "D": [True, True]}))
    episodes = [*run.episodes.values()]
    alone = [analysis_of(run, episode).columns() for episode in episodes]
    monkeypatch.setattr(step_analysis, "MANY", 1)

    def read_again() -> list[dict[str, Any]]:
        monkeypatch.setattr(step_analysis, "_ANALYSES", {})
        monkeypatch.setattr(step_analysis, "_FOLDERS", set())
        read_analyses(run, processes=2)
        return [analysis_of(run, episode).columns() for episode in episodes]

    assert read_again() == alone and (tmp_path / KEPT).exists()
    monkeypatch.setattr(step_analysis, "read_log", lambda file: None)  # no log is read again
    monkeypatch.setattr(step_analysis, "MANY", 100)
    assert read_again() == alone
    changed = run.log_file(episodes[0])
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
