"""Where things are kept that can be made or fetched again."""

from __future__ import annotations

import os
from pathlib import Path


def cache_dir() -> Path:
    """``$RPMS_CACHE``, else our folder in the user's cache."""
    if chosen := os.environ.get("RPMS_CACHE"):
        return Path(chosen).expanduser()
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(home).expanduser() / "rpms"
