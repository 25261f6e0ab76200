"""``--cache FILE``: replies of an earlier run in LangChain's cache."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langchain_core.globals import get_llm_cache

from rpms.models import forget_models, open_model
from rpms.models.replies import REPLAYED, normalize_reply
from rpms.models.reply_cache import ReplyCache, cached_replies
from rpms.vocabulary.errors import RpmsError
from tests.openai_server import Answer, OpenAIServer

ACTIONS = ("take {object} from {place}",)
REPLY = '{"thought": "", "action": "take mug 1 from desk 2"}'


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    file = tmp_path / "replies.sqlite"
    with cached_replies(str(file)):
        yield file
    assert get_llm_cache() is None


@pytest.mark.usefixtures("file")
@pytest.mark.parametrize(
    ("prompt", "changed", "is_asked"),
    [
        ("look around", {}, False),
        ("look elsewhere", {}, True),
        ("look around", {"name": "openai:other"}, True),
        ("look around", {"seed": 7}, True),
        ("look around", {"max_tokens": 9}, True),
        ("look around", {"allowed_syntaxes": ACTIONS}, True),
        ("look around", {"temperature": 0.5}, True),
    ],
)
async def test_everything_that_is_sent_decides_which_reply_is_used(
    openai_server: OpenAIServer, prompt: str, changed: dict[str, Any], is_asked: bool
) -> None:
    openai_server.plays(Answer(REPLY, usage=(100, 7)))
    given: dict[str, Any] = {"name": "openai:m", "base_url": openai_server.url}
    open_model(**given).invoke("look around")
    forget_models()
    reply = await open_model(**(given | changed)).ainvoke(prompt)
    assert len(openai_server.requests) == 1 + is_asked
    read = normalize_reply(reply, 256)
    assert bool(read.response_metadata.get(REPLAYED)) is not is_asked
    assert read.text == REPLY and read.usage_metadata is not None
    assert read.usage_metadata["input_tokens"] == 100


@pytest.mark.usefixtures("file")
async def test_the_syntaxes_and_choices_of_constrained_replies_are_part_of_the_key(
    openai_server: OpenAIServer,
) -> None:
    openai_server.plays(REPLY)
    for expected, syntaxes, choices in (
        (1, ACTIONS, ()),
        (1, ACTIONS, ()),
        (2, (*ACTIONS, "look"), ()),
        (3, ACTIONS, ("take mug 1 from desk 2",)),
    ):
        model = open_model("openai:m", base_url=openai_server.url, allowed_syntaxes=syntaxes)
        await model.ainvoke("look around", choices=choices)
        assert len(openai_server.requests) == expected


def test_the_file_is_shared_and_holds_no_key(
    openai_server: OpenAIServer, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "planted without shape")
    url = openai_server.url.replace("://", "://me:planted-pass@") + "?api-key=planted-parameter"
    openai_server.plays("planted without shape, planted-pass, planted-parameter. Action: look")
    with ThreadPoolExecutor(8) as pool:
        model = open_model("openai:m", base_url=url)
        replies = list(pool.map(lambda number: model.invoke(f"look {number % 4}"), range(64)))
    assert len(replies) == 64
    kept = file.read_bytes()
    assert b"Action: look" in kept and b"planted" not in kept
    asked = len(openai_server.requests)
    ReplyCache(str(file)).clear()
    model.invoke("look 1")
    assert len(openai_server.requests) == asked + 1


def test_a_file_that_is_no_database_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database " * 100)
    for file in (tmp_path / "text", tmp_path, tmp_path / "absent" / "file"):
        with pytest.raises(RpmsError, match=f"^cannot use {file} as the cache of replies: .+$"):
            ReplyCache(str(file))
