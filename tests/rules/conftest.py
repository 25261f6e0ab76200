"""Copies of the rule manual with mistakes made on purpose."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from rpms.rules.manual import RULES_FOLDER

Spoil = Callable[[str, str, str], tuple[Path, int]]


@pytest.fixture
def rule_folder(tmp_path: Path) -> Path:
    """A copy of the rule files that a test may damage."""
    for file in RULES_FOLDER.rglob("*.yaml"):
        target = tmp_path / file.relative_to(RULES_FOLDER)
        target.parent.mkdir(exist_ok=True)
        shutil.copy(file, target)
    return tmp_path


@pytest.fixture
def spoil(rule_folder: Path) -> Spoil:
    """Replaces one text in one rule file; gives the file and the line of the mistake.

    The mistake stands on the line of the mark ``<!>`` in the new text, else on its first line.
    """

    def replace(name: str, old: str, new: str) -> tuple[Path, int]:
        file = rule_folder / name
        text = file.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {name}"
        head = text[: text.index(old)]
        lead = new[: new.index("<!>")] if "<!>" in new else ""
        file.write_text(text.replace(old, new.replace("<!>", "")), encoding="utf-8")
        return file, (head + lead).count("\n") + 1

    return replace
