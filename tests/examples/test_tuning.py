"""The example that tunes: what is learned and what goes together; with torch, a tiny model too."""

from __future__ import annotations

import importlib.util
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
HAVE_TORCH = all(importlib.util.find_spec(name) for name in ("torch", "transformers", "gguf"))
with_torch = pytest.mark.skipif(not HAVE_TORCH, reason="torch is not installed: no model is tuned")
MOST = 24
LINE = [
    {"role": "system", "content": "You see"},
    {"role": "user", "content": "a mug"},
    {"role": "assistant", "content": "Action : look", "weight": 0},
    {"role": "user", "content": "the desk"},
    {"role": "assistant", "content": "Action : take mug 1", "weight": 1},
]


@pytest.fixture(autouse=True)
def beside(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "tuning"]:
        del sys.modules[name]


class Letters:
    """A tokenizer of single letters, with the usual kind of template."""

    def apply_chat_template(
        self, messages: list[dict[str, str]], tokenize: bool, add_generation_prompt: bool
    ) -> str:
        assert not tokenize
        text = "".join(f"<{one['role']}>{one['content']}|\n" for one in messages)
        return text + "<assistant>" if add_generation_prompt else text

    def __call__(self, text: str, add_special_tokens: bool) -> dict[str, list[int]]:
        return {"input_ids": [ord(letter) for letter in text]}


def learned(example: Any) -> str:
    return "".join(chr(label) for label in example.labels if label >= 0)


def test_only_replies_that_count_are_learned_and_their_end_with_them() -> None:
    from tuning.data import IGNORED, render, to_example

    example = to_example(Letters(), LINE)
    assert learned(example) == "Action : take mug 1|"
    asked = render(Letters(), LINE[:-1], ask=True)
    assert "".join(map(chr, example.ids)) == asked + "Action : take mug 1|"
    assert example.labels[: len(asked)] == [IGNORED] * len(asked)
    every = [{**one, "weight": 1} if one["role"] == "assistant" else one for one in LINE]
    assert learned(to_example(Letters(), every)) == "Action : look|Action : take mug 1|"
    assert len(to_example(Letters(), every).ids) == len(example.ids)


def test_batches_hold_every_line_once_and_keep_to_their_size() -> None:
    from tuning.data import batches

    lengths = [100 + 37 * number % 900 for number in range(200)]
    found = batches(lengths, 4000, seed=3)
    assert sorted(number for batch in found for number in batch) == [*range(200)]
    assert all(len(batch) * max(lengths[n] for n in batch) <= 4000 for batch in found)
    assert found == batches(lengths, 4000, seed=3) != batches(lengths, 4000, seed=4)
    assert batches([9000], 4000, seed=0) == [[0]]


def sit(sitting: Any, out: Path, stop_after: int = 0) -> list[int]:
    """Plays a sitting without a model; the batches that were its own."""
    own = []
    for step in sitting.steps(lambda: sitting.save(out, lambda part: (part / "w").touch())):
        own.append(step)
        sitting.report(1.0, 2.0)
        if len(own) == stop_after:
            signal.raise_signal(signal.SIGTERM)
    return own


def test_a_sitting_that_is_stopped_saves_and_the_next_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tuning.sitting import NOTE, Sitting

    plan, lengths, usual = [[0, 2], [1], [3], [4]], [10, 20, 30, 40, 60], signal.SIGTERM
    handler = signal.getsignal(usual)
    assert sit(Sitting(plan, lengths), tmp_path, stop_after=2) == [0, 1]
    assert sorted(file.name for file in tmp_path.iterdir()) == [NOTE, "w"]
    assert json.loads((tmp_path / NOTE).read_text())["lines"] == 3
    assert signal.getsignal(usual) == handler
    out = capsys.readouterr().out
    assert "step 1 of 4, loss 1.0000, 20 tokens/s, 0 min left" in out
    assert f"saved: {tmp_path}, 0.0 MB, 2 of 4 batches; the rest: --from {tmp_path}" in out
    late = Sitting(plan, lengths, minutes=1e-9)
    late.go_on(tmp_path)
    assert sit(late, tmp_path) == []  # its time is up
    rest, other = Sitting(plan, lengths), Sitting(plan, [10, 20, 30, 40, 61])
    for sitting in (rest, other):
        sitting.go_on(tmp_path)
    assert sit(rest, tmp_path) == [2, 3]
    assert sit(other, tmp_path) == [0, 1, 2, 3]  # of other lines none was seen


