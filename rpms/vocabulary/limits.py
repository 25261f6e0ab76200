"""How much may be asked for at once.

Not what is sensible but what is a slip of the hand: a limit of 10**20 tasks would generate homes
until the disk is full, and as many workers would take the machine down.
"""

from __future__ import annotations

MOST_TASKS = 100_000
"""Tasks of a run, or homes to explore."""
MOST_TIMES = 1_000
"""Trials, repeats, rounds, and questions within a step."""
MOST_STEPS = 100_000
"""Actions of an episode."""
MOST_WORKERS = 1_000
"""Processes."""
MOST_IN_FLIGHT = 100_000
"""Episodes at the same time."""
MOST_TOKENS = 100_000_000
"""Of a prompt, a reply or a part of them."""
MOST_SEED = 2**53
"""Beyond that JSON, and with it some servers, cannot tell two numbers apart."""
