"""The steps that two arms share, and at how many of them their prompts differ.

Two episodes share a step if all actions before it are the same. An own stage that changes no prompt
there changes no result, and after the first other action the prompts differ anyway.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from rpms.evals.records.run_folder import Run, read_log
from rpms.vocabulary.files import stamp_of


class SharedSteps(NamedTuple):
    """The number of shared steps, and that of those with another prompt."""

    steps: int
    differing: int


def shared_steps(run: Run, first: str, second: str) -> SharedSteps:
    """Compare the logged prompts of two arms; steps without a logged prompt do not count."""
    others = {episode.key[1:]: episode for episode in run.judged(second)}
    differing = [
        differs
        for episode in run.judged(first)
        if (other := others.get(episode.key[1:]))
        for differs in _compared(run.log_file(episode), run.log_file(other))
    ]
    return SharedSteps(len(differing), sum(differing))


def _compared(first: Path, second: Path) -> Iterator[bool]:
    """For each shared step of two episodes whether the prompts differ."""
    pairs = zip(_steps(first, stamp_of(first)), _steps(second, stamp_of(second)), strict=False)
    for (action, prompt), (other_action, other_prompt) in pairs:
        if prompt and other_prompt:
            yield prompt != other_prompt
        if action != other_action:
            return


@lru_cache(maxsize=4096)
def _steps(file: Path, stamp: tuple[int, int]) -> list[tuple[str, int]]:
    """The action of each step with a hash of its prompt; 0 without one."""
    log = read_log(file) or {"steps": []}
    steps = []
    for step in log["steps"]:
        prompt = tuple((role, log["messages"][number]) for role, number in step.get("prompt", ()))
        steps.append((step["action"], hash(prompt) if prompt else 0))
    return steps
