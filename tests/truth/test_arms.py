"""Arms differ in what their name says and in nothing else, at every state of an erring player."""

from __future__ import annotations

import re
from functools import cache

import pytest

from rpms.evals.running.diff_arms import played_states
from rpms.nodes.state import EpisodeState, knowledge_of
from rpms.prompts.blocks import Blocks, knowledge_blocks
from rpms.vocabulary.context import RunContext
from tests.under_arm import prompt_of, under_arm

HOMES = 12
STYLES: dict[str, dict[str, str]] = {
    "ours": {}, "paper": {"prompt_style": "paper", "memory_form": "recorded"},
}  # fmt: skip


@cache
def states() -> list[EpisodeState]:
    return [*played_states(RunContext(), "alfworld", limit=HOMES)]


def printed(state: EpisodeState, condition: str, style: str, **settings: str) -> tuple[str, Blocks]:
    """The whole prompt of an arm, and its blocks."""
    context = RunContext.for_condition(condition).with_(**STYLES[style], **settings)
    view = under_arm(state, context)
    assert view["dropped_turns"] == 0
    text = "\n\n".join(message["content"] for message in prompt_of(state, context))
    return text, knowledge_blocks(knowledge_of(view))


def without(text: str, *blocks: str) -> str:
    """The prompt without these blocks, which stand in it word for word."""
    for block in filter(None, blocks):
        assert block in text
        text = text.replace(block, "", 1)
    return re.sub(r"\n{2,}", "\n\n", text)


@pytest.mark.parametrize("style", STYLES)
def test_arms_differ_in_one_thing_each(style: str) -> None:
    """C and D without arbitration print one memory; beside it D is B, C is S, and B is S."""
    memories = 0
    for state in states():
        (b, blocks), (c, of_c), (s, _) = (printed(state, each, style) for each in "BCS")
        d, of_d = printed(state, "D", style, arbitration="none")
        assert of_c.memory == of_d.memory, state["task_id"]
        assert without(d, of_d.memory) == without(b)
        assert without(c, of_c.memory) == without(s)
        rules = (blocks.rules, blocks.situation, blocks.last_action)
        assert without(b, *rules) == without(s)
        memories += bool(of_d.memory)
    assert len(states()) > 100 and memories > len(states()) / 2
