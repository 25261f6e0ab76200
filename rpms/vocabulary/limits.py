"""Upper limits of numbers that a user may set.

They catch typing errors, not unwise choices: 10**20 tasks would generate scenes until the disk is
full, and as many workers would exhaust the machine.
"""

from __future__ import annotations

MOST_TASKS = 100_000
"""Tasks of a run, or scenes to explore."""
MOST_TIMES = 1_000
"""Trials, repeats, rounds, and retries within a step."""
MOST_STEPS = 100_000
"""Actions of an episode."""
MOST_WORKERS = 1_000
"""Processes."""
MOST_IN_FLIGHT = 100_000
"""Episodes at the same time."""
MOST_TOKENS = 100_000_000
"""Tokens of a prompt, a reply or a part of them."""
MOST_SEED = 2**53
"""The largest integer that JSON numbers represent exactly."""
