"""Times the guard's decisions: a call of a tool with and without the guard, by number of rules.

    python -m tools.guard_speed [CALLS]

The desk has N rules on 20 tools, of which up to N/20 apply to the call, which is allowed. The
milliseconds are the thread's own time on the processor, so that other programs do not count. The
ratio compares the call of a guarded tool with the same call of the tool alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from time import thread_time
from typing import Any

import yaml
from langchain_core.tools import BaseTool, StructuredTool

import rpms
from rpms.guard import RulesGuard

TOOLS = 20
NEEDS = [
    "at_most(usd, order.total)", "equal(order.status, delivered)", "at_least(usd, 0.01)",
    "within_hours(order.delivered_at, 720)", "one_of(order.kind, plain, fancy)",
]  # fmt: skip


def desk(folder: Path, rules: int) -> list[BaseTool]:
    """The tools of a desk with so many rules, guarded; the first one looks an order up."""
    names = [f"act_{number}" for number in range(TOOLS)]
    look = {"id": "T-LOOK", "name": "look", "arguments": {"order_id": "order"}, "shows": "order"}
    acts = [{"id": f"T-{number}", "name": name, "arguments": {"order_id": "order", "usd": "usd"}}
            for number, name in enumerate(names)]  # fmt: skip
    policy = [
        {"id": f"P-{n}", "action": names[n % TOOLS], "needs": [NEEDS[n // TOOLS % len(NEEDS)]]}
        for n in range(rules)
    ]
    manual = {"tier": "environment", "now": "2026-01-10", "actions": [look, *acts],
              "policy": policy}  # fmt: skip
    (folder / "environment.yaml").write_text(yaml.safe_dump(manual))
    (folder / "domain.yaml").write_text("tier: domain\nprocedures: {help: [help]}\n")

    class World(rpms.ToolWorld):
        name = "speed"
        rules = folder

    def look_up(order_id: str) -> str:
        return ('{"total": 50, "status": "delivered", "kind": "plain", '
                '"delivered_at": "2026-01-05"}')  # fmt: skip

    def act(order_id: str, usd: float) -> str:
        return "done"

    tools = [StructuredTool.from_function(look_up, name="look", description="look")]
    tools += [StructuredTool.from_function(act, name=name, description="act") for name in names]
    return RulesGuard(World()).protect(tools)


def times(call: Callable[[], Any], count: int) -> list[float]:
    """The milliseconds of the processor for each of so many calls."""
    found = []
    for _ in range(count):
        began = thread_time()
        call()
        found.append(1000 * (thread_time() - began))
    return found


def main() -> None:
    """Print a line for each number of rules."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("calls", nargs="?", type=int, default=200)
    count = parser.parse_args().calls
    given = {"order_id": "O1", "usd": 5.0}
    for rules in (0, 20, 100, 400):
        with TemporaryDirectory() as folder:
            look, act, *_ = desk(Path(folder), rules)
            look.invoke({"order_id": "O1"})
            alone = times(partial(act.wrapped.invoke, given), count)  # type: ignore[attr-defined]
            guarded = times(partial(act.invoke, given), count)
        added = [each - median(alone) for each in guarded]
        print(
            f"{rules:4} rules: {median(added):.2f} ms added in the median, "
            f"{quantiles(added, n=100)[98]:.2f} ms at the 99th percentile; "
            f"{median(guarded) / median(alone):.1f} times the call alone"
        )


if __name__ == "__main__":
    main()
