"""Train a LoRA on the file that ``rpms export`` writes, with transformers and PEFT.

    python examples/tune.py --model FILE.gguf --data lines.jsonl --out tuned --merge merged
    vllm serve merged --served-model-name tuned

The prompts of one episode begin with the same tokens. These are computed once: prompts and replies
form a prefix tree, in which a token attends to its own ancestors only. The loss is the same as for
the decisions one by one, for a third to a fifth of the tokens.

See docs/models.md. It is meant for one GPU; a CPU that multiplies matrices of bfloat16 (AMX) is
enough for trials with the smallest model.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

NEEDED = ("transformers", "peft", "accelerate")
QUERIES = 512
"""Tokens that a CPU computes attention for at a time."""
MULTIPLE = 256
"""Numbers of tokens are multiples of it: tensors of few shapes use the same memory again."""
IGNORED = -100
"""A label without a loss, for transformers as for PyTorch."""


class Decision(NamedTuple):
    """The tokens of a prompt and its reply; the reply, from ``reply`` on, is to be learned."""

    tokens: tuple[int, ...]
    reply: int


class Tree(NamedTuple):
    """Decisions whose common beginnings are stored once, in depth-first order.

    Token ``k`` is an ancestor of the tokens from ``k`` up to ``end[k]``; its position in the text
    is its depth. ``learned`` has each token of a reply with the token before it.
    """

    tokens: list[int]
    depth: list[int]
    end: list[int]
    learned: list[tuple[int, int]]


def read_examples(file: Path) -> Iterator[dict[str, Any]]:
    """Each reply with weight 1: the messages before it, and the reply."""
    for line in file.read_text(encoding="utf-8").splitlines():
        messages = json.loads(line)["messages"]
        plain = [{key: message[key] for key in ("role", "content")} for message in messages]
        for number, message in enumerate(messages):
            if message.get("weight"):
                yield {"prompt": plain[:number], "completion": [plain[number]]}


def tokenize(examples: Sequence[dict[str, Any]], tokenizer: Any) -> list[Decision]:
    """Apply the model's chat template."""
    chat = tokenizer.apply_chat_template
    prompts = [chat(e["prompt"], tokenize=False, add_generation_prompt=True) for e in examples]
    whole = [chat(e["prompt"] + e["completion"], tokenize=False) for e in examples]
    for prompt, text in zip(prompts, whole, strict=True):
        if not text.startswith(prompt):
            raise SystemExit("tune: the chat template changes a prompt when it is answered")
    replies = [text[len(prompt) :] for prompt, text in zip(prompts, whole, strict=True)]
    encoded = [tokenizer(texts, add_special_tokens=False).input_ids for texts in (prompts, replies)]
    return [Decision((*p, *r), len(p)) for p, r in zip(*encoded, strict=True)]


def grow(decisions: Iterable[Decision]) -> Tree:
    """Put decisions into one tree: in sorted order each shares its beginning with the last one."""
    tree, path = Tree([], [], [], []), list[int]()
    before: tuple[int, ...] = ()
    for decision in sorted(decisions):
        shared = _common(before, decision.tokens)
        for node in path[shared:]:
            tree.end[node] = len(tree.tokens)
        del path[shared:]
        for depth, token in enumerate(decision.tokens[shared:], shared):
            path.append(len(tree.tokens))
            tree.tokens.append(token)
            tree.depth.append(depth)
            tree.end.append(0)
        tree.learned.extend(pairwise(path[decision.reply - 1 :]))
        before = decision.tokens
    for node in path:
        tree.end[node] = len(tree.tokens)
    return tree


def _common(first: Sequence[int], second: Sequence[int]) -> int:
    """The length of the common beginning."""
    low, high = 0, min(len(first), len(second))
    while low < high:  # by halving, as slices compare fast
        middle = (low + high + 1) // 2
        low, high = (middle, high) if first[:middle] == second[:middle] else (low, middle - 1)
    return low


def plant(decisions: Iterable[Decision], size: int) -> Iterator[Tree]:
    """Trees of at most ``size`` tokens; neighbours in the file share most."""
    part, length, before = list[Decision](), 0, Decision((), 0)
    for decision in decisions:
        if len(decision.tokens) > size:
            raise SystemExit(f"tune: a prompt has {len(decision.tokens)} tokens; raise --tokens")
        new = len(decision.tokens) - _common(before.tokens, decision.tokens)
        if part and length + new > size:
            yield grow(part)
            part, length, new = [], 0, len(decision.tokens)
        part.append(decision)
        length, before = length + new, decision
    if part:
        yield grow(part)


