"""Rules about the code itself: who may import whom, and what nobody may know."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rpms.envs import environment_names, get_environment
from rpms.envs.registry import desk_names
from rpms.graph import STAGES

ROOT = Path(__file__).resolve().parents[1]

# What each package may import, besides itself and what others wrote.
BELOW = {
    "vocabulary": set(),
    "rules": {"vocabulary"},
    "envs": {"vocabulary", "rules"},
    "models": {"vocabulary", "envs", "rules"},
    "guard": {"vocabulary", "rules"},
    "memory_store": {"vocabulary", "envs", "rules", "models"},
    "prompts": {"vocabulary", "envs", "rules", "memory_store", "models"},
    "nodes": {"vocabulary", "envs", "rules", "guard", "memory_store", "models", "prompts"},
    "graph": {
        "vocabulary", "envs", "rules", "guard", "memory_store", "models", "prompts", "nodes",
    },
    "evals": {
        "vocabulary", "envs", "rules", "guard", "memory_store", "models", "prompts", "nodes",
        "graph",
    },
    "rule_learning": {"vocabulary", "envs", "rules", "guard", "nodes", "evals"},
}  # fmt: skip
BELOW["commands"] = {*BELOW, "rpms"}  # on top of all; the package itself tells the version
BELOW["rpms"] = {*BELOW}  # names what is public, and is the program
WORLDS = ("alfworld", "scienceworld", "telecom")
# Words that belong to one world or another: they may stand in its folder and its YAML, and in
# nothing that every world goes through.
WORLDLY = (
    *WORLDS, "storeroom", "room", "substance", "door to", "next door", "kitchen", "fridge",
    "microwave", "sinkbasin", "lamp", "thermometer", "organism", "ingredient", "furniture",
    "recep", "inventory", "household",
)  # fmt: skip


# The user's card has these at the top; there they are links, for reading only.
CARD = ("evals", "graph", "memory_store", "nodes", "rules")


def modules(package: str) -> list[Path]:
    """The files of a package, or a module alone; of ``rpms`` itself, those that lie in no other."""
    folder = ROOT / "rpms" if package in BELOW else ROOT
    if package != "rpms":
        module = folder / f"{package}.py"
        return [module] if module.exists() else sorted((folder / package).rglob("*.py"))
    return sorted(
        file
        for file in folder.rglob("*.py")
        if file.relative_to(folder).parts[0].removesuffix(".py") not in BELOW
    )


def imports(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            yield node.module or ""


def home(name: str) -> str:
    """The folder that an import of ours leads to; everything of ours is imported through rpms."""
    top, *rest = name.split(".")
    return rest[0] if top == "rpms" and rest and rest[0] in BELOW else top


def test_every_package_lies_in_rpms() -> None:
    """Tools that follow no links (zip, coverage, a checkout elsewhere) find all of it there."""
    inside = {path.parent.name for path in (ROOT / "rpms").glob("*/__init__.py")}
    alone = {path.stem for path in (ROOT / "rpms").glob("[!_]*.py")}
    assert inside | alone == {*BELOW} - {"rpms"}
    assert not [path for path in (ROOT / "rpms").rglob("*") if path.is_symlink()]
    at_top = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert at_top <= {"rpms", "tools", "tests", *CARD}
    links = {name: (ROOT / name).readlink() for name in CARD if (ROOT / name).is_symlink()}
    assert links == {name: Path("rpms") / name for name in links}


def test_one_name_to_import() -> None:
    """A bare ``import graph`` would be another copy of the module, or somebody else's."""
    files = [file for folder in [*BELOW, "tools", "tests"] for file in modules(folder)]
    wrong = [
        f"{file.relative_to(ROOT)} imports {name}"
        for file in files
        for name in imports(file)
        if name.split(".")[0] in {*BELOW} - {"rpms"}
    ]
    assert files and not wrong


# ``rpms.evaluate`` returns the report of the run that it made.
REPORTED = {("running", "rpms.evals.analysis.report")}


