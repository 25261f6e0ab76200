"""Against scripted servers that take one form of the constraint, several, or none."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.messages import BaseMessage

from rpms.models import constrained, open_model
from rpms.models.constrained import form_in_use, hold
from rpms.models.sim import SimPlanner
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
    constrained.forget()
    yield
    constrained.forget()


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
        (("json_schema",), (), 422, ["grammar", "json_schema"]),
        # Ollama passes over a field that it does not know.
        (("json_schema",), ("grammar",), 400, ["grammar", "json_schema"]),
        # A server that breaks over a JSON schema, but takes an object with one.
        (("json_object",), ("grammar",), 500, ["grammar", "json_schema", "json_object"]),
        (("json_object",), (), 500, ["grammar", "json_schema", "json_object"]),
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


@pytest.mark.parametrize("status", [401, 403, 429, 503])
def test_other_faults_say_nothing_about_the_form(
    status: int, ask: Ask, openai_server: OpenAIServer
) -> None:
    openai_server.plays(Answer(status=status), WORDS)
    with pytest.raises(openai.APIStatusError):
        ask()
    assert ask().text == WORDS
    assert forms_tried(openai_server) == ["grammar", "grammar"]


def test_a_server_that_fails_in_every_way_is_asked_anew_next_time(
    ask: Ask, openai_server: OpenAIServer, caplog: pytest.LogCaptureFixture
) -> None:
    broken = Answer(status=500)
    openai_server.plays(broken, broken, broken, broken, WORDS)
    with pytest.raises(openai.InternalServerError):
        ask()
    assert ask().text == WORDS
    assert forms_tried(openai_server)[-1] == "grammar"
    assert caplog.messages == []


def test_a_form_that_has_worked_is_not_given_up_for_a_fault(
    ask: Ask, openai_server: OpenAIServer
) -> None:
    openai_server.plays(WORDS, Answer(status=500), WORDS)
    assert ask().text == WORDS
    with pytest.raises(openai.InternalServerError):
        ask()
    assert ask().text == WORDS
    assert forms_tried(openai_server) == ["grammar"] * 3


def test_a_form_that_kept_to_the_format_by_luck_is_found_out(
    ask: Ask, openai_server: OpenAIServer
) -> None:
    openai_server.plays(WORDS, BABBLE, OBJECT)
    assert ask().text == WORDS
    assert ask().text == OBJECT
    assert forms_tried(openai_server) == ["grammar", "grammar", "json_schema"]


def test_a_reply_that_was_cut_short_is_no_proof_either_way(
    ask: Ask, openai_server: OpenAIServer
) -> None:
    openai_server.plays(Answer("Thought: so many wo", finish="length"), WORDS)
    assert ask().text == "Thought: so many wo"
    assert ask().text == WORDS
    assert forms_tried(openai_server) == ["grammar", "grammar"]


def test_each_server_is_judged_for_itself(openai_server: OpenAIServer) -> None:
    one = open_model("openai:one", base_url=openai_server.url, allowed_syntaxes=ACTIONS)
    two = open_model("openai:two", base_url=openai_server.url, allowed_syntaxes=ACTIONS)
    openai_server.plays_by(
        lambda request: server_that(
            ("grammar",) if request["model"] == "one" else ("json_schema",)
        )(request)
    )
    assert one.invoke("?").text == WORDS
    assert two.invoke("?").text == OBJECT
    assert form_in_use(f"openai:one {openai_server.url}") == "grammar"
    assert form_in_use(f"openai:two {openai_server.url}") == "json_schema"


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


def test_usage_comes_through(model: BaseChatModel, openai_server: OpenAIServer) -> None:
    openai_server.plays(Answer(WORDS, usage=(321, 9)))
    reply = model.invoke("What now?")
    usage = reply.usage_metadata  # type: ignore[attr-defined]
    told = [usage[name] for name in ("input_tokens", "output_tokens", "total_tokens")]
    assert told == [321, 9, 330]


def test_a_client_that_cannot_carry_a_constraint_is_left_as_it_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model = hold(FakeListChatModel(responses=[BABBLE]), ACTIONS)
    assert [model.invoke("?").text for _ in range(2)] == [BABBLE, BABBLE]
    assert len(caplog.messages) == 1


def test_what_needs_no_holding() -> None:
    planner = SimPlanner()
    assert hold(planner, ACTIONS) is planner
    held = hold(FakeListChatModel(responses=[""]), ACTIONS)
    assert hold(held, ACTIONS) is held
