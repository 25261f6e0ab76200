"""Stock TextWorld beside ours: which flags, which wheels, and the error without a compiler."""

import shutil
from pathlib import Path

import pytest

from tools import stock_textworld


class Commands(list[str]):
    """Stands for pip and notes what was asked, and how the library was to be compiled."""

    compiler = ""

    def pip(self, purpose: str, command: str, *words: str, **variables: str) -> None:
        self.append(" ".join([command, *words]))
        if command == "download":
            (Path(words[words.index("-d") + 1]) / "textworld-1.7.0-x.whl").touch()
        if "CXX" in variables:
            self.compiler = Path(variables["CXX"]).read_text()


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    """With a compiler that refuses one flag, as clang refuses -fno-gnu-unique."""
    program, commands = tmp_path / "a-c++", Commands()
    program.write_text('#!/bin/sh\ncase "$*" in *gnu-unique*) exit 1;; esac\n')
    program.chmod(0o755)
    monkeypatch.setenv("CXX", str(program))
    monkeypatch.setenv("CC", "a-cc")
    monkeypatch.setattr(stock_textworld, "pip", commands.pip)
    monkeypatch.setattr(stock_textworld, "run", lambda purpose, *words: commands.append(words[-1]))
    return commands


@pytest.mark.parametrize(("machine", "fetched"), [("x86_64", 0), ("aarch64", 1)])
def test_textworld_is_fetched_apart_only_where_it_has_no_wheel(
    commands: Commands, monkeypatch: pytest.MonkeyPatch, machine: str, fetched: int
) -> None:
    monkeypatch.setattr("platform.machine", lambda: machine)
    stock_textworld.main()
    assert sum("--platform manylinux2014_x86_64" in line for line in commands) == fetched
    (packages,) = [line for line in commands if " spacy==" in line]
    assert (" textworld==" in packages) == (fetched == 0)
    assert " fast-downward-textworld==" not in packages
    assert commands[-1] == stock_textworld.TRIAL


def test_our_flags_come_last_and_unknown_ones_are_left_out(commands: Commands) -> None:
    stock_textworld.main()
    words = commands.compiler.splitlines()[-1].partition('"$@" ')[2]
    assert words == "-O2 -g0 -Wl,-Bsymbolic -Wl,--exclude-libs,ALL"
    (build,) = [line for line in commands if "--build-constraint" in line]
    assert "--no-cache-dir" in build and "fast-downward-textworld==" in build


@pytest.mark.skipif(not shutil.which("g++"), reason="no g++ here; only 'make textworld' needs it")
def test_gcc_takes_every_flag() -> None:
    assert stock_textworld.accepted("g++", stock_textworld.FLAGS) == [*stock_textworld.FLAGS]


def test_a_missing_compiler_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(SystemExit, match=r"apt install g\+\+.*dnf install gcc-c\+\+"):
        stock_textworld.find_compilers()
