"""A custom manual as an overlay on the shipped one, and the shipped one without one rule.

Run it from anywhere: ``python examples/variants/own_manual.py``.
"""

from pathlib import Path

import rpms

RULES = Path(__file__).with_name("own_manual")

if __name__ == "__main__":
    rules_only = rpms.RunContext.for_condition("B")
    arms: dict[str, rpms.Arm] = {
        "mine": rpms.Variant(rules_only, rules=RULES),
        "B without U-FAIL-001": rules_only.with_(without_rules="U-FAIL-001"),
    }
    report = rpms.evaluate(arms, out="runs/own-manual", limit=10, spread=True)
    print(report.as_markdown())
