"""Train a LoRA on the file that ``rpms export`` writes, with TRL and PEFT.

    python examples/tune.py --model FILE.gguf --data lines.jsonl --out tuned --merge merged
    vllm serve merged --served-model-name tuned

See docs/tuning.md. It is meant for one GPU; a CPU is enough for a test.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

NEEDED = ("trl", "peft")


def read_examples(file: Path) -> Iterator[dict[str, Any]]:
    """Each reply with weight 1 in TRL's format: the messages before it, and the reply."""
    for line in file.read_text(encoding="utf-8").splitlines():
        messages = json.loads(line)["messages"]
        plain = [{key: message[key] for key in ("role", "content")} for message in messages]
        for number, message in enumerate(messages):
            if message.get("weight"):
                yield {"prompt": plain[:number], "completion": [plain[number]]}


def load(name: str) -> tuple[Any, Any]:
    """Load the model and its tokenizer; the weights of a GGUF file are dequantised."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    file = Path(name)
    dtype = torch.bfloat16 if torch.cuda.is_available() else torch.float32
    if file.suffix != ".gguf":
        model = AutoModelForCausalLM.from_pretrained(name, dtype=dtype)
        return model, AutoTokenizer.from_pretrained(name)
    unpacked = {"gguf_file": file.name, "quantization_config": GgufConfig(dequantize=True)}
    model = AutoModelForCausalLM.from_pretrained(file.parent, dtype=dtype, **unpacked)
    return model, AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)


def train(options: argparse.Namespace) -> None:
    """Train, and save the adapter and, with --merge, the merged model."""
    import torch
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import TrainerCallback
    from trl import SFTConfig, SFTTrainer

    deadline = monotonic() + 60 * (options.minutes or float("inf"))

    class TimeLimit(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if monotonic() > deadline:
                control.should_save = control.should_training_stop = True

    model, tokenizer = load(options.model)
    settings = SFTConfig(
        output_dir=options.out, seed=options.seed, learning_rate=options.rate,
        num_train_epochs=options.epochs, max_steps=options.steps or -1,
        per_device_train_batch_size=options.batch, train_sampling_strategy="group_by_length",
        lr_scheduler_type="cosine", warmup_steps=10,
        max_length=None,  # the default of 1,024 tokens would cut off the reply
        completion_only_loss=True, bf16=torch.cuda.is_available(),
        gradient_checkpointing=options.checkpointing, dataset_num_proc=4,
        save_steps=200, save_total_limit=1, logging_steps=10, report_to="none",
    )  # fmt: skip
    lora = LoraConfig(
        r=options.lora, lora_alpha=2 * options.lora, target_modules="all-linear",
        task_type="CAUSAL_LM",
    )  # fmt: skip
    trainer = SFTTrainer(
        model, settings, train_dataset=Dataset.from_list([*read_examples(options.data)]),
        processing_class=tokenizer, peft_config=lora, callbacks=[TimeLimit()],
    )  # fmt: skip
    trainer.train(resume_from_checkpoint=options.resume)
    trainer.save_model(options.out)
    done, planned = trainer.state.global_step, trainer.state.max_steps
    rest = "" if done >= planned else "; add --resume to train the rest"
    print(f"saved the adapter in {options.out} after {done} of {planned} steps{rest}")
    if options.merge:
        trainer.model.merge_and_unload().save_pretrained(options.merge)
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
    add("--lora", type=int, default=16, metavar="RANK", help="rank of the adapter (16)")
    add("--rate", type=float, default=2e-4, help="learning rate (2e-4)")
    add("--batch", type=int, default=8, help="examples in a step (8)")
    add("--epochs", type=float, default=1, help="passes over the data (1)")
    add("--steps", type=int, help="train this many steps instead of whole epochs")
    add("--minutes", type=float, help="save and stop after this time")
    add("--no-checkpointing", dest="checkpointing", action="store_false",
        help="keep all activations: faster, but it needs more GPU memory")  # fmt: skip
    add("--resume", action="store_true", help="continue from the last checkpoint in --out")
    add("--seed", type=int, default=0)
    options = parser.parse_args()
    if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        parser.error(f"{', '.join(missing)} not installed: pip install trl peft gguf")
    train(options)


if __name__ == "__main__":
    main()
