from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from pydantic import TypeAdapter

import rpms.graph
from rpms.envs import environment_names, get_environment
from rpms.graph import STAGES, build_graph
from rpms.nodes.state import EpisodeInput, EpisodeOutput, EpisodeState
from rpms.vocabulary.context import RunContext

ADDED = {"__start__", "__end__"}
MEMORY_STAGES = {"goal_retrieval", "scf", "arbitration", "memory_selection"}
EDGES = {
    ("__start__", "reset_env"),
    ("reset_env", "belief_update"),
    ("reset_env", "__end__"),
    ("belief_update", "rule_assembly"),
    ("belief_update", "goal_retrieval"),
    ("belief_update", "prompt_build"),
    ("rule_assembly", "goal_retrieval"),
    ("rule_assembly", "prompt_build"),
    ("goal_retrieval", "scf"),
    ("goal_retrieval", "arbitration"),
    ("goal_retrieval", "memory_selection"),
    ("scf", "arbitration"),
    ("scf", "memory_selection"),
    ("arbitration", "memory_selection"),
    ("memory_selection", "prompt_build"),
    ("prompt_build", "llm_call"),
    ("llm_call", "env_step"),
    ("llm_call", "guard_check"),
    ("guard_check", "llm_call"),
    ("guard_check", "env_step"),
    ("llm_call", "__end__"),
    ("env_step", "belief_update"),
    ("env_step", "__end__"),
}


def visited(**settings: Any) -> list[str]:
    """Stages in the order they ran, over two decisions."""
    context = RunContext(max_steps=2, **settings)
    stream = build_graph().stream({"task": "0"}, context=context, stream_mode="updates")
    return [name for part in stream for name in part]


def test_the_stages_stand_in_order() -> None:
    assert STAGES == (
        "reset_env", "belief_update", "rule_assembly", "goal_retrieval", "scf", "arbitration",
        "memory_selection", "prompt_build", "llm_call", "guard_check", "env_step",
    )  # fmt: skip
    assert set(build_graph().get_graph().nodes) == {*STAGES, *ADDED}


def test_what_a_reader_of_langgraph_looks_for_is_in_the_graphs_package() -> None:
    assert rpms.graph.RunContext is rpms.RunContext and rpms.graph.EpisodeState is rpms.EpisodeState


def test_the_drawn_graph_has_every_edge_and_no_other() -> None:
    drawn = build_graph().get_graph()
    assert {(edge.source, edge.target) for edge in drawn.edges} == EDGES
    conditional = {(edge.source, edge.target) for edge in drawn.edges if edge.conditional}
    fixed = {"__start__", "arbitration", "memory_selection", "prompt_build"}
    assert conditional == {edge for edge in EDGES if edge[0] not in fixed}


@pytest.mark.engine
@pytest.mark.parametrize(
    ("settings", "skipped"),
    [
        ({}, set()),
        ({"guard": "offer"}, set()),
        ({"rules": False}, {"rule_assembly", "arbitration"}),
        ({"memory": False}, MEMORY_STAGES),
        ({"rules": False, "memory": False}, {"rule_assembly", *MEMORY_STAGES}),
        ({"scf": "off"}, {"scf"}),
        ({"arbitration": "none"}, {"arbitration"}),
        ({"scf": "off", "arbitration": "none"}, {"scf", "arbitration"}),
        ({"rules": False, "scf": "off"}, {"rule_assembly", "scf", "arbitration"}),
    ],
)
def test_a_stage_that_is_off_is_not_visited(settings: dict[str, Any], skipped: set[str]) -> None:
    off = skipped if "guard" in settings else {*skipped, "guard_check"}
    loop = [name for name in STAGES[1:] if name not in off]
    assert visited(**settings) == ["reset_env", *loop, *loop]


def test_schemas_are_apart() -> None:
    graph = build_graph()
    entry = graph.get_input_jsonschema()["properties"]
    answered = graph.get_output_jsonschema()["properties"]
    assert (
        set(entry)
        == set(EpisodeInput.__annotations__)
        == {"env", "split", "task", "cross_trial_memory"}
    )
    assert set(answered) == set(EpisodeOutput.__annotations__)
    assert {"success", "steps", "failure_mode", "history", "prompt_tokens"} <= set(answered)
    assert not {"prompt", "belief", "episode_id", "recalls"} & set(answered)
    inside = set(graph.builder.schemas[EpisodeState])
    assert set(entry) | set(answered) < inside
    whole = TypeAdapter(EpisodeState).json_schema()
    assert set(whole["properties"]) == inside
    assert json.dumps(whole)


def test_the_input_is_a_form() -> None:
    form = build_graph().get_input_jsonschema()["properties"]
    assert form["env"]["enum"] == environment_names()
    splits = [get_environment(name).splits() for name in environment_names()]
    assert set(form["split"]["enum"]) == {split for names in splits for split in names}
    assert len(form["split"]["enum"]) == len(set(form["split"]["enum"]))
    for name, names in zip(environment_names(), splits, strict=True):
        assert f"{name}: {', '.join(names)}" in form["split"]["description"]
    assert {kind["type"] for kind in form["task"]["anyOf"]} == {"string", "integer"}


@pytest.mark.engine
def test_everything_in_the_state_is_plain_json_or_a_message() -> None:
    states = build_graph().stream(
        {"task": "8"}, context=RunContext(max_steps=3), stream_mode="values"
    )
    count = 0
    for state in states:
        prompt = state.pop("prompt")
        assert all(isinstance(message, BaseMessage) for message in prompt)
        assert json.loads(json.dumps(state)) == state
        count += 1
    assert count > 20
