"""``rpms audit`` and what ``rules check`` says of tools, examples and policies."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool, tool

from rpms import Recorder
from rpms.envs import registry
from rpms.guard import RulesGuard
from tests.command_line import Rpms
from tests.guard.audited.world import NAME, TOOLS, WORLD


def conversation(*calls: tuple[str, dict[str, Any], str], **more: Any) -> str:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "My money back!"}]
    for number, (name, arguments, answer) in enumerate(calls):
        function = {"name": name, "arguments": json.dumps(arguments)}
        made = {"id": str(number), "type": "function", "function": function}
        messages += [{"role": "assistant", "content": None, "tool_calls": [made]},
                     {"role": "tool", "tool_call_id": str(number), "content": answer}]  # fmt: skip
    return json.dumps({**more, "messages": messages})


LOOK = ("get_order", {"order_id": "O1"}, '{"order_id": "O1", "total": 50, "status": "delivered"}')
PAY = ("refund", {"order_id": "O1", "usd": 50}, "done")
MUCH = ("refund", {"order_id": "O1", "usd": 500}, "done")
STOPPED = (*MUCH[:2], "refund(order_id='O1', usd=500) was not carried out [P-LIMIT]: too much.")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """One conversation of each kind, and a blank line."""
    lines = [conversation(LOOK, PAY, id="good"), "", conversation(LOOK, MUCH), conversation(PAY)]
    file = tmp_path / "log.jsonl"
    file.write_text("\n".join([*lines, conversation(LOOK, STOPPED, id=7)]), encoding="utf-8")
    return file


def test_every_call_is_a_line_of_json(rpms: Rpms, log: Path) -> None:
    done = rpms("audit", log, "--env", NAME, "--json")
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert done.code == 1 and done.err == ""
    keys = ("conversation", "call", "tool", "verdict", "rule", "reason", "rejected", "where")
    assert {tuple(row) for row in rows} == {keys}
    assert [(row["conversation"], row["call"], row["tool"], row["verdict"], row["rule"])
            for row in rows] == [
        ("good", 0, "get_order", "fine", ""), ("good", 1, "refund", "fine", ""),
        (3, 0, "get_order", "fine", ""), (3, 1, "refund", "against", "P-LIMIT"),
        (4, 0, "refund", "uninformed", "P-LIMIT"),
        (7, 0, "get_order", "fine", ""), (7, 1, "refund", "fine", "P-LIMIT"),
    ]  # fmt: skip


def test_people_read_what_is_not_fine_and_counts_by_rule(rpms: Rpms, log: Path) -> None:
    done = rpms("audit", log, "--env", NAME)
    told, uninformed, *table, total = done.out.splitlines()
    assert told.startswith(f"{log}:3: conversation 3, call 1: refund(order_id='O1', usd=500): ")
    assert ": against [P-LIMIT]: it needs" in told and ": uninformed [P-LIMIT]: " in uninformed
    assert table[-1].split() == ["P-LIMIT", "1", "1", "1"]
    assert total == ("4 conversations, 7 calls: 4 fine, 1 against a rule, 1 uninformed, "
                     "1 stopped by a guard")  # fmt: skip
    whole = rpms("audit", log, "--env", NAME, "--all")
    assert whole.out.count(": fine\n") == 4 and ": stopped [P-LIMIT]: " in whole.out


def test_the_exit_status_says_whether_something_was_broken(rpms: Rpms, tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    for line, code, strict in [
        (conversation(LOOK, PAY), 0, 0), (conversation(LOOK, MUCH), 1, 1),
        (conversation(PAY), 0, 1), (conversation(LOOK, STOPPED), 0, 0), ("", 0, 0),
    ]:  # fmt: skip
        file.write_text(line, encoding="utf-8")
        assert rpms("audit", file, "--env", NAME).code == code
        assert rpms("audit", file, "--env", NAME, "--strict").code == strict
    file.write_text(conversation(("wave", {}, "")), encoding="utf-8")
    assert rpms("audit", file, "--env", NAME).code == 1
    assert rpms("audit", file, "--env", NAME, "--unknown", "allow").code == 0


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "log.jsonl:2: not JSON: "),
        ("[]", "log.jsonl:2: no conversation; a line is one JSON object with 'messages'"),
        ('{"messages": [{}]}', "log.jsonl:2: message 0: unknown role null"),
    ],
)
def test_a_broken_line_is_named(rpms: Rpms, tmp_path: Path, line: str, words: str) -> None:
    file = tmp_path / "log.jsonl"
    lines = (conversation(LOOK, PAY), line, conversation(LOOK, MUCH))
    file.write_text("\n".join(lines), encoding="utf-8")
    done = rpms("audit", file, "--env", NAME)
    assert done.code == 2 and words in done.err and done.err.count("\n") == 1
    assert f"{file}:3: conversation 3, call 1: refund" in done.out, "the others are checked"
    assert done.out.splitlines()[-1].endswith("; unreadable: 1 line")


def test_a_tool_that_nobody_knows_and_an_answer_that_is_an_error_are_named_with_their_line(
    rpms: Rpms, tmp_path: Path
) -> None:
    """Also arguments that are no JSON; nothing passes in silence."""
    refused = (*PAY[:2], "Error: the arguments cannot be read")
    unreadable = conversation(refused).replace(json.dumps(json.dumps(PAY[1])), '"{order_id: O1"')
    failed = (*MUCH[:2], "Error: the order has no such amount")
    lines = [conversation(("wave", {}, "")), unreadable, conversation(LOOK, failed)]
    file = tmp_path / "log.jsonl"
    file.write_text("\n".join(lines), encoding="utf-8")
    done = rpms("audit", file, "--env", NAME)
    assert done.code == 1 and done.err == ""
    wave, pay, much = done.out.splitlines()[:3]
    assert wave.startswith(f"{file}:1: ") and "[unknown tool]" in wave
    assert pay.startswith(f"{file}:2: ") and "[unreadable arguments]" in pay
    assert pay.endswith(" (the tool rejected it)")
    assert much.startswith(f"{file}:3: ") and much.endswith(" (the tool rejected it)")
    assert done.out.splitlines()[-1].endswith("; the tools rejected 2")


def test_a_packed_log_reads_like_any_other(rpms: Rpms, log: Path) -> None:
    packed = log.with_suffix(".jsonl.xz")
    packed.write_bytes(lzma.compress(log.read_bytes()))
    plain, unpacked = (rpms("audit", file, "--env", NAME, "--json") for file in (log, packed))
    assert unpacked.code == 1 and unpacked.out == plain.out.replace(str(log), str(packed))
    for data in (packed.read_bytes()[:-20], b"{}", b""):
        packed.write_bytes(data)
        done = rpms("audit", packed, "--env", NAME)
        assert done.code == 2 and done.err.count("\n") == 1
        assert f"cannot read the log {packed}: not a whole xz file" in done.err


def test_what_cannot_be_audited_is_refused_in_a_line(rpms: Rpms, log: Path) -> None:
    for words in (["none.jsonl", "--env", NAME], [log.parent, "--env", NAME], [log],
                  [log, "--env", "nowhere"], [log, "--env", NAME, "--unknown", "ask"]):  # fmt: skip
        done = rpms("audit", *words)
        assert done.code == 2 and done.out == "" and done.err.count("\n") == 1


def test_no_simulator_is_needed(
    rpms: Rpms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "find_spec", lambda _: None)
    file = tmp_path / "log.jsonl"
    made = ("refuel_data", {"customer_id": "C1", "line_id": "L1", "gb_amount": 3.0}, "done")
    file.write_text(conversation(made), encoding="utf-8")
    done = rpms("audit", file, "--env", "telecom", "--json")
    assert (done.code, json.loads(done.out)["rule"]) == (1, "T-REFUEL")


class Scripted(GenericFakeChatModel):
    """A model that says what was written for it."""

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self


def replies(*calls: tuple[str, dict[str, Any]]) -> Iterator[AIMessage]:
    for number, (name, arguments) in enumerate(calls):
        yield AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": str(number)}])
    yield AIMessage("Done.")


@pytest.mark.parametrize("guarded", [True, False])
def test_a_folder_of_the_recorder(rpms: Rpms, tmp_path: Path, guarded: bool) -> None:
    """Arguments that no text could bring back are there as data."""
    odd = ("refund", {"order_id": "O1 usd=5", "usd": 3, "currency": "\n"})
    model = Scripted(messages=replies(LOOK[:2], MUCH[:2], odd, PAY[:2]))
    guard: list[Any] = [RulesGuard(WORLD)] if guarded else []
    agent = create_agent(model, TOOLS, middleware=[Recorder(NAME, tmp_path / "run"), *guard])
    agent.invoke({"messages": [("user", "My money back!")]})
    done = rpms("audit", tmp_path / "run", "--env", NAME, "--json")
    rows = [json.loads(line) for line in done.out.splitlines()]
    found = [(row["call"], row["verdict"], row["rule"]) for row in rows]
    if guarded:
        assert done.code == 0
        assert found == [(0, "fine", ""), (1, "fine", "P-LIMIT"), (2, "fine", "P-CURRENCY"),
                         (3, "fine", "")]  # fmt: skip
    else:
        assert done.code == 1
        assert found == [(0, "fine", ""), (1, "against", "P-LIMIT"), (2, "against", "P-CURRENCY"),
                         (3, "against", "P-ONCE")]  # fmt: skip


@tool
def refund(order_id: str, dollars: float, currency: str = "USD") -> str:
    """Pay money back."""
    return "done"


def test_rules_check_compares_the_tools_and_runs_examples(
    rpms: Rpms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert rpms("rules", "check", "--env", NAME).code == 0
    others: list[BaseTool] = [refund, *TOOLS[:2]]
    monkeypatch.setattr(type(WORLD), "tools", lambda self: others)
    done = rpms("rules", "check", "--env", NAME)
    assert (
        done.code == 2
        and "E-REFUND: the rules do not have the argument 'dollars' of 'refund'" in done.out
    )
    monkeypatch.undo()
    rule = '{id: P-NEW, action: refund, needs: ["at_most(usd, 9)"], refused: [{usd: 9}]}'
    (tmp_path / "environment.yaml").write_text(f"policy:\n\n- {rule}\n", encoding="utf-8")
    done = rpms("rules", "check", "--env", NAME, "--rules", tmp_path, "--json")
    (problem,) = json.loads(done.out)["problems"]
    assert (done.code, problem["line"], problem["rule"]) == (2, 3, "P-NEW")
    assert problem["problem"].endswith("refund(usd=9) is not against this rule")


def test_rules_check_lists_what_no_rule_cites(rpms: Rpms, tmp_path: Path) -> None:
    file = tmp_path / "policy.md"
    file.write_text("# Refunds\nAn order is refunded once.\n\nBe polite.\n", encoding="utf-8")
    done = rpms("rules", "check", "--env", NAME, "--policy", file)
    assert done.code == 0
    assert f"{file}:4: no rule cites: Be polite.\n" in done.out
    assert f"P-LIMIT: not in {file}: A refund is at most what the order cost.\n" in done.out
    assert done.out.endswith("2 sentences, 1 cited by a rule, 0 not checkable, 1 not cited\n")
    strict = rpms("rules", "check", "--env", NAME, "--policy", file, "--strict")
    assert strict.code == 2 and strict.out.count("Be polite.") == 1
    done = rpms("rules", "check", "--env", NAME, "--policy", file, "--json")
    policy = json.loads(done.out)["policy"]
    assert policy["uncited"] == [{"line": 4, "text": "Be polite."}] and policy["excused"] == []
    assert rpms("rules", "check", "--policy", file).err.endswith("name it with --env\n")


def test_the_policy_that_comes_with_a_desk_needs_no_path(rpms: Rpms) -> None:
    done = rpms("rules", "check", "--env", "airline", "--policy", "own")
    assert done.code == 0 and done.out.splitlines()[-1].endswith(
        "policy.md: 87 sentences, 42 cited by a rule, 45 not checkable, 0 not cited"
    )
    done = rpms("rules", "check", "--env", "alfworld", "--policy", "own")
    assert done.code == 2 and "alfworld comes without a policy; name a file" in done.err
