from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from langchain_core.messages.utils import count_tokens_approximately

import rpms
from rpms.envs.alfworld.adapter import ENVIRONMENT
from rpms.envs.alfworld.goals import GOAL_TYPES
from rpms.envs.manuals import load_manual
from rpms.nodes.state import EpisodeState, knowledge_of
from rpms.prompts.blocks import (
    Blocks,
    knowledge_blocks,
    load_system,
    render_rules,
    tokens,
)
from rpms.vocabulary.belief import empty_belief
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.goal import GoalSpec
from rpms.vocabulary.recall import Advice, Recall, new_advice, new_recall
from tests.scripted_episode import under

Play = Callable[..., list[EpisodeState]]


def blocks_under(state: EpisodeState, context: RunContext) -> Blocks:
    return knowledge_blocks(knowledge_of(under(state, context)))


def blocks_of(state: EpisodeState, condition: str) -> Blocks:
    return blocks_under(state, RunContext.for_condition(condition))


def test_each_condition_has_its_blocks(play_script: Play) -> None:
    state = play_script("D")[5]
    present = {c: [n for n, t in blocks_of(state, c)._asdict().items() if t] for c in "ASBCD"}
    assert present == {
        "A": [],
        "S": ["goal", "state"],
        "B": ["rules", "situation", "goal", "state"],
        "C": ["goal", "state", "memory"],
        "D": ["rules", "situation", "goal", "state", "memory"],
    }
    # Only rules can say why an action was rejected.
    state = play_script("D")[3]
    assert {c for c in "ASBCD" if blocks_of(state, c).last_action} == {"B", "D"}


@pytest.mark.parametrize("texts", [[], [""], ["a"], ["goal", "", "x" * 1001], ["\u00e9\n" * 7]])
def test_tokens_are_counted_as_langchain_counts_them(texts: list[str]) -> None:
    messages = [{"role": "user", "content": text} for text in texts if text]
    assert tokens(texts) == count_tokens_approximately(messages)


def test_what_controls_print(play_script: Play) -> None:
    """Without a memory D reads as B and C as S; filler takes the block's place, by the letter."""
    for letter, other in ("DB", "CS"):
        prompts = [state["prompt"] for state in play_script(letter, memory_control="empty")]
        assert prompts == [state["prompt"] for state in play_script(other)]
    printed = 0
    for state in play_script("D"):
        real = blocks_of(state, "D")
        context = RunContext.for_condition("D", memory_control="filler")
        text = blocks_under(state, context)
        assert text._replace(memory=real.memory) == real
        assert tokens([text.memory]) == tokens([real.memory])
        assert len(text.memory) == len(real.memory)
        if real.memory:
            printed += 1
            assert "Experience" not in text.memory and "similar task" not in text.memory
            assert "Learned:" not in text.memory
            assert "apple" not in text.memory
    assert printed


def test_the_tiers_are_the_same_at_every_step_and_the_lines_for_the_situation_are_not(
    play_script: Play,
) -> None:
    every = [blocks_of(state, "B") for state in play_script("B")]
    assert len({blocks.rules for blocks in every}) == 1
    assert len({blocks.situation for blocks in every}) > 1
    assert "- S-0" not in every[0].rules
    lasts = [(state["history"] or [None])[-1] for state in play_script("B")]
    rejected = [bool(last and last["failed"] and last["action"]) for last in lasts]
    assert [bool(blocks.last_action) for blocks in every] == rejected and any(rejected)
    assert not any("was rejected" in blocks.situation for blocks in every)


def recall(entry: dict[str, object], advice: Advice, **changes: object) -> Recall:
    return Recall(**{**new_recall(entry, 1.0, 1, advice), **changes})  # type: ignore[typeddict-item]


def success(solves: bool) -> dict[str, object]:
    return {"type": "success", "sub_goal_type": "transformed", "solves": solves}


def failure(violated: list[str], kind: str = "failure") -> dict[str, object]:
    return {"type": kind, "violated": violated, "goal_signature": "heat:mug:hot:desk"}


STEPS = new_advice(["look", "inventory"])
SOLUTION = new_advice(["look", "inventory"], solves=True)
REJECTED = new_advice(["open mug 1"], needs=["you to be at desk 1", "mug 1 to be closed"])
UNEXPLAINED = new_advice(["open mug 1"])
HEAT = "heat mug 1 with microwave 1"
USED = {"type": "schema", "confidence": 0.875, "success_count": 7, "failure_count": 1,
        "uses": [{}]}  # fmt: skip
NEEDS = ["you to hold mug 1", "you to be at microwave 1"]
HEATED = new_advice([HEAT], needs=NEEDS, then=["you hold mug 1 still"])
BY_HAND = {"type": "schema", "confidence": 1.0, "success_count": 1, "failure_count": 0, "uses": []}
WRITTEN = new_advice([HEAT], needs=["holding it"], then=["it is hot"])
FINDS = {"type": "found", "object": "mug"}
PLACES = new_advice(
    [], places=["desk (3 of 9 searched held one; here: desk 1)", "shelf (1 of 9 searched held one)"]
)
TASK = "in the task heat:mug:hot:desk"


