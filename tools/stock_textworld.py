"""``make textworld``: install stock TextWorld, to compare RPMS's engine with it.

Nothing else needs it, nor its C++ compiler. Two packages need more than pip. TextWorld publishes no
Linux wheel for processors other than x86_64, although that wheel has no compiled code. The planner
library in fast-downward-textworld exists only as source, links libstdc++ statically and exports its
symbols: if another package has already loaded the system's copy, the two mix and the first game
crashes. So it is linked without exported symbols.
"""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = "fast-downward-textworld"
# The planner's build accepts any cmake; a pin keeps a later release from breaking it.
CMAKE = "cmake==4.4.4"
COMPILERS = (("g++", "gcc"), ("clang++", "clang"), ("c++", "cc"))
# Appended, because the package's build files set -O3 -g and the last flag wins.
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


def find_compilers() -> tuple[str, str]:
    """Choose the C++ and the C compiler; CXX and CC come first."""
    for cxx, cc in COMPILERS:
        pair = os.environ.get("CXX") or shutil.which(cxx), os.environ.get("CC") or shutil.which(cc)
        if pair[0] and pair[1]:
            return pair[0], pair[1]
    sys.exit(
        "[setup] stock TextWorld has to be compiled, and no C++ compiler was found; install one "
        "(Debian, Ubuntu: apt install g++; Fedora, RHEL: dnf install gcc-c++) and run this again"
    )


def run(purpose: str, *command: str, **variables: str) -> None:
    """Run a Python command of this environment; its output goes to the terminal."""
    print(f"[setup] {purpose}", flush=True)
    done = subprocess.run([sys.executable, *command], env={**os.environ, **variables}, cwd=ROOT)
    if done.returncode:
        sys.exit(f"[setup] {purpose} failed; the reason is above")


def pip(purpose: str, command: str, *words: str, **variables: str) -> None:
    """Run pip without dependency resolution: the pins are complete."""
    run(purpose, "-m", "pip", "-q", "--no-input", command, "--no-deps", *words, **variables)


def read_pins(name: str) -> list[str]:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if "==" in line and not line.startswith("#")]


def accepted(cxx: str, flags: Sequence[str]) -> list[str]:
    """The flags that a compiler accepts; clang has no -fno-gnu-unique."""
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


def install_library(cxx: str, cc: str, pin: str) -> None:
    """Build the planner library, without pip's cache, whose copy may lack the flags."""
    with tempfile.TemporaryDirectory() as folder:
        constraints = Path(folder, "build-constraints.txt")
        (setuptools,) = [p for p in read_pins("requirements.txt") if p.startswith("setuptools==")]
        constraints.write_text(f"{setuptools}\n{CMAKE}\n", encoding="utf-8")
        words = ["--no-cache-dir", "--force-reinstall", "--build-constraint", str(constraints), pin]
        compilers = {"CXX": str(write_compiler(Path(folder), cxx)), "CC": cc}
        pip("building TextWorld's planner library (minutes)", "install", *words, **compilers)


def install_plain_wheel(pin: str) -> None:
    """Install TextWorld on other processors from the x86_64 wheel, which is plain Python."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["--only-binary=:all:", "--platform", "manylinux2014_x86_64", "-d", folder, pin]
        pip("fetching TextWorld", "download", *words)
        wheel = next(Path(folder).glob("*.whl"))
        plain = wheel.rename(wheel.with_name(f"{pin.replace('==', '-')}-py3-none-any.whl"))
        pip("installing TextWorld", "install", str(plain))


def main() -> None:
    """Install every pin, and run one game in a separate process to test the library."""
    cxx, cc = find_compilers()
    pins = read_pins("requirements-textworld.txt")
    special = [pin for pin in pins if pin.startswith(f"{LIBRARY}==")]
    if platform.system() == "Linux" and platform.machine() != "x86_64":
        special += [pin for pin in pins if pin.startswith("textworld==")]
        install_plain_wheel(special[-1])
    rest = [pin for pin in pins if pin not in special]
    pip(f"installing {len(rest)} packages that TextWorld needs", "install", *rest)
    install_library(cxx, cc, special[0])
    run("running one game to test it", "-c", TRIAL)


if __name__ == "__main__":
    main()
