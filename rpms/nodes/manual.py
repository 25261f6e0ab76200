"""The manual of a run: where the rules, which know no world, meet the worlds and the settings."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from rpms.envs import get_environment
from rpms.guard.check import sound_manual
from rpms.rules import Manual, read_manual
from rpms.rules.ablate import leave_out, names_in, syntax_only
from rpms.rules.loader import overlay, rule_files
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.files import stamp_of

Stamp = tuple[tuple[str, int, int], ...]


def manual_for(env: str, context: RunContext) -> Manual:
    """R as this run has it: every stage that asks the rules asks these."""
    return load_manual(env, context.rules_dir, context.without_rules)


def known_manual(env: str, context: RunContext) -> Manual:
    """What may be known where rules can be off: with them R, without the syntax of the commands.

    Memory asks this one, so that it is the same whatever the rules would say. The guard asks R: it
    lets the rules judge under any condition.
    """
    return manual_for(env, context) if context.rules else bare_manual(env)


def bare_manual(env: str) -> Manual:
    """The commands of a world, which its system prompt shows to everybody."""
    return syntax_only(read_manual(get_environment(env).rules))


def load_manual(env: str, rules_dir: str = "", without: str = "") -> Manual:
    """R of a world: its own Tiers 2 and 3 with the Tier 1 that all share.

    Args:
        env: the world.
        rules_dir: a folder of rule files to lay over them, or to put in their place.
        without: ids of rules and names of tiers to leave out, by comma.
    """
    if not (rules_dir or without):
        own = get_environment(env).rules
        return sound_manual(read_manual(own), own)
    return _load(env, rules_dir, tuple(names_in(without)), _stamp(rules_dir))


def _stamp(rules_dir: str) -> Stamp:
    """What tells one content of a folder from another: people edit their rules between runs."""
    files = rule_files(Path(rules_dir)) if rules_dir else []
    return tuple((file.name, *stamp_of(file)) for file in files)


@lru_cache(maxsize=64)
def _load(env: str, rules_dir: str, without: tuple[str, ...], _content: Stamp) -> Manual:
    own = get_environment(env).rules
    manual = read_manual(own)
    if rules_dir:
        over = Path(rules_dir)
        manual = sound_manual(overlay(manual, over), own, over)
    return leave_out(manual, without) if without else manual
