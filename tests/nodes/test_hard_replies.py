"""Replies as no client expects them, sent by a real server through the real client."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rpms.envs import get_environment
from rpms.models.replies import MOST_TOKENS, TOKEN_CHARACTERS
from rpms.models.reply_cache import cached_replies
from rpms.nodes.state import EpisodeOutput
from tests.openai_server import Answer, OpenAIServer, reply_body

LONGEST = get_environment("alfworld").max_tokens * TOKEN_CHARACTERS
Run = Callable[..., EpisodeOutput]


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ("half \ud83d", "half \ufffd"),
        ("\udd25 half", "\ufffd half"),
        ("both \ud83d\udd25", "both 🔥"),
    ],
)
def test_half_a_character_is_marked_as_such(
    sent: str, read: str, play_online: Run, openai_server: OpenAIServer, tmp_path: Path
) -> None:
    openai_server.plays(Answer(f"Thought: {sent}\nAction: look"))
    for _ in range(2):  # the second time from the cache
        with cached_replies(str(tmp_path / "replies.sqlite")):
            result = play_online()
        assert result["error"] == "" and result["steps"] == 2
        assert [turn["thought"] for turn in result["history"]] == [read, read]
        assert json.dumps(result["history"], ensure_ascii=False).encode()
    assert len(openai_server.requests) == 2 == result["cache_hits"]


def test_half_a_character_in_an_error_can_be_kept(
    play_online: Run, openai_server: OpenAIServer
) -> None:
    openai_server.plays(Answer(status=400, error="cut \ud83d"))
    result = play_online()
    assert result["failure_mode"] == "model_error"
    assert result["error"].encode() and "cut" in result["error"]


def counted(spent: Any, written: Any, cached: Any = 0) -> Answer:
    body = reply_body(Answer())
    body["usage"] = {
        "prompt_tokens": spent, "completion_tokens": written, "total_tokens": spent,
        "prompt_tokens_details": {"cached_tokens": cached},
    }  # fmt: skip
    return Answer(raw=json.dumps(body).encode())


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (counted("100", "7", "3"), (100, 7, 3)),
        (counted(100.0, 7.9, 3.0), (100, 7, 3)),
        (counted(100, 7, "many"), (100, 7, 0)),
        (counted(100, 7, -4), (100, 7, 0)),
        (counted(100, 7, 5000), (100, 7, 100)),
        (counted("a hundred", 7), None),
        (counted(-100, 7), None),
        (counted(100, None), None),
        (counted(10**400, 7), None),
        (counted(MOST_TOKENS * 10, 7), None),
        (counted(float("nan"), 7), None),
        (counted([100], {"n": 7}), None),
    ],
)
def test_token_counts_that_are_no_numbers(
    answer: Answer,
    expected: tuple[int, int, int] | None,
    play_online: Run,
    openai_server: OpenAIServer,
) -> None:
    openai_server.plays(answer)
    result = play_online(max_steps=1)
    assert (result["failure_mode"], result["error"]) == ("timeout", "")
    assert len(openai_server.requests) == 1
    counts = (result["prompt_tokens"], result["output_tokens"], result["cached_tokens"])
    if expected:
        assert counts == expected
    else:
        assert counts[0] > 500 and 0 < counts[1] < 20 and counts[2] == 0, "estimated"


@pytest.mark.parametrize("usage", ['"much"', "[1, 2]", "7", '{"prompt_tokens_details": "x"}'])
def test_usage_of_another_shape(usage: str, play_online: Run, openai_server: OpenAIServer) -> None:
    body = reply_body(Answer(usage=None))
    openai_server.plays(Answer(raw=f'{json.dumps(body)[:-1]}, "usage": {usage}}}'.encode()))
    result = play_online(max_steps=1)
    assert (result["failure_mode"], result["error"]) == ("timeout", "")
    assert result["prompt_tokens"] > 500 and len(openai_server.requests) == 1


def test_five_megabytes_are_cut_off_and_counted(
    play_online: Run, openai_server: OpenAIServer, tmp_path: Path
) -> None:
    openai_server.plays("Action: look", "Thought: " + "on and on " * 500_000)
    for _ in range(2):
        with cached_replies(str(tmp_path / "replies.sqlite")):
            result = play_online(max_steps=4)
        assert (result["steps"], result["capped_replies"], result["format_errors"]) == (4, 3, 3)
    assert len(openai_server.requests) == 4 == result["cache_hits"]
    longest_reply = max(len(turn["reply"]) for turn in result["history"])
    assert 0 < longest_reply <= LONGEST
    longest = max(len(m["content"]) for r in openai_server.requests for m in r["messages"])
    assert longest <= LONGEST


def test_a_reply_of_its_full_length_is_not_cut(
    play_online: Run, openai_server: OpenAIServer
) -> None:
    reply = "Action: look\n"
    openai_server.plays(reply.ljust(LONGEST, "."))
    assert play_online(max_steps=1)["capped_replies"] == 0
    openai_server.plays(reply.ljust(LONGEST + 1, "."))
    assert play_online(max_steps=1)["capped_replies"] == 1
    assert play_online(max_steps=1, max_tokens=1000)["capped_replies"] == 0
