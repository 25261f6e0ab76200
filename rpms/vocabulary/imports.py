"""Objects by import path: ``package.module:attribute``, the one way in which code travels.

A path is all that goes to worker processes, to other machines and into run files; each process
imports the object by it.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

from rpms.vocabulary.errors import RpmsError

_allowed = True


def only_installed() -> None:
    """From now on no import path is followed in this process.

    For a server: what a client sends, as input, as a setting or as a changed state, must not
    decide what is imported.
    """
    global _allowed
    _allowed = False


def paths_allowed() -> bool:
    """Whether this process follows import paths."""
    return _allowed


def is_path(text: str) -> bool:
    """Whether a text has the form ``package.module:attribute``."""
    module, colon, attribute = text.partition(":")
    names = [*module.split("."), *attribute.split(".")]
    return bool(colon) and all(name.isidentifier() for name in names)


def look_here() -> None:
    """Let imports find modules of the current folder, as ``python -m`` would."""
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.insert(0, os.getcwd())


def load_object(path: str, what: str) -> Any:
    """The object behind an import path; ``what`` names its purpose in the error."""
    if not is_path(path):
        raise RpmsError(f"{what} '{path}' is no import path; write package.module:attribute")
    if not _allowed:
        raise RpmsError(f"{what} '{path}': this server follows no import paths")
    look_here()
    module, _, attribute = path.partition(":")
    try:
        target: Any = import_module(module)
        for name in attribute.split("."):
            target = getattr(target, name)
    except Exception as error:  # a module of somebody's own may raise anything when imported
        reason = f"{type(error).__name__}: {error}"
        raise RpmsError(f"cannot load {what} '{path}': {reason}") from error
    return target


def path_of(thing: Any, what: str) -> str:
    """The import path of a function or class; text is one already."""
    if isinstance(thing, str):
        return thing
    module = getattr(thing, "__module__", None) or ""
    name = getattr(thing, "__qualname__", None) or ""
    if not name or "<" in name or module == "__main__":
        reason = name or f"a {type(thing).__name__} object"
        where = " of the script that is running" if module == "__main__" else ""
        raise RpmsError(
            f"{what} cannot travel to worker processes: {reason}{where} has no import path. Put a "
            "function that makes it into a module and give 'package.module:name'"
        )
    return f"{module}:{name}"
