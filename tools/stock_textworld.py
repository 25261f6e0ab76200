"""``make textworld``: stock TextWorld beside RPMS's own engine, for whoever wants to compare.

Nothing else needs this, nor the C++ compiler it needs. Two packages want care that pip alone
cannot give. TextWorld publishes no Linux wheel for processors other than x86_64, although that one
holds no compiled code. The planner library in fast-downward-textworld exists only as source, links
libstdc++ statically and exports its symbols: where another package has loaded the system's copy
before, the two mix, and the first game crashes. So it is linked to keep its symbols to itself.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.bootstrap import PINS, ROOT, Clone, SetupError, read_pins, say

REQUIREMENTS = "requirements-textworld.txt"
STAMP = ".venv/textworld.sha256"
LIBRARY = "fast-downward-textworld"
# The planner's build asks for any cmake; naming one keeps a later release from breaking it.
CMAKE = "cmake==4.4.4"
COMPILERS = (("g++", "gcc"), ("clang++", "clang"), ("c++", "cc"))
# Appended, as the package's own build files fix -O3 -g and only what comes after those wins.
FLAGS = ("-O2", "-g0", "-Wl,-Bsymbolic", "-Wl,--exclude-libs,ALL", "-fno-gnu-unique")
TRIAL = """
import tempfile
from pathlib import Path
from rpms.envs.alfworld.tasks import sample_home, write_game
from tools.compare_engines import start_stock
game = sample_home("generated_seen", 0)
with tempfile.TemporaryDirectory() as folder:
    stock = start_stock(write_game(game, Path(folder)))
    state = stock.reset()
    for command in game.walkthrough:
        state, _, _ = stock.step(command)
assert state["won"], "the planned steps do not win the game"
"""


def find_compilers(env: Mapping[str, str]) -> tuple[str, str]:
    """Choose the C++ and the C compiler, the user's own choice first."""
    for cxx, cc in COMPILERS:
        pair = env.get("CXX") or shutil.which(cxx), env.get("CC") or shutil.which(cc)
        if pair[0] and pair[1]:
            return pair[0], pair[1]
    raise SetupError(
        "stock TextWorld has to be compiled and there is no C++ compiler: install one (Debian, "
        "Ubuntu: apt install g++; Fedora, RHEL: dnf install gcc-c++) and run this again"
    )


def accepted(cxx: str, flags: Sequence[str]) -> list[str]:
    """Keep the flags that a compiler knows; clang has no unique symbols to switch off."""
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "empty.cc"), Path(folder, "empty.so")
        source.touch()
        words = ["-shared", "-fPIC", str(source), "-o", str(library)]
        return [
            flag
            for flag in flags
            if subprocess.run([cxx, flag, *words], capture_output=True, check=False).returncode == 0
        ]


def write_compiler(folder: Path, cxx: str) -> Path:
    """Wrap the compiler so that our flags come last."""
    compiler = folder / "c++"
    flags = " ".join(accepted(cxx, FLAGS))
    compiler.write_text(f'#!/bin/sh\nexec {cxx} "$@" {flags}\n', encoding="utf-8")
    compiler.chmod(0o755)
    return compiler


def install_library(clone: Clone, cxx: str, pin: str) -> None:
    """Build the planner library; pip's cache may hold one that was built without the flags."""
    say("building TextWorld's planner library (some minutes, once)")
    with tempfile.TemporaryDirectory() as folder:
        runtime = read_pins(clone.root / PINS["runtime"])
        constraints = Path(folder, "build-constraints.txt")
        setuptools = next(line for line in runtime if line.startswith("setuptools=="))
        constraints.write_text(f"{setuptools}\n{CMAKE}\n", encoding="utf-8")
        env = {**clone.env, "CXX": str(write_compiler(Path(folder), cxx))}
        words = ["--no-deps", "--no-cache-dir", "--force-reinstall"]
        words += ["--build-constraint", str(constraints), pin]
        clone.pip("building the planner library", "install", *words, env=env)


def install_plain_wheel(clone: Clone, pin: str) -> None:
    """Install TextWorld on other processors from the x86_64 wheel, which is plain Python."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["--no-deps", "--only-binary=:all:", "--platform", "manylinux2014_x86_64"]
        clone.pip("fetching TextWorld", "download", *words, "-d", folder, pin)
        wheel = next(Path(folder).glob("*.whl"))
        plain = wheel.rename(wheel.with_name(f"{pin.replace('==', '-')}-py3-none-any.whl"))
        clone.pip("installing TextWorld", "install", "--no-deps", str(plain))


def install(clone: Clone) -> None:
    """Install every pin, and play one game in a process of its own to try the library."""
    cxx, clone.env["CC"] = find_compilers(clone.env)
    pins = read_pins(clone.root / REQUIREMENTS)
    special = [pin for pin in pins if pin.startswith(f"{LIBRARY}==")]
    if platform.system() == "Linux" and platform.machine() != "x86_64":
        special += [pin for pin in pins if pin.startswith("textworld==")]
        install_plain_wheel(clone, special[-1])
    rest = [pin for pin in pins if pin not in special]
    say(f"installing {len(rest)} packages that TextWorld wants")
    clone.pip("installing the packages", "install", "--no-deps", *rest)
    install_library(clone, cxx, special[0])
    say("playing one game to try it")
    clone.must("the trial game", clone.python, "-c", TRIAL)


def fingerprint(root: Path) -> str:
    """Hash what decides the outcome."""
    names = (REQUIREMENTS, "tools/stock_textworld.py")
    return hashlib.sha256(b"".join((root / name).read_bytes() for name in names)).hexdigest()


def main() -> int:
    """Install unless a former run did; the environment of ``make setup`` is in place already."""
    stamp, current = ROOT / STAMP, fingerprint(ROOT)
    if stamp.exists() and stamp.read_text(encoding="utf-8") == current:
        return 0
    os.chdir(ROOT)
    try:
        install(Clone(ROOT, "textworld.log"))
    except SetupError as error:
        print(f"[setup] {error}", file=sys.stderr)
        return 1
    stamp.write_text(current, encoding="utf-8")
    say("stock TextWorld is ready")
    return 0


if __name__ == "__main__":
    sys.exit(main())
