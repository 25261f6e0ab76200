"""Generate the table of settings in docs/api.md: ``python -m tools.settings_table``."""

from __future__ import annotations

import re
from pathlib import Path

from rpms.vocabulary.context import Declaration, declarations

PAGE = Path(__file__).resolve().parents[1] / "docs" / "api.md"
HEAD = "| setting | option | default | |\n|---|---|---|---|\n"


def table() -> str:
    return HEAD + "".join(map(_row, declarations().values()))


def with_table(page: str) -> str:
    """The page with its table replaced."""
    start, end = re.escape(HEAD.splitlines()[0]), r"(?:\n\|[^\n]*)*\n"
    replaced, count = re.subn(f"{start}{end}", lambda _: table(), page)
    assert count == 1, "no table of settings to replace"
    return replaced


def _row(declared: Declaration) -> str:
    option = f"`{declared.option}`" if declared.option else "by condition"
    default = f'"{declared.default}"' if isinstance(declared.default, str) else declared.default
    choices = f" ({', '.join(declared.choices)})" if declared.choices else ""
    text = f"{declared.setting.description.removesuffix('.')}{choices}"
    return f"| `{declared.name}` | {option} | `{default}` | {text} |\n"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
