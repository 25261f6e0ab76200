from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from itertools import cycle
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, convert_to_messages
from langchain_core.messages.utils import count_tokens_approximately

from rpms.envs import get_environment
from rpms.evals.running.episode import play_job
from rpms.evals.running.plan import Job
from rpms.graph import build_graph
from rpms.nodes import make_prompt_build
from rpms.nodes.state import EpisodeState
from rpms.prompts.context_budget import GROUP_SIZE, LAST_TURNS, estimate, fit, left_out, prompt_room
from rpms.vocabulary.context import CONTEXT_TOKENS, RunContext
from rpms.vocabulary.errors import ModelFault, RpmsError
from rpms.vocabulary.turn import Message, Turn
from tests.openai_server import Answer, serving
from tests.scripted_episode import under

Play = Callable[..., list[EpisodeState]]
LAYOUTS = ["paper", "cache_friendly"]
words = st.text("abcdefgh \n", min_size=1, max_size=300)


def tokens(messages: list[Message]) -> int:
    return count_tokens_approximately(convert_to_messages([dict(m) for m in messages]))


def conversation(head: list[str], turns: list[tuple[str, str]]) -> list[Message]:
    """System, an example that ends with the task, then the turns."""
    messages = [Message(role="system", content=head[0])]
    for number, text in enumerate(head[1:]):
        messages.append(Message(role="assistant" if number % 2 else "user", content=text))
    for reply, seen in turns:
        messages.append(Message(role="assistant", content=reply))
        messages.append(Message(role="user", content=seen))
    return messages


heads = st.lists(words, min_size=2, max_size=6).filter(lambda head: len(head) % 2 == 0)


@settings(max_examples=40)
@given(heads, st.lists(st.tuples(words, words), max_size=16), st.floats(0.05, 1.1))
def test_it_fits_unless_what_must_stay_is_too_long(
    head: list[str], turns: list[tuple[str, str]], share: float
) -> None:
    whole = conversation(head, turns)
    check_fit(head, turns, max(1, int(tokens(whole) * share)))
    assert fit(whole, len(turns), 0) == (whole, 0), "without a limit nothing changes"
    assert sum(map(estimate, whole)) == tokens(whole)


def check_fit(head: list[str], turns: list[tuple[str, str]], room: int) -> None:
    """Everything that is promised about one trimmed prompt."""
    whole = conversation(head, turns)
    fitted, dropped = fit(whole, len(turns), room)
    start = len(head)
    assert 0 <= dropped <= len(turns)
    assert tokens(fitted) <= room or dropped == len(turns)
    # Whole turns from the oldest, in order; everything before and the newest observation stay.
    assert fitted[start:] == whole[start + 2 * dropped :]
    assert fitted[: start - 1] == whole[: start - 1]
    mark = f"\n\n{left_out(dropped)}" if dropped else ""
    newest = f"\n\n{whole[-1]['content']}" if turns and dropped == len(turns) else ""
    assert fitted[start - 1]["content"] == whole[start - 1]["content"] + mark + newest
    assert [m["role"] for m in fitted[1::2]] == ["user"] * len(fitted[1::2])
    assert [m["role"] for m in fitted[2::2]] == ["assistant"] * len(fitted[2::2])
    # Nothing is dropped without need, and no more than a group too much; of the last turns, none.
    if dropped:
        assert tokens(whole) > room
        group = GROUP_SIZE if dropped <= len(turns) - LAST_TURNS else 1
        fewer = whole[:start] + whole[start + 2 * max(0, dropped - group) :]
        assert tokens(fewer) + 12 > room


def test_the_mark_counts_turns() -> None:
    assert left_out(1) == "[... 1 earlier turn left out ...]"
    assert left_out(12) == "[... 12 earlier turns left out ...]"


def long_state(play_script: Play, condition: str, layout: str) -> EpisodeState:
    state = play_script(condition, layout=layout)[-1]
    more = [
        Turn(step=n, thought=f"Thought number {n}.", action=f"go to place {n}",
             observation=f"You arrive at place {n}. " + "On it, you see nothing. " * 4,
             failed=False, reply="")
        for n in range(1, 31)
    ]  # fmt: skip
    return {**state, "history": more}


