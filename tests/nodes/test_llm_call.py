"""Against a real OpenAI-compatible server: client, wire and retries are the real ones."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import httpx
import openai
import pytest
from langchain_core.language_models import BaseChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.runtime import ExecutionInfo, Runtime
from langgraph.types import RetryPolicy

from rpms.envs import Outcome, get_environment
from rpms.envs.manuals import load_manual
from rpms.graph import build_graph
from rpms.models.chat import allowed_syntaxes, call_s, open_chat
from rpms.models.constrained import ConstrainedModel
from rpms.models.openai_chat import GarbledReply
from rpms.models.retrying import (
    FIRST_TRIES,
    LONGEST_PAUSE_S,
    RETRY,
    backoff,
    is_transient,
    pause_before_retry,
    requested_pause,
)
from rpms.nodes.state import EpisodeOutput, EpisodeState
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from tests.openai_server import Answer, OpenAIServer
from tests.scripted_episode import put_underneath

Run = Callable[..., EpisodeOutput]


@pytest.fixture
def run(play_online: Run) -> Run:
    """Each episode with a model of its own."""
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


@pytest.mark.parametrize("status", [409, 429, 503])
def test_transient_errors_are_tried_again(
    status: int, run: Run, openai_server: OpenAIServer
) -> None:
    openai_server.plays(Answer(status=status), Answer(status=status), "Action: look")
    result = run(max_steps=1)
    assert len(openai_server.requests) == 3
    assert (result["failure_mode"], result["steps"]) == ("timeout", 1)
    assert (result["prompt_tokens"], result["output_tokens"]) == (100, 7)
    assert openai_server.requests[0]["messages"] == openai_server.requests[2]["messages"]


@pytest.mark.parametrize("status", [400, 401])
def test_lasting_errors_are_not(status: int, run: Run, openai_server: OpenAIServer) -> None:
    openai_server.plays("Action: look", Answer(status=status, error="not for you"))
    result = run(max_steps=5)
    assert len(openai_server.requests) == 2
    assert (result["failure_mode"], result["success"]) == ("model_error", False)
    assert result["steps"] == 1
    assert "not for you" in result["error"] and str(status) in result["error"]
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


@pytest.mark.parametrize(
    ("model", "words"),
    [("nonsense", "unknown model 'nonsense'"), ("openai:gpt-4o", "needs a key"),
     ("community:ChatFoo:x", "not installed|no chat model")],
)  # fmt: skip
def test_a_model_that_cannot_be_opened_raises_before_the_first_step(
    model: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No mean over ``success`` counts the caller's mistake as a lost episode."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(RpmsError, match=words):
        build_graph().invoke({"task": 0}, context=RunContext.for_condition("A", model=model))


def test_pages_of_nonsense_end_in_a_format_failure(run: Run, openai_server: OpenAIServer) -> None:
    openai_server.plays("I am sorry. " * 3000)
    result = run(max_steps=3)
    assert result["failure_mode"] == "format"
    assert result["format_errors"] == 3
    longest = max(len(m["content"]) for m in openai_server.requests[-1]["messages"])
    assert longest < 5000


NO_REPLIES = {
    "half JSON": Answer(raw=b'{"id": "x", "choices": [{"ind'),
    "HTML": Answer(raw=b"<html>busy</html>"),
    "nothing": Answer(raw=b""),
    "not UTF-8": Answer(raw=b"\xff\xfe\x00\x00"),
    "no choices": Answer(raw=b'{"id": "x", "choices": []}'),
    "error with 200": Answer(raw=b'{"error": {"message": "overloaded"}}'),
    "list": Answer(raw=b"[1, 2]"),
    "torn": Answer(torn=True),
    "reset": Answer(reset=True),
}


@pytest.mark.parametrize("answer", NO_REPLIES.values(), ids=NO_REPLIES)
def test_what_is_no_reply_is_asked_for_again(
    answer: Answer, run: Run, openai_server: OpenAIServer
) -> None:
    openai_server.plays(answer, answer, "Action: look")
    result = run(max_steps=1)
    assert len(openai_server.requests) == 3
    assert (result["failure_mode"], result["steps"]) == ("timeout", 1)


def test_the_server_says_how_long_to_wait(
    run: Run, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    clock = SimpleNamespace(sleep=pauses.append)
    monkeypatch.setattr(import_module("rpms.nodes.llm_call"), "time", clock)
    slow = Answer(status=429, headers={"Retry-After": "0.7"})
    openai_server.plays(slow, slow._replace(headers={"Retry-After": "12"}), "Action: look")
    assert run(max_steps=1)["steps"] == 1
    assert pauses == [0.7, 12]
    pauses.clear()
    openai_server.plays(Answer(status=429), Answer(status=429), "Action: look")
    assert run(max_steps=1)["steps"] == 1
    assert pauses == [0, 0]


@pytest.mark.parametrize("reply", ["", "   \n"])
def test_an_empty_reply_is_a_step_without_an_action(
    reply: str, run: Run, openai_server: OpenAIServer
) -> None:
    openai_server.plays(reply, "Action: look")
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


def status_error(kind: Any, status: int, body: Any = None, **headers: str) -> Any:
    request = httpx.Request("POST", "http://x")
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    response = httpx.Response(status, request=request, headers=names)
    return kind("slow down", response=response, body=body)


limited = partial(status_error, openai.RateLimitError, 429)


def raised_by(work: Callable[[], Any]) -> Exception:
    with pytest.raises(Exception) as caught:
        work()
    return caught.value


@pytest.mark.parametrize(
    ("error", "transient"),
    [
        (TimeoutError(), True),
        (ConnectionResetError(), True),
        (httpx.ReadTimeout("slow"), True),
        (openai.APITimeoutError(httpx.Request("POST", "http://x")), True),
        (openai.APIConnectionError(request=httpx.Request("POST", "http://x")), True),
        (limited(), True),
        (limited({"code": "rate_limit_exceeded"}), True),
        (limited({"code": "insufficient_quota"}), False),  # an empty account
        (status_error(openai.InternalServerError, 500), True),
        (status_error(openai.BadRequestError, 400), False),
        (status_error(openai.AuthenticationError, 401), False),
        (RpmsError("unknown model"), False),
        (RuntimeError("Event loop is closed"), True),
        (RuntimeError("bug"), False),
        (ValueError("bug"), False),
        (GarbledReply("no choices"), True),
        (raised_by(lambda: json.loads('{"choices": [')), True),
        (raised_by(lambda: b"\xff\xfe".decode()), True),
    ],
)
def test_what_counts_as_transient(error: Exception, transient: bool) -> None:
    assert is_transient(error) is transient


@pytest.mark.parametrize(
    ("header", "pause"),
    [("2", 2.0), ("0.5", 0.5), ("86400", LONGEST_PAUSE_S), ("-3", 0.0), ("soon", 0.0), ("", 0.0),
     ("nan", 0.0)],
)  # fmt: skip
def test_the_pause_a_server_asks_for(header: str, pause: float) -> None:
    assert requested_pause(limited(retry_after=header)) == pause
    assert requested_pause(limited()) == requested_pause(TimeoutError()) == 0


Pause = Callable[..., float]


@pytest.fixture
def pause(monkeypatch: pytest.MonkeyPatch) -> Pause:
    """How long is waited after so many tries of a call that began so many seconds ago."""

    def seconds(
        error: Exception, tries: int, answered: bool = True, began_ago: float = 0.0
    ) -> float:
        info = ExecutionInfo(
            checkpoint_id="", checkpoint_ns="", task_id="", node_attempt=tries,
            node_first_attempt_time=time.time() - began_ago,
        )  # fmt: skip
        runtime: Runtime[None] = Runtime(execution_info=info)
        monkeypatch.setattr("rpms.models.retrying.get_runtime", lambda: runtime)
        return pause_before_retry(error, answered)

    return seconds


def test_the_last_try_is_not_waited_after(pause: Pause) -> None:
    error = limited(retry_after="2")
    assert [pause(error, tries) for tries in (1, 3, 4, 11)] == [2.0] * 4 and is_transient(error)
    assert pause(error, RETRY.max_attempts) == 0
    assert not is_transient(error), "the error is marked, so that LangGraph does not go on either"
    assert pause(ValueError("bug"), 1) == 0


@pytest.mark.parametrize(
    ("tries", "seconds_ago", "answered", "again"),
    [
        (3, 0, False, True), (4, 0, False, False),  # a wrong address is soon told
        (4, 0, True, True), (11, 290, True, True), (11, 310, True, False), (12, 0, True, False),
        (3, 310, True, True),  # slow calls get their four tries too
    ],
)  # fmt: skip
def test_how_long_a_call_is_tried_again(
    tries: int, seconds_ago: int, answered: bool, again: bool, pause: Pause
) -> None:
    error = limited()
    pause(error, tries, answered, seconds_ago)
    assert is_transient(error) is again


def test_pauses_grow_up_to_a_limit() -> None:
    pauses = [backoff(tries) for tries in range(1, 13)]
    least = [min(0.25 * 2**n, RETRY.max_interval) for n in range(12)]
    assert all(low <= pause <= low + 1 for low, pause in zip(least, pauses, strict=True))
    assert len({backoff(1) for _ in range(5)}) > 1, "callers that failed together come back apart"


SERVER = RunContext(model="openai:small", base_url="http://127.0.0.1:9/v1")


@pytest.mark.parametrize("env", ["alfworld", "scienceworld"])
def test_the_world_sets_the_length_and_the_form_of_replies(env: str) -> None:
    """Unless the run does, and where it asks for a form, whatever is in the prompt."""
    usual: Any = open_chat(env, SERVER)
    assert usual.max_tokens == get_environment(env).max_tokens
    longer: Any = open_chat(env, SERVER.with_(max_tokens=77))
    assert longer.max_tokens == 77
    assert not isinstance(usual, ConstrainedModel) and allowed_syntaxes(env, SERVER) == ()
    for settings in ({"constrain": "grammar"}, {"guard": "procedure"}):
        for condition in ("A", "D"):
            held = open_chat(env, SERVER.under(condition).with_(**settings))
            assert isinstance(held, ConstrainedModel) and "inventory" in held.syntaxes
            assert held.syntaxes == [rule.syntax for rule in load_manual(env).actions]


@pytest.mark.parametrize(
    ("settings", "seconds"),
    [
        ({}, 60),
        ({"model": "openai:gpt-4"}, 60),
        ({"model": "local:smollm2"}, 600),
        ({"model": "local:smollm2", "timeout_s": 5.0}, 5),
    ],
)
def test_a_local_model_is_waited_for_longer(settings: dict[str, Any], seconds: float) -> None:
    assert call_s(RunContext(**settings)) == seconds


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
    chunks = app.stream({"task": 0}, context=context, stream_mode="messages")
    parts = [str(chunk.content) for chunk, _ in chunks]
    assert "".join(parts) == "Action: look"


def test_a_second_event_loop_can_use_the_same_model(run: Run, openai_server: OpenAIServer) -> None:
    """The client is kept between episodes; its connections belong to the loop that opened them."""
    context = RunContext.for_condition(
        "A", model="openai:kept", base_url=openai_server.url, max_steps=2
    )
    for plain in (False, False, True, False, True):
        app = build_graph()
        if plain:
            result = app.invoke({"task": 0}, context=context)
        else:
            result = asyncio.run(app.ainvoke({"task": 0}, context=context))
        assert (result["failure_mode"], result["steps"]) == ("timeout", 2)


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
        result = app.invoke({"task": 0}, context=context)
    else:
        result = asyncio.run(app.ainvoke({"task": 0}, context=context))
    assert result["error"] == ""
    assert [turn["action"] for turn in result["history"]] == ["look", "look"]
