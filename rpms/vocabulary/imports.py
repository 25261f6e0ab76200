"""Objects by import path: ``package.module:attribute``.

Worker processes, other machines and run files get only the path; each process imports the object.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

from rpms.vocabulary.errors import RpmsError

_allowed = True


def only_installed() -> None:
    """Disable import paths in this process.

    For a server: nothing that a client sends (input, setting, state) may decide what is imported.
    """
    global _allowed
    _allowed = False


def paths_allowed() -> bool:
    return _allowed


def is_path(text: str) -> bool:
    """Return whether a text has the form ``package.module:attribute``."""
    module, colon, attribute = text.partition(":")
    names = [*module.split("."), *attribute.split(".")]
    return bool(colon) and all(name.isidentifier() for name in names)


def allow_current_folder() -> None:
    """Add the current folder to the import path, as ``python -m`` does."""
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.insert(0, os.getcwd())


def load_object(path: str, what: str) -> Any:
    """Import an object; ``what`` names its purpose in the error."""
    if not is_path(path):
        raise RpmsError(f"{what} '{path}' is not an import path; write package.module:attribute")
    if not _allowed:
        raise RpmsError(f"{what} '{path}': this server does not follow import paths")
    allow_current_folder()
    module, _, attribute = path.partition(":")
    try:
        target: Any = import_module(module)
        for name in attribute.split("."):
            target = getattr(target, name)
    except Exception as error:  # a custom module may raise anything when imported
        reason = f"{type(error).__name__}: {error}"
        raise RpmsError(f"cannot load {what} '{path}': {reason}") from error
    return target


def path_of(thing: Any, what: str) -> str:
    """The import path of a function or class; a text is returned as it is."""
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