@pytest.mark.parametrize(
    ("entry", "advice", "line", "recorded"),
    [
        (success(solves=False), STEPS, "From here, a similar task went on with: look -> inventory",
         ["OK: transformed: look -> inventory"]),
        (success(solves=True), SOLUTION,
         "From here, a similar task was solved by: look -> inventory",
         ["OK: transformed: look -> inventory"]),
        (failure(["at(place)"]), REJECTED,
         "Learned: open mug 1 needs you to be at desk 1; mug 1 to be closed",
         ["AVOID: open mug 1", "  Rule: needs you to be at desk 1; mug 1 to be closed"]),
        # In words that somebody wrote, and without any reason.
        (failure([]), new_advice(["open mug 1"], needs=["it is too hot"]),
         "Learned: open mug 1: it is too hot", ["AVOID: open mug 1", "  Rule: it is too hot"]),
        (failure([]), UNEXPLAINED,
         "In a similar task 'open mug 1' was rejected; the reason is not known",
         ["AVOID: open mug 1",
          "  Rule: it was rejected in a similar task, the reason is not known"]),
        (failure([], "critical_failure"), new_advice(["open mug 1"], needs=["it ended the task"]),
         "Danger: in a task with the goal heat:mug:hot:desk, 'open mug 1' was wrong: "
         "it ended the task",
         ["AVOID [CRITICAL]: open mug 1", f"  Rule: {TASK} it ended the task"]),
        (USED, HEATED,
         f"Learned: {HEAT} needs you to hold mug 1; you to be at microwave 1; "
         "afterwards you hold mug 1 still (worked in 7 of 8 tries)",
         [f"SCHEMA: {HEAT} | needs you to hold mug 1; you to be at microwave 1"
          " | then you hold mug 1 still | confidence 0.88"]),
        (USED, new_advice([HEAT], then=["you hold mug 1 still"]),
         f"Learned: {HEAT}; afterwards you hold mug 1 still (worked in 7 of 8 tries)",
         [f"SCHEMA: {HEAT} | then you hold mug 1 still | confidence 0.88"]),
        (BY_HAND, WRITTEN,
         f"Learned: {HEAT} needs: holding it; afterwards: it is hot (worked in 1 of 1 tries)",
         [f"SCHEMA: {HEAT} | needs holding it | then it is hot | confidence 1.00"]),
        (FINDS, PLACES, "In other tasks, mug was found in: "
         "desk (3 of 9 searched held one; here: desk 1); shelf (1 of 9 searched held one)",
         ["FOUND: mug in other tasks: desk (3 of 9 searched held one; here: desk 1); "
          "shelf (1 of 9 searched held one)"]),
        # Text is never escaped.
        (failure([]), new_advice(["x"], needs=["a < b & 'c' {{ d }}"]),
         "Learned: x: a < b & 'c' {{ d }}", ["AVOID: x", "  Rule: a < b & 'c' {{ d }}"]),
    ],
)  # fmt: skip
def test_memory_lines(
    entry: dict[str, object], advice: Advice, line: str, recorded: list[str], play_script: Play
) -> None:
    """As it is said here, and in the words of the paper's listings."""
    state = play_script("C")[0]
    state["recalls"] = [recall(entry, advice)]
    title = "[Past Experience - Learned from History]"
    # Only what is filled in for this scene begins where the agent is.
    elsewhere = line.replace("From here, a", "A")
    by_form = {"grounded": [line], "roles": [elsewhere], "recorded": recorded}
    for form, lines in by_form.items():
        context = RunContext.for_condition("C", memory_form=form)
        block = blocks_under(state, context).memory.splitlines()
        assert block == [title, *(f"  {text}" for text in lines)], form


def test_warnings_are_shown_and_dropped_memories_are_not(play_script: Play) -> None:
    state = play_script("D")[0]
    state["recalls"] = [
        recall(success(solves=True), STEPS, dropped_by="scf", reason="hand"),
        recall(failure(["at(place)"]), REJECTED, warning="may not hold", rule="O-ACT-004"),
    ]
    block = blocks_of(state, "D").memory
    assert "similar task" not in block and "Learned: open mug 1" in block
    assert block.splitlines()[-1] == "    WARNING [O-ACT-004]: may not hold"
    # No blank stays empty where the warning cites no rule.
    state["recalls"] = [recall(failure(["at(place)"]), REJECTED, warning="may not hold")]
    assert blocks_of(state, "D").memory.splitlines()[-1] == "    WARNING: may not hold"
    state["recalls"] = [recall(success(solves=True), STEPS, dropped_by="arbitration")]
    assert blocks_of(state, "D").memory == ""


@pytest.mark.parametrize("goal_type", GOAL_TYPES)
def test_rules_on_their_own(goal_type: str) -> None:
    goal = GoalSpec(
        sentence="", type=goal_type, object="mug", state=None, count=1, destination="shelf",
        signature="",
    )  # fmt: skip
    text = render_rules(ENVIRONMENT, load_manual("alfworld").active(goal, empty_belief()), goal)
    assert text.startswith("[RULES - CRITICAL, Always Follow]\n")
    assert "[Task-Specific Rules]\n  - S-002: " in text
    assert "\n\n\n" not in text
    assert "{" not in text


def test_system_text_names_every_action_of_the_manual() -> None:
    text = load_system(ENVIRONMENT.prompts)
    # Slicing is left out on purpose, as in the paper: no task needs it.
    taught = [rule for rule in load_manual("alfworld").actions if rule.printed]
    verbs = {rule.syntax.split()[0] for rule in taught}
    assert not [verb for verb in verbs if f". {verb}" not in text]
    assert "Thought:" in text
    assert "Action:" in text
    assert not text.endswith("\n")


def test_templates_and_writing_prompts_name_no_world() -> None:
    package = Path(rpms.__file__).parent
    folders = [package / "prompts" / "templates", package / "memory_store" / "methods" / "prompts"]
    files = [file for folder in folders for file in folder.iterdir()]
    assert files
    for file in files:
        text = file.read_text(encoding="utf-8").lower()
        words = ("alfworld", "science", "kitchen", "mug", "microwave")
        assert not [word for word in words if word in text], file
