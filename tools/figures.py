"""Measure the speed of this machine: ``python -m tools.figures``.

The figures are valid only for this machine, and only while it is idle.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, cast

import yaml

from rpms.envs import get_environment
from rpms.graph import build_graph
from rpms.guard import Call, judge
from rpms.rules import Manual, read_manual
from rpms.rules.check import sound_manual
from rpms.vocabulary.belief import Belief, empty_belief
from rpms.vocabulary.context import RunContext

SPLIT = "generated_unseen"
TOOLS, RULES, ORDERS = 10, 100, 200
NEEDS = (
    "at_most(usd, order.total)", "at_least(usd, 0.01)", "one_of(order.status, paid, delivered)",
    "before(order.created, now)", "within_hours(order.created, 100000)", "seen(order, checked)",
    "at_most(count(tool_{0}), 5)", "at_most(total(usd, tool_{0}.usd), 500)",
    "not equal(order.owner, nobody)", "given(order)",
)  # fmt: skip


def engine_times(games: int = 8, steps: int = 40) -> dict[str, float]:
    """Milliseconds for starting a game of ALFWorld and for one step of it."""
    world, rng, spent = (
        get_environment("alfworld"),
        random.Random(0),
        defaultdict[str, float](float),
    )
    for task in world.tasks(SPLIT, games)[:games]:
        game: Any = world.open_game()
        began = perf_counter()
        game.reset(task)
        spent["start a game"] += (perf_counter() - began) / games
        for _ in range(steps):
            command = rng.choice(game.commands())
            began = perf_counter()
            done = game.step(command).done
            spent["one step"] += (perf_counter() - began) / games / steps
            if done:
                game.reset(task)
    return {name: 1000 * seconds for name, seconds in spent.items()}


def stage_times(episodes: int = 4, steps: int = 40) -> dict[str, float]:
    """Milliseconds of each stage in a step, including LangGraph's share, with a random model.

    Stages run one after another, so the time of each is the time since the previous update.
    """
    spent: dict[str, float] = defaultdict(float)
    context = RunContext.for_condition("D", model="random", max_steps=steps)
    counted = 0
    for task in range(episodes):
        start: Any = {"env": "alfworld", "split": SPLIT, "task": task}
        began = perf_counter()
        for update in build_graph().stream(start, context=context, stream_mode="updates"):
            (stage,) = cast("dict[str, Any]", update)
            ended = perf_counter()
            spent[stage] += ended - began
            counted += stage == "env_step"
            began = ended
    return {stage: 1000 * seconds / counted for stage, seconds in spent.items()}


def guard_times(decisions: int = 20_000) -> dict[str, float]:
    """Milliseconds for one decision of the guard: the median, and the 99th percentile.

    The manual has 100 rules over ten tools; every other call is rejected.
    """
    with TemporaryDirectory() as folder:
        manual, belief, times = write_manual(Path(folder)), make_belief(), []
        for call in calls(decisions):
            began = perf_counter()
            judge(manual, call, belief)
            times.append(1000 * (perf_counter() - began))
    cuts = quantiles(times, n=100)
    return {"median": cuts[49], "99th percentile": cuts[98]}


def write_manual(folder: Path) -> Manual:
    """A manual with ten tools, and a policy of ten rules for each."""
    actions = [
        {"id": f"E-{n}", "name": f"tool_{n}", "arguments": {"order_id": "order", "usd": "usd"}}
        for n in range(TOOLS)
    ]
    policy = [
        {"id": f"P-{n}-{m}", "action": f"tool_{n}", "needs": [NEEDS[m % len(NEEDS)].format(n)]}
        for n in range(TOOLS)
        for m in range(RULES // TOOLS)
    ]
    environment = {"tier": "environment", "actions": actions, "policy": policy}
    (folder / "environment.yaml").write_text(yaml.safe_dump(environment), encoding="utf-8")
    domain = {"tier": "domain", "procedures": {"work": []}}
    (folder / "domain.yaml").write_text(yaml.safe_dump(domain), encoding="utf-8")
    return sound_manual(read_manual(folder), folder)


def make_belief() -> Belief:
    """A belief with many orders; every other one may be refunded."""
    belief = empty_belief()
    for n in range(ORDERS):
        belief["flags"][f"O{n}"] = "checked"
        belief["records"][f"O{n}"] = {
            "total": 100.0 * (n % 2), "status": "paid", "created": "2026-01-01", "owner": "C1",
        }  # fmt: skip
    return belief


def calls(number: int) -> Iterator[Call]:
    """Calls of all tools; every other one breaks a rule."""
    for n in range(number):
        yield Call(f"tool_{n % TOOLS}", {"order_id": f"O{n % ORDERS}", "usd": 12.5})


def main() -> None:
    parts: dict[str, Callable[[], dict[str, float]]] = {
        "ALFWorld's engine": engine_times,
        "one step of the agent, by stage": stage_times,
        "one decision of the guard": guard_times,
    }
    for title, measure in parts.items():
        print(title)
        for name, milliseconds in measure().items():
            print(f"  {name:<24}{milliseconds:>9.3f} ms", flush=True)


if __name__ == "__main__":
    main()
