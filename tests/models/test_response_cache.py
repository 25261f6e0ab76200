from __future__ import annotations

import asyncio
import itertools
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.load import dumps
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.tracers import BaseTracer, Run

from rpms import RunContext, build_graph
from rpms.models import open_model
from rpms.models.cached import CachedModel, question_of
from rpms.models.local import weight_stamps
from rpms.models.response_cache import REPLAYED, ResponseCache
from rpms.vocabulary.errors import RpmsError
from tests.models import gguf_files
from tests.openai_server import Answer, OpenAIServer, serving

ROOT = Path(__file__).resolve().parents[2]


def reply(text: str) -> AIMessage:
    usage: Any = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
    return AIMessage(text, usage_metadata=usage)


@pytest.mark.parametrize("damaged", ['{"cont', "[]", '"text"', "{}", '{"content": 1, "usage": 2}'])
def test_a_reply_comes_back_marked_unless_it_is_damaged(tmp_path: Path, damaged: str) -> None:
    cache = ResponseCache(tmp_path / "deep" / "r.sqlite", {"model": "m"})
    assert cache.lookup("p") is None
    cache.update("p", reply("Action: look"))
    found = cache.lookup("p")
    assert found is not None and found.usage_metadata is not None
    assert found.text == "Action: look" and found.usage_metadata["input_tokens"] == 5
    assert found.response_metadata == {REPLAYED: True}
    assert cache.lookup("q") is None
    cache.update("no usage", AIMessage("Action: look"))
    uncounted = cache.lookup("no usage")
    assert uncounted is not None and uncounted.usage_metadata is None
    cache.update("p", reply("something else"))
    assert cache.lookup("p") == found
    with closing(sqlite3.connect(tmp_path / "deep" / "r.sqlite")) as database:
        database.execute("UPDATE replies SET reply = ?", (damaged,))
        database.commit()
    assert cache.lookup("p") is None  # asked for again


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


PROMPT = [SystemMessage("Be brief."), HumanMessage("Where am I?"), AIMessage("Here.")]
OTHER_QUESTIONS: list[tuple[list[BaseMessage], dict[str, Any]]] = [
    (PROMPT[:-1], {}),
    ([PROMPT[0], PROMPT[2], PROMPT[1]], {}),
    ([*PROMPT[:-1], HumanMessage("Here.")], {}),  # another role
    ([*PROMPT[:-1], AIMessage("Here!")], {}),
    ([*PROMPT[:-1], AIMessage("Here.", name="guide")], {}),
    ([*PROMPT[:-1], AIMessage("Here.", tool_calls=[{"name": "look", "args": {}, "id": "1"}])], {}),
    ([*PROMPT[:-1], AIMessage([{"type": "text", "text": "Here."}])], {}),
    ([*PROMPT, ToolMessage("A lamp.", tool_call_id="1")], {}),
    ([*PROMPT, ToolMessage("A lamp.", tool_call_id="2")], {}),
    (PROMPT, {"choices": ["look"]}),
    (PROMPT, {"choices": ["go to desk 1"]}),
    (PROMPT, {"stop": ["\n"]}),
    (PROMPT, {"temperature": 0.0}),
    (PROMPT, {"temperature": 0.5}),
]


def test_all_that_is_sent_is_part_of_the_question() -> None:
    asked = [question_of(PROMPT), *(question_of(sent, **given) for sent, given in OTHER_QUESTIONS)]
    assert len({*asked}) == len(OTHER_QUESTIONS) + 1
    usage: Any = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
    again = AIMessage("Here.", id="7", response_metadata={"took": 3}, usage_metadata=usage)
    assert question_of([*PROMPT[:-1], again], stop=None) == asked[0]


