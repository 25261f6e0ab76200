"""From PEFT's files to merged weights, with a model of one block that fits into a few KB."""

from __future__ import annotations

import importlib.util
import json
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rpms.models import local, merging, open_model, weights
from rpms.models.local import find_weights, prepare_weights
from rpms.models.merging import merge, merged_file
from rpms.models.weights import Adapter, adapter_file, adapters, read_metadata, results_of
from rpms.vocabulary.errors import RpmsError
from tools import adapter_gguf
from tools.check_adapter import Difference, Expected, differences, read_lines

gguf = pytest.importorskip("gguf", reason="gguf is not installed (make local)")
quants = gguf.quants

Array = np.ndarray[Any, Any]
WIDTH, HEADS, KV_HEADS, RANK, ALPHA = 64, 4, 2, 32, 48.0
HEAD = WIDTH // HEADS
ATTENTION = "model.layers.0.self_attn"
# Matrices by PEFT's names: the name in GGUF, the rows, and the heads whose rows are rotated.
MATRICES = {
    f"{ATTENTION}.q_proj": ("blk.0.attn_q", WIDTH, HEADS),
    f"{ATTENTION}.k_proj": ("blk.0.attn_k", KV_HEADS * HEAD, KV_HEADS),
    f"{ATTENTION}.v_proj": ("blk.0.attn_v", KV_HEADS * HEAD, 0),
    "model.layers.0.mlp.up_proj": ("blk.0.ffn_up", 96, 0),
}
TOKENS = ["<s>", "go", "Ġto"]


