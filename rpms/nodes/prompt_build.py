"""Stage 6: p_t = SysInst + ICL + R_active + gamma_g + b_t + M_arb + H_{1:t-1} + o_t (Eq. 7).

The baseline prompt is this prompt without the knowledge blocks, byte for byte: blocks are inserted
and change nothing else. An environment may order its blocks differently from the equation, as the
paper's listings do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, cast

from langchain_core.language_models import BaseChatModel

from rpms.envs import Environment, get_environment
from rpms.guard.procedure import applicable_actions
from rpms.nodes.state import EpisodeState, decision_point, knowledge_of, settings_of
from rpms.prompts.blocks import Blocks, knowledge_blocks, load_system, offered_actions, tokens
from rpms.prompts.context_budget import (
    check_length,
    fit,
    prompt_room,
    tokens_per_estimate,
)
from rpms.prompts.examples import (
    NEW_TASK,
    list_once,
    load_examples,
    short_examples,
    without_list,
)
from rpms.vocabulary.context import ALL_TURNS
from rpms.vocabulary.turn import Message, Turn

# A reply without an action can be pages of text; the history keeps this many characters.
REPLY_CHARACTERS = 400
# Guards that show the model the applicable actions of the sub-goal.
OFFERING = ("offer", "procedure")
# The number of actions a prompt offers: few enough to read, enough to leave a choice.
SHORTLIST = 6


def make_prompt_build(
    model: BaseChatModel | None = None,
) -> Callable[[EpisodeState], EpisodeState]:
    """Make the stage for a chat model; by default for the model that the settings name.

    The prompt stays within the context limit of that model.
    """
    # A server may see any number of different settings: the cache is bounded.
    room_of = lru_cache(maxsize=256)(partial(prompt_room, model=model))

    def prompt_build(state: EpisodeState) -> EpisodeState:
        """Read the outputs of the stages before; return the prompt as chat messages."""
        return _build(state, room_of(state["env"], settings_of(state)))

    return prompt_build


prompt_build = make_prompt_build()


def _build(state: EpisodeState, room: int) -> EpisodeState:
    env, context = get_environment(state["env"]), settings_of(state)
    blocks = knowledge_blocks(knowledge_of(state))
    opening, closing = arrange(blocks, context.layout, env)
    offering = context.guard in OFFERING
    choices = applicable_actions(decision_point(state))[:SHORTLIST] if offering else []
    # In either layout, the reason of the last rejection and the offered actions stand next to the
    # newest observation.
    closing.append(blocks.last_action)
    closing.append(offered_actions(env, choices))
    history, first = state["history"], state["first_observation"]
    choice = env.prompts, state["goal"]["type"], context.examples
    if context.turns_shown == ALL_TURNS:
        examples = load_examples(*choice)
    else:
        # The state block recaps the hidden turns.
        recapped = context.hidden_turns(len(history)) > 0
        examples, history = short_examples(*choice, env.rules), list_once(history, recapped)
        first = without_list(first) if recapped else first
    whole = _conversation(
        system=load_system(env.prompts, context.prompt_style),
        examples=examples,
        opening=[text for text in opening if text],
        first=first,
        history=history,
        closing=[text for text in closing if text],
    )
    usage = state.get("usage")
    scale = tokens_per_estimate(state.get("prompt", []), usage["prompt_tokens"] if usage else 0)
    hidden = context.hidden_turns(len(history))
    messages, dropped = fit(whole, len(history), int(room / scale), hidden)
    check_length(messages, room, scale)
    return EpisodeState(
        shortlist=choices,
        retries=0,
        prompt=cast(Any, messages),
        dropped_turns=dropped,
        knowledge_tokens=tokens([*opening, *closing]),
    )


def arrange(blocks: Blocks, layout: str, env: Environment) -> tuple[list[str], list[str]]:
    """Return the blocks that stand before the history, and those after it."""
    texts = {name: getattr(blocks, name) for name in env.blocks}
    # The rules never change and the history only grows, so a provider or a local server can reuse
    # the whole prefix of the previous step.
    opening = [texts.pop("rules")] if layout == "cache_friendly" else []
    return (opening, [*texts.values()]) if opening else ([*texts.values()], [])


def _conversation(
    *,
    system: str,
    examples: Sequence[Message],
    opening: Sequence[str],
    first: str,
    history: Sequence[Turn],
    closing: Sequence[str],
) -> list[Message]:
    """Return the system message, the examples as earlier turns, then the task's own turns.

    ``closing`` is printed right before the newest observation.
    """
    before = [examples[-1]["content"], NEW_TASK] if examples else []
    start = [*before, *opening, *([] if history else closing), first]
    messages: list[Message] = [
        {"role": "system", "content": system},
        *examples[:-1],
        {"role": "user", "content": "\n\n".join(start)},
    ]
    for turn in history:
        messages.append({"role": "assistant", "content": reply_of(turn)})
        messages.append({"role": "user", "content": turn["observation"]})
    if history and closing:
        messages[-1]["content"] = "\n\n".join((*closing, messages[-1]["content"]))
    return messages


def reply_of(turn: Turn) -> str:
    """Return a past turn in the reply format; a reply without an action is only shortened."""
    if not turn["action"]:
        return turn["reply"][:REPLY_CHARACTERS] or "(no reply)"
    if turn["thought"]:
        return f"Thought: {turn['thought']}\nAction: {turn['action']}"
    return f"Action: {turn['action']}"
