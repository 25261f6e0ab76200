"""The desk that ``rpms worlds new NAME --tools`` writes: it runs at once, and its guard holds."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from langgraph.types import Command

import rpms.commands.desk_template as template
from rpms.commands.desk_template import agent, world
from rpms.guard import Call
from tests.examples.conftest import Shell

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(str(template.__file__)).parent
POLICY = (FOLDER / "policy.md").read_text(encoding="utf-8")
RULES = yaml.safe_load((FOLDER / "rules" / "environment.yaml").read_text(encoding="utf-8"))


def python(words: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, *words.split()], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done
    return done.stdout


def test_a_new_desk_runs_at_once_where_it_was_written(tmp_path: Path, shell: Shell) -> None:
    written = shell("rpms worlds new kiosk --tools", tmp_path)
    next_steps = re.findall(r": (\w+ .+)$", written.out, re.M)
    assert written.code == 0 and next_steps == [
        "python -m kiosk.agent",
        "rpms audit kiosk.jsonl --env kiosk",
        "rpms rules check --env kiosk --policy kiosk/policy.md",
        "python -m pytest kiosk",
    ]
    files = {path.relative_to(tmp_path).as_posix(): path.read_text(encoding="utf-8")
             for path in tmp_path.rglob("*.*")}  # fmt: skip
    assert files.keys() == {
        "kiosk/__init__.py", "kiosk/agent.py", "kiosk/policy.md", "kiosk/test_kiosk.py",
        "kiosk/world.py", "kiosk/rules/domain.yaml", "kiosk/rules/environment.yaml",
    }  # fmt: skip
    assert not [path for path, text in files.items() if "template" in text]
    checked = shell("rpms rules check --env kiosk", tmp_path)
    assert checked.code == 0 and re.search(r"problems\n.*\n.* 0\n", checked.out), checked
    printed = python("-m kiosk.agent", tmp_path)
    stopped = re.findall(r"^stopped .* was not carried out \[(P-\w+)\]", printed, re.M)
    assert stopped == ["P-VERIFIED", "P-TOTAL", "P-ONCE", "P-LARGE"]
    assert re.findall(r"^asked .*\[(P-\w+)\]", printed, re.M) == ["P-LARGE"]
    assert printed.count("\nanswer ") == 4 and "Paid: [('O1', 60.0)]." in printed
    failure = python("-m kiosk.agent --unguarded", tmp_path)
    assert "stopped" not in failure and "('O1', 500), ('O1', 60), ('O1', 40), ('O2', 80)" in (
        failure.replace(".0", "")
    )
    tested = python("-m pytest -q -p no:cacheprovider kiosk", tmp_path)
    assert "7 passed" in tested


def test_the_conversation_is_recorded_in_the_format_of_openai(tmp_path: Path, shell: Shell) -> None:
    shell("rpms worlds new kiosk --tools", tmp_path)
    for _ in range(2):
        python("-m kiosk.agent", tmp_path)
    conversations = [*map(json.loads, (tmp_path / "kiosk.jsonl").read_text().splitlines())]
    assert len(conversations) == 2
    messages = conversations[0]["messages"]
    calls = [call for message in messages for call in message.get("tool_calls", ())]
    assert [call["function"]["name"] for call in calls] == [call.tool for call in agent.SCRIPT]
    assert [message["tool_call_id"] for message in messages if message["role"] == "tool"] == [
        call["id"] for call in calls
    ]


def test_every_rule_cites_a_sentence_of_the_policy_and_every_sentence_has_one() -> None:
    sentences = [line for line in POLICY.splitlines() if line and not line.startswith("#")]
    assert len(sentences) == 6
    assert [rule["source"] for rule in RULES["policy"]] == sentences


def test_the_page_shows_the_files_and_rules_that_are_written() -> None:
    page = (ROOT / "docs" / "guard-your-agent.md").read_text(encoding="utf-8")
    written = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.*")}
    shown = {
        *re.findall(r"^  (\S+)  +\S", page.partition("\ndesk/\n")[2].partition("```")[0], re.M)
    }
    assert shown == {path.replace("desk_template", "desk") for path in written
                     if not path.endswith((".pyc", "__init__.py"))}  # fmt: skip
    sections = [
        section
        for block in re.findall(r"^```yaml\n(.*?)^```", page, re.S | re.M)
        for section in yaml.safe_load(block).items()
    ]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (rule,) = re.findall(r"^```yaml\n(.*?)^```", readme, re.S | re.M)
    for section, rules in [*sections, ("policy", yaml.safe_load(rule))]:
        known = {rule["id"]: rule for rule in RULES[section]}
        assert all({**known[rule["id"]], **rule} == known[rule["id"]] for rule in rules), rules


LARGE = [*agent.SCRIPT[1:3], *agent.SCRIPT[4:5], *agent.SCRIPT[6:]]
EDITED = {"name": "refund", "args": {**agent.CLAIM, "order_id": "O2", "usd": 40}}
TOO_MUCH = {"name": "refund", "args": {**agent.CLAIM, "order_id": "O2", "usd": 400}}


@pytest.mark.parametrize(
    ("answer", "paid"),
    [
        ({"type": "approve"}, [80]),
        ({"type": "edit", "edited_action": EDITED}, [40]),
        ({"type": "edit", "edited_action": TOO_MUCH}, []),  # no person is above the other rules
        ({"type": "reject"}, []),
        ("no idea", []),
    ],
)
def test_a_large_refund_is_paid_as_a_person_says(answer: Any, paid: list[int]) -> None:
    world.PAID.clear()
    desk, thread = agent.make_agent(agent.scripted(LARGE)), {"configurable": {"thread_id": "1"}}
    state = desk.invoke({"messages": [("user", agent.REQUEST)]}, thread)
    assert [question.value["rule"] for question in state["__interrupt__"]] == ["P-LARGE"]
    desk.invoke(Command(resume=answer), thread)
    assert [("O1", 60), *(("O2", usd) for usd in paid)] == world.PAID


def examples(kind: str) -> list[Any]:
    return [
        pytest.param(example, id=f"{rule['id']}-{place}")
        for rule in RULES["policy"]
        for place, example in enumerate(rule.get(kind, ()))
    ]


@pytest.mark.parametrize("example", examples("allowed"))
def test_calls_that_the_rules_allow_are_carried_out(example: Any) -> None:
    """Through the real tools, whose answers are those of the examples."""
    world.PAID.clear()
    calls = [Call(past["tool"], past["arguments"]) for past in example["after"]]
    model = agent.scripted([*calls, Call("refund", example["arguments"])])
    agent.make_agent(model).invoke({"messages": [("user", "")]}, {"configurable": {"thread_id": 1}})
    assert [(example["arguments"]["order_id"], example["arguments"]["usd"])] == world.PAID
