"""The format, and scripted servers that take one form of it, several, or none."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.messages import BaseMessage

from rpms.models import constrain, open_model
from rpms.models.constrained import _servers, fits, reply_gbnf, reply_schema
from rpms.models.sim import SimPlanner
from rpms.prompts.reply import read_reply
from rpms.rules.world_manual import load_manual
from tests.openai_server import Answer, OpenAIServer

ACTIONS = ("go to {place}", "look")
WORDS = "Thought: Where?\nAction: go to fridge 1"
OBJECT = '{"thought": "Where?", "action": "go to fridge 1"}'
BABBLE = "I would like to dance."


def form_of(request: dict[str, Any]) -> str:
    if "grammar" in request:
        assert request["grammar"] == request["guided_grammar"]
        assert request["structured_outputs"] == {"grammar": request["grammar"]}
        return "grammar"
    return str(request.get("response_format", {}).get("type", "free"))


def server_that(
    takes: tuple[str, ...] = (), ignores: tuple[str, ...] = (), refusal: int = 400
) -> Callable[[dict[str, Any]], Answer]:
    """What it takes it obeys, what it ignores it answers freely, the rest it refuses."""

    def answer(request: dict[str, Any]) -> Answer:
        form = form_of(request)
        if form in takes:
            return Answer(WORDS if form == "grammar" else OBJECT)
        if form in (*ignores, "free"):
            return Answer(BABBLE)
        return Answer(status=refusal, error=f"unknown field {form}")

    return answer


names = itertools.count()
Ask = Callable[[], BaseMessage]


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    _servers.clear()
    yield
    _servers.clear()


@pytest.fixture
def model(openai_server: OpenAIServer) -> BaseChatModel:
    return open_model(
        f"openai:m{next(names)}", base_url=openai_server.url, allowed_syntaxes=ACTIONS
    )


@pytest.fixture(params=["sync", "async"])
def ask(request: pytest.FixtureRequest, model: BaseChatModel) -> Iterator[Ask]:
    if request.param == "sync":
        yield lambda: model.invoke("What now?")
        return
    with asyncio.Runner() as runner:
        yield lambda: runner.run(model.ainvoke("What now?"))


def forms_tried(server: OpenAIServer) -> list[str]:
    return [form_of(request) for request in server.requests]


@pytest.mark.parametrize(
    ("takes", "ignores", "refusal", "tried"),
    [
        # llama.cpp and vLLM take the grammar at once.
        (("grammar", "json_schema"), (), 400, ["grammar"]),
        # OpenAI knows no such field and says so.
        (("json_schema",), (), 400, ["grammar", "json_schema"]),
        # Ollama passes over a field that it does not know.
        (("json_schema",), ("grammar",), 400, ["grammar", "json_schema"]),
        # A server that breaks over a JSON schema, but takes an object with one.
        (("json_object",), ("grammar",), 500, ["grammar", "json_schema", "json_object"]),
    ],
)
def test_the_form_a_server_takes_is_found_and_remembered(
    takes: tuple[str, ...],
    ignores: tuple[str, ...],
    refusal: int,
    tried: list[str],
    ask: Ask,
    openai_server: OpenAIServer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    openai_server.plays_by(server_that(takes, ignores, refusal))
    expected = WORDS if tried[-1] == "grammar" else OBJECT
    assert ask().text == expected
    assert forms_tried(openai_server) == tried
    assert ask().text == expected
    assert forms_tried(openai_server) == [*tried, tried[-1]]
    assert caplog.messages == []


@pytest.mark.parametrize("ignores", [(), ("grammar", "json_schema", "json_object")])
def test_a_server_that_takes_none_is_left_free_with_one_warning(
    ignores: tuple[str, ...],
    ask: Ask,
    openai_server: OpenAIServer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    openai_server.plays_by(server_that((), ignores))
    for _ in range(3):
        assert ask().text == BABBLE
    assert forms_tried(openai_server) == [
        "grammar", "json_schema", "json_object", "free", "free", "free",
    ]  # fmt: skip
    (message,) = caplog.messages
    assert message.startswith("rpms: openai:m")
    assert openai_server.url in message
    assert message.endswith("; replies are not constrained")
    assert caplog.records[0].levelno == logging.WARNING


@pytest.mark.parametrize("status", [401, 429])
def test_other_faults_say_nothing_about_the_form(
    status: int, ask: Ask, openai_server: OpenAIServer
) -> None:
    openai_server.plays(Answer(status=status), WORDS)
    with pytest.raises(openai.APIStatusError):
        ask()
    assert ask().text == WORDS
    assert forms_tried(openai_server) == ["grammar", "grammar"]


BROKEN = Answer(status=500)
CUT = Answer("Thought: so many wo", finish="length")


@pytest.mark.parametrize(
    ("plays", "replies", "tried"),
    [
        # A server that fails in every way is asked anew next time.
        ([BROKEN] * 4 + [WORDS], [None, WORDS],
         ["grammar", "json_schema", "json_object", "free", "grammar"]),
        # A form that has worked is not given up for a fault.
        ([WORDS, BROKEN, WORDS], [WORDS, None, WORDS], ["grammar"] * 3),
        # A form that kept to the format by luck is found out.
        ([WORDS, BABBLE, OBJECT], [WORDS, OBJECT], ["grammar", "grammar", "json_schema"]),
        # A reply that was cut short is no proof either way.
        ([CUT, WORDS], ["Thought: so many wo", WORDS], ["grammar", "grammar"]),
    ],
)  # fmt: skip
def test_a_form_is_judged_by_what_comes_of_it(
    plays: list[Any],
    replies: list[str | None],
    tried: list[str],
    ask: Ask,
    openai_server: OpenAIServer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    openai_server.plays(*plays)
    for reply in replies:
        if reply is None:
            with pytest.raises(openai.InternalServerError):
                ask()
        else:
            assert ask().text == reply
    assert forms_tried(openai_server) == tried and caplog.messages == []


def test_the_constraint_is_part_of_what_the_response_cache_knows(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    openai_server.plays_by(server_that(("json_schema",), ("grammar",)))
    settings = {"base_url": openai_server.url, "cache": str(tmp_path / "replies.sqlite")}
    free = open_model("openai:kept", **settings)  # type: ignore[arg-type]
    held = open_model("openai:kept", allowed_syntaxes=ACTIONS, **settings)  # type: ignore[arg-type]
    assert free.invoke("What now?").text == BABBLE
    assert held.invoke("What now?").text == OBJECT
    asked = len(openai_server.requests)
    assert free.invoke("What now?").text == BABBLE
    assert held.invoke("What now?").text == OBJECT
    assert len(openai_server.requests) == asked


def test_a_client_that_cannot_carry_a_constraint_is_left_as_it_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model = constrain(FakeListChatModel(responses=[BABBLE]), ACTIONS)
    assert [model.invoke("?").text for _ in range(2)] == [BABBLE, BABBLE]
    assert len(caplog.messages) == 1
    assert constrain(model, ACTIONS) is model
    planner = SimPlanner()
    assert constrain(planner, ACTIONS) is planner


# The format itself

WORLDS = ("alfworld", "scienceworld")
HOME = ["go to {place}", "take {object} from {place}", "put {object} in/on {place}", "look"]


def syntaxes(world: str) -> list[str]:
    return [rule.syntax for rule in load_manual(world).actions]


def action_pattern(actions: list[str]) -> str:
    pattern: str = reply_schema(actions)["properties"]["action"]["pattern"]
    return pattern


def test_the_grammar_as_text() -> None:
    assert reply_gbnf(HOME).splitlines() == [
        'root ::= ("Thought: " thought "\\n")? "Action: " action',
        "thought ::= [ !#-9;-Z^-~]{1,240}",
        'action ::= "go to " name |',
        '  "take " name " from " name |',
        '  "put " name " in/on " name |',
        '  "look"',
        'name ::= word (" " word){0,7}',
        'word ::= [a-zA-Z]{1,20} ("-" [a-zA-Z]{1,20})? | [0-9]{1,3}',
    ]


KEPT = (
    "Action: look", "Thought: Where is it?\nAction: go to fridge 1",
    "Action: take mug 1 from coffee table 12\n", "Action: put mug 1 in/on desk 1",
    "Action: go to violet-red paint", '{"thought": "", "action": "look"}',
    '{"action": "take mug 1 from desk 1", "thought": "so: this"}',
)  # fmt: skip
NOT_KEPT = (
    "Action: go to b-b-b", "Action: go to desk -", "", "look", "Action: dance",
    "Action: look around", "Action: go to ", "Action: go to fridge 1.",
    "Action: go to fridge 1111", "Action: go to a b c d e f g h i", "Action: take mug 1",
    "Action: look\nAction: look", "Thought: a\nThought: b\nAction: look",
    "Thought: Action: look\nAction: look", '{"thought": "", "action": "dance"}',
    '{"thought": ""}', '["look"]', '{"action": "loo',
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "kept"), [*((text, True) for text in KEPT), *((text, False) for text in NOT_KEPT)]
)
def test_what_keeps_to_the_format(text: str, kept: bool) -> None:
    assert fits(text, HOME) is kept


# "then" separates actions for the reader; the grammar cannot leave out a single word.
WORD = st.one_of(
    st.from_regex(r"[a-zA-Z]{1,20}(-[a-zA-Z]{1,20})?", fullmatch=True).filter(
        lambda word: word != "then"
    ),
    st.from_regex(r"[0-9]{1,3}", fullmatch=True),
)
NAME = st.lists(WORD, min_size=1, max_size=8).map(" ".join)
THOUGHT = st.from_regex(r"[ !#-9;-Z^-~]{1,240}", fullmatch=True)


@pytest.mark.parametrize("world", WORLDS)
@settings(max_examples=25)
@given(data=st.data())
def test_whatever_the_grammar_allows_is_read_as_one_known_action(
    world: str, data: st.DataObject
) -> None:
    """The reader must see in a constrained reply exactly what the grammar put there."""
    rules = load_manual(world).actions
    chosen = data.draw(st.sampled_from(rules))
    action = chosen.syntax.format(**{name: data.draw(NAME) for name in chosen.parameters})
    thought = data.draw(THOUGHT)
    assert re.fullmatch(action_pattern(syntaxes(world)), action)
    for text in (
        f"Thought: {thought}\nAction: {action}",
        f"Action: {action}",
        json.dumps({"thought": thought, "action": action}),
    ):
        assert fits(text, syntaxes(world))
        read = read_reply(text, {rule.syntax.split()[0] for rule in rules}).action
        assert read == action
        assert chosen.pattern.match(read)