def tensors(tree: Tree, size: int) -> dict[str, Any]:
    """One tree as the trainer takes it, padded to ``size``."""
    import torch

    nodes = len(tree.tokens)
    padding = [0] * (size - nodes)
    rest = -len(tree.learned) % MULTIPLE
    before, target = zip(*tree.learned, strict=True)
    return {
        "input_ids": torch.tensor([tree.tokens + padding]),
        "position_ids": torch.tensor([tree.depth + padding]),
        "end": torch.tensor([*tree.end, *range(nodes + 1, size + 1)]),
        "before": torch.tensor([*before, *[0] * rest]),
        "labels": torch.tensor([*(tree.tokens[node] for node in target), *[IGNORED] * rest]),
    }


def attention(end: Any) -> dict[str, Any]:
    """What lets a token of a tree attend to itself and its ancestors only."""
    import torch
    from torch.nn.attention.flex_attention import create_block_mask
    from torch.nn.functional import pad

    size = len(end)
    if end.is_cuda:
        mask = create_block_mask(
            lambda _b, _h, query, key: (key <= query) & (query < end[key]), None, None, size, size
        )
        return {"attention_mask": mask}
    node, parts = torch.arange(size), list[tuple[slice, Any, Any]]()
    for first in range(0, size, QUERIES):
        query = node[first : first + QUERIES, None]
        key = node[: query[-1] + 1]
        key = key[end[key] > first]  # the others are ancestors of no token in this part
        rest = (0, -len(key) % MULTIPLE)
        seen = pad((key <= query) & (query < end[key]), rest)
        bias = torch.where(seen, 0.0, float("-inf"))
        parts.append((slice(first, first + QUERIES), pad(key, rest), bias))
    return {"parts": parts}


def attend(
    _: Any, query: Any, key: Any, value: Any, mask: None, parts: Any, scaling: float, **__: Any
) -> tuple[Any, None]:
    """Attention on a CPU, for which PyTorch's flex attention has no gradients."""
    import torch

    batch, heads, _size, width = query.shape
    groups = key.shape[1]
    seen = []
    for rows, keys, bias in parts:
        # The query heads of a group share their key head.
        some = (query[:, :, rows] * scaling).reshape(batch, groups, -1, width)
        scores = some @ key.index_select(2, keys).transpose(2, 3)
        scores = scores.view(batch, heads, -1, len(keys)) + bias.to(scores.dtype)
        weights = torch.softmax(scores, -1).view(batch, groups, -1, len(keys))
        seen.append((weights @ value.index_select(2, keys)).view(batch, heads, -1, width))
    return torch.cat(seen, 2).transpose(1, 2), None


def load(name: str) -> tuple[Any, Any]:
    """Load the model and its tokenizer; the weights of a GGUF file are dequantised."""
    import torch
    from transformers import AttentionInterface, AutoModelForCausalLM, AutoTokenizer, GgufConfig

    AttentionInterface.register("tree", attend)
    file = Path(name)
    settings: dict[str, Any] = {
        "dtype": torch.bfloat16 if has_bfloat16() else torch.float32,
        "attn_implementation": "flex_attention" if torch.cuda.is_available() else "tree",
    }
    if file.suffix != ".gguf":
        model = AutoModelForCausalLM.from_pretrained(name, **settings)
        return model, AutoTokenizer.from_pretrained(name)
    settings |= {"gguf_file": file.name, "quantization_config": GgufConfig(dequantize=True)}
    model = AutoModelForCausalLM.from_pretrained(file.parent, **settings)
    return model, AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)


def has_bfloat16() -> bool:
    """Whether the GPU, or else the CPU, is fast with it."""
    import torch

    return torch.cuda.is_available() or bool(torch.cpu.get_capabilities().get("amx_bf16"))


def loss_of(model: Any, row: dict[str, Any]) -> Any:
    """The summed loss over the replies of a tree."""
    from torch.nn.functional import cross_entropy

    logits = model(
        input_ids=row["input_ids"], position_ids=row["position_ids"], use_cache=False,
        logits_to_keep=row["before"], **attention(row["end"]),
    ).logits  # fmt: skip
    return cross_entropy(logits[0].float(), row["labels"], reduction="sum")


