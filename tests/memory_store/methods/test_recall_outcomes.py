"""Nothing vanishes: every candidate at or above theta has a outcome, and the outcomes add up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from langgraph.runtime import Runtime

from rpms.envs import get_environment
from rpms.envs.manuals import load_manual
from rpms.memory_store import parse_entry, read_snapshot, write_snapshot
from rpms.memory_store.entries import Finds, Schema
from rpms.memory_store.grounding import UNEXPLAINED
from rpms.memory_store.methods.rpms import open_memory
from rpms.nodes import arbitration, goal_retrieval, memory_selection, prompt_build, scf
from rpms.nodes.state import EpisodeState
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.recall import RECALL_OUTCOMES
from tests.nodes.test_prompt_build import BOIL, OPENING, SCRIPT
from tests.scripted_episode import under

Play = Callable[..., list[EpisodeState]]
WORLDS = ("alfworld", "scienceworld")
SETTINGS: list[dict[str, Any]] = [
    {"scf": state, "arbitration": rules, "memory_form": form, "k": k}
    for (state, rules), form, k in product(
        [("off", "none"), ("occupancy", "hard+soft"), ("preconditions", "hard")],
        ("recorded", "roles", "grounded"),
        (1, 3),
    )
]
SETTINGS += [{"theta": 0.0, "k": 0}, {"memory_tokens": 90}, {"theta": 1.0}]
SETTINGS += [{"arbitration_extras": True, "memory_form": form} for form in ("recorded", "grounded")]


@pytest.fixture
def states(play_script: Play) -> Callable[[str], list[EpisodeState]]:
    """Every moment of an episode of either world, before anything is recalled."""

    def play(env: str) -> list[EpisodeState]:
        if env == "alfworld":
            return play_script("B")
        return play_script("B", SCRIPT, BOIL, OPENING)

    return play


def recalled(state: EpisodeState, context: RunContext) -> EpisodeState:
    """The memory stages as the graph runs them, over the memory that is shipped."""
    now = under(state, context)
    now |= goal_retrieval(now, Runtime())
    if context.scf != "off":
        now |= scf(now)
    if context.rules and context.arbitration != "none":
        now |= arbitration(now)
    now |= memory_selection(now)
    return EpisodeState(**{**now, **prompt_build(now)})


def near(env: str, state: EpisodeState, context: RunContext) -> int:
    """How many entries are at or above theta, counted one by one."""
    world = get_environment(env)
    index = open_memory(env, "")
    goal = world.keys.goal(state["goal"]["signature"])
    _, entries = read_snapshot(world.memory)
    scores = [
        index.nearness(goal, world.keys.goal(entry.goal_signature)) * entry.retrieval_weight
        for entry in entries
        if not isinstance(entry, Schema | Finds)
    ]
    return sum(score >= context.theta and score > 0 for score in scores)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("env", WORLDS)
def test_the_fates_add_up_to_the_candidates(
    env: str, settings: dict[str, Any], states: Callable[[str], list[EpisodeState]]
) -> None:
    context = RunContext.for_condition("D", **settings)
    for state in states(env):
        now = recalled(state, context)
        listed, truncated = now["recalls"], now["truncated"]
        about_goals = [r for r in listed if r["entry"]["type"] not in ("schema", "found")]
        assert len(about_goals) + sum(truncated.values()) == near(env, state, context)
        assert {r["dropped_by"] for r in listed} <= {*RECALL_OUTCOMES} and {*truncated} <= {
            *RECALL_OUTCOMES
        }
        assert all(bool(r["dropped_by"]) == bool(r["reason"]) for r in listed)
        shown = Counter(r["entry"]["type"] for r in listed if not r["dropped_by"])
        assert all(n <= context.k for kind, n in shown.items() if kind != "found")
        outcomes = {r["dropped_by"] for r in listed}
        if context.scf == "off":
            assert "scf" not in outcomes
        if context.arbitration == "none":
            assert "arbitration" not in outcomes and not any(r["warning"] for r in listed)
        if context.memory_form != "grounded":
            # Names of this home are not asked for: only what has nothing to say is left out.
            reasons = {r["reason"] for r in listed if r["dropped_by"] == "not groundable"}
            assert reasons <= {"it says nothing: no need and no effect was noticed"}
        for recall in listed:
            advice = recall["advice"]
            if not recall["dropped_by"] and recall["entry"]["type"] != "found":
                assert all(action in str(now["prompt"]) for action in advice["printed"])
            if not advice["by_kind"]:  # what is printed is what was judged
                assert advice["printed"] == advice["actions"]


def remembered(number: int, *lifted: str, **more: Any) -> dict[str, Any]:
    """A success or a lesson of a goal like the script's, in the state of its last step."""
    return {
        "id": f"entry_{number}", "goal_signature": "pick_heat_then_place_in_recep:apple:hot:fridge",
        "state_signature": "holding=apple 2", "type": "success", "sub_goal_type": "heat_object",
        "actions": [*lifted], "lifted": [*lifted], **more,
    }  # fmt: skip


