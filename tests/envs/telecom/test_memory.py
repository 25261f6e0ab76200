"""What tickets teach: told by roles, and recalled while it can still help."""

from __future__ import annotations

import json

from rpms.graph.run import run_episode
from rpms.nodes.memories.lessons import lessons
from rpms.nodes.memories.workflows import routines
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.turn import EpisodeRecord
from tests.envs.telecom.conftest import IDENTIFY, LINE, WORLD, Player, with_name


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
    assert WORLD.players(player.belief)["the ticket's line"] == "L1002"
    [*_] = player.play("toggle_airplane_mode")
    assert WORLD.compat(entry, player.belief) == ""
    [*_] = player.play("reseat_sim_card", "check_sim_status")
    assert WORLD.compat(entry, player.belief) == "recorded with airplane on, it is airplane off now"
    look = {"actions": [LINE], "state_signature": "customer=identified|line=unknown"}
    assert WORLD.compat(look, player.belief) == "recorded with line unknown, it is known now"
