"""Generate the table of settings in docs/api.md: ``python -m tools.settings_table``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rpms.evals.running.plan_file import read_plan
from rpms.vocabulary.context import Declaration, declarations

PAGE = Path(__file__).resolve().parents[1] / "docs" / "api.md"
HEAD = "| setting | set by | default | plan `paper` | |\n|---|---|---|---|---|\n"


def table() -> str:
    paper = read_plan("paper").settings
    return HEAD + "".join(_row(each, paper) for each in declarations().values())


def with_table(page: str) -> str:
    """The page with its table replaced."""
    start, end = re.escape(HEAD.splitlines()[0]), r"(?:\n\|[^\n]*)*\n"
    replaced, count = re.subn(f"{start}{end}", lambda _: table(), page)
    assert count == 1, "no table of settings to replace"
    return replaced


def _row(declared: Declaration, paper: Mapping[str, Any]) -> str:
    option = "condition" if declared.setting.option is None else "`--set`"
    option = f"`{declared.setting.option}`" if declared.setting.option else option
    default = _value(declared.default)
    changed = paper.get(declared.name, declared.default)
    differs = f"`{_value(changed)}`" if changed != declared.default else ""
    choices = f" ({', '.join(declared.choices)})" if declared.choices else ""
    text = f"{declared.setting.description.removesuffix('.')}{choices}"
    return f"| `{declared.name}` | {option} | `{default}` | {differs} | {text} |\n"


def _value(value: Any) -> Any:
    return f'"{value}"' if isinstance(value, str) else value


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