async def test_the_choices_of_a_call_are_part_of_the_key(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """Guard ``policy`` constrains each reply to another shortlist; the prompt may be the same."""

    def first_choice(request: dict[str, Any]) -> Answer:
        schema = request["response_format"]["json_schema"]["schema"]
        action = schema["properties"]["action"]["pattern"].strip("^()$").partition("|")[0]
        return Answer(json.dumps({"thought": "", "action": action}))

    openai_server.plays_by(first_choice)
    model = open_model("openai:choosing", base_url=openai_server.url,
                       cache=str(tmp_path / "r.sqlite"), allowed_syntaxes=("look",))  # fmt: skip
    for _ in range(2):
        for choices in (["go to desk 1", "look"], ["look", "go to desk 1"]):
            message = await model.ainvoke("What now?", choices=choices)
            assert json.loads(message.text)["action"] == choices[0]
    assert len(openai_server.requests) == 2


class Unserialised(HumanMessage):
    """A message that LangChain's ``dumps`` cannot serialise."""

    def to_json(self) -> Any:
        raise AssertionError("a message was serialised")


@pytest.mark.parametrize("sync", [True, False])
async def test_langchain_serialises_no_prompt(
    openai_server: OpenAIServer, tmp_path: Path, sync: bool
) -> None:
    """With a long prompt, that takes nearly as long as the rest of a call."""
    prompt: list[Any] = [*PROMPT, Unserialised("Where am I?")]
    with pytest.raises(AssertionError, match="was serialised"):
        dumps(prompt)
    model = open_model("openai:m", base_url=openai_server.url, cache=str(tmp_path / "r.sqlite"))
    for replayed in (False, True):
        call = asyncio.to_thread(model.invoke, prompt) if sync else model.ainvoke(prompt)
        message = await call
        assert message.text == "Action: look"
        assert (REPLAYED in message.response_metadata) == replayed


class Traces(BaseTracer):
    """Keeps what a tracer such as LangSmith's is given."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[Run] = []

    def _persist_run(self, run: Run) -> None:
        self.runs.append(run)


async def test_a_cached_reply_is_traced_like_a_new_one(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    traces = Traces()
    model = open_model("openai:m", base_url=openai_server.url, cache=str(tmp_path / "r.sqlite"))
    for _ in range(2):
        await model.ainvoke(PROMPT, {"callbacks": [traces], "tags": ["mine"]}, stop=["x"])
    new, cached = traces.runs
    assert len(openai_server.requests) == 1
    assert (new.name, new.tags, new.inputs) == (cached.name, cached.tags, cached.inputs)
    assert new.metadata == cached.metadata and new.metadata["ls_model_name"] == "m"
    message = cached.outputs["generations"][0][0]["message"]["kwargs"]  # type: ignore[index]
    assert message["response_metadata"][REPLAYED] and message["usage_metadata"]["total_cost"] == 0


def test_a_cached_reply_is_streamed(tmp_path: Path) -> None:
    replies = ResponseCache(tmp_path / "r.sqlite", {})
    context, shown = RunContext(max_steps=2), list[str]()
    for script in ([AIMessage("Action: look")] * 2, []):
        model = CachedModel(inner=GenericFakeChatModel(messages=iter(script)), replies=replies)
        stream = build_graph(model=model).stream(
            {"task": "0"}, context=context, stream_mode="messages"
        )
        tokens = [message.content for message, _ in stream]  # type: ignore[union-attr]
        shown.append("".join(tokens))
        assert (len(tokens) > 2) == bool(script)
    assert shown == ["Action: lookAction: look"] * 2


async def test_replies_with_tool_calls_are_not_cached(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """The cache stores texts: a replayed call would have lost its arguments."""
    tool = {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    message = {"role": "assistant", "content": None, "tool_calls": [tool]}
    choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
    body = {"id": "1", "object": "chat.completion", "model": "m", "choices": [choice]}
    openai_server.plays(Answer(raw=json.dumps(body).encode()))
    model = open_model("openai:m", base_url=openai_server.url, cache=str(tmp_path / "r.sqlite"))
    with_tools = model.bind_tools([{"name": "look", "description": "", "parameters": {}}])
    for _ in range(2):
        assert (await with_tools.ainvoke("Look.")).tool_calls[0]["name"] == "look"


WRITER = """
import sys
from pathlib import Path
from langchain_core.messages import AIMessage
from rpms.models.response_cache import ResponseCache
cache = ResponseCache(Path(sys.argv[1]), {"model": "m"})
for number in range(40):
    cache.update(f"{sys.argv[2]} {number}", AIMessage(sys.argv[2]))
    assert cache.lookup(f"{sys.argv[2]} {number}") is not None
"""


def test_several_processes_write_at_once(tmp_path: Path) -> None:
    file = tmp_path / "r.sqlite"
    command = [sys.executable, "-c", WRITER, str(file)]
    writers = [subprocess.Popen([*command, name], cwd=ROOT) for name in "ab"]
    assert [writer.wait(300) for writer in writers] == [0, 0]
    cache = ResponseCache(file, {"model": "m"})
    for name, number in itertools.product("ab", range(40)):
        found = cache.lookup(f"{name} {number}")
        assert found is not None and found.text == name


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "r.sqlite").write_text("nonsense " * 100)
    with pytest.raises(RpmsError, match=r"cannot use the response cache .*--no-cache"):
        ResponseCache(tmp_path / "r.sqlite", {})


def fill(folder: Path) -> None:
    """Leave nothing free on the disk that a folder is on."""
    with (folder / "ballast").open("wb", buffering=0) as ballast:
        for size in (4096, 1):
            while True:
                try:
                    ballast.write(b"x" * size)
                except OSError:
                    break


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system with room for a few replies."""
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k", "rpms-test", str(tmp_path)], check=False
    )
    if mounted.returncode:
        pytest.skip("only root may mount a small disk")
    yield tmp_path
    subprocess.run(["umount", "-l", str(tmp_path)], check=True)


