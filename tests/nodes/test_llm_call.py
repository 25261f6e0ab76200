"""Against a real OpenAI-compatible server: client, wire and retries are the real ones."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

import httpx
import openai
import pytest
from langchain_core.language_models import BaseChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.types import RetryPolicy

import rpms.graph.build
import rpms.nodes.llm_call
from rpms.envs import Outcome
from rpms.graph import build_graph
from rpms.nodes.retrying import FIRST_TRIES, RETRY, is_transient
from rpms.nodes.state import EpisodeOutput, EpisodeState
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from tests.nodes.conftest import put_underneath
from tests.openai_server import Answer, OpenAIServer

Run = Callable[..., EpisodeOutput]


@pytest.fixture
def run(play_online: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """With the real policy but shorter pauses, and each episode with a model of its own."""
    quick = RETRY._replace(initial_interval=0.01, max_interval=0.01, jitter=False)
    monkeypatch.setattr(rpms.graph.build, "RETRY", quick)
    names = itertools.count()
    return lambda *words, **settings: play_online(
        *words, **{"model": f"openai:scripted-{next(names)}", **settings}
    )


def test_replies_and_usage_are_recorded(run: Run, openai_server: OpenAIServer) -> None:
    openai_server.plays(
        Answer("Thought: Where?\nAction: look", usage=(300, 11)),
        Answer("Action: inventory", usage=(320, 5)),
    )
    result = run()
    assert [turn["action"] for turn in result["history"]] == ["look", "inventory"]
    assert result["history"][0]["thought"] == "Where?"
    assert (result["prompt_tokens"], result["output_tokens"]) == (620, 16)
    assert (result["failure_mode"], result["error"]) == ("timeout", "")
    assert len(openai_server.requests) == 2


def test_what_is_sent(run: Run, openai_server: OpenAIServer) -> None:
    run(max_steps=1)
    (sent,) = openai_server.requests
    assert sent["temperature"] == 0
    assert sent.get("max_tokens", sent.get("max_completion_tokens")) == 256
    assert sent["model"].startswith("scripted-")
    roles = [message["role"] for message in sent["messages"]]
    assert roles[:3] == ["system", "user", "assistant"]
    assert roles[-1] == "user"
    run(max_steps=1, max_tokens=9, temperature=0.5)
    sent = openai_server.requests[-1]
    assert sent.get("max_tokens", sent.get("max_completion_tokens")) == 9
    assert sent["temperature"] == 0.5


def test_missing_usage_is_estimated(run: Run, openai_server: OpenAIServer) -> None:
    openai_server.plays(Answer("Action: look", usage=None))
    result = run(max_steps=1)
    letters = sum(len(m["content"]) for m in openai_server.requests[0]["messages"])
    assert letters / 5 < result["prompt_tokens"] < letters / 3
    assert 0 < result["output_tokens"] < 20


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503])
def test_transient_errors_are_tried_again(
    status: int, run: Run, openai_server: OpenAIServer
) -> None:
    openai_server.plays(Answer(status=status), Answer(status=status), "Action: look")
    result = run(max_steps=1)
    assert len(openai_server.requests) == 3
    assert result["failure_mode"] == "timeout"
    assert result["steps"] == 1
    assert (result["prompt_tokens"], result["output_tokens"]) == (100, 7)
    assert openai_server.requests[0]["messages"] == openai_server.requests[2]["messages"]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_lasting_errors_are_not(status: int, run: Run, openai_server: OpenAIServer) -> None:
    openai_server.plays("Action: look", Answer(status=status, error="not for you"))
    result = run(max_steps=5)
    assert len(openai_server.requests) == 2
    assert result["failure_mode"] == "model_error"
    assert not result["success"]
    assert result["steps"] == 1
    assert "not for you" in result["error"]
    assert str(status) in result["error"]
    assert "\n" not in result["error"]


def test_it_gives_up_after_four_attempts(run: Run, openai_server: OpenAIServer) -> None:
    openai_server.plays(Answer(status=500, error="still broken"))
    result = run(max_steps=5)
    assert len(openai_server.requests) == FIRST_TRIES == 4
    assert result["failure_mode"] == "model_error"
    assert "still broken" in result["error"]
    assert result["steps"] == 0


def test_a_hanging_server_is_left_and_tried_again(run: Run, openai_server: OpenAIServer) -> None:
    openai_server.plays(Answer(wait=True), "Action: look")
    result = run(max_steps=1, timeout_s=0.4)
    # Not left, the first request would have been the only one. A busy machine may be late with
    # the answer to the second as well.
    assert 2 <= len(openai_server.requests) <= FIRST_TRIES
    assert result["failure_mode"] == "timeout"
    assert result["steps"] == 1


def test_a_server_that_always_hangs_is_a_model_error(run: Run, openai_server: OpenAIServer) -> None:
    openai_server.plays(Answer(wait=True))
    result = run(max_steps=1, timeout_s=0.2)
    assert len(openai_server.requests) == 4
    assert result["failure_mode"] == "model_error"
    assert "imeout" in result["error"]


def test_a_model_that_cannot_be_opened_is_a_model_error(
    run: Run, openai_server: OpenAIServer
) -> None:
    app = build_graph()
    result = app.invoke({}, context=RunContext.for_condition("A", model="nonsense"))
    assert result["failure_mode"] == "model_error"
    assert "unknown model 'nonsense'" in result["error"]


def test_pages_of_nonsense_end_in_a_format_failure(run: Run, openai_server: OpenAIServer) -> None:
    openai_server.plays("I am sorry. " * 3000)
    result = run(max_steps=3)
    assert result["failure_mode"] == "format"
    assert result["format_errors"] == 3
    longest = max(len(m["content"]) for m in openai_server.requests[-1]["messages"])
    assert longest < 5000


@pytest.mark.parametrize(
    "answer",
    [
        Answer(raw=b'{"id": "x", "choices": [{"ind'),
        Answer(raw=b"<html>busy</html>"),
        Answer(raw=b""),
        Answer(raw=b'{"id": "x", "choices": []}'),
        Answer(raw=b'{"error": {"message": "overloaded"}}'),
        Answer(raw=b"[1, 2]"),
        Answer(torn=True),
        Answer(reset=True),
    ],
    ids=["half JSON", "HTML", "nothing", "no choices", "error with 200", "list", "torn", "reset"],
)
def test_what_is_no_reply_is_asked_for_again(
    answer: Answer, run: Run, openai_server: OpenAIServer
) -> None:
    openai_server.plays(answer, answer, "Action: look")
    result = run(max_steps=1)
    assert len(openai_server.requests) == 3
    assert (result["failure_mode"], result["steps"]) == ("timeout", 1)
    openai_server.plays(answer)
    result = run(max_steps=1)
    assert len(openai_server.requests) == 4
    assert result["failure_mode"] == "model_error" and result["error"]


class LoopClock:
    """asyncio, whose pauses pass at once and are written down."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)


