"""The prompt in another world: the paper's listing for a boil task, from the same stages."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from rpms.envs.base import Task
from rpms.envs.scienceworld.adapter import ENVIRONMENT
from rpms.nodes.blocks import knowledge_blocks
from rpms.nodes.state import EpisodeState
from rpms.vocabulary.context import RunContext
from tests.nodes.conftest import write_memories
from tests.nodes.test_prompt_build import GOLDEN, LAYOUTS, as_text, without_blocks
from tests.paper_entries import PAPER

Play = Callable[..., list[EpisodeState]]

GOAL = (
    "Your task is to boil water. For compounds without a boiling point, combusting the substance "
    "is also acceptable. First, focus on the substance. Then, take actions that will cause it to "
    "change its state of matter."
)
TASK = Task(env="scienceworld", split="scripted", index=0, id="boil/0", goal=GOAL, source="boil/0")
OPENING = f"""This room is called the kitchen. In it, you see:\x20
\tthe agent
\ta substance called air
\ta counter. On the counter is: a bowl (containing a red apple, a banana, an orange), a drawer.
\ta cupboard. The cupboard door is closed.\x20
\ta metal pot (containing nothing)
\ta sink, which is turned off. In the sink is: nothing.
\ta stove, which is turned off. On the stove is: nothing.
You also see:
\tA door to the hallway (that is open)
\tA door to the outside (that is open)

{GOAL}"""
SCRIPT = [
    ("Action: move metal pot to sink", "You move the metal pot to the sink."),
    ("Action: activate sink", "The sink is now activated."),
    ("Action: look at metal pot", "a metal pot (containing a substance called water)"),
    ("Action: pick up kettle", "No known action matches that input."),
]
# The two memories of the paper's listing.
MEMORIES = [
    {
        "id": "success_000012", "type": "success", "goal_signature": "F3:boil:water",
        "state_signature": "room=kitchen|inventory=empty|progress=0",
        "sub_goal_type": "transform_object",
        "actions": ["focus on substance in metal pot", "move metal pot to stove",
                    "activate stove"],
    },
    PAPER[3],
    {
        "id": "success_000013", "type": "success", "goal_signature": "F3:boil:water",
        "state_signature": "room=workshop|inventory=empty|progress=0",
        "sub_goal_type": "transform_object", "actions": ["activate stove"],
    },
]  # fmt: skip


@pytest.fixture
def play(play_script: Play, tmp_path: Path) -> Play:
    file = write_memories(tmp_path / "science.jsonl", "scienceworld", MEMORIES)

    def episode(condition: str, layout: str = "paper") -> list[EpisodeState]:
        return play_script(condition, SCRIPT, TASK, OPENING, memory_file=str(file), layout=layout)

    return episode


@pytest.mark.parametrize("step", [1, 5])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("condition", ["A", "B", "C", "D"])
def test_golden(condition: str, layout: str, step: int, play: Play) -> None:
    """Set RPMS_UPDATE_GOLDEN=1 to write the files anew, then read the difference."""
    prompt = play(condition, layout)[step - 1]["prompt"]
    # The system text and the example are data files of their own.
    start = next(n for n, m in enumerate(prompt) if "A new task begins" in m["content"])
    text = as_text(prompt[start:])
    file = GOLDEN / f"scienceworld-{condition}-{layout}-step{step}.txt"
    text = text[text.index("=== The example is complete") :]
    if os.environ.get("RPMS_UPDATE_GOLDEN") == "1":
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def test_the_papers_listing(play: Play) -> None:
    """State, objective, three tiers, memory: headings and order of the appendix."""
    state = play("D")[0]
    text = as_text(state["prompt"]).rpartition("A new task begins")[2]
    marks = [
        "[Current State]\n  Room: kitchen  Carrying: orange  Progress: step 0",
        "[Current Objective] find water",
        "[RULES - Tier 1: Universal Principles]\n  U-SEARCH-001: ",
        "[RULES - Tier 2: Domain (F3_transform_verify)]",
        "Canonical procedure:\n    1. find the target substance\n    2. focus on",
        "F3-FOCUS-001: ",
        "[RULES - Tier 3: Environment (ScienceWorld)]",
        "E-ACT-005: focus on <object>",
        "E-SEM-003: ",
        "[Past Experience - Learned from History]",
        "  AVOID [CRITICAL]: focus on stove\n    Rule: verify object identity",
        "  OK: F3: focus on substance in metal pot -> move metal pot to stove -> activate stove",
        OPENING,
    ]
    positions = [text.index(mark) for mark in marks]
    assert positions == sorted(positions)
    assert "-100" in text
    assert [r["dropped_by"] for r in state["recalls"] if "workshop" in str(r["entry"])] == ["scf"]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("condition", ["B", "C", "D"])
def test_the_baseline_is_the_prompt_minus_the_blocks(
    condition: str, layout: str, play: Play
) -> None:
    context = RunContext.for_condition(condition, layout=layout)
    pairs = zip(play(condition, layout), play("A", layout), strict=True)
    for state, plain in pairs:
        blocks = [b for b in knowledge_blocks(state, context, ENVIRONMENT) if b]
        assert len(blocks) >= 2
        assert without_blocks(state["prompt"], blocks) == plain["prompt"]
        assert state["knowledge_tokens"] <= 1200


def test_no_stage_knows_any_world_by_name() -> None:
    """Another world is another folder and other data; a branch inside a stage is a wrong seam."""
    root = Path(__file__).parents[2]
    files = [
        file for folder in ("nodes", "graph") for file in (root / "rpms" / folder).rglob("*.*")
    ]
    code = [file for file in files if file.suffix in (".py", ".j2") and file.name != "studio.py"]
    assert len(code) > 20
    for file in code:
        named = re.findall(r"""["'](?:alfworld|scienceworld)["']""", file.read_text())
        assert not named, file
