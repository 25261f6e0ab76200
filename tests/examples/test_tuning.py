"""The example that tunes: what is learned and what goes together; with torch, a tiny model too."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
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
        text = "".join(f"<{turn['role']}>{turn['content']}|\n" for turn in messages)
        return text + "<assistant>" if add_generation_prompt else text

    def __call__(self, text: str, add_special_tokens: bool) -> dict[str, list[int]]:
        return {"input_ids": [ord(letter) for letter in text]}


def learned(example: Any) -> str:
    return "".join(chr(label) for label in example.labels if label >= 0)


def test_only_replies_that_count_are_learned_and_their_end_with_them() -> None:
    from tuning.data import IGNORED, render, to_example

    example = to_example(Letters(), LINE)
    assert learned(example) == "Action : take mug 1|"
    prompt = render(Letters(), LINE[:-1], ask=True)
    assert "".join(map(chr, example.ids)) == prompt + "Action : take mug 1|"
    assert example.labels[: len(prompt)] == [IGNORED] * len(prompt)
    every = [{**turn, "weight": 1} if turn["role"] == "assistant" else turn for turn in LINE]
    assert learned(to_example(Letters(), every)) == "Action : look|Action : take mug 1|"
    assert len(to_example(Letters(), every).ids) == len(example.ids)


def test_batches_hold_every_line_once_and_keep_to_their_size() -> None:
    from tuning.data import batches

    lengths = [100 + 37 * number % 900 for number in range(200)]
    groups = batches(lengths, 4000, seed=3)
    assert sorted(number for batch in groups for number in batch) == [*range(200)]
    assert all(len(batch) * max(lengths[n] for n in batch) <= 4000 for batch in groups)
    assert groups == batches(lengths, 4000, seed=3) != batches(lengths, 4000, seed=4)
    assert batches([9000], 4000, seed=0) == [[0]]


def test_what_is_missing_is_told_in_one_line() -> None:
    bare = [sys.executable, "-S", "-E", str(EXAMPLES / "tune.py")]  # without installed packages
    words = ["train", "--model", "x.gguf", "--data", "lines.jsonl", "--out", "tuned"]
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


def reply(loaded: Any, content: str) -> str:
    import torch
    from tuning.data import encode, render

    text = render(loaded.tokenizer, [{"role": "user", "content": content}], ask=True)
    prompt = torch.tensor([encode(loaded.tokenizer, text)], device=loaded.device)
    tokens = loaded.model.eval().generate(prompt, max_new_tokens=MOST, do_sample=False)
    return str(loaded.tokenizer.decode(tokens[0, prompt.shape[1] :], skip_special_tokens=True))


@with_torch
@pytest.mark.parametrize("rank", [0, 16])
def test_a_tiny_model_learns_its_lines(tiny: Path, rank: int) -> None:
    from tuning.data import to_example
    from tuning.training import Recipe, add_lora, fit, load

    loaded = load(str(tiny))
    if rank:
        add_lora(loaded.model, rank, 2.0 * rank)
    assert reply(loaded, "the desk") != "Action : take mug 1"
    examples = [to_example(loaded.tokenizer, LINE[3:])] * 8
    fit(loaded, examples, Recipe(rank, rate=0.02 if rank else 0.005, passes=60))
    assert reply(loaded, "the desk") == "Action : take mug 1"


@with_torch
def test_an_adapter_is_named_as_peft_names_it(tiny: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file
    from tuning.training import TARGETS, add_lora, load, save_lora

    loaded = load(str(tiny))
    before = reply(loaded, "the desk")
    layers = add_lora(loaded.model, 4, 8.0)
    assert reply(loaded, "the desk") == before  # it begins as nothing
    save_lora(layers, "tiny", 4, 8.0, tmp_path)
    tensors = load_file(str(tmp_path / "adapter_model.safetensors"))
    name = "base_model.model.model.layers.1.mlp.down_proj.lora_{}.weight"
    assert len(tensors) == 2 * 2 * len(TARGETS)
    assert tensors[name.format("A")].shape == (4, 128)
    assert tensors[name.format("B")].shape == (64, 4)
    config = json.loads((tmp_path / "adapter_config.json").read_text())
    assert (config["peft_type"], config["r"], config["lora_alpha"]) == ("LORA", 4, 8.0)
    assert config["target_modules"] == sorted(TARGETS)
