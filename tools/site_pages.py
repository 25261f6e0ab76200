"""Generate the site's pages without a file in docs/: the README as start page, and references.

MkDocs calls these functions during the build (``hooks`` in mkdocs.yml). The reference has the
docstrings of the public names, in the order of their modules.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import typer.main
from typer.cli import get_docs_for_click

ROOT = Path(__file__).resolve().parents[1]
INTRODUCTION = """# From the docstrings

Everything that can be imported from `rpms`; [the same by purpose](api.md).
"""


def start_page() -> str:
    """The README, with its links as they are inside docs/."""
    return (ROOT / "README.md").read_text(encoding="utf-8").replace("](docs/", "](")


def reference_page() -> str:
    """A directive for each public name, grouped by module."""
    from rpms import _HOMES

    parts = [INTRODUCTION]
    for module, names in _HOMES.items():
        parts.append(f"## `{module}`\n")
        parts += [f"::: {module}.{name}\n" for name in names]
    return "\n".join(parts)


def command_page() -> str:
    """Every command with its options, as Typer writes them."""
    from rpms.commands.main import app

    program = typer.main.get_command(app)
    context = typer.Context(program, info_name="rpms")
    text = get_docs_for_click(obj=program, ctx=context, name="rpms")
    return str(text).replace("# `rpms`", "# Command line", 1)


def schema_page() -> str:
    """The JSON Schema of each tier of rules."""
    from rpms.rules.schema import TIERS, json_schema

    parts = ["# JSON Schema of rules\n\n`rpms rules schema` prints the same for an editor.\n"]
    for tier in TIERS:
        schema = json.dumps(json_schema(tier), indent=2)
        parts.append(f"## {tier}.yaml\n\n```json\n{schema}\n```\n")
    return "\n".join(parts)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Print links to source files as plain names: the site has no source files."""
    return re.sub(r"\[([^\]]+)\]\((?:\.\./|rpms/|examples/)[^)]+\)", r"\1", markdown)


GENERATED = {
    "index.md": start_page,
    "commands.md": command_page,
    "schema.md": schema_page,
    "reference.md": reference_page,
}


def on_files(files: Any, config: Any) -> Any:
    """Add these pages to those of docs/."""
    from mkdocs.structure.files import File

    for name, page in GENERATED.items():
        files.append(File.generated(config, name, content=page()))
    return files