def in_gguf(matrix: Array, heads: int) -> Array:
    """Rows as llama.cpp rotates them: pairs (2i, 2i+1) are the transformers' (i, i + half)."""
    if not heads:
        return matrix
    ordered, size = matrix.copy(), matrix.shape[0] // heads
    for head in range(heads):
        for row in range(size // 2):
            ordered[head * size + 2 * row] = matrix[head * size + row]
            ordered[head * size + 2 * row + 1] = matrix[head * size + row + size // 2]
    return ordered


class Tuning:
    """A base model, and an adapter of PEFT for it."""

    def __init__(self, folder: Path, seed: int = 0, size: float = 0.3) -> None:
        rng = np.random.default_rng(seed)
        self.folder, self.base = folder, folder / "base.gguf"
        self.adapter = folder / "adapter.gguf"
        self.plain: dict[str, Array] = {}
        self.tuned: dict[str, Array] = {}
        tensors: dict[str, Array] = {}
        for name, (_, rows, _) in MATRICES.items():
            # The base is the same for each seed, so that only the adapter changes.
            fixed = np.random.default_rng(len(self.plain)).normal(size=(rows, WIDTH))
            self.plain[name] = fixed.astype(np.float32)
            a = rng.normal(size=(RANK, WIDTH)).astype(np.float32) * size
            b = rng.normal(size=(rows, RANK)).astype(np.float32) * size
            self.tuned[name] = self.plain[name] + ALPHA / RANK * (b @ a)
            tensors |= {f"base_model.model.{name}.lora_A.weight": a,
                        f"base_model.model.{name}.lora_B.weight": b}  # fmt: skip
        self.write_base()
        self.write_adapter(tensors)

    def write_base(self) -> None:
        writer = gguf.GGUFWriter(self.base, "llama")
        writer.add_block_count(1)
        writer.add_head_count(HEADS)
        writer.add_head_count_kv(KV_HEADS)
        writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q4_1)
        writer.add_tokenizer_model("gpt2")
        writer.add_token_list(TOKENS)
        writer.add_token_types([3, 1, 1])
        writer.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
        kind = gguf.GGMLQuantizationType.Q8_0
        for name, (ours, _, heads) in MATRICES.items():
            matrix = quants.quantize(in_gguf(self.plain[name], heads), kind)
            writer.add_tensor(f"{ours}.weight", matrix, raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()

    def write_adapter(self, tensors: dict[str, Array], kind: str = "F32", **changed: Any) -> None:
        entries, data = {"__metadata__": {"format": "pt"}}, b""
        for name, tensor in tensors.items():
            part = tensor.astype("<f4").tobytes()
            if kind == "BF16":
                part = (tensor.astype("<f4").view("<u4") >> 16).astype("<u2").tobytes()
            entries[name] = {"dtype": kind, "shape": list(tensor.shape),
                             "data_offsets": [len(data), len(data) + len(part)]}  # type: ignore[dict-item]  # fmt: skip
            data += part
        head = json.dumps(entries).encode()
        file = self.folder / "adapter_model.safetensors"
        file.write_bytes(struct.pack("<Q", len(head)) + head + data)
        config = {"r": RANK, "lora_alpha": ALPHA, "use_dora": False, "rank_pattern": {}, **changed}
        (self.folder / "adapter_config.json").write_text(json.dumps(config))

    def convert(self) -> int:
        return adapter_gguf.convert(self.folder, self.adapter, self.base)


@pytest.fixture
def tuning(tmp_path: Path) -> Tuning:
    return Tuning(tmp_path)


def matrices(file: Path) -> dict[str, Array]:
    return {
        tensor.name: quants.dequantize(tensor.data, tensor.tensor_type)
        for tensor in gguf.GGUFReader(file).tensors
    }


def test_the_adapter_is_what_llama_cpp_reads(tuning: Tuning) -> None:
    assert tuning.convert() == len(MATRICES)
    metadata = read_metadata(tuning.adapter)
    names = ("general.type", "general.architecture", "adapter.type", "adapter.lora.alpha")
    assert [metadata[name] for name in names] == ["adapter", "llama", "lora", ALPHA]
    tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(tuning.adapter).tensors}
    ours = [f"{name}.weight" for name, *_ in MATRICES.values()]
    parts = {f"{name}{part}" for name in ours for part in (".lora_a", ".lora_b")}
    assert set(tensors) == parts
    assert {tensor.tensor_type.name for tensor in tensors.values()} == {"Q8_0"}
    # The format writes the inner dimension first.
    assert [*tensors["blk.0.ffn_up.weight.lora_b"].shape] == [RANK, 96]


def test_merged_weights_are_those_of_the_tuned_model(tuning: Tuning) -> None:
    tuning.convert()
    target = tuning.folder / "merged.gguf"
    merge(tuning.base, tuning.adapter, target)
    merged, base = matrices(target), matrices(tuning.base)
    assert [*merged] == [*base]
    for name, (ours, _, heads) in MATRICES.items():
        expected = in_gguf(tuning.tuned[name], heads)
        change = np.abs(expected - base[f"{ours}.weight"]).mean()
        error = np.abs(expected - merged[f"{ours}.weight"]).mean()
        assert error < 0.03 * change, name
        if heads:  # rows in another order would be as far away as the base
            wrong = np.abs(tuning.tuned[name] - merged[f"{ours}.weight"]).mean()
            assert wrong > change
    assert np.array_equal(merged["output_norm.weight"], base["output_norm.weight"])


def test_everything_else_is_copied(tuning: Tuning) -> None:
    tuning.convert()
    target = tuning.folder / "merged.gguf"
    merge(tuning.base, tuning.adapter, target)
    before, after = (
        {name: field.contents() for name, field in gguf.GGUFReader(file).fields.items()}
        for file in (tuning.base, target)
    )
    assert before.pop("general.file_type") == gguf.LlamaFileType.MOSTLY_Q4_1
    assert after.pop("general.file_type") == gguf.LlamaFileType.MOSTLY_Q8_0
    assert before == after and after["tokenizer.ggml.tokens"] == TOKENS


def test_half_precision_and_other_ranks(tuning: Tuning) -> None:
    a, b = np.full((4, WIDTH), 0.5), np.full((96, 4), 0.25)
    name = "base_model.model.model.layers.0.mlp.up_proj"
    tensors = {f"{name}.lora_A.weight": a, f"{name}.lora_B.weight": b}
    tuning.write_adapter(tensors, "BF16")
    assert tuning.convert() == 1
    found = matrices(tuning.adapter)
    assert (found["blk.0.ffn_up.weight.lora_b"] == b).all()
    assert np.allclose(found["blk.0.ffn_up.weight.lora_a"], a, atol=0.01)


def test_adapters_that_cannot_be_converted_are_named(tuning: Tuning) -> None:
    tensors = {"base_model.model.lm_head.other.lora_A.weight": np.zeros((2, 2))}
    tuning.write_adapter(tensors)
    with pytest.raises(RpmsError, match=r"lm_head\.other.* is no LoRA matrix of a llama model"):
        tuning.convert()
    tuning.write_adapter(tensors, use_dora=True)
    with pytest.raises(RpmsError, match=r"llama\.cpp has no use_dora"):
        tuning.convert()
    (tuning.folder / "adapter_config.json").unlink()
    with pytest.raises(RpmsError, match=r"cannot read the adapter .*adapter_config\.json"):
        tuning.convert()
    assert not tuning.adapter.exists()


def test_an_adapter_for_another_model_is_not_merged(tuning: Tuning, tmp_path: Path) -> None:
    tuning.convert()
    target = tmp_path / "merged.gguf"
    with pytest.raises(RpmsError, match="but no LoRA adapter"):
        merge(tuning.base, tuning.base, target)
    MATRICES["model.layers.0.mlp.gate_proj"] = ("blk.0.ffn_gate", 96, 0)
    try:
        other = tmp_path / "other"
        other.mkdir()
        larger = Tuning(other)
        larger.convert()
    finally:
        del MATRICES["model.layers.0.mlp.gate_proj"]
    with pytest.raises(RpmsError, match=r"does not fit .*'blk\.0\.ffn_gate\.weight'"):
        merge(tuning.base, larger.adapter, target)
    damaged = tmp_path / "damaged.gguf"
    damaged.write_bytes(tuning.adapter.read_bytes()[:-5000])
    with pytest.raises(RpmsError, match="one of them is damaged"):
        merge(tuning.base, damaged, target)
    assert not target.exists()


@pytest.fixture
def offered(tuning: Tuning, monkeypatch: pytest.MonkeyPatch) -> Tuning:
    """A tuned model ``tiny``, whose base model comes in a package."""
    tuning.convert()
    entry = Adapter(about="", base="small", file=str(tuning.adapter), env="")
    monkeypatch.setenv("RPMS_CACHE", str(tuning.folder / "cache"))
    for module in (weights, local):
        monkeypatch.setattr(module, "adapters", lambda: {"tiny": entry})
    package = tuning.folder / "small_weights"
    package.mkdir()
    (package / "__init__.py").touch()
    tuning.base = tuning.base.rename(package / "base.gguf")
    monkeypatch.syspath_prepend(str(tuning.folder))
    monkeypatch.setattr(local, "SHIPPED", {"small": "small_weights"})
    return tuning


def test_it_is_merged_once_and_says_so(offered: Tuning, capfd: pytest.CaptureFixture[str]) -> None:
    file = find_weights("tiny")
    printed = capfd.readouterr()
    assert printed.out == "" and printed.err.count("\n") == 1
    assert printed.err.startswith("merging the adapter tiny into its base model, once: ")
    written = file.stat().st_mtime_ns
    assert find_weights("tiny") == prepare_weights("tiny", print) == file
    assert file.stat().st_mtime_ns == written
    assert "merging" not in capfd.readouterr().err
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_another_adapter_or_base_makes_another_file(offered: Tuning) -> None:
    first = find_weights("tiny")
    other = offered.folder / "tuned again"
    other.mkdir()
    again = Tuning(other, seed=1)
    again.convert()
    again.adapter.replace(offered.adapter)
    second = find_weights("tiny")
    assert second != first
    with offered.base.open("r+b") as data:  # one number of the last matrix
        data.seek(-1, os.SEEK_END)
        data.write(b"\x01")
    assert find_weights("tiny") not in (first, second)


@pytest.mark.parametrize(
    ("gone", "message"),
    [
        ("adapter", r"the adapter of 'local:tiny' is not here: .*; reinstall RPMS"),
        ("base", r"'local:small' needs small_weights, .*: run 'make local'"),
        ("merger", r"'local:tiny' needs gguf, which is not installed: run 'make local'"),
    ],
)
def test_what_is_missing_is_one_line(
    offered: Tuning, gone: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if gone == "merger":
        find = importlib.util.find_spec
        monkeypatch.setattr(
            importlib.util, "find_spec", lambda name: None if name == "gguf" else find(name)
        )
    else:
        getattr(offered, gone).unlink()
    with pytest.raises(RpmsError, match=message) as caught:
        find_weights("tiny")
    assert "\n" not in str(caught.value)


def test_a_merge_that_exists_needs_no_package(
    offered: Tuning, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = find_weights("tiny")
    monkeypatch.setattr(merging, "MERGER", "not_installed")
    assert find_weights("tiny") == file == merged_file("tiny", offered.base)


def test_the_commands_say_what_is_wrong_in_one_line(tmp_path: Path) -> None:
    lines = tmp_path / "replies.jsonl"
    lines.write_text('{"messages": []}\n')
    adapter = ["tools.adapter_gguf", str(tmp_path), str(tmp_path / "out.gguf")]
    commands = {
        "no local model 'nothing'": [*adapter, "--base", "nothing"],
        "replies.jsonl:1: a line needs": ["tools.check_adapter", str(lines), "--model", "sim"],
    }
    for message, words in commands.items():
        done = subprocess.run(
            [sys.executable, "-m", *words], capture_output=True, text=True, check=False
        )
        assert done.returncode == 2 and done.stderr.count("\n") == 1
        assert message in done.stderr


class Echo:
    """A model that answers with the last word of the prompt."""

    def invoke(self, messages: list[dict[str, str]]) -> Any:
        return type("Reply", (), {"text": messages[-1]["content"].split()[-1] + "\n"})


def test_replies_are_compared(tmp_path: Path) -> None:
    file = tmp_path / "replies.jsonl"
    prompts = {"say yes": "yes", "say no": "never "}
    lines = [{"messages": [{"role": "user", "content": prompt}], "reply": reply}
             for prompt, reply in prompts.items()]  # fmt: skip
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    expected = read_lines(file)
    assert expected[0] == Expected(lines[0]["messages"], "yes")  # type: ignore[arg-type]
    assert [*differences(Echo(), expected)] == [Difference(2, "never", "no")]


# From here on the adapters that come with the project.


@pytest.mark.parametrize("name", adapters())
def test_each_shipped_adapter_has_a_card_and_fits_its_base(name: str) -> None:
    file = adapter_file(name)
    assert file.stat().st_size <= 10 * 1024 * 1024
    card = file.with_suffix(".md").read_text()
    assert f"\n# {name}\n" in card and "license: apache-2.0" in card
    assert results_of(f"local:{name}")
    metadata = read_metadata(file)
    assert metadata["general.type"] == "adapter" and metadata["adapter.lora.alpha"] > 0
    assert adapters()[name].base in local.SHIPPED


@pytest.mark.local
@pytest.mark.usefixtures("shipped_model")
def test_the_shipped_model_acts_after_a_merge() -> None:
    """Merged in this session: its home was empty when it began."""
    name = "local:smollm2-alfworld?ctx=2048"
    model = open_model(name, max_tokens=12, timeout_s=300)
    assert model.invoke("The fridge 1 is closed. Act.").text.strip()
    merged = merged_file("smollm2-alfworld", find_weights("smollm2"))
    assert merged.is_file() and Path.home() in merged.parents
