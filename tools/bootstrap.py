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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["runtime", "local", "docs", "dev"]
PINS: dict[Kind, str] = {
    "runtime": "requirements.txt",
    "local": "requirements-local.txt",
    "docs": "requirements-docs.txt",
    "dev": "requirements-dev.txt",
}
"""Where each kind of set-up is pinned; all of them need the first, and the last needs all."""
# The one package of the development tools without a wheel; it is plain Python.
SOURCE = "forbiddenfruit"
LOG = ".venv/setup.log"
STAMP = ".venv/setup.json"
# Left by an outer make or Python; each of them changes what the commands below do.
FOREIGN = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "PYTHONPATH", "PYTHONHOME")

Run = Callable[[Sequence[str], Mapping[str, str]], int]


class SetupError(Exception):
    """Something the user can put right; the message is all that is shown."""


@dataclass(frozen=True)
class Place:
    """Where a set-up lives, and how it runs commands (tests put a stand-in there)."""

    root: Path
    run: Run
    log_name: str = LOG

    @property
    def venv(self) -> Path:
        """The environment, inside the clone so that it goes when the clone goes."""
        return self.root / ".venv"

    @property
    def python(self) -> Path:
        """The interpreter that everything is installed for."""
        return self.venv / "bin" / "python"

    @property
    def log(self) -> Path:
        """Full output of every command, so that the terminal can stay quiet."""
        return self.root / self.log_name


def say(text: str) -> None:
    """Print one progress line at once, also through a pipe."""
    print(f"[setup] {text}", flush=True)


def parts(kind: Kind) -> list[Kind]:
    """List what a kind of set-up consists of, itself last."""
    return list(PINS) if kind == "dev" else list(dict.fromkeys(["runtime", kind]))


def read_pins(path: Path) -> list[str]:
    """Read pinned requirements; a ``-r`` line only tells pip what is installed here anyway."""
    entries = (line.split("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [entry for entry in entries if entry and not entry.startswith("-r ")]


def fingerprint(root: Path, part: Kind) -> str:
    """Hash everything that decides what a part puts into the environment."""
    digest = hashlib.sha256()
    for name in ("pyproject.toml", "tools/bootstrap.py", PINS[part]):
        digest.update((root / name).read_bytes())
    return digest.hexdigest()


def home(place: Place) -> str:
    """Name interpreter and folder, since the scripts of a moved environment start nothing."""
    version = ".".join(platform.python_version_tuple()[:2])
    return f"Python {version} {platform.machine()} {place.venv}"


def read_stamp(place: Place) -> dict[str, str]:
    """Return what a former set-up recorded, or nothing if there was none."""
    try:
        return dict(json.loads((place.root / STAMP).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return {}


def is_ours(place: Place) -> bool:
    """Tell whether the environment there was made by this script and can still start."""
    return read_stamp(place).get("home") == home(place) and place.python.exists()


def missing(place: Place, kind: Kind) -> list[Kind]:
    """List the parts that are not there as they are pinned now."""
    stamp = read_stamp(place) if is_ours(place) else {}
    return [part for part in parts(kind) if stamp.get(part) != fingerprint(place.root, part)]


def check_python() -> None:
    """Say which package is missing, where the venv module would only half work."""
    if not (importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip")):
        raise SetupError(
            "this Python cannot make virtual environments: install its venv package "
            "(Debian, Ubuntu: apt install python3-venv) and run this again"
        )


def command_env(place: Place) -> dict[str, str]:
    """Prepare every command's variables, with the environment's own programs first."""
    env = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    env["PATH"] = f"{place.venv / 'bin'}{os.pathsep}{env.get('PATH', os.defpath)}"
    env["PIP_USER"], env["PIP_DISABLE_PIP_VERSION_CHECK"] = "0", "1"
    return env


def log_to(root: Path, log: str = LOG) -> Run:
    """Make a runner that keeps all output in the log."""

    def run(command: Sequence[str], env: Mapping[str, str]) -> int:
        with (root / log).open("a", encoding="utf-8") as out:
            out.write(f"\n$ {shlex.join(command)}\n")
            out.flush()
            return subprocess.run(
                command, env=env, cwd=root, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                check=False,
            ).returncode  # fmt: skip

    return run


def must(place: Place, command: Sequence[str], env: Mapping[str, str], what: str) -> None:
    """Run a command; where it fails, show the reason and where to read on."""
    if place.run(command, env) != 0:
        text = place.log.read_text(encoding="utf-8", errors="replace") if place.log.exists() else ""
        tail = "\n".join(text.rstrip().splitlines()[-20:])
        raise SetupError(f"{what} failed:\n{tail}\n[setup] the full log is in {place.log}")


def pip(place: Place, env: Mapping[str, str], what: str, *words: str) -> None:
    """Run the environment's pip, which honours the user's own pip configuration."""
    must(place, [str(place.python), "-m", "pip", "--no-input", *words], env, what)


def create_venv(place: Place, env: Mapping[str, str]) -> None:
    """Start afresh unless the environment there is ours and still in its place."""
    if is_ours(place):
        return
    say(f"creating {place.venv.name} with Python {platform.python_version()}")
    if place.venv.exists():
        shutil.rmtree(place.venv)
    place.venv.mkdir(parents=True)
    # The resolved path outlives the folder just removed, should that have been the active one.
    command = [os.path.realpath(sys.executable), "-m", "venv", str(place.venv)]
    must(place, command, env, "creating .venv")
    (place.root / STAMP).write_text(json.dumps({"home": home(place)}), encoding="utf-8")


def set_up(place: Place, kind: Kind) -> None:
    """Bring the environment up to date and record what it now holds."""
    check_python()
    env = command_env(place)
    wanted = missing(place, kind)
    create_venv(place, env)
    for part in wanted:
        pins = read_pins(place.root / PINS[part])
        say(f"installing {len(pins)} packages ({part})")
        # What has no wheel is built with the pinned setuptools that is there by then.
        words = [
            "--no-deps",
            "--only-binary=:all:",
            f"--no-binary={SOURCE}",
            "--no-build-isolation",
        ]
        pip(place, env, "installing the packages", "install", *words, *pins)
        if part == "runtime":
            words = ["--no-deps", "--no-build-isolation", "-e", str(place.root)]
            pip(place, env, "installing RPMS", "install", *words)
        stamp = read_stamp(place) | {part: fingerprint(place.root, part)}
        (place.root / STAMP).write_text(json.dumps(stamp), encoding="utf-8")
    say("ready")


def main(argv: Sequence[str] | None = None) -> int:
    """Set up if anything changed; otherwise return at once."""
    parser = argparse.ArgumentParser(description="Create or update .venv for this clone.")
    parser.add_argument(
        "--with", dest="kind", choices=list(PINS), default="runtime",
        help="local: also a language model that runs here; docs: what makes a site of docs/; "
        "dev: both, test tools and linters",
    )  # fmt: skip
    kind: Kind = parser.parse_args(argv).kind
    root = Path(__file__).resolve().parent.parent
    place = Place(root, log_to(root))
    with open(__file__, "rb") as lock:
        # Two makes in one clone would otherwise install over each other.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not missing(place, kind):
            return 0
        try:
            set_up(place, kind)
        except SetupError as error:
            print(f"[setup] {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
