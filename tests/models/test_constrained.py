"""The format, and scripted servers that keep to it or do not."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import re
from collections.abc import Callable, Iterator
from typing import Any

import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.messages import BaseMessage

from rpms.envs.manuals import load_manual
from rpms.models import constrain, open_model
from rpms.models.constrained import _servers, fits, reply_schema
from rpms.models.sim import SimPlanner
from rpms.prompts.reply import read_reply
from tests.openai_server import Answer, OpenAIServer

ACTIONS = ("go to {place}", "look")
OBJECT = '{"thought": "Where?", "action": "go to fridge 1"}'
BABBLE = "I would like to dance."


def form_of(request: dict[str, Any]) -> str:
    return str(request.get("response_format", {}).get("type", "free"))


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


def test_a_server_that_takes_the_schema_is_always_asked_with_it(
    ask: Ask, openai_server: OpenAIServer, caplog: pytest.LogCaptureFixture
) -> None:
    openai_server.plays(OBJECT)
    assert [ask().text, ask().text] == [OBJECT, OBJECT]
    assert forms_tried(openai_server) == ["json_schema", "json_schema"]
    assert caplog.messages == []


@pytest.mark.parametrize("rejects", [0, 400, 500])
def test_a_server_without_schemas_is_left_free_with_one_warning(
    rejects: int, ask: Ask, openai_server: OpenAIServer, caplog: pytest.LogCaptureFixture
) -> None:
    """It rejects the field, or passes over it without a word."""

    def answer(request: dict[str, Any]) -> Answer:
        asked = form_of(request) != "free"
        return (
            Answer(status=rejects, error="unknown field") if asked and rejects else Answer(BABBLE)
        )

    openai_server.plays_by(answer)
    for _ in range(3):
        assert ask().text == BABBLE
    assert forms_tried(openai_server) == ["json_schema", "free", "free", "free"]
    (message,) = caplog.messages
    assert message.startswith("rpms: openai:m")
    assert openai_server.url in message
    assert message.endswith("; replies are not constrained")
    assert caplog.records[0].levelno == logging.WARNING


@pytest.mark.parametrize("status", [401, 429])
def test_other_faults_say_nothing_about_the_form(
    status: int, ask: Ask, openai_server: OpenAIServer
) -> None:
    openai_server.plays(Answer(status=status), OBJECT)
    with pytest.raises(openai.APIStatusError):
        ask()
    assert ask().text == OBJECT
    assert forms_tried(openai_server) == ["json_schema", "json_schema"]


BROKEN = Answer(status=500)
CUT = Answer('{"thought": "so many wo', finish="length")


@pytest.mark.parametrize(
    ("plays", "replies", "tried"),
    [
        # A server that fails in every way is asked anew next time.
        ([BROKEN] * 2 + [OBJECT], [None, OBJECT], ["json_schema", "free", "json_schema"]),
        # A schema that was kept to is not given up for a fault.
        ([OBJECT, BROKEN, OBJECT], [OBJECT, None, OBJECT], ["json_schema"] * 3),
        # A reply that was cut short is no proof either way.
        ([CUT, OBJECT], [CUT.text, OBJECT], ["json_schema"] * 2),
    ],
)  # fmt: skip
def test_the_schema_is_judged_by_the_replies(
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


KEPT = (
    "look", "go to fridge 1", "take mug 1 from coffee table 12", "put mug 1 in/on desk 1",
    "go to violet-red paint",
)  # fmt: skip
NOT_KEPT = (
    "go to b-b-b", "go to desk -", "", "dance", "look around", "go to ", "go to fridge 1.",
    "go to fridge 1111", "go to a b c d e f g h i", "take mug 1", "look\nlook",
)  # fmt: skip
NO_REPLIES = ("", "look", "Action: look", '{"thought": ""}', '["look"]', '{"action": "loo')


def test_what_keeps_to_the_format() -> None:
    for actions, kept in ((KEPT, True), (NOT_KEPT, False)):
        for action in actions:
            assert fits(json.dumps({"thought": "so: this", "action": action}), HOME) is kept, action
    assert not any(fits(text, HOME) for text in NO_REPLIES)


# "then" separates actions for the reader; a pattern cannot leave out a single word.
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
def test_whatever_the_schema_allows_is_read_as_one_known_action(
    world: str, data: st.DataObject
) -> None:
    """The reader must see in a constrained reply exactly what the schema put there."""
    rules = load_manual(world).actions
    chosen = data.draw(st.sampled_from(rules))
    action = chosen.syntax.format(**{name: data.draw(NAME) for name in chosen.parameters})
    thought = data.draw(THOUGHT)
    assert re.fullmatch(action_pattern(syntaxes(world)), action)
    text = json.dumps({"thought": thought, "action": action})
    assert fits(text, syntaxes(world))
    read = read_reply(text, {rule.syntax.split()[0] for rule in rules}).action
    assert read == action
    assert chosen.pattern.match(read)
