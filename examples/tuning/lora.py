"""LoRA in a few lines, saved as PEFT saves it, so that vLLM, llama.cpp and PEFT can read it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional

TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
PREFIX = "base_model.model."


class LoraLinear(nn.Module):  # type: ignore[misc]
    """A matrix W that stays as it is, plus B A x times alpha / rank; B begins at zero."""

    def __init__(self, base: Any, rank: int, alpha: float) -> None:
        """``base`` is the layer that stays."""
        super().__init__()
        self.base = base.requires_grad_(False)
        self.scale = alpha / rank
        made = {"device": base.weight.device, "dtype": torch.float32}
        self.lora_A = nn.Linear(base.in_features, rank, bias=False, **made)
        self.lora_B = nn.Linear(rank, base.out_features, bias=False, **made)
        nn.init.kaiming_uniform_(self.lora_A.weight, a=math.sqrt(5))
        nn.init.zeros_(self.lora_B.weight)

    def forward(self, x: Any) -> Any:
        """The sum of both, in the model's own precision.

        The small matrices are kept and changed in full precision; multiplying in it would keep a
        copy of every input for the way back, more than training all weights takes.
        """
        inner = functional.linear(x, self.lora_A.weight.to(x.dtype))
        return self.base(x) + self.scale * functional.linear(inner, self.lora_B.weight.to(x.dtype))


def add_lora(model: Any, rank: int, alpha: float) -> dict[str, Any]:
    """Put the small matrices beside the large ones; returns the layers by name."""
    model.requires_grad_(False)
    found = {
        name: layer
        for name, layer in model.named_modules()
        if isinstance(layer, nn.Linear) and name.rpartition(".")[2] in TARGETS
    }
    if not found:
        raise SystemExit(f"tune: this model has no layers called {', '.join(TARGETS)}")
    layers = {}
    for name, base in found.items():
        parent, _, last = name.rpartition(".")
        layers[name] = LoraLinear(base, rank, alpha)
        setattr(model.get_submodule(parent), last, layers[name])
    return layers


def peft_keys(name: str) -> dict[str, str]:
    """What PEFT calls the two matrices of a layer."""
    return {part: f"{PREFIX}{name}.{part}.weight" for part in ("lora_A", "lora_B")}


def save_lora(layers: dict[str, Any], base: str, rank: int, alpha: float, out: Path) -> None:
    """The two files of a PEFT adapter."""
    tensors = {
        key: getattr(layer, part).weight.detach().cpu().contiguous()
        for name, layer in layers.items()
        for part, key in peft_keys(name).items()
    }
    out.mkdir(parents=True, exist_ok=True)
    save_file(tensors, str(out / WEIGHTS), metadata={"format": "pt"})
    config = {
        "peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": base,
        "r": rank, "lora_alpha": alpha, "lora_dropout": 0.0, "bias": "none",
        "target_modules": sorted({name.rpartition(".")[2] for name in layers}),
        "fan_in_fan_out": False, "inference_mode": True, "init_lora_weights": True,
        "modules_to_save": None, "use_rslora": False, "use_dora": False,
    }  # fmt: skip
    (out / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def merge_lora(model: Any, folder: Path) -> None:
    """Add a saved adapter to the weights themselves: it costs nothing afterwards."""
    config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    tensors = load_file(str(folder / WEIGHTS))
    scale = config["lora_alpha"] / config["r"]
    ends = ".lora_A.weight"
    with torch.no_grad():
        for key in (key for key in tensors if key.endswith(ends)):
            weight = model.get_submodule(key[len(PREFIX) : -len(ends)]).weight
            small = tensors[key.replace("lora_A", "lora_B")] @ tensors[key]
            weight += (small * scale).to(weight)