def test_it_saves_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tuning import sitting

    monkeypatch.setattr(sitting, "SAVE_EVERY_S", 0)
    counts, short = [], sitting.Sitting([[0], [1]], [5, 5])
    assert [*short.steps(lambda: counts.append(short.done))] == [0, 1]
    assert counts == [1, 2, 2]


def test_what_waits_is_answered_with_its_like() -> None:
    from tuning.serving import Question, grouped

    waiting = [Question([0] * length, 10) for length in (30, 50, 20, 40)]
    batches = [[len(one.ids) for one in batch] for batch in grouped(waiting, 120)]
    assert batches == [[20, 30], [40, 50]]
    assert [len(batch) for batch in grouped(waiting, 1)] == [1, 1, 1, 1]


def test_what_is_missing_is_told_in_one_line() -> None:
    bare = [sys.executable, "-S", "-E", str(EXAMPLES / "tune.py")]  # without installed packages
    words = ["serve", "--model", "x.gguf"]
    done = subprocess.run([*bare, *words], capture_output=True, text=True)
    assert done.returncode == 2
    assert "torch" in done.stderr.splitlines()[-1] and "Traceback" not in done.stderr


# From here on a tiny model with random weights.


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import Qwen2Config, Qwen2ForCausalLM, Qwen2Tokenizer

    special = ["<|im_start|>", "<|im_end|>", "<|endoftext|>"]
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: number for number, letter in enumerate([*special, *letters])}
    single = Tokenizer(models.BPE(vocabulary, []))
    single.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    single.decoder = decoders.ByteLevel()
    tokenizer = Qwen2Tokenizer(
        tokenizer_object=single, vocab=vocabulary, merges=[], unk_token=None,
        eos_token="<|im_end|>", pad_token="<|endoftext|>", extra_special_tokens=["<|im_start|>"],
    )  # fmt: skip
    tokenizer.chat_template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    model = Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=len(vocabulary), hidden_size=64, intermediate_size=128, eos_token_id=1,
            num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            initializer_range=0.2,
        )
    )  # fmt: skip
    model.save_pretrained(tmp_path / "tiny")
    tokenizer.save_pretrained(tmp_path / "tiny")
    return tmp_path / "tiny"


def said(loaded: Any, *contents: str) -> list[str]:
    from tuning.data import encode, render
    from tuning.serving import Generator, Question

    batch = []
    for content in contents:
        text = render(loaded.tokenizer, [{"role": "user", "content": content}], ask=True)
        batch.append(Question(encode(loaded.tokenizer, text), MOST))
    Generator(loaded, 10_000).answer(batch)
    assert [question.error for question in batch] == [""] * len(batch)
    return [question.text for question in batch]


def stop_after(batches: int) -> Any:
    """A report that also asks for the end, once that many batches are done."""

    def report(sitting: Any, *_: float) -> None:
        if sitting.done + 1 == batches:
            signal.raise_signal(signal.SIGINT)

    return report


