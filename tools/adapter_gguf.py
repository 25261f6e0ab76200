"""Convert a LoRA adapter: ``python -m tools.adapter_gguf PEFT_FOLDER OUT.gguf``.

The folder is what ``examples/tune.py --out`` leaves: PEFT's adapter_config.json and
adapter_model.safetensors. The file is an adapter for llama.cpp, with numbers in q8_0, or in f16
where the rank is no multiple of 32. ``--base`` names the model that was tuned, as after ``local:``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rpms.models.local import find_weights
from rpms.models.merging import LORA_A, LORA_B
from rpms.models.weights import read_metadata
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import parse_json, read_bytes, whole_file
from rpms.vocabulary.output import print_safe

Array = np.ndarray[Any, Any]
CONFIG, TENSORS = "adapter_config.json", "adapter_model.safetensors"
PREFIX = "base_model.model."
PARTS = {".lora_A.weight": LORA_A, ".lora_B.weight": LORA_B}
ARCHITECTURES = ("llama", "qwen2", "qwen3")
"""Those whose matrices llama.cpp keeps as they are, but for ROTATED ones."""
ROTATED = {"llama": {"attn_q": "head_count", "attn_k": "head_count_kv"}}
"""Matrices whose rows llama.cpp orders for another rotary embedding, and their number of heads."""
# Variants of LoRA that llama.cpp does not compute.
UNSUPPORTED = (
    "use_dora", "use_rslora", "alpha_pattern", "rank_pattern", "modules_to_save",
    "trainable_token_indices", "fan_in_fan_out", "lora_bias", "layer_replication",
)  # fmt: skip


def read_tensors(file: Path) -> Iterator[tuple[str, Array]]:
    """Yield the tensors of a safetensors file in single precision."""
    data = read_bytes(file, "the adapter")
    start = 8 + int.from_bytes(data[:8], "little")
    for name, entry in parse_json(data[8:start], str(file)).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        yield (
            name,
            _floats(data[start + begin : start + end], entry["dtype"]).reshape(entry["shape"]),
        )


def _floats(data: bytes, kind: str) -> Array:
    if kind == "BF16":  # the upper half of a single
        return (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4")
    if kind not in ("F32", "F16"):
        raise RpmsError(f"{TENSORS}: numbers of type {kind} are not supported; use F32 or BF16")
    return np.frombuffer(data, f"<f{int(kind[1:]) // 8}").astype("<f4")


def permute_rows(matrix: Array, heads: int) -> Array:
    """Order rows as llama.cpp does: halves of each head alternate."""
    halves = matrix.reshape(heads, 2, matrix.shape[0] // heads // 2, *matrix.shape[1:])
    return halves.swapaxes(1, 2).reshape(matrix.shape)


def converted(tensors: Iterator[tuple[str, Array]], base: Mapping[str, Any]) -> dict[str, Array]:
    """Return the adapter's tensors under llama.cpp's names, for a base with this metadata."""
    import gguf

    architecture = str(base["general.architecture"])
    known = {name: arch for arch, name in gguf.MODEL_ARCH_NAMES.items()}
    names = gguf.get_tensor_name_map(known[architecture], base[f"{architecture}.block_count"])
    rotated = ROTATED.get(architecture, {})
    result: dict[str, Array] = {}
    for key, tensor in tensors:
        suffix = next((part for part in PARTS if key.endswith(part)), "")
        name = names.get_name(key.removeprefix(PREFIX).removesuffix(suffix)) if suffix else None
        if name is None:
            raise RpmsError(f"{TENSORS}: '{key}' is no LoRA matrix of a {architecture} model")
        heads = rotated.get(name.rpartition(".")[2])
        if heads and PARTS[suffix] == LORA_B:
            tensor = permute_rows(tensor, base[f"{architecture}.attention.{heads}"])
        result[f"{name}.weight{PARTS[suffix]}"] = tensor
    return result


def convert(folder: Path, out: Path, base: Path) -> int:
    """Write the adapter; return the number of matrices that it changes."""
    import gguf
    from gguf.quants import quantize

    config = parse_json(read_bytes(folder / CONFIG, "the adapter"), str(folder / CONFIG))
    if wrong := [key for key in UNSUPPORTED if config.get(key)]:
        raise RpmsError(f"{folder / CONFIG}: llama.cpp has no {', '.join(wrong)}; tune without")
    metadata = read_metadata(base)
    if (architecture := metadata.get("general.architecture")) not in ARCHITECTURES:
        raise RpmsError(
            f"{base} is a '{architecture}' model; only {', '.join(ARCHITECTURES)} are supported: "
            "use llama.cpp's convert_lora_to_gguf.py"
        )
    tensors = converted(read_tensors(folder / TENSORS), metadata)
    kinds = gguf.GGMLQuantizationType
    with whole_file(out) as file:
        writer = gguf.GGUFWriter(file.name, architecture)
        writer.add_type("adapter")
        writer.add_string("adapter.type", "lora")
        writer.add_float32("adapter.lora.alpha", float(config["lora_alpha"]))
        for name, tensor in sorted(tensors.items()):
            kind = kinds.F16 if tensor.shape[-1] % 32 else kinds.Q8_0
            writer.add_tensor(name, quantize(tensor, kind), raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
    return len(tensors) // 2


def main() -> int:
    """Convert, or say in one line what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="the folder with the adapter of PEFT")
    parser.add_argument("out", type=Path, help="the GGUF file to write")
    parser.add_argument("--base", default="smollm2", help="the tuned model: a name or a GGUF file")
    options = parser.parse_args()
    try:
        matrices = convert(options.folder, options.out, find_weights(options.base))
    except RpmsError as error:
        print_safe(f"error: {error}", file=sys.stderr)
        return 2
    megabytes = options.out.stat().st_size / 1e6
    print_safe(f"{options.out}: an adapter for {matrices} matrices, {megabytes:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