def warned(number: int, lifted: str, **more: Any) -> dict[str, Any]:
    lesson = remembered(number, type="failure", lifted=lifted, failed_action=lifted,
                        failure_message="no", corrective_rule=UNEXPLAINED, **more)  # fmt: skip
    return {k: v for k, v in lesson.items() if k not in ("actions", "sub_goal_type")}


GO, OPEN = "go to {a microwave}", "open {a microwave}"
HEAT = "heat {object} with {a microwave}"
OF_EVERY_FATE = [
    remembered(1, GO, HEAT, success_count=9),
    remembered(2, GO, OPEN, HEAT),
    remembered(3, GO, OPEN, HEAT, "go to {destination}", "put {object} in/on {destination}"),
    remembered(4, "go to {a safe}"),
    remembered(5, GO, HEAT, state_signature="holding=none"),
    remembered(6, GO, OPEN, "put {object} in/on {a microwave}"),
    warned(7, OPEN),
    warned(8, OPEN, violated=["at(place)"], failure_type="precondition_not_met"),
]


def test_every_fate_occurs(play_script: Play, tmp_path: Path) -> None:
    """So that the sums above are about something; the shipped memory may have none of a outcome."""
    file = tmp_path / "memory.jsonl"
    write_snapshot(file, "alfworld", [parse_entry(entry) for entry in OF_EVERY_FATE])
    (*_, before, last) = play_script("B")
    outcomes: dict[str, set[str]] = {outcome: set() for outcome in RECALL_OUTCOMES}
    for state, budget, k in product((before, last), (0, 20), (3, 1)):
        context = RunContext(memory_file=str(file), memory_tokens=budget, k=k)
        for recall in recalled(state, context)["recalls"]:
            outcomes[recall["dropped_by"]].add(recall["entry"]["id"])
    expected = {
        "": "entry_1", "not groundable": "entry_4", "scf": "entry_5", "arbitration": "entry_6",
        "duplicate": "entry_2", "over top-k": "entry_3", "over token budget": "entry_1",
    }  # fmt: skip
    assert {
        outcome: expected[outcome] in ids for outcome, ids in outcomes.items()
    } == dict.fromkeys(RECALL_OUTCOMES, True), outcomes


@pytest.mark.parametrize("env", WORLDS)
@pytest.mark.parametrize("form", ["recorded", "grounded"])
def test_without_rules_nothing_reads_the_manual(
    env: str, form: str, states: Callable[[str], list[EpisodeState]], tmp_path: Path
) -> None:
    """The same prompts with tiers 2 and 3 taken away, and with other people's in their place."""
    (tmp_path / "domain.yaml").write_text(
        "replaces: true\nprocedures: {}\nidle: yodel\ncategories: {all: [apple, mug, water]}\n"
        "rules: [{id: X-ALL-001, for: [all], text: Yodel first.}]\n"
    )
    (tmp_path / "environment.yaml").write_text(
        "replaces: true\nactions:\n  - {id: X-ACT-001, name: yodel, syntax: yodel, "
        "preconditions: [hand_empty], effects: []}\n"
    )
    others: list[dict[str, Any]] = [
        {"without_rules": "domain,environment"},
        {"rules_dir": str(tmp_path)},
    ]
    assert load_manual(env, str(tmp_path)).actions[0].syntax == "yodel"
    for mode in ("occupancy", "preconditions"):
        usual = RunContext.for_condition("C", memory_form=form, scf=mode, theta=0.4)
        prompts = [recalled(state, usual)["prompt"] for state in states(env)]
        assert any("[Past Experience" in str(prompt) for prompt in prompts)
        for other in others:
            context = usual.with_(**other)
            assert [recalled(state, context)["prompt"] for state in states(env)] == prompts
