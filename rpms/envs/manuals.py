"""Loads the manual of a run: a world's rules, overlaid and ablated by the settings."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from rpms.envs.registry import get_environment
from rpms.rules.ablate import leave_out, names_in, with_results, without_knowledge
from rpms.rules.check import sound_manual
from rpms.rules.loader import overlay, read_manual, rule_files
from rpms.rules.manual import Manual
from rpms.vocabulary.files import stamp_of

Stamp = tuple[tuple[str, int, int], ...]


def load_manual(
    env: str, rules_dir: str = "", without: str = "", *, syntax_only: bool = False
) -> Manual:
    """Load R of a world: its Tiers 2 and 3, and the shared Tier 1.

    Args:
        env: the world.
        rules_dir: a folder of rule files that overlay or replace the tiers.
        without: ids of rules and names of tiers to leave out, separated by commas.
        syntax_only: load the syntax of the commands alone. The system prompt shows it under every
            condition, so a stage uses this when rules are off.
    """
    folder = get_environment(env).rules
    if syntax_only:
        return without_knowledge(read_manual(folder))
    if not (rules_dir or without):
        return sound_manual(read_manual(folder), folder)
    files = rule_files(Path(rules_dir)) if rules_dir else []
    content = tuple((file.name, *stamp_of(file)) for file in files)  # changes with the files
    return _load(folder, rules_dir, tuple(names_in(without)), content)


def load_commands(env: str) -> Manual:
    """Load what every condition knows of the commands: their syntax, and what they result in.

    The results are those that the environment's belief update records, so memory is retrieved and
    grounded in the same way with rules and without them.
    """
    return _commands(env, read_manual(get_environment(env).rules))


@lru_cache(maxsize=64)
def _commands(env: str, manual: Manual) -> Manual:
    return with_results(manual, get_environment(env).results)


@lru_cache(maxsize=64)
def _load(folder: Path, rules_dir: str, without: tuple[str, ...], _content: Stamp) -> Manual:
    manual = read_manual(folder)
    if rules_dir:
        changes = Path(rules_dir)
        manual = sound_manual(overlay(manual, changes), folder, changes)
    return leave_out(manual, without) if without else manual