async def test_a_full_disk_costs_no_reply(
    small_disk: Path, openai_server: OpenAIServer, caplog: pytest.LogCaptureFixture
) -> None:
    """The reply that was paid for is worth more than the copy of it."""
    file = small_disk / "r.sqlite"
    model = open_model("openai:m", base_url=openai_server.url, cache=str(file))
    assert (await model.ainvoke("before")).text == "Action: look"
    fill(small_disk)
    said = [await model.ainvoke(f"prompt {number} " * 500) for number in range(60)]
    assert {message.text for message in said} == {"Action: look"}
    assert all(message.usage_metadata for message in said)
    again = open_model("openai:m", base_url=openai_server.url, cache=str(file), timeout_s=5.0)
    assert (await again.ainvoke("after")).text == "Action: look"
    fresh = small_disk / "other.sqlite"
    new = open_model("openai:m", base_url=openai_server.url, cache=str(fresh), timeout_s=5.0)
    assert (await new.ainvoke("on a new file")).text == "Action: look"
    told = [record.getMessage() for record in caplog.records]
    told = [line for line in told if "continuing without" in line]
    assert len(told) == len(set(told)) >= 2
    assert any(str(file) in line and "full" in line for line in told)


async def test_a_key_that_a_model_repeats_is_not_kept(
    openai_server: OpenAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "planted without shape")
    url = openai_server.url.replace("://", "://me:planted-pass@") + "?api-key=planted-parameter"
    openai_server.plays("planted without shape, planted-pass, planted-parameter. Action: look")
    await ask(url, tmp_path / "r.sqlite")
    kept = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"Action: look" in kept and b"planted" not in kept


WEIGHTS = (
    {"id": "tuned", "root": "/elsewhere/first", "owned_by": "vllm"},
    {"id": "tuned", "root": "/elsewhere/second", "owned_by": "vllm"},
)


def told(caplog: pytest.LogCaptureFixture, words: str) -> list[str]:
    return [line for record in caplog.records if words in (line := record.getMessage())]