def train(options: argparse.Namespace) -> None:
    """Train, and save the adapter and, with --merge, the merged model."""
    import torch
    from peft import LoraConfig, PeftModel, get_peft_model
    from transformers import Trainer, TrainerCallback, TrainingArguments

    deadline = monotonic() + 60 * (options.minutes or float("inf"))

    class TimeLimit(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if monotonic() > deadline:
                control.should_save = control.should_training_stop = True

    class TreeTrainer(Trainer):  # type: ignore[misc]
        def compute_loss(
            self, model: Any, inputs: Any, return_outputs: bool = False, **counted: Any
        ) -> Any:
            return loss_of(model, inputs) / counted["num_items_in_batch"]

    model, tokenizer = load(options.model)
    decisions = tokenize([*read_examples(options.data)], tokenizer)
    trees = [*plant(decisions, options.tokens)]
    print(f"{len(decisions)} decisions in {len(trees)} trees", flush=True)
    lora = LoraConfig(
        r=options.lora, lora_alpha=2 * options.lora, target_modules="all-linear",
        task_type="CAUSAL_LM",
    )  # fmt: skip
    torch.manual_seed(options.seed)
    if options.adapter:
        model = PeftModel.from_pretrained(model, options.adapter, is_trainable=True)
    else:
        model = get_peft_model(model, lora)
    settings = TrainingArguments(
        output_dir=options.out, seed=options.seed, learning_rate=options.rate,
        num_train_epochs=options.epochs, max_steps=options.steps or -1,
        per_device_train_batch_size=1, gradient_accumulation_steps=options.batch,
        lr_scheduler_type="cosine", warmup_steps=10,
        bf16=has_bfloat16(), use_cpu=not torch.cuda.is_available(),
        gradient_checkpointing=options.checkpointing, remove_unused_columns=False,
        save_steps=50, save_total_limit=1, logging_steps=10, report_to="none",
    )  # fmt: skip
    trainer = TreeTrainer(
        model, settings, train_dataset=trees, callbacks=[TimeLimit()],
        data_collator=lambda batch: tensors(batch[0], options.tokens),
    )  # fmt: skip
    trainer.train(resume_from_checkpoint=options.resume)
    trainer.save_model(options.out)
    done, planned = trainer.state.global_step, trainer.state.max_steps
    rest = "" if done >= planned else "; add --resume to train the rest"
    print(f"saved the adapter in {options.out} after {done} of {planned} steps{rest}")
    if options.merge:
        model.merge_and_unload().save_pretrained(options.merge)
        tokenizer.save_pretrained(options.merge)
        print(f"saved the merged model in {options.merge}")


def main() -> None:
    """Parse the command line before any heavy import."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--model", required=True, help="FILE.gguf, a folder, or a name on the hub")
    add("--data", required=True, type=Path, help="a file of 'rpms export'")
    add("--out", required=True, type=Path, help="folder for the adapter and its checkpoints")
    add("--merge", type=Path, help="folder for the model with the adapter merged into it")
    add(
        "--adapter",
        type=Path,
        help="go on with the training of this adapter, of its own rank, on other data",
    )
    add("--lora", type=int, default=16, metavar="RANK", help="rank of the adapter (16)")
    add("--rate", type=float, default=2e-4, help="learning rate (2e-4)")
    add("--tokens", type=int, default=8192, help="tokens of a tree (8192)")
    add("--batch", type=int, default=1, help="trees in a step (1)")
    add("--epochs", type=float, default=1, help="passes over the data (1)")
    add("--steps", type=int, help="train this many steps instead of whole epochs")
    add("--minutes", type=float, help="save and stop after this time")
    add("--no-checkpointing", dest="checkpointing", action="store_false",
        help="keep all activations: faster, but it needs more GPU memory")  # fmt: skip
    add("--resume", action="store_true", help="continue from the last checkpoint in --out")
    add("--seed", type=int, default=0)
    options = parser.parse_args()
    if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        parser.error(
            f"{', '.join(missing)} not installed: pip install transformers peft accelerate gguf"
        )
    train(options)


if __name__ == "__main__":
    main()
