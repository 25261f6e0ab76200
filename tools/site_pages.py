"""Pages of the site that no file in docs/ holds: the README as its start, and the reference.

MkDocs calls these functions while it builds (``hooks`` in mkdocs.yml). Nothing is written twice:
the reference is what the docstrings say of the public names, in the order of their modules.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
INTRODUCTION = """# From the docstrings

Everything that can be imported from `rpms`; [the same by purpose](api.md).
"""


def start_page() -> str:
    """The README, with its links as they are inside docs/."""
    return (ROOT / "README.md").read_text(encoding="utf-8").replace("](docs/", "](")


def reference_page() -> str:
    """A directive for each public name, by the module it comes from."""
    from rpms import _HOMES

    parts = [INTRODUCTION]
    for home, names in _HOMES.items():
        parts.append(f"## `{home}`\n")
        parts += [f"::: {home}.{name}\n" for name in names]
    return "\n".join(parts)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Print links to source files as plain names: the site has no source files."""
    return re.sub(r"\[([^\]]+)\]\((?:\.\./|rpms/)[^)]+\)", r"\1", markdown)


def on_files(files: Any, config: Any) -> Any:
    """Add the two pages to those of docs/."""
    from mkdocs.structure.files import File

    for name, text in (("index.md", start_page()), ("reference.md", reference_page())):
        files.append(File.generated(config, name, content=text))
    return files
