"""Merge a LoRA adapter into the weights of its base model: one GGUF file in the cache folder.

llama.cpp can also apply an adapter while it reads a prompt, but then every call pays for it. The
merged file is written once. Its name holds a digest of both files, so that another adapter or
another base makes another file.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rpms.models.weights import CHUNK, Report, adapter_file, check_adapter, folder
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import is_file, open_file, stamp_of, whole_file

if TYPE_CHECKING:
    import numpy as np

MERGER = "gguf"
"""The package that reads and writes the files; it is only needed to merge."""
MERGED_TYPE = "Q8_0"
"""The type of the merged matrices. Q4_0 reads prompts faster but changed replies; F16 is
larger, and about as fast."""
MERGED_FORMAT = 1
"""Part of the file's name; raise it if a merge begins to write something else."""
LORA_A, LORA_B = ".lora_a", ".lora_b"


class LowRank(NamedTuple):
    """The change of one matrix: ``scale * b @ a``."""

    a: np.ndarray[Any, Any]
    b: np.ndarray[Any, Any]
    scale: float


def merged_file(name: str, base: Path) -> Path:
    """Return the path of a tuned model's merged weights, whether it exists or not."""
    digest = hashlib.blake2b(f"{MERGED_FORMAT} {MERGED_TYPE}".encode())
    for file in (base, adapter_file(name)):
        digest.update(_digest(file, stamp_of(file)))
    return folder() / f"{name}-{digest.hexdigest()[:16]}.gguf"


@lru_cache(maxsize=8)
def _digest(file: Path, stamp: tuple[int, int]) -> bytes:
    digest = hashlib.blake2b()
    with open_file(file, "the model") as data:
        while chunk := data.read(CHUNK):
            digest.update(chunk)
    return digest.digest()


def merged_weights(name: str, base: Path, report: Report) -> Path:
    """Return the merged weights of a tuned model; make them if they do not exist yet."""
    target = merged_file(name, base)
    if not is_file(target):
        if importlib.util.find_spec(MERGER) is None:
            raise RpmsError(
                f"model 'local:{name}' needs {MERGER}, which is not installed: run 'make local' "
                "or pip install -e '.[local]' in a clone of RPMS"
            )
        report(f"merging the adapter {name} into its base model, once: {target}")
        merge(base, adapter_file(name), target)
    return target


def merge(base: Path, adapter: Path, target: Path) -> None:
    """Write the base model with the adapter's changes; metadata and tokenizer stay as they are."""
    check_adapter(adapter, base)
    import gguf

    try:
        source, tuning = gguf.GGUFReader(base), gguf.GGUFReader(adapter)
        changes = read_changes(tuning)
        shapes = {tensor.name: tuple(map(int, tensor.shape[::-1])) for tensor in source.tensors}
    except (ValueError, KeyError, IndexError) as error:
        raise RpmsError(f"cannot merge {adapter} into {base}: one of them is damaged") from error
    for name, change in changes.items():
        if shapes.get(name) != (change.b.shape[0], change.a.shape[1]):
            raise RpmsError(f"{adapter} does not fit {base}: '{name}' has another shape there")
    with whole_file(target) as out:
        writer = gguf.GGUFWriter(out.name, source.fields["general.architecture"].contents())
        _copy_metadata(source, writer)
        for tensor in source.tensors:
            _add_tensor(writer, tensor, changes)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()


def read_changes(adapter: Any) -> dict[str, LowRank]:
    """Return the changes of an open adapter by the name of the matrix."""
    from gguf.quants import dequantize

    alpha = float(adapter.fields["adapter.lora.alpha"].contents())
    parts = {tensor.name: dequantize(tensor.data, tensor.tensor_type) for tensor in adapter.tensors}
    changes: dict[str, LowRank] = {}
    for name in (key.removesuffix(LORA_A) for key in parts if key.endswith(LORA_A)):
        a, b = parts[name + LORA_A], parts[name + LORA_B]
        # llama.cpp takes an alpha of 0 for "no alpha".
        changes[name] = LowRank(a, b, alpha / a.shape[0] if alpha else 1.0)
    return changes


def _copy_metadata(source: Any, writer: Any) -> None:
    import gguf

    file_type = gguf.LlamaFileType[f"MOSTLY_{MERGED_TYPE}"].value
    # The writer itself writes the architecture, and the counts that the reader calls GGUF.*.
    written = ("general.architecture", "general.file_type")
    for field in source.fields.values():
        if field.name in written or field.name.startswith("GGUF."):
            continue
        kind, *inner = field.types
        writer.add_key_value(field.name, field.contents(), kind, inner[-1] if inner else None)
    writer.add_file_type(file_type)


def _add_tensor(writer: Any, tensor: Any, changes: Mapping[str, LowRank]) -> None:
    import gguf
    from gguf.quants import dequantize, quantize

    data, kind = tensor.data, tensor.tensor_type
    if change := changes.get(tensor.name):
        kind = gguf.GGMLQuantizationType[MERGED_TYPE]
        matrix = dequantize(data, tensor.tensor_type)
        data = quantize(matrix + change.scale * (change.b @ change.a), kind)
    writer.add_tensor(tensor.name, data, raw_dtype=kind)
