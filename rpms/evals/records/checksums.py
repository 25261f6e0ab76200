"""Checksums of rules, prompts and memories, which identify the knowledge behind a result."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from rpms.envs import get_environment
from rpms.envs.manuals import load_manual
from rpms.rules.ablate import names_in
from rpms.rules.loader import rule_files
from rpms.rules.manual import RULES_FOLDER
from rpms.vocabulary.categories import CATEGORIES


def rules_hash(env: str, rules_dir: str = "", without: str = "") -> str:
    """A checksum of the manual's files and of the rules that are left out.

    The manual is loaded, so that a mistake in ``rules_dir`` is reported before a run begins.
    """
    folder = get_environment(env).rules
    files = [folder.parent / CATEGORIES, *sorted(folder.glob("*.yaml"))]
    shipped = digest([RULES_FOLDER / "universal.yaml", *files])
    if not (rules_dir or without):
        return shipped
    load_manual(env, rules_dir, without)
    over = rule_files(Path(rules_dir)) if rules_dir else []
    parts = [shipped, *(f"{file.name} {digest([file])}" for file in over), *names_in(without)]
    return checksum("\n".join(parts))


def digest(files: Iterable[Path]) -> str:
    """One checksum over the contents; missing files are skipped."""
    contents = hashlib.sha256()
    for file in files:
        if file.is_file():
            contents.update(file.read_bytes())
    return contents.hexdigest()


def checksum(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
