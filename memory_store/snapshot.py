"""A frozen memory on disk: one JSON header line, then one entry per line.

Readable, diffable and loaded whole. Evaluation never writes it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from memory_store.entries import parse_entry
from vocabulary.errors import RpmsError

SCHEMA_VERSION = 1
FORMAT = "rpms-memory"


def load_snapshot(file: Path) -> list[dict[str, Any]]:
    """Every entry of a snapshot as plain data; a wrong line is refused with its number."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RpmsError(f"cannot read memory file {file}: {error}") from error
    header = _parse(file, 1, lines[0]) if lines else None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise RpmsError(f"{file}:1: not an rpms memory file (its header line is missing)")
    if header.get("schema_version") != SCHEMA_VERSION:
        raise RpmsError(
            f"{file}:1: schema version {header.get('schema_version')!r}; this program reads "
            f"version {SCHEMA_VERSION}"
        )
    entries = []
    for number, line in enumerate(lines[1:], start=2):
        data = _parse(file, number, line)
        try:
            entries.append(parse_entry(data).model_dump(mode="json"))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise RpmsError(f"{file}:{number}: {where}: {first['msg']}") from error
    if header.get("entries") != len(entries):
        raise RpmsError(
            f"{file}: the header announces {header.get('entries')} entries, the file holds "
            f"{len(entries)}; it is cut short or was edited without updating the header"
        )
    return entries


def _parse(file: Path, number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise RpmsError(f"{file}:{number}: not valid JSON: {error}") from error
