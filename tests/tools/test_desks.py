"""Recorded conversations at the airline's desk: the audit, the facts, and what a refusal is."""

from __future__ import annotations

import json
import lzma
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tau2")

from rpms.envs.tau2.airline import DESK
from rpms.envs.tau2.desk import OpenDesk
from tests.command_line import in_process
from tools.airline_cancellations import by_facts, by_guard
from tools.desk_recordings import changes_of

RECORDED = (
    Path(__file__).resolve().parents[3] / "shared" / "tau" / "airline-gpt-4o.jsonl.xz"
)  # beside the checkout, where there is one
FINE, AGAINST, BOTH = "fine", "refused: against a rule", "refused, and rejected by the tool too"
UNINFORMED = "refused: uninformed, {} by the facts"


class Conversation:
    """Messages of a conversation whose calls run on the real desk."""

    def __init__(self, words: str) -> None:
        self.desk: OpenDesk = DESK.open()
        self.messages: list[dict[str, Any]] = [{"role": "user", "content": words}]

    def call(self, tool: str, rejected: str = "", **arguments: Any) -> Conversation:
        name = str(len(self.messages))
        function = {"name": tool, "arguments": json.dumps(arguments)}
        made = [{"id": name, "type": "function", "function": function}]
        answer = rejected or self.desk.call(tool, arguments)
        self.messages += [
            {"role": "assistant", "content": None, "tool_calls": made},
            {"role": "tool", "tool_call_id": name, "content": answer},
        ]
        return self


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Stands in for recordings: cancellations, allowed or not, with look-ups and without."""
    data = DESK.open().database()["reservations"]
    names = {
        "business": next(n for n, b in data.items() if b["cabin"] == "business"
                         and all(f["date"] > "2024-05-15" for f in b["flights"])),
        "wrong": next(n for n, b in data.items() if b["cabin"] == "economy"
                      and b["insurance"] == "no" and b["created_at"] < "2024-05-14"
                      and all(f["date"] > "2024-05-15" for f in b["flights"])),
    }  # fmt: skip
    lines = []
    for name, booking in names.items():
        for looks in (True, False):
            conversation = Conversation(f"I am {data[booking]['user_id']}, cancel {booking}.")
            if looks:
                conversation.call("get_reservation_details", reservation_id=booking)
                for flight in data[booking]["flights"]:
                    leg = {name: flight[name] for name in ("flight_number", "date")}
                    conversation.call("get_flight_status", **leg)
            conversation.call("cancel_reservation", reservation_id=booking)
            entry = {"id": f"{name}-{looks}", "reward": 1.0 if name == "business" else 0.0}
            lines.append(json.dumps({**entry, "messages": conversation.messages}))
    # A call that the tool rejected leaves no doubt about the booking: tau2 changed nothing.
    business = data[names["business"]]
    conversation = Conversation(f"I am {business['user_id']}, cancel {names['business']}.")
    for rejected in ("Error: try again", ""):
        conversation.call("cancel_reservation", rejected, reservation_id=names["business"])
    entry = {"id": "business-again", "reward": 1.0, "messages": conversation.messages}
    lines.append(json.dumps(entry))
    file = tmp_path / "log.jsonl.xz"
    file.write_bytes(lzma.compress("\n".join(lines).encode()))
    return file


def test_a_refusal_is_told_by_what_was_seen_and_by_the_facts(log: Path) -> None:
    kinds = {each.conversation: each.kind for each in changes_of(DESK, log)}
    assert kinds == {
        "business-again": UNINFORMED.format("fine"),
        "business-True": FINE,
        "business-False": UNINFORMED.format("fine"),
        "wrong-True": AGAINST,
        "wrong-False": UNINFORMED.format("against a rule"),
    }


def test_facts_and_guard_agree_once_the_agent_has_looked(log: Path) -> None:
    wrong, blind = {name for name, _ in by_facts(log)}, {name for name, _ in by_guard(log)}
    assert wrong == {"wrong-True", "wrong-False"}
    assert blind == {*wrong, "business-False", "business-again"}  # nothing was known of it


def test_the_audit_reads_the_log(
    log: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done = in_process(monkeypatch, capsys)("audit", log, "--env", "airline", "--json")
    rows = [json.loads(line) for line in done.out.splitlines()]
    refused = [(row["conversation"], row["verdict"]) for row in rows if row["verdict"] != "fine"]
    assert done.code == 1
    assert refused == [
        ("business-False", "uninformed"), ("wrong-True", "against"), ("wrong-False", "uninformed"),
        ("business-again", "uninformed"), ("business-again", "uninformed"),
    ]  # fmt: skip


@pytest.mark.skipif(not RECORDED.is_file(), reason="no recorded conversations beside the checkout")
def test_the_recorded_conversations() -> None:
    """The figures of docs/archive/desks.md."""
    calls = [*changes_of(DESK, RECORDED)]
    rewarded = Counter(each.kind for each in calls if each.rewarded)
    others = Counter(each.kind for each in calls if not each.rewarded)
    missing = UNINFORMED.format("fine"), UNINFORMED.format("against a rule")
    assert rewarded == {FINE: 19, BOTH: 5, missing[0]: 3, missing[1]: 8}
    assert others == {
        FINE: 43, BOTH: 13, AGAINST: 10, missing[0]: 8, missing[1]: 11, "rejected by the tool": 3,
    }  # fmt: skip
    assert by_facts(RECORDED) == by_guard(RECORDED) and len(by_facts(RECORDED)) == 4
