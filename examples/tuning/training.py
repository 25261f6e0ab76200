"""One or a few passes over the lines: full fine-tuning, or a LoRA."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.nn import functional

from tuning.data import IGNORED, Example, batches, read_lines, to_example
from tuning.loading import Loaded, load
from tuning.lora import add_lora, save_lora

WARM_UP = 10
TOLD_EVERY = 20


class Recipe(NamedTuple):
    """How to train; ``rate`` 0 is 1e-5 for all weights and 2e-4 for a LoRA."""

    rank: int = 0
    rate: float = 0.0
    passes: int = 1
    tokens: int = 16_000
    seed: int = 0


def train(name: str, data: Path, out: Path, recipe: Recipe) -> None:
    """Train on a file and save: a whole model, or an adapter where there is a rank."""
    torch.manual_seed(recipe.seed)
    loaded = load(name)
    alpha = 2.0 * recipe.rank
    layers = add_lora(loaded.model, recipe.rank, alpha) if recipe.rank else {}
    examples = [to_example(loaded.tokenizer, messages) for messages in read_lines(data)]
    learned = sum(label != IGNORED for one in examples for label in one.labels)
    print(
        f"{len(examples)} lines, {sum(len(one.ids) for one in examples)} tokens, {learned} learned"
    )
    fit(loaded, examples, recipe)
    if layers:
        save_lora(layers, name, recipe.rank, alpha, out)
        # The converter to GGUF wants to know what model the adapter is for.
        loaded.model.config.save_pretrained(out / "base")
    else:
        loaded.model.save_pretrained(out)
        loaded.tokenizer.save_pretrained(out)
    print(f"saved: {out}")


def fit(loaded: Loaded, examples: list[Example], recipe: Recipe) -> list[float]:
    """The loop itself; the loss of every batch."""
    model = loaded.model.train()
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    rate = recipe.rate or (2e-4 if recipe.rank else 1e-5)
    optimizer = torch.optim.AdamW(weights, lr=rate, weight_decay=0.0, betas=(0.9, 0.98))
    lengths = [len(one.ids) for one in examples]
    plan = [
        batch
        for number in range(recipe.passes)
        for batch in batches(lengths, recipe.tokens, recipe.seed + number)
    ]
    losses = []
    for step, batch in enumerate(plan):
        loss = batch_loss(loaded, [examples[number] for number in batch])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        for group in optimizer.param_groups:
            group["lr"] = rate * schedule(step, len(plan))
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        if step % TOLD_EVERY == 0 or step == len(plan) - 1:
            print(f"step {step + 1} of {len(plan)}, loss {losses[-1]:.4f}", flush=True)
    model.eval()
    return losses


def schedule(step: int, steps: int) -> float:
    """Up in ten steps, then down to a tenth along a cosine."""
    return min(1.0, (step + 1) / WARM_UP) * (
        0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * step / steps))
    )


def batch_loss(loaded: Loaded, examples: list[Example]) -> Any:
    """Mean over the learned tokens; scores of the vocabulary are made for those alone.

    Padding stands at the end, where attention to earlier tokens never sees it.
    """
    longest = max(len(one.ids) for one in examples)
    pad = loaded.tokenizer.pad_token_id
    ids = torch.tensor([one.ids + [pad] * (longest - len(one.ids)) for one in examples])
    labels = torch.tensor(
        [one.labels + [IGNORED] * (longest - len(one.labels)) for one in examples]
    )
    ids, labels = ids.to(loaded.device), labels.to(loaded.device)
    hidden = loaded.model.base_model(input_ids=ids, use_cache=False).last_hidden_state
    kept = labels[:, 1:] != IGNORED
    scores = loaded.model.get_output_embeddings()(hidden[:, :-1][kept])
    return functional.cross_entropy(scores.float(), labels[:, 1:][kept])
