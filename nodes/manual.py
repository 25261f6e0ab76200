"""The manual of a world by name: where the rules, which know no world, meet the worlds."""

from __future__ import annotations

from functools import cache

from rpms.envs import get_environment
from rpms.rules import Manual, read_manual


@cache
def load_manual(env: str) -> Manual:
    """R of a world: its own Tiers 2 and 3 with the Tier 1 that all share."""
    return read_manual(get_environment(env).rules)