def build(state: EpisodeState, condition: str, layout: str, limit: int) -> EpisodeState:
    context = RunContext.for_condition(condition, layout=layout)
    before = {**under(state, context), "prompt": [], "usage": None}
    return make_prompt_build(narrow(limit))(cast(EpisodeState, before))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("condition", ["A", "D"])
def test_task_rules_knowledge_and_last_turns_stay(
    condition: str, layout: str, play_script: Play
) -> None:
    state = long_state(play_script, condition, layout)
    whole = build(state, condition, layout, 0)
    assert whole["dropped_turns"] == 0
    limit = tokens(whole["prompt"]) * 4 // 5 + 256
    cut = build(state, condition, layout, limit)
    dropped = cut["dropped_turns"]
    assert 0 < dropped < 27
    assert tokens(cut["prompt"]) <= (limit - 256) * 0.9
    fixed = len(whole["prompt"]) - 60
    assert cut["prompt"][: fixed - 1] == whole["prompt"][: fixed - 1]
    assert cut["prompt"][fixed - 1]["content"] == (
        f"{whole['prompt'][fixed - 1]['content']}\n\n{left_out(dropped)}"
    )
    assert state["first_observation"] in cut["prompt"][fixed - 1]["content"]
    assert cut["prompt"][fixed:] == whole["prompt"][fixed + 2 * dropped :]
    assert cut["knowledge_tokens"] == whole["knowledge_tokens"]
    alone = [*whole["prompt"][:fixed], whole["prompt"][-1]]
    tight = build(state, condition, layout, tokens(alone) + 280)
    assert tight["dropped_turns"] == 30 and tight["prompt"][: fixed - 1] == alone[: fixed - 1]
    assert tight["prompt"][-1]["content"].endswith(state["history"][-1]["observation"])
    with pytest.raises(ModelFault, match=r"about \d+ tokens without any earlier turn"):
        build(state, condition, layout, tokens(alone) * 4 // 5 + 256)


def test_the_beginning_stays_the_same_for_a_few_steps(play_script: Play) -> None:
    state = long_state(play_script, "A", "cache_friendly")
    limit = tokens(build(state, "A", "cache_friendly", 0)["prompt"]) * 4 // 5 + 256
    counts = []
    for length in range(20, 31):
        shorter = EpisodeState(**{**state, "history": state["history"][:length]})
        counts.append(build(shorter, "A", "cache_friendly", limit)["dropped_turns"])
    assert counts == sorted(counts) and counts[-1] > 0
    assert len(set(counts)) < len(counts) / 2


def test_the_limit_of_a_named_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """The setting, or what the model states if that is less; the setting alone if it does not."""
    monkeypatch.setenv("OPENAI_API_KEY", "none-needed")
    reply = get_environment("alfworld").max_tokens
    usual = int((CONTEXT_TOKENS - reply) * 0.9)
    unknown, named = RunContext(model="openai:unheard-of"), RunContext(model="openai:gpt-4")
    assert prompt_room("alfworld", RunContext()) == usual
    assert prompt_room("alfworld", RunContext(context_tokens=0)) == 0
    assert prompt_room("alfworld", unknown) == usual
    assert prompt_room("alfworld", unknown.with_(context_tokens=0)) == 0
    assert prompt_room("alfworld", named) == int((8192 - reply) * 0.9)
    assert prompt_room("alfworld", named.with_(context_tokens=0)) == int((8192 - reply) * 0.9)
    assert prompt_room("alfworld", named.with_(context_tokens=5000)) == int((5000 - reply) * 0.9)
    assert prompt_room("alfworld", RunContext(max_tokens=96), narrow(4096)) == 3600
    monkeypatch.delenv("OPENAI_API_KEY")
    assert prompt_room("alfworld", named.with_(max_tokens=77)) == int((CONTEXT_TOKENS - 77) * 0.9)


@pytest.mark.parametrize(
    ("listed", "limit"),
    [
        ([{"id": "m", "object": "model", "max_model_len": 9000}], 9000),  # vLLM, SGLang
        ([{"id": "/path/m.gguf", "meta": {"n_ctx": 4096, "n_ctx_train": 8192}}], 4096),  # llama.cpp
        ([{"id": "m"}, {"id": "n", "max_model_len": 9000}], CONTEXT_TOKENS),
        ([{"id": "m", "max_model_len": "much", "meta": "none"}], CONTEXT_TOKENS),
        ([], CONTEXT_TOKENS),
        (None, CONTEXT_TOKENS),
    ],
)
def test_a_server_states_the_limit_in_its_list_of_models(
    listed: list[dict[str, Any]] | None, limit: int
) -> None:
    with serving() as server:
        server.models = listed
        context = RunContext(model="openai:m", base_url=server.url)
        assert prompt_room("alfworld", context) == int((limit - 256) * 0.9)


@pytest.mark.engine
@pytest.mark.xdist_group("jvm")
@pytest.mark.parametrize("stated", [True, False])
async def test_the_baseline_of_scienceworld_may_look_around_for_ever(stated: bool) -> None:
    """No prompt is above the limit, even if the server counts more tokens than the estimate."""
    limit, steps, counts = 7000, 90, list[int]()

    def reply(request: dict[str, Any]) -> Answer:
        counts.append(int(1.4 * tokens(request["messages"])))
        if counts[-1] > limit - 512:
            return Answer(status=400, error=f"maximum context length is {limit} tokens")
        texts = [message["content"] for message in request["messages"]]
        looked = [mark for mark in ("left out ...]",) if mark in "".join(texts)]
        assert len(counts) < steps or looked
        action = "look around" if len(counts) > 1 else "teleport to kitchen"
        return Answer(f"Thought: {'I wonder. ' * 12}\nAction: {action}", usage=(counts[-1], 40))

    task = get_environment("scienceworld").tasks("train_mini", 1)[0]
    with serving() as server:
        server.models = [{"id": "m", "max_model_len": limit}] if stated else None
        server.plays_by(reply)
        context = RunContext.for_condition("A", model="openai:m", base_url=server.url)
        context = context.with_(max_steps=steps, context_tokens=0 if stated else limit)
        line, _ = await play_job(build_graph(), Job("A", task), context, False)
    assert (line.steps, line.failure_mode, line.error) == (steps, "timeout", "")
    assert len(counts) == steps and max(counts) > 0.7 * limit


async def test_a_prompt_that_cannot_be_shortened_is_a_failure_of_the_model_once() -> None:
    task = get_environment("alfworld").tasks("generated_unseen", 1)[0]
    graph = build_graph(model=narrow(600))
    line, _ = await play_job(graph, Job("D", task), RunContext.for_condition("D"), False)
    assert (line.steps, line.model_calls, line.failure_mode) == (0, 0, "model_error")
    assert "raise context_tokens" in line.error and "\n" not in line.error


def test_a_context_smaller_than_the_reply_is_refused() -> None:
    with pytest.raises(RpmsError, match=r"256 tokens has no space .* reply of 256"):
        prompt_room("alfworld", RunContext(), narrow(256))


class Narrow(GenericFakeChatModel):
    """A model object that says how much it can read."""

    @property
    def _llm_type(self) -> str:
        return "narrow"


def narrow(limit: int) -> Narrow:
    model = Narrow(messages=cycle([AIMessage("Action: look")]))
    model.profile = {"max_input_tokens": limit}
    return model


@pytest.mark.engine
async def test_a_model_object_says_its_own_limit_and_the_log_what_was_dropped() -> None:
    task = get_environment("alfworld").tasks("generated_unseen", 4)[3]
    context = RunContext.for_condition("A", max_steps=14)
    free = build_graph(model=narrow(0))
    line, _ = await play_job(free, Job("A", task), context, False)
    assert line.steps == 14
    limit = 256 + int(line.prompt_tokens / 14 / 0.9)
    graph = build_graph(model=narrow(limit))
    _, packed = await play_job(graph, Job("A", task), context, False)
    log: dict[str, Any] = json.loads(gzip.decompress(packed))
    counts = [step["dropped_turns"] for step in log["steps"]]
    assert counts[0] == 0 < counts[-1] == max(counts)
    last = [log["messages"][place] for _, place in log["steps"][-1]["prompt"]]
    assert sum(left_out(counts[-1]) in text for text in last) == 1
