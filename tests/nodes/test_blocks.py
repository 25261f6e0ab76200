from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from langchain_core.messages.utils import count_tokens_approximately

import rpms.nodes.blocks
from rpms.envs.alfworld.adapter import ENVIRONMENT
from rpms.envs.alfworld.goals import GOAL_TYPES
from rpms.nodes.blocks import (
    Blocks,
    knowledge_blocks,
    load_system,
    render_rules,
    tokens,
)
from rpms.nodes.manual import load_manual
from rpms.nodes.state import EpisodeState
from rpms.vocabulary.belief import empty_belief
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.goal import GoalSpec
from rpms.vocabulary.recall import Advice, Recall, new_advice, new_recall

Play = Callable[..., list[EpisodeState]]


def blocks_of(state: EpisodeState, condition: str) -> Blocks:
    return knowledge_blocks(state, RunContext.for_condition(condition), ENVIRONMENT)


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
        text = knowledge_blocks(state, context, ENVIRONMENT)
        assert text._replace(memory=real.memory) == real
        assert tokens([text.memory]) == tokens([real.memory])
        assert len(text.memory) == len(real.memory)
        if real.memory:
            printed += 1
            assert "Experience" not in text.memory and "OK:" not in text.memory
            assert "apple" not in text.memory
    assert printed


def test_the_tiers_are_the_same_at_every_step_and_the_lines_for_the_situation_are_not(
    play_script: Play,
) -> None:
    every = [blocks_of(state, "B") for state in play_script("B")]
    assert len({blocks.rules for blocks in every}) == 1
    assert len({blocks.situation for blocks in every}) > 1
    assert "- S-0" not in every[0].rules


def recall(entry: dict[str, object], advice: Advice, **changes: object) -> Recall:
    return Recall(**{**new_recall(entry, 1.0, 1, advice), **changes})  # type: ignore[typeddict-item]


SUCCESS = {"type": "success", "sub_goal_type": "transformed"}, new_advice(["look", "inventory"])
REFUSED = new_advice(["open mug 1"], needs=["only when at desk 1"])
FAILURE = {"type": "failure"}, REFUSED
CRITICAL = {"type": "critical_failure"}, REFUSED
SCHEMA = (
    {"type": "schema", "confidence": 0.875},
    new_advice(
        ["heat mug 1 with microwave 1"],
        needs=["holding mug 1", "at microwave 1"],
        then=["still holding mug 1"],
    ),
)
FINDS = {"type": "found", "object": "mug"}, new_advice([], places=["desk 1 (3 of 9 held one)"])


@pytest.mark.parametrize(
    ("entry", "advice", "lines"),
    [
        (*SUCCESS, ["  OK: transformed: look -> inventory"]),
        (*FAILURE, ["  AVOID: open mug 1", "    Rule: only when at desk 1"]),
        (*CRITICAL, ["  AVOID [CRITICAL]: open mug 1", "    Rule: only when at desk 1"]),
        (
            *SCHEMA,
            [
                "  SCHEMA: heat mug 1 with microwave 1 | needs: holding mug 1; at microwave 1"
                " | then: still holding mug 1 | confidence 0.88"
            ],
        ),
        (*FINDS, ["  FOUND: mug: desk 1 (3 of 9 held one)"]),
        # Text is never escaped.
        (
            FAILURE[0],
            new_advice(["x"], needs=["a < b & 'c' {{ d }}"]),
            ["  AVOID: x", "    Rule: a < b & 'c' {{ d }}"],
        ),
    ],
)
def test_memory_lines(
    entry: dict[str, object], advice: Advice, lines: list[str], play_script: Play
) -> None:
    state = play_script("C")[0]
    state["recalls"] = [recall(entry, advice)]
    block = blocks_of(state, "C").memory.splitlines()
    assert block == ["[Past Experience - Learned from History]", *lines]


def test_warnings_are_shown_and_dropped_memories_are_not(play_script: Play) -> None:
    state = play_script("D")[0]
    state["recalls"] = [
        recall(*SUCCESS, dropped_by="scf", reason="hand"),
        recall(*FAILURE, warning="may not hold", rule="O-ACT-004"),
    ]
    block = blocks_of(state, "D").memory
    assert "OK:" not in block
    assert block.splitlines()[-1] == "    WARNING [O-ACT-004]: may not hold"
    state["recalls"] = [recall(*SUCCESS, dropped_by="arbitration")]
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
    nodes = Path(rpms.nodes.blocks.__file__).parent
    files = [*(nodes / "templates").iterdir(), *(nodes / "memories" / "prompts").iterdir()]
    assert len(files) == 16
    for file in files:
        text = file.read_text(encoding="utf-8").lower()
        words = ("alfworld", "science", "kitchen", "mug", "microwave")
        assert not [word for word in words if word in text], file
