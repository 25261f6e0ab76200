"""A causal language model and its tokenizer, from a GGUF file, a folder or the Hugging Face hub."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


class Loaded(NamedTuple):
    """A model that is ready, and where it is."""

    model: Any
    tokenizer: Any
    device: str


def load(name: str) -> Loaded:
    """Weights in bfloat16 on a GPU, in full precision on a processor.

    The quantised weights of a GGUF file are unpacked: what is trained fits that very file.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    file = Path(name)
    where: dict[str, Any] = {}
    if file.suffix == ".gguf":
        name, where = str(file.parent), {"gguf_file": file.name}
    try:
        tokenizer = AutoTokenizer.from_pretrained(name, **where)
        model = AutoModelForCausalLM.from_pretrained(name, dtype=dtype, **where)
    except (ImportError, OSError, ValueError) as error:  # these say themselves what is missing
        raise SystemExit(f"tune: cannot load {file}: {error}") from error
    if where:
        # Unpacked on the way in, it is an ordinary model; marked as quantised it cannot be saved.
        model.hf_quantizer = None
        vars(model.config).pop("quantization_config", None)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return Loaded(model.to(device), tokenizer, device)
