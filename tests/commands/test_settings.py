"""A setting is declared once: a line in ``RunContext`` is all that a new one needs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, get_type_hints

import pytest
import typer

from rpms.commands.main import app
from rpms.vocabulary.context import RunContext, declarations

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
for command in ("run", "eval", "learn"):
    print("==", command)
    assert rpms(command, "--help") == 0
assert rpms("run", "--zeal", "10") == 2
played = ("--limit", "1", "--max-steps", "1", "--workers", "0", "--no-cache")
assert rpms("eval", "--out", "typed", "--conditions", "A", "--zeal", "1", *played) == 0
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
    _, run, evaluate, learn, looks = done.stdout.split("== ")
    for text in (run, evaluate, learn):
        assert "--zeal N" in text and "How eager.  [default: 7]" in text
    assert "--zeal" in done.stderr.splitlines()[0]
    for folder, value in (("typed", 1), ("planned", 2)):
        manifest = (tmp_path / folder / "manifest.json").read_text("utf-8")
        assert f'"zeal": {value}' in manifest, manifest
    places: dict[str, Any] = json.loads(looks.partition("\n")[2])
    assert places["arm"] == 4
    assert places["context"] == 5
    assert places["docs"] == ["| `zeal` | `--zeal` | `7` | How eager |"]


@pytest.mark.parametrize("command", ["run", "eval", "learn"])
def test_every_setting_is_an_option_of_the_same_kind(command: str) -> None:
    """Named, typed, limited, explained and completed as the field says."""
    group: Any = typer.main.get_command(app)
    options = {option.name: option for option in group.commands[command].params}
    hints = get_type_hints(RunContext)
    for name, declared in declarations().items():
        if not declared.option:
            assert name in ("rules", "memory", "state_block") and name not in options
            continue
        option, setting = options[name], declared.setting
        assert declared.option in option.opts
        assert option.help.startswith(setting.description)
        assert declared.choices == getattr(hints[name], "__args__", ())
        if declared.choices:
            assert option.metavar == "|".join(declared.choices)
            offered = option.shell_complete(typer.Context(group.commands[command]), "")
            assert [item.value for item in offered] == list(declared.choices)
        if hints[name] is bool:
            assert bool(option.secondary_opts) is declared.default
        assert option.default == (None if setting.many else declared.default)
