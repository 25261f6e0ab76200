"""tau2's tickets: which there are, what is read from them, and when one is resolved."""

from __future__ import annotations

import random

import pytest

from rpms.envs.tau2.domain import all_tasks, domain
from rpms.envs.telecom.adapter import solo_environment
from tests.envs.telecom.conftest import MANUAL, TRAIN, WORLD, Player, gold, with_name
from tests.refusal import refused


def test_the_splits_are_tau2_s_and_have_no_task_in_common() -> None:
    ids = {split: {task["source"] for task in WORLD.tasks(split)} for split in WORLD.splits()}
    assert {split: len(names) for split, names in ids.items()} == {
        "test": 40, "train": 74, "full": 2171
    }  # fmt: skip
    assert (
        set.union(*ids.values()) == {*all_tasks("telecom")} and sum(map(len, ids.values())) == 2285
    )
    assert [task["id"] for task in WORLD.tasks("train", 2)] == [*TRAIN][:2]
    with refused("'dev'", *WORLD.splits()):
        WORLD.tasks("dev")


def test_every_ticket_is_read_as_what_it_is() -> None:
    for name, task in all_tasks("telecom").items():
        goal = WORLD.parse_goal(task.ticket)
        assert name.startswith(f"[{goal['type']}]")
        facts = WORLD.first_belief(task.ticket)["flags"]["ticket"]
        assert facts.startswith("abroad" if goal["destination"] == "abroad" else "at home")
        assert ("user_abroad" in name) <= (goal["destination"] == "abroad")
        assert ("overdue_bill" in name) <= facts.endswith("payment allowed")
    with refused("'Boil water"):
        WORLD.parse_goal("Boil water.")


def test_gold_play_is_possible_wins_and_is_believed_as_it_is() -> None:
    """Every action of the train split, after what the policy has one look up; 0 drift."""
    copied = domain("telecom").get_environment(solo_mode=True)
    for task in TRAIN.values():
        player, steps = Player(task), []
        for step in player.play(*gold(task)):
            assert player.belief_errors() == [], step.action
            steps.append(step)
        vetoed = [step.veto for step in steps if step.veto]
        assert not vetoed, f"{task['id']}: {vetoed}"
        assert steps[-1].outcome.won and not any(step.outcome.won for step in steps[:-1])
    # Each ticket had an environment of its own: the one that they are copied from is as tau2's.
    assert solo_environment().get_db_hash() == copied.get_db_hash()
    assert solo_environment().get_user_db_hash() == copied.get_user_db_hash()


def test_random_play_is_believed_as_it_is() -> None:
    chance, count = random.Random(29), 0
    rules = [rule for rule in MANUAL.actions if rule.name != "transfer_to_human_agents"]
    for task in chance.sample([*TRAIN.values()], 8):
        player = Player(task)
        for _ in range(50):
            rule = chance.choice(rules)
            names = {name: chance.choice(player.belief["visible"]) for name in rule.parameters}
            for step in player.play(rule.syntax.format(**names)):
                assert player.belief_errors() == [], f"{task['id']}: {step}"
                count += 1
    assert count > 200


def test_handing_over_too_early_loses() -> None:
    for part in ("airplane_mode_on|overdue_bill_suspension", "mms_issue", "mobile_data_issue"):
        (step,) = Player(with_name(part)).play("transfer_to_human_agents summary=I give up")
        assert step.outcome.done and not step.outcome.won


@pytest.mark.parametrize(
    ("reply", "action"),
    [
        ("check_status_bar()", "check_status_bar"),
        ('get_details_by_id(id="L1002")', "get_details_by_id id=L1002"),
        ("refuel_data(customer_id='C1001', line_id='L1002', gb_amount=2.0)",
         "refuel_data customer_id=C1001 line_id=L1002 gb_amount=2.0"),
        ("enable_roaming  customer_id=C1001 line_id=L1002",
         "enable_roaming customer_id=C1001 line_id=L1002"),
        ("transfer_to_human_agents summary=A locked SIM card",
         "transfer_to_human_agents summary=A locked SIM card"),
    ],
)  # fmt: skip
def test_calls_are_read_however_they_are_written(reply: str, action: str) -> None:
    assert WORLD.read_action(reply) == action


def test_what_no_tool_takes_is_an_error_and_changes_nothing() -> None:
    player = Player(with_name("mms_issue"))
    before = player.belief["flags"]
    for action in ("dance", "refuel_data gb_amount=much", "get_data_usage customer_id=C1001"):
        (step,) = player.play(action)
        assert WORLD.failed(step.outcome.observation) and not step.outcome.done
    assert player.belief["flags"] == before
