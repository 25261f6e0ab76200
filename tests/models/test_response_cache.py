from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration

from rpms.models import open_model
from rpms.models.response_cache import REPLAYED, ResponseCache, default_file
from rpms.vocabulary.errors import RpmsError
from tests.openai_server import OpenAIServer

ROOT = Path(__file__).resolve().parents[2]


def reply(text: str) -> list[Any]:
    usage: Any = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
    return [ChatGeneration(message=AIMessage(text, usage_metadata=usage))]


def test_a_reply_comes_back_marked(tmp_path: Path) -> None:
    cache = ResponseCache(tmp_path / "deep" / "r.sqlite", {"model": "m"})
    assert cache.lookup("p", "whatever") is None
    cache.update("p", "whatever", reply("Action: look"))
    found = cache.lookup("p", "another string of the client's own")
    assert found is not None
    message = found[0].message  # type: ignore[attr-defined]
    assert message.content == "Action: look" and message.usage_metadata["input_tokens"] == 5
    assert message.response_metadata == {REPLAYED: True}
    assert cache.lookup("q", "whatever") is None
    cache.update("p", "", reply("something else"))
    assert cache.lookup("p", "")[0].text == "Action: look"  # type: ignore[index]
    cache.clear()
    assert cache.lookup("p", "") is None


async def ask(url: str, file: Path, **settings: Any) -> AIMessage:
    options: dict[str, Any] = {"base_url": url, "cache": str(file), **settings}
    answer = await open_model(options.pop("name", "openai:m"), **options).ainvoke("Where am I?")
    return answer


async def test_only_what_decides_a_reply_is_part_of_the_key(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    file = tmp_path / "r.sqlite"
    first = await ask(openai_server.url, file)
    again = await ask(openai_server.url, file, timeout_s=5.0)  # another client, the same question
    assert len(openai_server.requests) == 1
    assert REPLAYED not in first.response_metadata and again.response_metadata[REPLAYED]
    assert again.content == first.content
    assert again.usage_metadata is not None and again.usage_metadata["input_tokens"] == 100
    changes: list[dict[str, Any]] = [
        {"name": "openai:n"}, {"temperature": 0.5}, {"max_tokens": 9}, {"seed": 3}
    ]  # fmt: skip
    for number, change in enumerate(changes, start=2):
        await ask(openai_server.url, file, **change)
        assert len(openai_server.requests) == number, change
    await ask(openai_server.url.replace("127.0.0.1", "localhost"), file)
    assert len(openai_server.requests) == 6


WRITER = """
import sys
from pathlib import Path
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration
from rpms.models.response_cache import ResponseCache
cache = ResponseCache(Path(sys.argv[1]), {"model": "m"})
for number in range(150):
    cache.update(f"{sys.argv[2]} {number}", "", [ChatGeneration(message=AIMessage(sys.argv[2]))])
    assert cache.lookup(f"{sys.argv[2]} {number}", "") is not None
"""


def test_several_processes_write_at_once(tmp_path: Path) -> None:
    file = tmp_path / "r.sqlite"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(file), str(n)], cwd=ROOT)
        for n in range(3)
    ]
    assert [writer.wait(300) for writer in writers] == [0, 0, 0]
    cache = ResponseCache(file, {"model": "m"})
    for n in range(3):
        for number in range(150):
            found = cache.lookup(f"{n} {number}", "")
            assert found is not None and found[0].text == str(n)


def test_where_it_lies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("RPMS_RESPONSE_CACHE", "RPMS_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert default_file() == Path.home() / ".cache" / "rpms" / "responses.sqlite"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_file() == tmp_path / "rpms" / "responses.sqlite"
    monkeypatch.setenv("RPMS_RESPONSE_CACHE", str(tmp_path / "mine.sqlite"))
    assert default_file() == tmp_path / "mine.sqlite"


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "r.sqlite").write_text("nonsense " * 100)
    with pytest.raises(RpmsError, match=r"cannot use the response cache .*--no-cache"):
        ResponseCache(tmp_path / "r.sqlite", {})
