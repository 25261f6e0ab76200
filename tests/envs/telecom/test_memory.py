"""What tickets teach: told by roles, and recalled while it can still help."""

from __future__ import annotations

import json
from typing import Any

from rpms.envs.telecom.adapter import HAND_OVER
from rpms.graph.run import run_episode
from rpms.memory_store.lessons import lessons
from rpms.memory_store.methods.workflows import routines
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.turn import EpisodeRecord, RecordedTurn
from tests.envs.telecom.conftest import BILLS, IDENTIFY, LINE, WORLD, Player, with_name


def played(*parts: str) -> EpisodeRecord:
    """A ticket as the manual's own policy resolves it."""
    task, context = with_name(*parts), RunContext.for_condition("E", model="first")
    result = run_episode(task["id"], env="telecom", split="train", context=context)
    return EpisodeRecord(**{**result, "env": "telecom", "goal": task["goal"]})  # type: ignore[typeddict-item]


def test_lessons_speak_of_roles_and_of_what_changed() -> None:
    record = played("service_issue/", "overdue_bill_suspension", "unseat_sim")
    taught = list(lessons(record))
    ways = [lesson for lesson in taught if lesson["type"] == "success"]
    assert not any(name in json.dumps([way["lifted"] for way in ways])
                   for name in ("C1001", "L1002", "B1", "555-"))  # fmt: skip
    last = ways[-1]
    request = "send_payment_request customer_id={the customer} bill_id={the bill due}"
    assert request in last["lifted"]
    assert "sim missing" in last["state_signature"] and len(last["lifted"]) >= 4
    effects = {lesson["action_type"]: lesson["uses"][0]["after"]
               for lesson in taught if lesson["type"] == "schema"}  # fmt: skip
    assert effects["resume_line"] == ["state(line, line active)"]
    assert not any("hand_empty" in json.dumps(lesson) for lesson in taught)
    ((routine, _),) = routines(record)
    assert "make_payment" in routine.steps


def test_an_entry_fits_until_all_that_it_changed_is_otherwise() -> None:
    player = Player(with_name("mms_issue", "airplane_mode_on", "unseat_sim"))
    entry = {"actions": ["toggle_airplane_mode", "reseat_sim_card"]}
    [*_] = player.play(IDENTIFY, LINE, "check_network_status")
    entry["state_signature"] = WORLD.print_state(player.belief)  # type: ignore[assignment]
    assert WORLD.role_names(player.belief)["the ticket's line"] == "L1002"
    [*_] = player.play("toggle_airplane_mode")
    assert WORLD.compat(entry, player.belief) == ""
    [*_] = player.play("reseat_sim_card", "check_sim_status")
    assert "airplane on" in WORLD.compat(entry, player.belief)
    look = {"actions": [LINE], "state_signature": "customer=identified|line=unknown"}
    assert "line unknown" in WORLD.compat(look, player.belief)


def by_hand(*actions: str, broken: tuple[str, ...]) -> list[dict[str, Any]]:
    """What a ticket teaches that was played like this."""
    task = with_name(*broken)
    player = Player(task)
    first = player.game.reset(task)
    steps = [*player.play(*actions)]
    history = [
        RecordedTurn(action=step.action, observation=step.outcome.observation,
                     failed=WORLD.failed(step.outcome.observation))
        for step in steps
    ]  # fmt: skip
    return [*lessons(EpisodeRecord(
        env="telecom", split="train", task=task["id"], goal=task["goal"], first_observation=first,
        success=steps[-1].outcome.won, history=history,
    ))]  # fmt: skip


def ways(taught: list[dict[str, Any]], step: str) -> list[list[str]]:
    return [
        each["lifted"]
        for each in taught
        if each["type"] == "success" and each["sub_goal_type"] == step
    ]


def test_a_way_has_no_call_of_another_step_and_nothing_that_was_switched_back() -> None:
    detour = ["toggle_wifi_calling", "toggle_airplane_mode", "toggle_airplane_mode"]
    taught = by_hand(
        IDENTIFY, LINE, *detour, "check_network_status", "toggle_airplane_mode", "reseat_sim_card",
        broken=("mms_issue", "airplane_mode_on", "unseat_sim"),
    )  # fmt: skip
    assert ways(taught, "restore_service") == [["toggle_airplane_mode", "reseat_sim_card"]]


def test_a_way_on_which_the_policy_was_broken_is_not_told() -> None:
    resume = "resume_line customer_id=C1001 line_id=L1002"
    calls = ["check_network_status", "toggle_airplane_mode", resume, "reboot_device"]
    taught = by_hand(IDENTIFY, LINE, *calls, broken=("airplane_mode_on|overdue_bill_suspension",))
    assert ways(taught, "identify_customer") and not ways(taught, "restore_service")


def test_what_an_answer_shows_is_no_effect_and_no_foreign_id_is_remembered() -> None:
    taught = by_hand(
        IDENTIFY, LINE, BILLS, "resume_line customer_id=C1001 line_id=L1003", "make_payment",
        broken=("mms_issue", "airplane_mode_on"),
    )  # fmt: skip
    assert not [each for each in taught if each["type"] == "schema" and each["success_count"]]
    (lesson,) = [each for each in taught if each["type"] == "failure"]
    assert lesson["corrective_rule"] == "needs a payment request to be open"


def test_a_switch_that_is_right_now_is_cut_by_the_record_of_the_entry() -> None:
    player = Player(with_name("mms_issue", "airplane_mode_on", "unseat_sim"))
    entry: dict[str, Any] = {"actions": ["reseat_sim_card", "toggle_airplane_mode"]}
    [*_] = player.play(IDENTIFY, LINE, "check_network_status")
    entry["state_signature"] = WORLD.print_state(player.belief)
    assert WORLD.steps_done(entry, player.belief) == set()
    [*_] = player.play("toggle_airplane_mode")
    assert WORLD.steps_done(entry, player.belief) == {1}


def test_a_ticket_is_handed_over_as_another_was_only_on_the_same_ground() -> None:
    player = Player(with_name("contract_end", "unseat"))
    entry: dict[str, Any] = {
        "actions": [f"{HAND_OVER} summary=unresolved"], "goal_signature": player.goal["signature"],
        "state_signature": "phone=airplane off,sim active|account=term ended",
    }  # fmt: skip
    assert "term ended" in WORLD.compat(entry, player.belief)
    [*_] = player.play(IDENTIFY, LINE, "check_network_status")
    phone = player.game.facts()["phone"]
    assert "sim missing" in phone and WORLD.compat(entry, player.belief)
    repairs = ["toggle_airplane_mode"] * ("airplane on" in phone) + ["reseat_sim_card"]
    [*_] = player.play(*repairs, "check_network_status")
    assert WORLD.compat(entry, player.belief) == ""
