"""Where things are kept that can be made or fetched again."""

from __future__ import annotations

import os
from pathlib import Path


def usual_mode() -> int:
    """Who may read a new file, by the user's umask; temporary files are made private instead."""
    mask = os.umask(0o077)  # it cannot be read without being set, so to what is safe meanwhile
    os.umask(mask)
    return 0o666 & ~mask


def cache_dir() -> Path:
    """``$RPMS_CACHE``, else our folder in the user's cache."""
    if chosen := os.environ.get("RPMS_CACHE"):
        return Path(chosen).expanduser()
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(home).expanduser() / "rpms"