def test_evals_has_three_parts_that_meet_in_the_records() -> None:
    """Running and analysis both know the records, and nothing of each other."""
    folder = ROOT / "rpms" / "evals"
    parts = {path.parent.name for path in folder.glob("*/__init__.py")}
    assert parts == {"running", "records", "analysis"}
    allowed = {"running": {"records"}, "analysis": {"records"}, "records": set[str]()}
    wrong = [
        f"{file.relative_to(ROOT)} imports {name}"
        for part in parts
        for file in (folder / part).rglob("*.py")
        for name in imports(file)
        if name.startswith("rpms.evals.") and name.split(".")[2] not in {part, *allowed[part]}
        and (part, name) not in REPORTED
    ]  # fmt: skip
    assert not wrong


@pytest.mark.parametrize("package", BELOW)
def test_imports_point_one_way(package: str) -> None:
    assert modules(package)
    wrong = [
        f"{file.relative_to(ROOT)} imports {name}"
        for file in modules(package)
        for name in imports(file)
        if (top := home(name)) in {*BELOW, "tools", "tests"} - {package}
        and top not in BELOW[package]
    ]
    assert not wrong


def test_nodes_holds_the_stages_and_no_stage_imports_a_later_one() -> None:
    """What one stage needs of another it finds in the state."""
    folder = ROOT / "rpms" / "nodes"
    assert {path.name for path in folder.iterdir()} - {"__pycache__"} == {
        "__init__.py",
        "state.py",
        *(f"{stage}.py" for stage in STAGES),
    }
    wrong = [
        f"{stage} imports {name}"
        for number, stage in enumerate(STAGES)
        for name in imports(folder / f"{stage}.py")
        if name == "rpms.nodes" or name.removeprefix("rpms.nodes.") in STAGES[number:]
    ]
    wrong += [name for name in imports(folder / "state.py") if home(name) == "nodes"]
    assert not wrong


def test_nothing_is_called_utils() -> None:
    names = {file.stem for package in BELOW for file in modules(package)}
    names |= {path.name for path in (ROOT / "rpms").rglob("*")}
    assert not names & {"utils", "util", "helpers", "misc", "common"}


def literals(file: Path) -> Iterator[str]:
    """String literals, less docstrings and the defaults of parameters.

    A default is a convenience of the interface; it is not knowledge about a world.
    """
    tree = ast.parse(file.read_text(encoding="utf-8"))
    left_out: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            left_out.add(node.value)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            left_out |= {*node.args.defaults, *node.args.kw_defaults} - {None}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in left_out:
            yield node.value


@pytest.mark.parametrize(
    "package",
    ["nodes", "prompts", "graph", "memory_store", "vocabulary", "rules", "guard", "rule_learning"],
)
def test_no_stage_knows_a_world_by_its_name_or_its_words(package: str) -> None:
    assert modules(package)
    wrong = [
        f"{file.relative_to(ROOT)}: {text!r}"
        for file in modules(package)
        for text in literals(file)
        for word in WORLDLY
        if re.search(rf"\b{word}", text.lower())
    ]
    wrong += [
        f"{file.relative_to(ROOT)} imports {name}"
        for file in modules(package)
        for name in imports(file)
        if any(world in name for world in WORLDS)
    ]
    assert not wrong


def test_the_command_line_names_no_world() -> None:
    """Worlds plug in."""
    named = [
        (file.name, text)
        for file in modules("commands")
        for text in literals(file)
        if any(world in text.lower() for world in WORLDS)
    ]
    assert not named


def test_worlds_do_not_know_each_other() -> None:
    for world in WORLDS:
        for file in (ROOT / "rpms" / "envs" / world).rglob("*.py"):
            others = {f"rpms.envs.{name}" for name in WORLDS if name != world}
            assert not {".".join(name.split(".")[:3]) for name in imports(file)} & others


