"""Full fine-tuning or a LoRA: one or a few passes over the lines.

The LoRA is a few lines here, saved as PEFT saves it, so that vLLM, llama.cpp and PEFT can read it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional
from transformers import AutoModelForCausalLM, AutoTokenizer

from tuning.data import IGNORED, Example, batches, read_lines, to_example
from tuning.sitting import Sitting

WARM_UP = 10
TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
PREFIX = "base_model.model."


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


class LoraLinear(nn.Module):  # type: ignore[misc]
    """A matrix W that stays as it is, plus B A x times alpha / rank; B begins at zero."""

    def __init__(self, base: Any, rank: int, alpha: float) -> None:
        """``base`` is the layer that stays."""
        super().__init__()
        self.base = base.requires_grad_(False)
        self.scale = alpha / rank
        placed = {"device": base.weight.device, "dtype": torch.float32}
        self.lora_A = nn.Linear(base.in_features, rank, bias=False, **placed)
        self.lora_B = nn.Linear(rank, base.out_features, bias=False, **placed)
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
    linear = {
        name: layer
        for name, layer in model.named_modules()
        if isinstance(layer, nn.Linear) and name.rpartition(".")[2] in TARGETS
    }
    if not linear:
        raise SystemExit(f"tune: this model has no layers called {', '.join(TARGETS)}")
    layers = {}
    for name, base in linear.items():
        parent, _, last = name.rpartition(".")
        layers[name] = LoraLinear(base, rank, alpha)
        setattr(model.get_submodule(parent), last, layers[name])
    return layers


def lora_weights(layers: dict[str, Any]) -> dict[str, Any]:
    """The small matrices by the names that PEFT gives them."""
    return {
        f"{PREFIX}{name}.{part}.weight": getattr(layer, part).weight
        for name, layer in layers.items()
        for part in ("lora_A", "lora_B")
    }


def save_lora(layers: dict[str, Any], base: str, rank: int, alpha: float, out: Path) -> None:
    """The two files of a PEFT adapter, small enough to be carried: in half precision."""
    weights = lora_weights(layers).items()
    tensors = {key: weight.detach().to("cpu", torch.bfloat16) for key, weight in weights}
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


def load_lora(layers: dict[str, Any], folder: Path) -> None:
    """Begin with a saved adapter instead of with nothing."""
    try:
        tensors = load_file(str(folder / WEIGHTS))
        for key, weight in lora_weights(layers).items():
            weight.data = tensors[key].to(weight).view_as(weight)
    except (OSError, KeyError, RuntimeError) as error:
        raise SystemExit(
            f"tune: {folder} has no adapter for this model and --lora: {error}"
        ) from None


def merge_lora(model: Any, folder: Path) -> None:
    """Add a saved adapter to the weights themselves: it costs nothing afterwards."""
    config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    tensors = load_file(str(folder / WEIGHTS))
    scale = config["lora_alpha"] / config["r"]
    ends = ".lora_A.weight"
    with torch.no_grad():
        for key in (key for key in tensors if key.endswith(ends)):
            weight = model.get_submodule(key[len(PREFIX) : -len(ends)]).weight
            small = tensors[key.replace("lora_A", "lora_B")].float() @ tensors[key].float()
            weight += (small * scale).to(weight)


class Recipe(NamedTuple):
    """How to train; ``rate`` 0 is 1e-5 for all weights and 2e-4 for a LoRA."""

    rank: int = 0
    rate: float = 0.0
    passes: int = 1
    tokens: int = 16_000
    seed: int = 0
    minutes: float = 0.0


def train(
    name: str, data: Path, out: Path, recipe: Recipe, earlier: Path | None = None
) -> list[float]:
    """Train on a file and save: a whole model, or an adapter where there is a rank.

    ``earlier`` is what another sitting saved, to go on from. The loss of every batch.
    """
    torch.manual_seed(recipe.seed)
    loaded = load(str(earlier) if earlier and not recipe.rank else name)
    alpha = 2.0 * recipe.rank
    layers = add_lora(loaded.model, recipe.rank, alpha) if recipe.rank else {}
    examples = [to_example(loaded.tokenizer, messages) for messages in read_lines(data)]
    learned = sum(label != IGNORED for example in examples for label in example.labels)
    lengths = [len(example.ids) for example in examples]
    print(f"{len(examples)} lines, {sum(lengths)} tokens, {learned} learned")
    plan = [
        batch
        for number in range(recipe.passes)
        for batch in batches(lengths, recipe.tokens, recipe.seed + number)
    ]
    sitting = Sitting(plan, lengths, recipe.minutes)
    if earlier:
        sitting.go_on(earlier)
    if earlier and layers:
        load_lora(layers, earlier)

    def write(folder: Path) -> None:
        if layers:
            save_lora(layers, name, recipe.rank, alpha, folder)
            # The converter to GGUF wants to know what model the adapter is for.
            loaded.model.config.save_pretrained(out / "base")
        else:
            loaded.model.save_pretrained(folder)
            loaded.tokenizer.save_pretrained(folder)

    return fit(loaded, examples, recipe, sitting, lambda: sitting.save(out, write))


def fit(
    loaded: Loaded, examples: list[Example], recipe: Recipe, sitting: Sitting,
    save: Callable[[], None],
) -> list[float]:  # fmt: skip
    """The loop itself; the loss of every batch.

    What is changed is a copy in full precision: bfloat16 has eight bits, and on most weights a step
    of 1e-5 would be rounded away.
    """
    model = loaded.model.train()
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    precise = [weight.detach().float().requires_grad_() for weight in weights]
    rate = recipe.rate or (2e-4 if recipe.rank else 1e-5)
    optimizer = torch.optim.AdamW(precise, lr=rate, weight_decay=0.0, betas=(0.9, 0.98))
    started, losses = monotonic(), []
    for step in sitting.steps(save):
        loss = batch_loss(loaded, [examples[number] for number in sitting.plan[step]])
        loss.backward()
        for weight, copy in zip(weights, precise, strict=True):
            copy.grad, weight.grad = weight.grad.float(), None
        torch.nn.utils.clip_grad_norm_(precise, 1.0)
        for group in optimizer.param_groups:
            group["lr"] = rate * schedule(step, len(sitting.plan), sitting.first)
        optimizer.step()
        with torch.no_grad():
            for weight, copy in zip(weights, precise, strict=True):
                weight.copy_(copy)
        losses.append(loss.item())
        sitting.report(losses[-1], monotonic() - started)
    model.eval()
    return losses


def schedule(step: int, steps: int, first: int = 0) -> float:
    """Up in ten steps, then down to a tenth along a cosine.

    Each sitting warms up from its ``first`` step on: the optimizer's averages, four times as large
    as an adapter, are not carried but gathered anew.
    """
    return min(1.0, (step - first + 1) / WARM_UP) * (
        0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * step / steps))
    )


def batch_loss(loaded: Loaded, examples: list[Example]) -> Any:
    """Mean over the learned tokens; scores of the vocabulary are made for those alone.

    Padding stands at the end, where attention to earlier tokens never sees it.
    """
    longest = max(len(example.ids) for example in examples)
    pad = loaded.tokenizer.pad_token_id
    ids = torch.tensor([example.ids + [pad] * (longest - len(example.ids)) for example in examples])
    labels = torch.tensor(
        [example.labels + [IGNORED] * (longest - len(example.labels)) for example in examples]
    )
    ids, labels = ids.to(loaded.device), labels.to(loaded.device)
    hidden = loaded.model.base_model(input_ids=ids, use_cache=False).last_hidden_state
    learned = labels[:, 1:] != IGNORED
    scores = loaded.model.get_output_embeddings()(hidden[:, :-1][learned])
    return functional.cross_entropy(scores.float(), labels[:, 1:][learned])
