"""Stage 7: a_t = LLM(p_t). The only stage that may be slow, retried or timed out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.config import ContextThreadPoolExecutor
from langgraph.runtime import Runtime, get_runtime

from rpms.envs import live as episodes
from rpms.models import hold
from rpms.models.response_cache import REPLAYED
from rpms.nodes.chat import open_chat
from rpms.nodes.context import RunContext, settings
from rpms.nodes.reply_grammar import held_now, held_to
from rpms.nodes.retrying import RETRY, asked_pause, is_transient, will_retry
from rpms.nodes.state import EpisodeState
from rpms.vocabulary.secrets import redact, redact_known
from rpms.vocabulary.turn import Usage

# Calls are made from here so that a synchronous run can give up on one that hangs; the context
# goes with them, so that token streaming and tracing see the call.
_calls = ContextThreadPoolExecutor(max_workers=64, thread_name_prefix="model-call")

_KINDS: dict[str, type[BaseMessage]] = {
    "system": SystemMessage, "user": HumanMessage, "assistant": AIMessage
}  # fmt: skip
KEPT_OPEN = 64
__all__ = ["RETRY", "is_transient", "make_async_llm_call", "make_llm_call", "read_usage"]


def make_llm_call(
    model: BaseChatModel | None = None,
) -> RunnableLambda[EpisodeState, EpisodeState]:
    """The stage for one chat model, or for whichever the context names.

    Reads the prompt; returns the reply and the tokens it cost, or ends the episode with a
    model error. Both a synchronous and an asynchronous form are offered, so that neither kind
    of run blocks the other's way of working.
    """
    answer = make_async_llm_call(model)

    def call(state: EpisodeState) -> EpisodeState:
        runtime = get_runtime(RunContext)
        context = settings(runtime.context)
        try:
            chat = _held(model, state, context) if model else open_chat(state["env"], context)
            future = _calls.submit(_ask, chat, _messages(state), held_now(state, context))
            reply = future.result(timeout=context.patience_s)
        except FutureTimeout:
            return _give_up(state, runtime, TimeoutError(f"no reply in {context.patience_s:g} s"))
        except Exception as error:  # every client raises its own kinds
            if will_retry(runtime, error):
                time.sleep(asked_pause(error))
            return _give_up(state, runtime, error)
        return _record(state, reply)

    async def acall(state: EpisodeState) -> EpisodeState:
        return await answer(state, get_runtime(RunContext))

    return RunnableLambda(call, afunc=acall, name="llm_call")


def _ask(chat: BaseChatModel, messages: list[BaseMessage], held: dict[str, Any]) -> BaseMessage:
    """A synchronous call; a model that offers only the other kind gets a loop of its own."""
    try:
        return chat.invoke(messages, **held)
    except NotImplementedError:
        return asyncio.run(chat.ainvoke(messages, **held))


def make_async_llm_call(
    model: BaseChatModel | None = None, cache: str = ""
) -> Callable[[EpisodeState, Runtime[RunContext]], Awaitable[EpisodeState]]:
    """The asynchronous form alone; ``cache`` names a file of replies that need no new call."""
    opened: dict[tuple[str, RunContext], BaseChatModel] = {}

    async def llm_call(state: EpisodeState, runtime: Runtime[RunContext]) -> EpisodeState:
        context = settings(runtime.context)
        try:
            key = state["env"], context
            chat = _held(model, state, context) if model else opened.get(key)
            if chat is None:
                # Opening a client imports it and reads certificates: not on the event loop.
                chat = await asyncio.to_thread(open_chat, state["env"], context, cache)
                if len(opened) >= KEPT_OPEN:  # a server may see any number of settings
                    opened.clear()
                opened[key] = chat
            async with asyncio.timeout(context.patience_s):
                reply = await chat.ainvoke(_messages(state), **held_now(state, context))
        except TimeoutError:
            late = TimeoutError(f"no reply in {context.patience_s:g} s")
            return await asyncio.to_thread(_give_up, state, runtime, late)
        except Exception as error:  # every client raises its own kinds
            if will_retry(runtime, error):
                await asyncio.sleep(asked_pause(error))
            return await asyncio.to_thread(_give_up, state, runtime, error)
        return _record(state, reply)

    return llm_call


def _held(model: BaseChatModel, state: EpisodeState, context: RunContext) -> BaseChatModel:
    """A model object of the caller's own, held to the format if the run asks for that."""
    syntaxes = held_to(state["env"], context)
    return hold(model, syntaxes) if syntaxes else model


def _messages(state: EpisodeState) -> list[BaseMessage]:
    """The prompt as LangChain's own message objects."""
    return [_KINDS[message["role"]](content=message["content"]) for message in state["prompt"]]


def _record(state: EpisodeState, reply: BaseMessage) -> EpisodeState:
    usage = read_usage(state, reply)
    return EpisodeState(
        reply=redact_known(str(reply.text)),
        usage=usage,
        prompt_tokens=state["prompt_tokens"] + usage["prompt_tokens"],
        output_tokens=state["output_tokens"] + usage["output_tokens"],
        cached_tokens=state["cached_tokens"] + usage["cached_tokens"],
        model_calls=state["model_calls"] + (not usage["replayed"]),
        cache_hits=state["cache_hits"] + usage["replayed"],
    )


def read_usage(state: EpisodeState, reply: BaseMessage) -> Usage:
    """Token counts come from the provider; where it reports none they are estimated."""
    # A reply from the cache carries what LangChain adds to it even if it never had any counts.
    told: Mapping[str, Any] = (isinstance(reply, AIMessage) and reply.usage_metadata) or {}
    spent, written = told.get("input_tokens"), told.get("output_tokens")
    details = told.get("input_token_details") or {}
    return Usage(
        prompt_tokens=count_tokens_approximately(_messages(state)) if spent is None else spent,
        cached_tokens=int(details.get("cache_read") or 0),
        output_tokens=count_tokens_approximately([reply]) if written is None else written,
        replayed=bool(reply.response_metadata.get(REPLAYED)),
    )


def _give_up(state: EpisodeState, runtime: Runtime[RunContext], error: Exception) -> EpisodeState:
    """Let the retry policy try again while that may help, else end the episode and say why.

    A model error is never counted as a failure of the agent.
    """
    if will_retry(runtime, error):
        raise error
    episodes.finish(state["episode_id"], state["spec"])
    text = redact(str(error).splitlines()[0]) if str(error) else ""
    return EpisodeState(
        failure_mode="model_error", error=f"{type(error).__name__}: {text}", done=True
    )