def test_manuals_lie_beside_their_environments() -> None:
    """``rpms/rules`` reads manuals, and holds the one tier that is the same in all of them."""
    shipped = {file.relative_to(ROOT / "rpms") for file in (ROOT / "rpms").rglob("*.yaml")}
    assert {file for file in shipped if file.parts[0] == "rules"} == {Path("rules/universal.yaml")}
    tiers = [file for file in shipped if file.name in ("domain.yaml", "environment.yaml")]
    # The templates of a new world, in ``commands``, have theirs beside them too.
    assert {file.parent.parent for file in tiers if file.parts[0] != "commands"} == {
        get_environment(name).rules.parent.relative_to(ROOT / "rpms")
        for name in [*environment_names(), *desk_names()]
    }


def loaded_by(statement: str) -> set[str]:
    """Modules in a fresh interpreter after a statement."""
    program = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    out = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return set(json.loads(out.splitlines()[-1]))


def test_the_default_import_path_is_free_of_optional_packages() -> None:
    loaded = {
        name.split(".")[0]
        for name in loaded_by("import rpms, rpms.commands.main, rpms.evals, rpms.graph.studio")
    }
    assert {"langgraph", "langchain_core", "rpms"} <= loaded
    assert not loaded & {
        "langgraph_api", "langgraph_cli", "langgraph_runtime_inmem",
        "langchain_anthropic", "ray", "pytest", "hypothesis", "pandas",
    }  # fmt: skip


def test_importing_starts_nothing_heavy() -> None:
    """The simulators and the provider clients come only when they are needed."""
    loaded = {name.split(".")[0] for name in loaded_by("import rpms, rpms.commands.main")}
    assert not loaded & {"textworld", "fast_downward", "alfworld", "scienceworld", "tau2", "openai"}


def test_no_deprecated_ways_of_langgraph() -> None:
    for package in BELOW:
        for file in modules(package):
            text = file.read_text(encoding="utf-8")
            assert "config_schema" not in text
            assert "create_react_agent" not in text


def test_no_module_binds_a_name_twice() -> None:
    """The second of two patterns of one name is used where the first one was meant."""
    twice = []
    for file in (ROOT / "rpms").rglob("*.py"):
        names: list[str] = []
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            names += [target.id for target in targets if isinstance(target, ast.Name)]
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names.append(node.name)
        twice += [f"{file}: {name}" for name in sorted({*names}) if names.count(name) > 1]
    assert twice == []


# Adverbs, pronouns and participles say nothing about a thing. The fields below are keys of files.
VAGUE = {
    "now", "known", "own", "about", "named", "here", "told", "given", "asked", "there", "mine",
    "then", "meant", "wanted", "whose",
}  # fmt: skip
FILE_KEYS = {
    "rules/schema.py": {"about", "here", "now"},
    "vocabulary/goal.py": {"about"},
    "vocabulary/recall.py": {"then"},
    "models/weights.py": {"about"},
    "envs/scienceworld/goals.py": {"about"},
    "memory_store/methods/note_method.py": {"here"},
    "evals/running/plan_file.py": {"about"},
}


def bound_names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name


def test_names_are_nouns_and_verbs() -> None:
    vague = [
        f"{file}: {name}"
        for path in (ROOT / "rpms").rglob("*.py")
        for file in [str(path.relative_to(ROOT / "rpms"))]
        for name in bound_names(ast.parse(path.read_text(encoding="utf-8")))
        if name.strip("_") in VAGUE - FILE_KEYS.get(file, set())
    ]
    assert vague == []


def test_one_class_name_means_one_class() -> None:
    places: dict[str, list[str]] = {}
    for path in (ROOT / "rpms").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


@pytest.mark.parametrize("link", ["graph", "nodes", "rules", "memory_store", "evals"])
def test_a_link_at_the_top_is_no_second_copy(link: str) -> None:
    code = f"import {link}"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stderr.splitlines()[-1].endswith(f"only a link: import rpms.{link}")
