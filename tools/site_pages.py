"""Generate the site's pages without a file in docs/: the README as start page, and the reference.

MkDocs calls these functions during the build (``hooks`` in mkdocs.yml). The reference has the
docstrings of the public names, in the order of their modules.
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
    """A directive for each public name, grouped by module."""
    from rpms import _HOMES

    parts = [INTRODUCTION]
    for module, names in _HOMES.items():
        parts.append(f"## `{module}`\n")
        parts += [f"::: {module}.{name}\n" for name in names]
    return "\n".join(parts)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Print links to source files as plain names: the site has no source files."""
    return re.sub(r"\[([^\]]+)\]\((?:\.\./|rpms/|examples/)[^)]+\)", r"\1", markdown)


def on_files(files: Any, config: Any) -> Any:
    """Add the two pages to those of docs/."""
    from mkdocs.structure.files import File

    for name, text in (("index.md", start_page()), ("reference.md", reference_page())):
        files.append(File.generated(config, name, content=text))
    return files
