"""How long the guard takes for one decision: ``python -m tools.guard_timing``.

A manual of 100 rules over ten tools, a belief with 200 things, and calls that are allowed and
refused in turn. The figures are of this machine, now.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import yaml

from rpms.guard import Call, judge
from rpms.rules import Manual, read_manual
from rpms.rules.check import sound_manual
from rpms.vocabulary.belief import Belief, empty_belief

TOOLS, RULES, THINGS = 10, 100, 200
NEEDS = (
    "at_most(usd, order.total)", "at_least(usd, 0.01)", "one_of(order.status, paid, delivered)",
    "before(order.created, now)", "within_hours(order.created, 100000)", "seen(order, checked)",
    "at_most(count(tool_{0}), 5)", "at_most(total(usd, tool_{0}.usd), 500)",
    "not equal(order.owner, nobody)", "given(order)",
)  # fmt: skip


def write_manual(folder: Path) -> Manual:
    """Ten tools, and a policy of ten rules for each."""
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
    """Many orders, of which every other one is in order."""
    belief = empty_belief()
    for n in range(THINGS):
        belief["flags"][f"O{n}"] = "checked"
        belief["records"][f"O{n}"] = {
            "total": 100.0 * (n % 2), "status": "paid", "created": "2026-01-01", "owner": "C1",
        }  # fmt: skip
    return belief


def calls(number: int) -> Iterator[Call]:
    """Calls of all tools; every other one is against a rule."""
    for n in range(number):
        yield Call(f"tool_{n % TOOLS}", {"order_id": f"O{n % THINGS}", "usd": 12.5})


def measure(number: int) -> dict[str, float]:
    """Milliseconds for one decision: the median, and what 99 of 100 stay below."""
    with TemporaryDirectory() as folder:
        manual, belief = write_manual(Path(folder)), make_belief()
        times, refused = [], 0
        for call in calls(number):
            began = perf_counter()
            judgement = judge(manual, call, belief)
            times.append(1000 * (perf_counter() - began))
            refused += judgement.verdict == "refuse"
    share = refused / number
    cuts = statistics.quantiles(times, n=100)
    return {"median ms": cuts[49], "99th percentile ms": cuts[98], "share refused": share}


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    print(f"{count} decisions, {RULES} rules, {THINGS} things known")
    for name, figure in measure(count).items():
        print(f"{name}: {figure:.3f}")
