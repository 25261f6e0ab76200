"""Stock TextWorld beside ours: which flags, which wheels, and what is said where it cannot be."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tools import stock_textworld
from tools.bootstrap import ROOT, Clone, SetupError


class Commands(Clone):
    """Does the file work of pip, and remembers what was run and how the library was compiled."""

    def __init__(self) -> None:
        super().__init__(ROOT)
        self.lines: list[str] = []
        self.compiler = ""

    def call(self, command: Sequence[str], env: Mapping[str, str]) -> tuple[int, str]:
        self.lines.append(" ".join(command))
        if "download" in command:
            (Path(command[command.index("-d") + 1]) / "textworld-1.7.0-x.whl").touch()
        if "--build-constraint" in command:
            self.compiler = Path(env["CXX"]).read_text()
        return 0, ""

    def count(self, part: str) -> int:
        return sum(part in line for line in self.lines)


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A compiler that refuses one flag, as clang refuses -fno-gnu-unique."""
    program = tmp_path / "a-c++"
    program.write_text('#!/bin/sh\ncase "$*" in *gnu-unique*) exit 1;; esac\n')
    program.chmod(0o755)
    monkeypatch.setenv("CXX", str(program))
    monkeypatch.setenv("CC", "a-cc")
    return program


@pytest.mark.parametrize(("machine", "fetched"), [("x86_64", 0), ("aarch64", 1), ("riscv64", 1)])
def test_textworld_is_fetched_apart_only_where_it_has_no_wheel(
    compiler: Path, monkeypatch: pytest.MonkeyPatch, machine: str, fetched: int
) -> None:
    monkeypatch.setattr("platform.machine", lambda: machine)
    commands = Commands()
    stock_textworld.install(commands)
    assert commands.count("--platform manylinux2014_x86_64 -d") == fetched
    (packages,) = [line for line in commands.lines if " spacy==" in line]
    assert (" textworld==" in packages) == (fetched == 0)
    assert " fast-downward-textworld==" not in packages
    assert commands.lines[-1].endswith(stock_textworld.TRIAL)


def test_our_flags_come_last_and_unknown_ones_are_left_out(compiler: Path) -> None:
    commands = Commands()
    stock_textworld.install(commands)
    assert commands.compiler.splitlines()[-1] == (
        f'exec {compiler} "$@" -O2 -g0 -Wl,-Bsymbolic -Wl,--exclude-libs,ALL'
    )
    (build,) = [line for line in commands.lines if "--build-constraint" in line]
    assert "--no-cache-dir" in build and "fast-downward-textworld==" in build


@pytest.mark.skipif(not shutil.which("g++"), reason="no g++ here; only 'make textworld' needs it")
def test_gcc_takes_every_flag() -> None:
    assert stock_textworld.accepted("g++", stock_textworld.FLAGS) == [*stock_textworld.FLAGS]


def test_a_missing_compiler_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(SetupError, match=r"apt install g\+\+.*dnf install gcc-c\+\+"):
        stock_textworld.find_compilers({})


def test_it_is_installed_once_for_the_same_pins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed: list[Clone] = []
    monkeypatch.setattr(stock_textworld, "ROOT", tmp_path)
    monkeypatch.setattr(stock_textworld, "install", installed.append)
    monkeypatch.chdir(tmp_path)
    for folder in (".venv", "tools"):
        (tmp_path / folder).mkdir()
    (tmp_path / "tools" / "stock_textworld.py").touch()
    for pins in ("a==1", "a==2"):
        (tmp_path / stock_textworld.REQUIREMENTS).write_text(pins)
        assert (stock_textworld.main(), stock_textworld.main()) == (0, 0)
    assert len(installed) == 2
