"""What distinguishes two arms in ScienceWorld is what their names say, byte for byte.

An erring player plays ten training tasks; at each of its states every arm's prompt is built from
the same history and belief.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, cast

import pytest

from rpms.envs import get_environment
from rpms.envs.base import LiveGame, Task
from rpms.envs.manuals import load_commands
from rpms.envs.scienceworld.names import parts_of
from rpms.envs.scienceworld.things import split_phase
from rpms.evals.running.diff_arms import played_states
from rpms.evals.running.plan_file import read_plan
from rpms.nodes.state import EpisodeState, knowledge_of
from rpms.prompts.blocks import Blocks, knowledge_blocks
from rpms.rules import match_action
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.naming import same_words
from rpms.vocabulary.recall import surviving
from tests.under_arm import under_arm

pytestmark = [pytest.mark.engine, pytest.mark.xdist_group("jvm")]
TASKS, STEPS = 10, 30
GENERIC = ("substance", "inventory", "organism")
PROTOCOLS: dict[str, dict[str, Any]] = {
    "default": {},
    "paper": read_plan("paper").settings,
    "cache-friendly": {"layout": "cache_friendly"},
}


@pytest.fixture(scope="module")
def states() -> list[EpisodeState]:
    context = RunContext.for_condition("D")
    played = [*played_states(context, "scienceworld", "train", TASKS, max_steps=STEPS)]
    assert len({state["task_id"] for state in played}) == TASKS and len(played) > 10 * TASKS
    return played


def arm(state: EpisodeState, condition: str, **settings: Any) -> tuple[str, Blocks]:
    """The prompt as one text, and its blocks."""
    view = under_arm(state, RunContext.for_condition(condition, **settings))
    texts = [f"{message['role']}: {message['content']}" for message in view["prompt"]]
    return "\n\n".join(texts), knowledge_blocks(knowledge_of(view))


def without(prompt: str, blocks: Sequence[str]) -> str:
    for block in filter(None, blocks):
        assert prompt.count(f"{block}\n\n") == 1, block
        prompt = prompt.replace(f"{block}\n\n", "")
    return prompt


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_each_arm_adds_what_its_name_says(states: list[EpisodeState], protocol: str) -> None:
    settings = PROTOCOLS[protocol]
    memories = 0
    for state in states:
        where = f"{state['task_id']}, step {state['steps'] + 1}"
        _, alone = arm(state, "A", **settings)
        shown, s = arm(state, "S", **settings)
        ruled, b = arm(state, "B", **settings)
        recalled, c = arm(state, "C", **settings)
        both, d = arm(state, "D", **{**settings, "arbitration": "none"})
        assert alone == Blocks("", "", "", "", "", ""), where
        assert d == Blocks(b.rules, b.situation, s.goal, s.state, c.memory, b.last_action), where
        assert without(ruled, [b.rules, b.situation, b.last_action]) == shown, where
        assert without(recalled, [c.memory]) == shown, where
        assert without(both, [c.memory]) == ruled, where
        memories += bool(c.memory)
    assert memories > len(states) / 3


@pytest.fixture(scope="module")
def houses(states: list[EpisodeState]) -> dict[str, set[str]]:
    """The names of all objects of the simulator at the start of each of the tasks."""

    def names(thing: Mapping[str, Any]) -> Iterator[str]:
        for inner in thing["contents"].values():
            yield inner["name"].lower()
            yield from names(inner)

    world = get_environment("scienceworld")
    specs = {state["task_id"]: state["spec"] for state in states}
    with closing(world.open_game()) as game:
        return {task: {*names(_tree(game, spec))} for task, spec in specs.items()}


def _tree(game: LiveGame, spec: Task) -> Mapping[str, Any]:
    game.reset(spec)
    return cast(Mapping[str, Any], game.facts().tree)


def printed_names(state: EpisodeState, context: RunContext) -> Iterator[str]:
    """The names in the commands of the memories that an arm prints."""
    commands = load_commands("scienceworld")
    for recall in surviving(under_arm(state, context)["recalls"]):
        for action in recall["advice"]["printed"]:
            _, names = match_action(commands, action) or (None, {})
            yield from (part for name in names.values() for part in parts_of(name))


@pytest.mark.parametrize("condition", ["C", "D"])
def test_no_memory_names_what_the_house_lacks(
    states: list[EpisodeState], houses: dict[str, set[str]], condition: str
) -> None:
    """It is an object of the simulator, or the agent has read of it."""
    lacking, printed = set[str](), 0
    for state in states:
        texts = [state["goal"]["sentence"], state["first_observation"],
                 *(turn["observation"] for turn in state["history"])]  # fmt: skip
        read = "\n".join(texts).lower()
        for name in printed_names(state, RunContext.for_condition(condition)):
            lasting = split_phase(name)[0]
            exists = any(same_words(split_phase(o)[0], lasting) for o in houses[state["task_id"]])
            printed += 1
            if not (exists or lasting in read or name in GENERIC):
                lacking.add(f"{state['task_id']}, step {state['steps'] + 1}: {name}")
    assert not lacking and printed > len(states) / 2


def test_no_hint_says_where_a_thing_of_another_task_was(states: list[EpisodeState]) -> None:
    world, context, hints = get_environment("scienceworld"), RunContext.for_condition("D"), 0
    for state in states:
        for recall in surviving(under_arm(state, context)["recalls"]):
            if recall["entry"]["type"] == "found":
                assert not world.individual(recall["entry"]["object"]), state["task_id"]
                hints += 1
    assert hints > 10


def test_the_recorded_form_prints_the_names_of_other_houses(
    states: list[EpisodeState], houses: dict[str, set[str]]
) -> None:
    """As the paper does; so the test above has something to find."""
    context = RunContext.for_condition("C", memory_form="recorded")
    assert any(
        not any(same_words(other, name) for other in houses[state["task_id"]])
        for state in states
        for name in printed_names(state, context)
    )
