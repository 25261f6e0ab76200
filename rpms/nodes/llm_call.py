"""Stage 7: a_t = LLM(p_t), the only stage with retries and a timeout."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.errors import NodeError

from rpms.envs import live as episodes
from rpms.models import constrain
from rpms.models.chat import allowed_syntaxes, call_s, open_chat, reply_tokens
from rpms.models.replies import CAPPED, REPLAYED, fault_line, normalize_reply
from rpms.models.retrying import pause_before_retry, wait_for, within
from rpms.nodes.state import EpisodeState, commands_of, manual_of, settings_of
from rpms.prompts.reply import read_action
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.error_place import place_of
from rpms.vocabulary.errors import ModelFault, RpmsError
from rpms.vocabulary.turn import Usage


class OpenModel(NamedTuple):
    """The model of a run, with the limits of a call."""

    chat: BaseChatModel
    timeout_s: float
    max_tokens: int


def make_llm_call(model: BaseChatModel | None = None) -> Runnable[EpisodeState, EpisodeState]:
    """Make the stage for a chat model; by default it opens the model that the settings name.

    The stage reads the prompt and returns the reply, its thought and action, and its token usage.
    Errors are raised: LangGraph's retry policy calls the stage again, and ``model_failed`` ends the
    episode when retries are used up. The time limit of a call is a setting of the run, so the stage
    applies it; LangGraph's node timeout is fixed when the graph is built.
    """
    answered: set[tuple[str, str]] = set()

    # A server may see any number of different settings: the cache is bounded.
    @lru_cache(maxsize=64)
    def open_model(env: str, context: RunContext) -> OpenModel:
        chat = model or open_chat(env, context)
        if model and (syntaxes := allowed_syntaxes(env, context)):
            chat = constrain(model, syntaxes)
        return OpenModel(chat, call_s(context), reply_tokens(env, context))

    def arguments(state: EpisodeState, context: RunContext) -> dict[str, Any]:
        trace = _trace(state, context, model.get_name() if model else context.model)
        return {"input": state["prompt"], "config": trace, **_choices(state, context)}

    def pause(error: Exception, context: RunContext) -> float:
        return pause_before_retry(error, (context.model, context.base_url) in answered)

    def llm_call(state: EpisodeState) -> EpisodeState:
        context = settings_of(state)
        try:
            opened = open_model(state["env"], context)
            call = partial(_call, opened.chat)
            reply = wait_for(opened.timeout_s, call, **arguments(state, context))
        except Exception as error:  # every client raises its own kinds
            time.sleep(pause(error, context))
            raise
        answered.add((context.model, context.base_url))
        return _record(state, context, reply, opened.max_tokens)

    async def allm_call(state: EpisodeState) -> EpisodeState:
        context = settings_of(state)
        try:
            # Opening a model imports and reads certificates: not on the event loop.
            opened = await asyncio.to_thread(open_model, state["env"], context)
            call = opened.chat.ainvoke(**arguments(state, context))
            reply = await within(opened.timeout_s, call)
        except Exception as error:
            await asyncio.sleep(pause(error, context))
            raise
        answered.add((context.model, context.base_url))
        return await asyncio.to_thread(_record, state, context, reply, opened.max_tokens)

    # The only stage that waits for a network: on an event loop many episodes wait at once.
    return RunnableLambda(llm_call, allm_call, name="llm_call")


llm_call = make_llm_call()


def _choices(state: EpisodeState, context: RunContext) -> dict[str, Any]:
    """With guard ``procedure``, constrain the reply to the shortlist."""
    if context.guard != "procedure" or not state["shortlist"]:
        return {}
    return {"choices": [choice["action"] for choice in state["shortlist"]]}


def _call(chat: BaseChatModel, **arguments: Any) -> AIMessage:
    try:
        return chat.invoke(**arguments)
    except NotImplementedError:  # a model that has only the asynchronous call
        return asyncio.run(chat.ainvoke(**arguments))


def _trace(state: EpisodeState, context: RunContext, model: str) -> RunnableConfig:
    """Return the tags and metadata of a call, for LangSmith and other callbacks."""
    step = state["steps"] + 1
    metadata = {
        "world": state["env"],
        "split": state["split"],
        "task": state["task_id"],
        "step": step,
        "condition": context.name,
        "model": model,
    }
    return {"run_name": f"step {step}", "tags": [state["env"], context.name], "metadata": metadata}


def model_failed(state: EpisodeState, error: NodeError) -> EpisodeState:
    """End the episode with a ``model_error``, which never counts as a failure of the agent.

    A mistake of the caller, such as an unknown model or a missing key, is raised instead.
    """
    episodes.finish(state["episode_id"], state["spec"])
    if isinstance(error.error, RpmsError) and not state["model_calls"]:
        raise ModelFault(str(error.error)) from error.error
    return EpisodeState(
        failure_mode="model_error",
        error=fault_line(error.error),
        error_place=place_of(error.error, error.node),
        done=True,
    )


def _record(
    state: EpisodeState, context: RunContext, raw: AIMessage, max_tokens: int
) -> EpisodeState:
    reply = normalize_reply(raw, max_tokens)
    usage = read_usage(state, reply)
    manual = manual_of(state) if context.rules else commands_of(state)
    thought, action = read_action(reply.text, state["env"], manual)
    return EpisodeState(
        reply=reply.text,
        thought=thought,
        action=action,
        usage=usage,
        prompt_tokens=state["prompt_tokens"] + usage["prompt_tokens"],
        output_tokens=state["output_tokens"] + usage["output_tokens"],
        cached_tokens=state["cached_tokens"] + usage["cached_tokens"],
        model_calls=state["model_calls"] + (not usage["replayed"]),
        cache_hits=state["cache_hits"] + usage["replayed"],
        capped_replies=state["capped_replies"] + bool(reply.response_metadata.get(CAPPED)),
    )


def read_usage(state: EpisodeState, reply: AIMessage) -> Usage:
    """Return the token counts that the provider reports, or estimates if it reports none."""
    reported: Mapping[str, Any] = reply.usage_metadata or {}
    if reported:
        spent, written = reported["input_tokens"], reported["output_tokens"]
    else:
        spent = count_tokens_approximately(state["prompt"])
        written = count_tokens_approximately([reply])
    return Usage(
        prompt_tokens=spent,
        cached_tokens=reported.get("input_token_details", {}).get("cache_read", 0),
        output_tokens=written,
        replayed=bool(reply.response_metadata.get(REPLAYED)),
    )