def test_the_server_says_how_long_to_wait(
    run: Run, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = LoopClock()
    monkeypatch.setattr(rpms.nodes.llm_call, "asyncio", clock)
    slow = Answer(status=429, headers={"Retry-After": "0.7"})
    openai_server.plays(slow, slow._replace(headers={"Retry-After": "12"}), "Action: look")
    assert run(max_steps=1)["steps"] == 1
    assert clock.pauses == [0.7, 12]
    clock.pauses.clear()
    openai_server.plays(Answer(status=429), Answer(status=429), "Action: look")
    assert run(max_steps=1)["steps"] == 1
    assert clock.pauses == [0, 0]


@pytest.mark.parametrize("said", ["", "   \n"])
def test_an_empty_reply_is_a_step_without_an_action(
    said: str, run: Run, openai_server: OpenAIServer
) -> None:
    openai_server.plays(said, "Action: look")
    result = run(max_steps=2)
    assert (result["steps"], result["format_errors"]) == (2, 1)
    assert len(openai_server.requests) == 2


def test_a_key_repeated_by_the_server_is_left_out(
    run: Run, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "planted-0123456789")
    openai_server.plays(Answer(status=401, error="you sent AUTHORIZATION"))
    result = run(max_steps=1)
    assert "you sent Bearer ***" in result["error"]
    assert openai_server.headers[0]["authorization"] == "Bearer planted-0123456789"
    openai_server.plays("Your key is planted-0123456789.")
    result = run(max_steps=1)
    assert result["history"][0]["reply"] == "Your key is ***."


def response(status: int) -> httpx.Response:
    return httpx.Response(status, request=httpx.Request("POST", "http://x"))


@pytest.mark.parametrize(
    ("error", "transient"),
    [
        (TimeoutError(), True),
        (ConnectionResetError(), True),
        (httpx.ReadTimeout("slow"), True),
        (openai.APITimeoutError(httpx.Request("POST", "http://x")), True),
        (openai.APIConnectionError(request=httpx.Request("POST", "http://x")), True),
        (openai.RateLimitError("429", response=response(429), body=None), True),
        (openai.InternalServerError("500", response=response(500), body=None), True),
        (openai.BadRequestError("400", response=response(400), body=None), False),
        (openai.AuthenticationError("401", response=response(401), body=None), False),
        (openai.NotFoundError("404", response=response(404), body=None), False),
        (RpmsError("unknown model"), False),
        (RuntimeError("Event loop is closed"), True),
        (RuntimeError("bug"), False),
        (ValueError("bug"), False),
        (KeyError("bug"), False),
    ],
)
def test_what_counts_as_transient(error: Exception, transient: bool) -> None:
    assert is_transient(error) is transient


def test_the_policy_is_on_the_model_stage_alone() -> None:
    stages = build_graph().builder.nodes
    assert [name for name, node in stages.items() if node.retry_policy] == ["llm_call"]
    assert isinstance(RETRY, RetryPolicy)
    assert RETRY.retry_on is is_transient


@pytest.mark.usefixtures("run")
def test_tokens_can_be_watched_as_they_come() -> None:
    """LangGraph's own message streaming sees the model, in a synchronous run too."""
    model = GenericFakeChatModel(messages=iter([AIMessage("Action: look")]))
    app = build_graph(model=model)
    context = RunContext.for_condition("A", max_steps=1)
    parts = [
        str(chunk.content) for chunk, _ in app.stream({}, context=context, stream_mode="messages")
    ]
    assert "".join(parts) == "Action: look"


def test_a_second_event_loop_can_use_the_same_model(run: Run, openai_server: OpenAIServer) -> None:
    """The client is kept between episodes; its connections belong to a loop that is gone."""
    context = RunContext.for_condition(
        "A", model="openai:kept", base_url=openai_server.url, max_steps=2
    )
    for _ in range(3):
        result = asyncio.run(build_graph().ainvoke({}, context=context))
        assert result["failure_mode"] == "timeout"
        assert result["steps"] == 2


class OneKind(BaseChatModel):
    """A model that offers only one kind of call."""

    kind: str

    @property
    def _llm_type(self) -> str:
        return "one-kind"

    def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
        if self.kind != "sync":
            raise NotImplementedError
        return self._reply()

    async def _agenerate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
        if self.kind != "async":
            return await super()._agenerate(messages, *args, **kwargs)
        return self._reply()

    def _reply(self) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage("Action: look"))])


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("played", ["sync", "async"])
def test_a_model_may_offer_only_one_kind_of_call(
    kind: str,
    played: str,
    monkeypatch: pytest.MonkeyPatch,
    play_script: Callable[..., list[EpisodeState]],
) -> None:
    play_script("A", script=[])
    put_underneath(monkeypatch, play=lambda *_: Outcome("Nothing happens.", False, False, 0.0))
    app = build_graph(model=OneKind(kind=kind))
    context = RunContext.for_condition("A", max_steps=2)
    if played == "sync":
        result = app.invoke({}, context=context)
    else:
        result = asyncio.run(app.ainvoke({}, context=context))
    assert result["error"] == ""
    assert [turn["action"] for turn in result["history"]] == ["look", "look"]
