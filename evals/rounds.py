"""The learning phase: play the seen split under Rules-only, round after round."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rpms.envs import get_environment
from rpms.evals.records import FILE, append_record, record_of
from rpms.graph import build_graph, run_episode
from rpms.nodes.context import RunContext
from rpms.nodes.state import EpisodeOutput

# Greedy decoding repeats itself, so later rounds sample: that is where new experience comes from.
LATER_TEMPERATURE = 0.7


def round_context(base: RunContext, number: int) -> RunContext:
    """Rules-only, with a seed of its own per round."""
    temperature = base.temperature if number == 1 else max(base.temperature, LATER_TEMPERATURE)
    return base.with_(rules=True, memory=False, temperature=temperature, seed=number - 1)


def play_round(
    number: int, *, env: str, split: str, count: int | None, base: RunContext, folder: Path
) -> Iterator[tuple[EpisodeOutput, dict[str, Any]]]:
    """Play every task of the split once and append each episode to the round's run file."""
    graph = build_graph()
    context = round_context(base, number)
    for task in get_environment(env).tasks(split, count):
        result = run_episode(task["index"], env=env, split=split, context=context, graph=graph)
        record = record_of(result, env, split)
        append_record(folder / f"round{number}" / FILE, record)
        yield result, record
