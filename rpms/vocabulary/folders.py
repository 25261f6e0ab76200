"""Where things are kept that can be made or fetched again, and paths as people write them."""

from __future__ import annotations

import os
from pathlib import Path

from rpms.vocabulary.errors import RpmsError


def expanded(text: str, what: str) -> Path:
    """A path with its ``~``; ``what`` names the setting it comes from in the error."""
    try:
        return Path(text).expanduser()
    except RuntimeError as error:  # no such user, or one without a home
        raise RpmsError(f"{what}: '{text}': {error}; write the path without ~") from error


def path_variable(name: str, usual: str) -> Path:
    """The path that an environment variable names."""
    return expanded(os.environ.get(name) or usual, name)


def cache_dir() -> Path:
    """``$RPMS_CACHE``, else our folder in the user's cache."""
    if os.environ.get("RPMS_CACHE"):
        return path_variable("RPMS_CACHE", "")
    return path_variable("XDG_CACHE_HOME", "~/.cache") / "rpms"
