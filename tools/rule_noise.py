"""What false answers do to learned rules: ``python -m tools.rule_noise``.

A share of the answers is falsified where rule learning reads them: what worked counts as refused,
what was refused as having worked without any effect. Which ones, the seed decides. The player's
belief stays right. Each manual is then held against the world's own rules, in games it was not
learned from and without false answers.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import NamedTuple

from rpms.envs import Environment, get_environment
from rpms.rule_learning.audit import audit_manual
from rpms.rule_learning.learn import learn_by_exploring

SHARES = (0.0, 0.01, 0.02, 0.05)


def falsify(env: Environment, share: float, seed: int) -> Environment:
    """The same world, of whose answers a share is read the other way round."""
    rng, falsified = Random(f"{seed}/false answers"), copy.copy(env)

    def failed(observation: str) -> bool:
        return env.failed(observation) != (rng.random() < share)

    falsified.failed = failed  # type: ignore[method-assign]
    return falsified


class Score(NamedTuple):
    """A manual against the world's own rules."""

    precision: float
    recall: float
    possible: float
    impossible: float
    open: float


def measure(env: Environment, share: float, seed: int, homes: int, split: str, games: int) -> Score:
    """Learn with false answers, then audit with right ones."""
    with TemporaryDirectory() as folder:
        out = Path(folder)
        learn_by_exploring(falsify(env, share, seed), out, homes, seed, report=lambda line: None)
        shares = audit_manual(env, out, split, games).as_json()["shares"]
    truths = shares["preconditions true"], shares["demands found"]
    return Score(*truths, *(shares[name] for name in Score._fields[2:]))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a row of the table for each share and seed, as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shares", type=float, nargs="+", default=SHARES)
    parser.add_argument("--seeds", type=int, nargs="+", default=(0, 1, 2))
    parser.add_argument("--homes", type=int, default=10)
    parser.add_argument("--split", default="generated_unseen")
    parser.add_argument("--games", type=int, default=2)
    options = parser.parse_args(arguments)
    env = get_environment("alfworld")  # whose rules can be read
    print(f"| falsified | seed | {' | '.join(Score._fields)} |\n|{'---|' * 7}", flush=True)
    for share in options.shares:
        for seed in options.seeds:
            score = measure(env, share, seed, options.homes, options.split, options.games)
            cells = " | ".join(f"{value:.1%}" for value in score)
            print(f"| {share:.0%} | {seed} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
