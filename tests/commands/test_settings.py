"""A setting is declared once: a line in ``RunContext`` is all that a new one needs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from rpms.commands.main import app
from rpms.vocabulary.context import RunContext, declarations
from tests.command_line import Rpms

ROOT = Path(__file__).resolve().parents[2]
LINE = 'zeal: Annotated[int, Setting("Zeal", "model", "How eager.", ge=0, le=9)] = 7'
# A fresh process in which the file of the declaration has one line more, and nothing else has.
PROGRAM = f"""
import importlib.util, json, sys
from pathlib import Path
import rpms.vocabulary
spec = importlib.util.find_spec("rpms.vocabulary.context")
text = Path(spec.origin).read_text("utf-8")
wider = text.replace("    def __new__(", '    {LINE}' + "\\n\\n    def __new__(", 1)
assert wider != text
module = rpms.vocabulary.context = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
exec(compile(wider, spec.origin, "exec"), vars(module))

from rpms.commands.main import main
def rpms(*words):
    sys.argv = ["rpms", *words]
    try:
        main()
    except SystemExit as ending:
        return ending.code
print("==", "settings")
assert rpms("settings", "--json") == 0
assert rpms("run", "--set", "zeal=10") == 2
played = ("--limit", "1", "--max-steps", "1", "--workers", "0")
assert rpms("eval", "--out", "typed", "--conditions", "A", "--set", "zeal=1", *played) == 0
Path("plan.yaml").write_text("settings: {{zeal: 2}}\\narms: {{mine: {{condition: A}}}}")
assert rpms("eval", "--out", "planned", "--plan", "plan.yaml", *played) == 0

from rpms import RunContext
from rpms.vocabulary.context import settings
from rpms.evals.running.arms import make_arm, parse_arm
from tools.settings_table import table
looks = {{
    "arm": make_arm(parse_arm("mine:zeal=4")[1], RunContext()).context.zeal,
    "context": settings({{"zeal": 5}}).zeal,
    "docs": [line for line in table().splitlines() if "zeal" in line],
}}
print("==", "looks")
print(json.dumps(looks))
"""


@pytest.mark.engine
def test_a_new_setting_is_everywhere_without_another_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, timeout=600,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    _, listed, looks = done.stdout.split("== ")
    rows = {row["name"]: row for row in json.JSONDecoder().raw_decode(listed.partition("\n")[2])[0]}
    assert (rows["zeal"]["default"], rows["zeal"]["description"]) == (7, "How eager.")
    assert "--set zeal=10" in done.stderr.splitlines()[0]
    for folder, value in (("typed", 1), ("planned", 2)):
        manifest = (tmp_path / folder / "manifest.json").read_text("utf-8")
        assert f'"zeal": {value}' in manifest, manifest
    places: dict[str, Any] = json.loads(looks.partition("\n")[2])
    assert places["arm"] == 4
    assert places["context"] == 5
    assert places["docs"] == ["| `zeal` | `--set` | `7` |  | How eager |"]


OWN = {"model", "base_url", "memory_file", "rules_dir", "max_steps", "seed", "guard"}
"""The settings with an option of their own."""


@pytest.mark.parametrize("command", ["run", "eval", "learn"])
def test_only_some_settings_have_an_option(command: str) -> None:
    group: Any = typer.main.get_command(app)
    options = {option.name: option for option in group.commands[command].params}
    assert {*declarations()} & {*options} - {"memory", "rules"} == OWN
    for name in OWN:
        assert options[name].opts == [declarations()[name].setting.option]
    assert options["max_steps"].default == RunContext().max_steps
    context = typer.Context(group.commands[command])
    for typed, offered in (
        ("memory_fo", {"memory_form="}),
        ("scf=", {"scf=off", "scf=occupancy", "scf=preconditions"}),
        ("rules_d", {"rules_dir="}),
        ("state_bl", set()),
    ):
        assert {each.value for each in options["set_"].shell_complete(context, typed)} == offered


def test_all_settings_are_listed_with_the_values_of_the_paper(rpms: Rpms) -> None:
    rows = {row["name"]: row for row in json.loads(rpms("settings", "--json").out)}
    assert {*declarations()} - {*rows} == {"rules", "memory", "state_block"}
    assert (rows["memory_form"]["default"], rows["memory_form"]["paper"]) == (
        "grounded",
        "recorded",
    )
    assert rows["scf"]["choices"] == ["off", "occupancy", "preconditions"]
    shown = rpms("settings").out
    assert all(name in shown for name in rows)


def test_settings_of_the_command_line_have_their_types(rpms: Rpms, tmp_path: Path) -> None:
    played = ("--limit", "1", "--max-steps", "1", "--workers", "0", "--conditions", "A")
    typed = ("k=7", "theta=0.25", "check_answers=on", "scf=off", "without_rules=domain,O-ACT-001")
    changes = [word for each in typed for word in ("--set", each)]
    assert rpms("eval", "--out", tmp_path / "run", *played, *changes).code == 0
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text("utf-8"))
    (arm,) = manifest["conditions"].values()
    settings = arm.get("settings", arm)
    assert settings["k"] == 7 and settings["theta"] == 0.25 and settings["check_answers"] is True
    assert settings["scf"] == "off" and settings["without_rules"] == "domain,O-ACT-001"