async def test_another_model_under_the_same_name_and_address_is_asked(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Tune again, serve again: the first model must not answer for the second."""
    file, port, answers = tmp_path / "r.sqlite", 0, []
    for number, listed in enumerate([*WEIGHTS, WEIGHTS[0]]):
        with serving(port) as server:
            port = int(server.url.rpartition(":")[2].removesuffix("/v1"))
            server.plays(f"Action: look {number}")
            server.models = [{"id": "other"}, {**listed, "created": int(time.time())}]
            for _ in range(3):  # opened anew each time, in this one process
                answers.append((await ask(server.url, file, name="openai:tuned")).text)
            assert len(server.requests) == (number < 2) and server.listings == 3
    assert answers == [f"Action: look {number}" for number in (0, 0, 0, 1, 1, 1, 0, 0, 0)]
    lines = told(caplog, "another model")
    assert len(lines) == 1 and "openai:tuned at http://127.0.0.1:" in lines[0]
    assert "are not used" in lines[0] and "\n" not in lines[0]


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        # The time of the request, and ids that are new each time: the same weights.
        ({"owned_by": "vllm", "created": 1, "permission": [{"id": "p1"}]},
         {"owned_by": "vllm", "created": 2, "permission": [{"id": "p2"}]}, True),
        ({"owned_by": "llamacpp", "created": 1, "meta": {"n_params": 7}},
         {"owned_by": "llamacpp", "created": 9, "meta": {"n_params": 7}}, True),
        ({"owned_by": "llamacpp", "meta": {"n_params": 7}},
         {"owned_by": "llamacpp", "meta": {"n_params": 8}}, False),
        # The time when the model was made.
        ({"owned_by": "library", "created": 1}, {"owned_by": "library", "created": 2}, False),
        ({"parent": "base"}, {"parent": "other base"}, False),
        ({"digest": "a"}, {"digest": "b"}, False),
    ],
)  # fmt: skip
async def test_what_of_the_list_is_about_the_weights(
    openai_server: OpenAIServer, tmp_path: Path, first: Any, second: Any, same: bool
) -> None:
    for listed in (first, second):
        openai_server.models = [{"id": "m", **listed}]
        await ask(openai_server.url, tmp_path / "r.sqlite")
    assert len(openai_server.requests) == (1 if same else 2)


@pytest.mark.parametrize("here", ["root", "id"])
async def test_weights_on_this_machine_are_known_by_their_files(
    openai_server: OpenAIServer, tmp_path: Path, here: str
) -> None:
    """A folder that the next tuning was written into, as docs/tuning.md has it."""
    folder = tmp_path / "tuned"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"first")
    openai_server.models = [{"id": "m", here: str(folder), "owned_by": "vllm"}]
    for contents, calls in ((b"first", 1), (b"another", 2)):
        (folder / "model.safetensors").write_bytes(contents) if calls > 1 else None
        (folder / "log.txt").write_bytes(contents)  # no weights
        for _ in range(2):
            await ask(openai_server.url, tmp_path / "r.sqlite")
        assert len(openai_server.requests) == calls


@pytest.mark.parametrize(
    ("listed", "words"),
    [
        (None, "openai:m at {url} has no list of models: cached replies may be of other weights"),
        ([], "has no list of models"),
        ([{"id": "a"}, {"id": "b"}], "does not list 'm'"),
        ([{"id": "m", "root": "/elsewhere/m"}], "names its weights only as '/elsewhere/m'"),
        ([{"id": "served", "owned_by": "llamacpp", "created": 5}], "only as 'served'"),
        ([{"id": "m", "created": 5}], ""),
        ([{"id": "m", "created": int(time.time())}], "names its weights only as 'm'"),
    ],
)
async def test_a_server_that_tells_nothing_leaves_a_doubt_that_is_said(
    openai_server: OpenAIServer, tmp_path: Path, listed: Any, words: str
) -> None:
    openai_server.models = listed
    if listed and listed[-1].get("created", 0) > 5:
        listed[-1]["created"] = int(time.time())
    model = open_model("openai:m", base_url=openai_server.url, cache=str(tmp_path / "r.sqlite"))
    assert isinstance(model, CachedModel)
    doubt = await asyncio.to_thread(model.replies.doubt)
    assert words.format(url=openai_server.url) in doubt and bool(doubt) == bool(words)
    assert "\n" not in doubt and openai_server.listings == 1
    for _ in range(2):
        await model.ainvoke("Where am I?")
    assert len(openai_server.requests) == 1 and openai_server.listings == 1, "not at every call"


async def test_the_list_is_not_waited_for_on_the_loop(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """Were it asked on the loop, nobody could let the server answer."""
    openai_server.models = [{"id": "m", "created": 5}]
    openai_server.listing.clear()
    asking = asyncio.create_task(ask(openai_server.url, tmp_path / "r.sqlite"))
    while not openai_server.listings:
        await asyncio.sleep(0.01)
    openai_server.listing.set()
    await asking
    assert openai_server.listings == 1
    again = await ask(openai_server.url, tmp_path / "r.sqlite")
    assert again.response_metadata[REPLAYED]


async def test_while_the_server_is_down_no_reply_stands_for_it(tmp_path: Path) -> None:
    """The old model's replies are not used until the server has said what it serves."""
    file = tmp_path / "r.sqlite"
    with serving() as server:
        server.models = [dict(WEIGHTS[0])]
        await ask(server.url, file, name="openai:tuned")
    with pytest.raises(Exception, match="Connection error"):
        await ask(server.url, file, name="openai:tuned")


def test_a_local_file_is_known_by_its_date_and_size(tmp_path: Path) -> None:
    file, adapter = tmp_path / "m.gguf", tmp_path / "adapter.gguf"
    llama = gguf_files.entry("general.architecture", 8, gguf_files.text("llama"))
    seen = list[str]()
    for weights in (b"", b"retuned"):
        file.write_bytes(gguf_files.header([llama]) + weights)
        seen.append(str(weight_stamps(str(file))))
    for size in (1.0, 2.0):
        adapter.write_bytes(gguf_files.adapter(size))
        os.utime(adapter, (size, size))
        seen.append(str(weight_stamps(f"{file}?lora={adapter}")))
    assert len({*seen}) == 4 and str(weight_stamps(f"{file}?lora={adapter}")) == seen[-1]
