"""Tune a small model on what ``rpms export --format chat`` writes.

    python examples/tune.py train --model FILE.gguf --data lines.jsonl --out tuned --lora 16

See docs/tuning.md. Needs torch, transformers 5, accelerate and gguf, which RPMS does not. Meant for
one GPU; a processor will do to try it out.
"""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path

NEEDED = ("torch", "transformers", "gguf", "safetensors")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("train", help="tune on a file of chat lines")
    command.add_argument("--model", required=True, help="FILE.gguf, a folder, or a name on the hub")
    command.add_argument("--data", required=True, type=Path, help="lines of 'rpms export'")
    command.add_argument("--out", required=True, type=Path, help="folder for the model or adapter")
    command.add_argument("--lora", type=int, default=0, metavar="R", help="rank; 0: all weights")
    command.add_argument("--rate", type=float, default=0.0, help="0: 1e-5, and 2e-4 for a LoRA")
    command.add_argument("--passes", type=int, default=1)
    command.add_argument("--tokens", type=int, default=16_000, help="tokens of a batch")
    command.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        parser.error(
            f"{', '.join(missing)} not installed: pip install torch transformers accelerate gguf"
        )
    from tuning.training import Recipe, train

    recipe = Recipe(options.lora, options.rate, options.passes, options.tokens, options.seed)
    train(options.model, options.data, options.out, recipe)


if __name__ == "__main__":
    main()
