"""Plants contradict the manuals that are shipped, although whoever makes them reads none."""

from __future__ import annotations

from collections import Counter

import pytest

from rpms.envs import get_environment
from rpms.envs.manuals import load_manual
from rpms.memory_store import Entry, controlled, read_snapshot
from rpms.memory_store.controls import CONTRADICTIONS, contradiction_kind
from rpms.memory_store.entries import Failure, Finds, Success
from rpms.nodes.arbitration import Arbiter
from rpms.rules import match_action
from rpms.rules.conditions import DecisionPoint
from rpms.vocabulary.belief import Belief, empty_belief, kind_of
from rpms.vocabulary.goal import GoalSpec, SubGoal

WORLDS = ("alfworld", "scienceworld")
SEEDS = (0, 7)


def memory_of(world: str, seed: int) -> tuple[list[Entry], list[Entry]]:
    """What was learned, and what is planted beside it."""
    learned = read_snapshot(get_environment(world).memory)[1]
    both = controlled(learned, "conflict", seed)
    return both[: len(learned)], both[len(learned) :]


def goal_of(world: str, entry: Success | Failure) -> GoalSpec:
    gamma = get_environment(world).read_signature(entry.goal_signature)
    return GoalSpec(
        sentence="", type=gamma.type, object=gamma.object, state=None, count=1,
        destination=gamma.destination, signature=entry.goal_signature,
    )  # fmt: skip


def breaks_rules(world: str, entry: Success, places: set[str]) -> bool:
    """Whether rules rule it out whatever else holds: to who knows no more than what they hold.

    With a full hand and with an empty one, unless the state filter would have kept it away.
    """
    env, manual, goal = get_environment(world), load_manual(world), goal_of(world, entry)
    matches = [match_action(manual, action) for action in entry.actions]
    names = {name for match in matches if match for name in match[1].values()}
    objects = sorted(name for name in names if kind_of(name) == goal["object"])
    verdicts = []
    for holding in ([], [*objects, f"{goal['object']} 1"][:1]):
        belief: Belief = {
            **empty_belief(),
            "holding": holding,
            "places": [name for name in names if kind_of(name) in places],
        }
        if world == "alfworld" and env.compat(entry.model_dump(), belief):
            continue
        anywhere = SubGoal(name="", target="", progress=0)
        point = DecisionPoint(manual, goal, anywhere, belief)
        conflict = Arbiter(env, point, "recorded").snippet_conflict(entry.actions)
        verdicts.append(conflict is not None and conflict.hard)
    return bool(verdicts) and all(verdicts)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("world", WORLDS)
def test_the_memory_stays_and_what_is_planted_says_other_things(world: str, seed: int) -> None:
    learned, planted = memory_of(world, seed)
    assert learned == read_snapshot(get_environment(world).memory)[1]
    assert not any(contradiction_kind(entry.id) for entry in learned)
    assert len({entry.id for entry in planted}) == len(planted)
    assert {contradiction_kind(entry.id) for entry in planted} == {*CONTRADICTIONS}
    sound = [entry for entry in learned if not isinstance(entry, Finds)]
    goals = {getattr(entry, "goal_signature", "") for entry in sound}
    advice = {
        (e.goal_signature.split(":")[0], str(e.lifted)) for e in sound if isinstance(e, Success)
    }
    for entry in planted:
        assert isinstance(entry, Success | Failure) and entry.goal_signature in goals
        assert not any("{" in text for text in getattr(entry, "actions", []))
        if isinstance(entry, Success) and contradiction_kind(entry.id) != "corrupted":
            assert (entry.goal_signature.split(":")[0], str(entry.lifted)) not in advice


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("world", "spoiled"), [("alfworld", 0.95), ("scienceworld", 0.5)])
def test_the_manual_contradicts_what_is_planted(world: str, spoiled: float, seed: int) -> None:
    """By a rule always; of what is spoiled as names can tell, nearly all by the procedure."""
    manual = load_manual(world)
    learned, planted = memory_of(world, seed)
    places = {entry.place for entry in learned if isinstance(entry, Finds)}
    counts, contradicted = Counter[str](), Counter[str]()
    for entry in planted:
        assert isinstance(entry, Success | Failure)
        kind = contradiction_kind(entry.id) + (" lesson" if isinstance(entry, Failure) else "")
        steps = manual.domain.procedures[goal_of(world, entry)["type"]]
        counts[kind] += 1
        if isinstance(entry, Failure):  # never to do what the procedure demands
            matched = match_action(manual, entry.failed_action)
            demanded = {manual.domain.advances.get(step) for step in steps}
            contradicted[kind] += matched is not None and matched[0].name in demanded
        elif kind == "goal":
            contradicted[kind] += entry.sub_goal_type not in steps
        else:
            contradicted[kind] += breaks_rules(world, entry, places)
    shares = {kind: contradicted[kind] / counts[kind] for kind in counts}
    assert shares["rule"] == 1 and counts["rule"] > 50
    assert counts["corrupted lesson"] > 30
    for kind in ("corrupted lesson", "goal"):  # a family's procedure is not each task's (mixing)
        assert shares[kind] == 1 if world == "alfworld" else shares[kind] > 0.9
    assert shares["corrupted"] >= spoiled and counts["corrupted"] > 20


def test_every_way_of_breaking_a_rule_is_planted() -> None:
    """The paper's apple in the fridge, the wrong tool, the wrong order, a walk to a thing."""
    planted = [e for e in memory_of("alfworld", 0)[1] if contradiction_kind(e.id) == "rule"]
    texts = [" > ".join(entry.lifted) for entry in planted if isinstance(entry, Success)]
    for advice in (
        "put {object} in/on {a fridge} > cool {object} with {a fridge}",
        "go to {a microwave} > clean {object} with {a microwave}",
        "go to {destination} > put {object} in/on {destination} > go to {object's place}",
        "go to {destination} > use {destination's place}",
    ):
        assert any(advice in text for text in texts), advice
