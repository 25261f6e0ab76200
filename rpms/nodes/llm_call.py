"""Stage 7: a_t = LLM(p_t). The only stage that may be slow, retried or timed out."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.runnables import RunnableConfig
from langgraph.errors import NodeError
from langgraph.runtime import Runtime

from rpms.envs import live as episodes
from rpms.models import constrain
from rpms.models.replies import CAPPED, fault_line, normalize_reply
from rpms.models.response_cache import REPLAYED
from rpms.nodes.chat import allowed_syntaxes, call_s, choices_of, open_chat, reply_tokens
from rpms.nodes.manual import known_manual
from rpms.nodes.reply import read_action
from rpms.nodes.retrying import pause_before_retry, within
from rpms.nodes.stage import Stage, compute, in_plain_run
from rpms.nodes.state import EpisodeState
from rpms.vocabulary.context import RunContext, settings
from rpms.vocabulary.error_place import place_of
from rpms.vocabulary.turn import Usage


def make_llm_call(model: BaseChatModel | None = None, reply_cache: str = "") -> Stage:
    """The stage for one chat model, or for whichever the context names.

    Reads the prompt; returns the reply, its action and the tokens it cost. What goes wrong is
    raised: the retry policy tries again while that may help, and then ``model_failed`` ends the
    episode. LangGraph's own node timeout is not used: it is fixed when the graph is built, and how
    long a call may take is a setting of the run.

    ``reply_cache`` names a file of replies that need no new call.
    """
    answered: set[tuple[str, str]] = set()

    # Once for each kind of run, of which a server may see any number.
    @lru_cache(maxsize=64)
    def find(env: str, context: RunContext) -> BaseChatModel:
        if model is None:
            return open_chat(env, context, reply_cache)
        syntaxes = allowed_syntaxes(env, context)
        return constrain(model, syntaxes) if syntaxes else model

    async def llm_call(state: EpisodeState, runtime: Runtime[RunContext]) -> EpisodeState:
        env, context = state["env"], settings(runtime.context)
        server = (context.model, context.base_url)
        trace = _trace(state, context, model.get_name() if model else context.model)
        try:
            # Opening imports and reads certificates: not on the loop.
            chat = await asyncio.to_thread(find, env, context)
            answer = partial(_call_plainly, chat) if in_plain_run() else chat.ainvoke
            call = answer(state["prompt"], trace, **choices_of(state, context))
            reply = await within(call_s(context), call)
        except Exception as error:  # every client raises its own kinds
            await asyncio.sleep(pause_before_retry(runtime, error, server in answered))
            raise
        answered.add(server)
        normal = normalize_reply(reply, reply_tokens(env, context))
        return await compute(partial(_record, normal), state, runtime)

    return Stage("llm_call", llm_call)


llm_call = make_llm_call()


def _trace(state: EpisodeState, context: RunContext, model: str) -> RunnableConfig:
    """What a call is found by in LangSmith, or in any other callback."""
    step = state["steps"] + 1
    about = {"world": state["env"], "split": state["split"], "task": state["task_id"], "step": step}
    about |= {"condition": context.name, "model": model}
    return {"run_name": f"step {step}", "tags": [state["env"], context.name], "metadata": about}


async def _call_plainly(
    chat: BaseChatModel, prompt: Any, trace: RunnableConfig, **choices: Any
) -> AIMessage:
    """The model's synchronous call, unless it has only the other."""
    try:
        return await asyncio.to_thread(chat.invoke, prompt, trace, **choices)
    except NotImplementedError:
        return await chat.ainvoke(prompt, trace, **choices)


def model_failed(state: EpisodeState, error: NodeError) -> EpisodeState:
    """End the episode and say why; a model error is never counted as a failure of the agent."""
    episodes.finish(state["episode_id"], state["spec"])
    return EpisodeState(
        failure_mode="model_error",
        error=fault_line(error.error),
        error_place=place_of(error.error, error.node),
        done=True,
    )


def _record(reply: AIMessage, state: EpisodeState, runtime: Runtime[RunContext]) -> EpisodeState:
    usage = read_usage(state, reply)
    manual = known_manual(state["env"], settings(runtime.context))
    return EpisodeState(
        reply=reply.text,
        action=read_action(reply.text, state["env"], manual).action,
        usage=usage,
        prompt_tokens=state["prompt_tokens"] + usage["prompt_tokens"],
        output_tokens=state["output_tokens"] + usage["output_tokens"],
        cached_tokens=state["cached_tokens"] + usage["cached_tokens"],
        model_calls=state["model_calls"] + (not usage["replayed"]),
        cache_hits=state["cache_hits"] + usage["replayed"],
        capped_replies=state["capped_replies"] + bool(reply.response_metadata.get(CAPPED)),
    )


def read_usage(state: EpisodeState, reply: AIMessage) -> Usage:
    """Token counts come from the provider; where it reports none they are estimated."""
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