@with_torch
@pytest.mark.parametrize("rank", [0, 16])
def test_a_tiny_model_learns_its_lines_in_three_sittings(
    tiny: Path, tmp_path: Path, rank: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tuning.sitting import Sitting
    from tuning.training import Recipe, load, merge_lora, train

    data, out = tmp_path / "lines.jsonl", tmp_path / "out"
    data.write_text(f"{json.dumps({'messages': LINE[3:]})}\n" * 8)
    recipe = Recipe(rank, rate=0.02 if rank else 0.005, passes=60)
    assert train(str(tiny), data, out, recipe._replace(minutes=1e-9)) == []
    monkeypatch.setattr(Sitting, "report", stop_after(30))
    first = train(str(tiny), data, out, recipe, out)
    second = train(str(tiny), data, out, recipe, out)
    assert (len(first), len(second)) == (30, 30)
    assert second[0] < first[0] / 2  # it begins with what was learned
    loaded = load(str(tiny if rank else out))
    if rank:
        assert said(loaded, "the desk") != ["Action : take mug 1"]
        merge_lora(loaded.model, out)
    assert said(loaded, "the desk") == ["Action : take mug 1"]


@with_torch
def test_small_steps_add_up_in_a_model_of_half_precision(tiny: Path) -> None:
    import torch
    from tuning.data import to_example
    from tuning.sitting import Sitting
    from tuning.training import Recipe, fit, load

    loaded = load(str(tiny))
    weight = loaded.model.to(torch.bfloat16).model.layers[0].mlp.up_proj.weight
    before = weight.detach().clone()
    example, steps = to_example(loaded.tokenizer, LINE[3:]), 60
    fit(loaded, [example], Recipe(rate=5e-5), Sitting([[0]] * steps, [len(example.ids)]), list)
    large = before.abs() > 0.1  # of these bfloat16 knows no neighbour nearer than 5e-4
    assert (weight != before)[large].float().mean() > 0.5


@with_torch
def test_an_adapter_is_named_as_peft_names_it(tiny: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file
    from tuning.training import TARGETS, add_lora, load, load_lora, save_lora

    loaded = load(str(tiny))
    before = said(loaded, "the desk")
    layers = add_lora(loaded.model, 4, 8.0)
    assert said(loaded, "the desk") == before  # it begins as nothing
    save_lora(layers, "tiny", 4, 8.0, tmp_path)
    tensors = load_file(str(tmp_path / "adapter_model.safetensors"))
    name = "base_model.model.model.layers.1.mlp.down_proj.lora_{}.weight"
    assert len(tensors) == 2 * 2 * len(TARGETS)
    assert tensors[name.format("A")].shape == (4, 128)
    assert tensors[name.format("B")].shape == (64, 4)
    config = json.loads((tmp_path / "adapter_config.json").read_text())
    assert (config["peft_type"], config["r"], config["lora_alpha"]) == ("LORA", 4, 8.0)
    assert config["target_modules"] == sorted(TARGETS)
    with pytest.raises(SystemExit, match="no adapter for this model and --lora"):
        load_lora(add_lora(load(str(tiny)).model, 8, 8.0), tmp_path)
    with pytest.raises(SystemExit, match="no adapter for this model and --lora"):
        load_lora(layers, tiny)


@with_torch
def test_a_batch_says_what_each_says_alone(tiny: Path) -> None:
    from tuning.training import load

    loaded = load(str(tiny))
    same = "go to the desk . " * 20
    prompts = [same + end for end in ("look", "take mug 1 on the shelf 2", "see a mug")]
    assert said(loaded, *prompts) == [said(loaded, prompt)[0] for prompt in prompts]


@with_torch
def test_it_answers_openais_client(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import time

    from openai import OpenAI
    from tuning.serving import answer_requests, weights_digest
    from tuning.training import load

    loaded = load(str(tiny))
    threading.Thread(target=answer_requests, args=(loaded, 0, 1000), daemon=True).start()
    told = ""
    while "serving" not in told:
        time.sleep(0.05)
        told += capsys.readouterr().out
    client = OpenAI(base_url=told.split()[-1], api_key="none")
    found = client.chat.completions.create(
        model="tiny", messages=[{"role": "user", "content": "the desk"}], max_tokens=MOST
    )
    assert found.choices[0].message.content == said(loaded, "the desk")[0]
    assert found.usage and 0 < found.usage.completion_tokens <= MOST
    (listed,) = client.models.list().data
    assert listed.model_dump()["digest"] == weights_digest(loaded.model)
    next(loaded.model.parameters()).data += 1
    assert listed.model_dump()["digest"] != weights_digest(loaded.model)
