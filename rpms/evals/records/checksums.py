"""Checksums of rules, prompts and memories: which knowledge a figure is a figure of."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from rpms.envs import get_environment
from rpms.envs.manuals import load_manual
from rpms.rules.ablate import names_in
from rpms.rules.loader import rule_files
from rpms.rules.manual import RULES_FOLDER


def rules_hash(env: str, rules_dir: str = "", without: str = "") -> str:
    """Which manual it was: a digest over the files of its tiers, and what was left out of them.

    A folder laid over it is loaded first, so that a mistake in it is told before a run begins.
    """
    own = sorted(get_environment(env).rules.glob("*.yaml"))
    shipped = digest([RULES_FOLDER / "universal.yaml", *own])
    if not (rules_dir or without):
        return shipped
    load_manual(env, rules_dir, without)
    over = rule_files(Path(rules_dir)) if rules_dir else []
    parts = [shipped, *(f"{file.name} {digest([file])}" for file in over), *names_in(without)]
    return checksum("\n".join(parts))


def digest(files: Iterable[Path]) -> str:
    """One checksum over the contents; a world without a memory of its own has an empty one."""
    contents = hashlib.sha256()
    for file in files:
        if file.is_file():
            contents.update(file.read_bytes())
    return contents.hexdigest()


def checksum(text: str) -> str:
    """Of a text."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
