"""docs/new-world.md: every command is run as it stands there."""

from __future__ import annotations

import inspect
import re
from functools import cached_property
from pathlib import Path
from types import FunctionType

from rpms import Environment
from tests.examples.conftest import Shell

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "new-world.md").read_text(encoding="utf-8")


def test_the_commands_of_the_page(tmp_path: Path, shell: Shell) -> None:
    commands = "".join(re.findall(r"\n\n```sh\n(.*?)```", PAGE, re.S))
    assert commands.count("rpms ") >= 9
    commands += "rpms rules check --env kiosk.world:WORLD\npython -m pytest -q kiosk\n"
    done = shell(commands, tmp_path)
    assert done.code == 0, done
    assert re.search(r"problems\n.*\n.* 0\n", done.out)  # of the table of rules check
    needs = "needs <place> to be a place here; <place> to be closed"
    assert f"[E-OPEN] open <place> | {needs}" in done.out
    assert re.search(r"^success +after", done.out, re.M)
    assert "runs/practice: 12 of 12 episodes; E 12/12" in done.out
    assert re.search(r"kiosk.jsonl: \d+ entries \(\d+ found, \d+ schema, \d+ success\)", done.out)
    # Without an offer the control knows nothing to play, and loses.
    assert "A 0/6, B 0/6, C 0/6, D 0/6, E 6/6" in done.out
    steps = [*(tmp_path / "runs" / "kiosk" / "report-steps").glob("fetch-*.html")]
    assert len(steps) == 6
    written = {file.relative_to(tmp_path / "kiosk").as_posix().replace("fetch.json", "*.json")
               for file in (tmp_path / "kiosk").rglob("*.*") if file.suffix != ".pyc"}  # fmt: skip
    shown = {*re.findall(r"^  (\S+)  +", PAGE, re.M)}
    assert shown - {"memory.jsonl"} == written - {"__init__.py"}
    files = [file for file in (tmp_path / "kiosk").rglob("*.*") if file.suffix != ".pyc"]
    assert not any("storeroom" in file.read_text("utf-8") for file in files)


def test_the_page_names_what_the_class_requires_and_its_help_has_the_rest() -> None:
    must, may = PAGE.split("| you may override")
    told = {
        name.split("(")[0]
        for row in re.findall(r"^\| (`.+?) \|", f"{must}\n| {may}", re.M)
        for name in re.findall(r"`([\w(), ]+)`", row)
    }
    public = {name: value for name, value in vars(Environment).items() if name[0] != "_"}
    assert told <= public.keys()
    required = {name.split("(")[0] for name in re.findall(r"^\| `(\w+)\(.*?\)` \|", must, re.M)}
    assert required == Environment.__abstractmethods__
    attributes = {*re.findall(r"^    (\w+): ", inspect.getdoc(Environment) or "", re.M)}
    described = {
        name
        for name, value in public.items()
        if isinstance(value, FunctionType | property | cached_property) and value.__doc__
    }
    assert public.keys() <= attributes | described
