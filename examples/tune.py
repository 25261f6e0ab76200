"""Tune a small model on what ``rpms export --format chat`` writes, and serve it.

    python examples/tune.py train --model FILE.gguf --data lines.jsonl --out tuned --lora 16
    python examples/tune.py serve --model FILE.gguf --adapter tuned --port 8000

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
    commands = parser.add_subparsers(dest="command", required=True)
    train = commands.add_parser("train", help="tune on a file of chat lines")
    train.add_argument("--model", required=True, help="FILE.gguf, a folder, or a name on the hub")
    train.add_argument("--data", required=True, type=Path, help="lines of 'rpms export'")
    train.add_argument("--out", required=True, type=Path, help="folder for the model or adapter")
    train.add_argument("--lora", type=int, default=0, metavar="R", help="rank; 0: all weights")
    train.add_argument("--rate", type=float, default=0.0, help="0: 1e-5, and 2e-4 for a LoRA")
    train.add_argument("--passes", type=int, default=1)
    train.add_argument("--tokens", type=int, default=16_000, help="tokens of a batch")
    train.add_argument("--seed", type=int, default=0)
    train.add_argument("--from", dest="earlier", type=Path, help="folder saved before: go on there")
    train.add_argument("--minutes", type=float, default=0.0, help="save and stop then; 0: never")
    serve = commands.add_parser("serve", help="answer as an OpenAI-compatible server")
    serve.add_argument("--model", required=True, help="FILE.gguf, a folder, or a name on the hub")
    serve.add_argument("--adapter", type=Path, help="folder of a LoRA")
    serve.add_argument("--port", type=int, default=8000)
    serve.add_argument("--tokens", type=int, default=200_000, help="tokens of a batch")
    options = parser.parse_args()
    if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        parser.error(
            f"{', '.join(missing)} not installed: pip install torch transformers accelerate gguf"
        )
    from tuning import training
    from tuning.serving import answer_requests

    if options.command == "train":
        recipe = training.Recipe(
            options.lora, options.rate, options.passes, options.tokens, options.seed,
            options.minutes,
        )  # fmt: skip
        training.train(options.model, options.data, options.out, recipe, options.earlier)
        return
    loaded = training.load(options.model)
    if options.adapter:
        training.merge_lora(loaded.model, options.adapter)
    loaded.model.eval()
    answer_requests(loaded, options.port, options.tokens)


if __name__ == "__main__":
    main()
