"""Create .venv from nothing but Python: every package is a wheel, so there is nothing to compile.

The pins are complete, so pip installs them as they are, without resolving. That is also how
``alfworld`` comes in alone: RPMS wants its data files and its downloader, not the game engine it
names as a dependency (``tools/stock_textworld.py`` builds that for whoever wants it). Only the
standard library is used here, as nothing else is there yet.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - one clear line instead of a failure further down
    sys.exit(
        f"[setup] RPMS needs Python 3.11 or newer, and this is {sys.version.split()[0]}; "
        "name a newer one, as in: make demo PYTHON=python3.12"
    )

import argparse
import fcntl
import hashlib
import importlib.util
import json
import os
import platform
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PINS = {
    "runtime": "requirements.txt",
    "local": "requirements-local.txt",
    "docs": "requirements-docs.txt",
    "telecom": "requirements-telecom.txt",
    "dev": "requirements-dev.txt",
}
"""Where each kind of set-up is pinned; all of them need the first, and the last needs all."""
# The one that comes with an older Python takes twice as long over these packages.
PIP = "pip==26.3"
# What has no wheel (it is plain Python) is built with the pinned setuptools that is there by then.
INSTALL = ("install", "--no-deps", "--no-compile", "--progress-bar=off", "--no-build-isolation",
           "--only-binary=:all:", "--no-binary=forbiddenfruit")  # fmt: skip
# Most of these is never loaded, and they are more than half of all there is to compile.
ON_LOADING = r"site-packages/(ray|pandas|scipy|mypyc?|playwright|pip)/"
# Left by an outer make or Python; each of them changes what the commands below do.
FOREIGN = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "PYTHONPATH", "PYTHONHOME")


class SetupError(Exception):
    """Something the user can put right; the message is all that is shown."""


def say(text: str) -> None:
    """Print one progress line at once, also through a pipe."""
    print(f"[setup] {text}", flush=True)


def parts(kind: str) -> list[str]:
    """List what a kind of set-up consists of, itself last."""
    return list(PINS) if kind == "dev" else list(dict.fromkeys(["runtime", kind]))


def read_pins(path: Path) -> list[str]:
    """Read pinned requirements; a ``-r`` line only tells pip what is installed here anyway."""
    entries = (line.split("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [entry for entry in entries if entry and not entry.startswith("-r ")]


class Clone:
    """A checkout with its ``.venv``, which goes when the checkout goes."""

    def __init__(self, root: Path, log: str = "setup.log") -> None:
        """All output of the commands goes to the log, so that the terminal can stay quiet."""
        self.root, self.venv = root, root / ".venv"
        self.python = str(self.venv / "bin" / "python")
        self.log, self.stamp = self.venv / log, self.venv / "setup.json"
        # The scripts of a moved environment start nothing.
        version = ".".join(platform.python_version_tuple()[:2])
        self.home = f"Python {version} {platform.machine()} {self.venv}"
        self.env = {name: value for name, value in os.environ.items() if name not in FOREIGN}
        self.env["PATH"] = f"{self.venv / 'bin'}{os.pathsep}{self.env.get('PATH', os.defpath)}"
        self.env |= {"PIP_USER": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}

    def call(self, command: Sequence[str], env: Mapping[str, str]) -> tuple[int, str]:
        """Run a command; its exit code and what it said, which the log has in one piece."""
        done = subprocess.run(
            command, env=env, cwd=self.root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", check=False,
        )  # fmt: skip
        with self.log.open("a", encoding="utf-8") as out:
            out.write(f"\n$ {shlex.join(command)}\n{done.stdout}")
        return done.returncode, done.stdout

    def must(self, what: str, *command: str, env: Mapping[str, str] | None = None) -> None:
        """Run a command; where it fails, show the reason and where to read on."""
        code, text = self.call(command, env or self.env)
        if code != 0:
            tail = "\n".join(text.rstrip().splitlines()[-20:])
            raise SetupError(f"{what} failed:\n{tail}\n[setup] the full log is in {self.log}")

    def pip(self, what: str, *words: str, env: Mapping[str, str] | None = None) -> None:
        """Run the environment's pip, which honours the user's own pip configuration."""
        self.must(what, self.python, "-m", "pip", "--no-input", *words, env=env)

    def installed(self) -> dict[str, str]:
        """What a former set-up recorded; nothing if there was none, or not here."""
        try:
            stamp = dict(json.loads(self.stamp.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return {}
        there = stamp.get("home") == self.home and Path(self.python).exists()
        return stamp if there else {}

    def fingerprint(self, part: str) -> str:
        """Hash everything that decides what a part puts into the environment."""
        names = ("pyproject.toml", "tools/bootstrap.py", PINS[part])
        return hashlib.sha256(b"".join((self.root / n).read_bytes() for n in names)).hexdigest()

    def missing(self, kind: str) -> list[str]:
        """List the parts that are not there as they are pinned now."""
        installed = self.installed()
        return [part for part in parts(kind) if installed.get(part) != self.fingerprint(part)]

    def create(self) -> None:
        """An environment with a pip of today: an older one takes twice as long over it all."""
        if not (importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip")):
            raise SetupError(
                "this Python cannot make virtual environments: install its venv package "
                "(Debian, Ubuntu: apt install python3-venv) and run this again"
            )
        say(f"creating {self.venv.name} with Python {platform.python_version()}")
        shutil.rmtree(self.venv, ignore_errors=True)
        self.venv.mkdir(parents=True)
        # The resolved path outlives the folder just removed, should that have been active.
        self.must("creating .venv", os.path.realpath(sys.executable), "-m", "venv", str(self.venv))
        # Not worth a failure: where only the pinned packages can be had, the older one will do.
        self.call([self.python, "-m", "pip", "--no-input", *INSTALL, PIP], self.env)

    def install(self, part: str) -> None:
        """What a part is pinned to, and with the first of them RPMS itself."""
        pins = read_pins(self.root / PINS[part])
        say(f"installing {len(pins)} packages ({part})")
        self.pip("installing the packages", *INSTALL, *pins)
        if part == "runtime":
            words = ("install", "--no-deps", "--no-build-isolation", "-e", str(self.root))
            self.pip("installing RPMS", *words)

    def set_up(self, kind: str) -> None:
        """Bring the environment up to date and record what it now holds."""
        missing = self.missing(kind)
        if not self.installed():
            self.create()
        stamp = {**self.installed(), "home": self.home}
        others = [part for part in missing if part != "runtime"]
        with ThreadPoolExecutor() as pool:
            # The first brings what the others may be built with; none of them has another's files.
            for parts in (missing[: len(missing) - len(others)], others):
                for part, _ in zip(parts, pool.map(self.install, parts), strict=True):
                    stamp[part] = self.fingerprint(part)
                    self.stamp.write_text(json.dumps(stamp), encoding="utf-8")
        # On all processors, where pip would use one; what is meant for other Pythons may fail.
        compiling = ["-m", "compileall", "-qq", "-j", "0", "-x", ON_LOADING]
        self.call([self.python, *compiling, str(self.venv / "lib")], self.env)
        say("ready")


def main() -> int:
    """Set up if anything changed; otherwise return at once."""
    parser = argparse.ArgumentParser(description="Create or update .venv for this clone.")
    parser.add_argument(
        "--with", dest="kind", choices=list(PINS), default="runtime",
        help="local: also a language model that runs here; docs: what makes a site of docs/; "
        "telecom: also tau2's support tickets; dev: all of them, test tools and linters",
    )  # fmt: skip
    kind, clone = parser.parse_args().kind, Clone(ROOT)
    with open(__file__, "rb") as lock:
        # Two makes in one clone would otherwise install over each other.
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            if clone.missing(kind):
                clone.set_up(kind)
        except SetupError as error:
            print(f"[setup] {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
