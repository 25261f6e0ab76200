"""GGUF files of a few bytes, for tests that need one."""

from __future__ import annotations

import struct


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def entry(name: str, kind: int, value: bytes) -> bytes:
    return text(name) + struct.pack("<I", kind) + value


def header(entries: list[bytes], version: int = 3, tensors: int = 0) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, len(entries)) + b"".join(entries)


def model(trained: int) -> bytes:
    """A model that says how many tokens it was trained to read, and nothing else."""
    return header([entry("general.architecture", 8, text("toy")),
                   entry("toy.context_length", 4, struct.pack("<I", trained))])  # fmt: skip


def adapter(size: float) -> bytes:
    """A LoRA of rank 1 on one matrix of SmolLM2-135M, all of whose numbers are alike."""
    names = {"general.architecture": "llama", "general.type": "adapter", "adapter.type": "lora"}
    entries = [entry(name, 8, text(value)) for name, value in names.items()]
    head = header([*entries, entry("adapter.lora.alpha", 6, struct.pack("<f", 1.0))], tensors=2)
    data = b""
    for part, shape in {"lora_a": (1536, 1), "lora_b": (1, 576)}.items():
        name = text(f"blk.29.ffn_down.weight.{part}")
        head += name + struct.pack("<IQQIQ", 2, *shape, 0, len(data))
        data += struct.pack("<f", size) * (shape[0] * shape[1])
    return head + bytes(-len(head) % 32) + data
