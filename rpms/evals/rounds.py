"""The learning phase: the seen split under Rules-only, round after round, each an ordinary run."""

from __future__ import annotations

from pathlib import Path

from rpms.nodes.context import RunContext

# Greedy decoding repeats itself, so later rounds sample: that is where new experience comes from.
LATER_TEMPERATURE = 0.7
RULES_ONLY = "B"


def round_context(base: RunContext, number: int, condition: str = RULES_ONLY) -> RunContext:
    """Rules-only unless another condition was asked for, with a seed of its own per round."""
    temperature = base.temperature if number == 1 else max(base.temperature, LATER_TEMPERATURE)
    return base.under(condition).with_(temperature=temperature, seed=base.seed + number - 1)


def round_folder(runs: Path, number: int) -> Path:
    """Where the run of a round lies."""
    return runs / f"round{number}"
