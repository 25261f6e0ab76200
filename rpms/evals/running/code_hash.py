"""The checksum of the module that defines a function or class of the user's."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

from rpms.vocabulary.imports import load_object

DIGITS = 12


def code_hash(path: str) -> str:
    """The checksum of the file behind an import path; empty if its module has no file."""
    module = definition_path(load_object(path, "the object"), path).partition(":")[0]
    file = getattr(sys.modules[module], "__file__", None)
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()[:DIGITS] if file else ""


def definition_path(thing: Any, path: str) -> str:
    """``module:name`` of a function or class that its module defines by this name.

    Other objects (a lambda, a partial, an instance) have the path that led to them.
    """
    module, name = (getattr(thing, field, "") for field in ("__module__", "__qualname__"))
    is_defined = getattr(sys.modules.get(module), name, None) is thing
    return f"{module}:{name}" if is_defined else path
