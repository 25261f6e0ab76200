"""docs/memory.md: the method of one's own on the page is learned, played and evaluated."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import rpms
from rpms.memory_store import Note, read_notes
from rpms.memory_store.methods import METHODS, MemoryMethod, RecallRequest
from rpms.memory_store.methods.registry import ATTRIBUTES, checked_method, takes_manual
from rpms.vocabulary.errors import RpmsError
from tests.examples.conftest import Shell

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "memory.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## A method of your own")[2].partition("\n## ")[0]


def block(language: str) -> str:
    (text,) = re.findall(rf"```{language}\n(.*?)```", SECTION, re.S)
    return str(text)


@pytest.mark.engine
def test_the_class_of_the_page(tmp_path: Path, shell: Shell) -> None:
    (tmp_path / "mymodule.py").write_text(block("python"))
    # The page's own commands, with fewer tasks, and an evaluation.
    learned = "--set memory_method=mymodule:Slogan --memory runs/m.slogan.jsonl"
    commands = block("bash").replace("--limit 12", "--limit 3") + (
        f"rpms eval {learned} --conditions C,D --limit 1 --max-steps 3 --out runs/e\n"
    )
    done = shell(commands, tmp_path)
    assert done.code == 0, done
    notes = read_notes(tmp_path / "runs" / "m.slogan.jsonl", "alfworld", "slogan")
    assert notes and {note.kind for note in notes} == {"done"}
    assert "slogan 1.00 Look before you walk." in done.out
    assert f"done 1.00 {notes[0].text}" in done.out
    lines = (tmp_path / "runs" / "e" / "episodes.jsonl").read_text().splitlines()
    played = [json.loads(line) for line in lines]
    assert len(played) == 2 and not any(one["error"] for one in played)
    assert min(rpms.load(tmp_path / "runs" / "e").episodes.recalled) >= 1 + len(notes)


def test_the_page_names_all_of_the_protocol() -> None:
    _, *tables = re.split(r"^\| (?:`NoteMethod`|of .*) \|.*$", SECTION, flags=re.M)
    protocol, request, note = tables
    named = {
        name for text in re.findall(r"`([^`]+)`", protocol) for name in re.findall(r"\w+", text)
    }
    methods = {name for name in vars(MemoryMethod) if not name.startswith("_")}
    assert methods | ATTRIBUTES.keys() <= named
    assert all(f"| `{name}` | {method.title}" in PAGE for name, method in METHODS.items())
    for flag in ATTRIBUTES.keys() - {"name"}:
        assert f"`{flag}` = {getattr(MemoryMethod, flag)}" in protocol
    for table, fields in ((request, RecallRequest._fields), (note, Note.model_fields)):
        told = {name for row in re.findall(r"^\| (`.+?) \|", table, re.M)
                for name in re.findall(r"`(\w+)`", row)}  # fmt: skip
        assert told == {*fields}


LEARN = "write 'async def learn(self, records, ask)'"
WRONG = [
    ("def learn(self, records, ask): ...", f".learn: it is not async; {LEARN}"),
    ("async def learn(self, records): ...", f".learn: too many positional arguments; {LEARN}"),
    ("async def learn(self, records, ask, more): ...", f"required argument: 'more'; {LEARN}"),
    ("learn = 3", f".learn: it is no method; {LEARN}"),
    ("def recall(self): ...", "positional arguments; write 'def recall(self, request)'"),
    ("async def recall(self, request): ...", ".recall: it must not be async; write 'def recall("),
    ("def render(self, recalls): ...", "write 'def render(self, recalls, fill)'"),
    ("async def carry(self, memory): ...", "carry(self, cross_trial_memory, record, ask)'"),
    ("needs_model = 'no'", ".needs_model is 'no'; it must be True or False"),
    ("name = ''", ".name is ''; it must be a name, such as 'mine'"),
    ("def __init__(self, size): ...", "() is made without arguments: missing a required argument"),
]


@pytest.mark.parametrize(("mistake", "told"), WRONG)
def test_a_mistake_in_the_shape_names_class_method_and_form(mistake: str, told: str) -> None:
    names: dict[str, Any] = {"__name__": "mymodule"}
    exec(f"{block('python')}\n\nclass Mine(Slogan):\n    {mistake}\n", names)
    with pytest.raises(RpmsError, match=r"^memory method 'mymodule:Mine': Mine[.(]") as error:
        checked_method("mymodule:Mine", names["Mine"])
    assert told in str(error.value) and "\n" not in str(error.value)


def test_what_is_missing_is_named_and_rules_may_be_asked_for() -> None:
    names: dict[str, Any] = {"__name__": "mymodule"}
    ruled = "class Ruled(Slogan):\n    async def learn(self, records, ask, manual): ...\n"
    exec(f"{block('python')}\n\nclass Mine(NoteMethod):\n    name = 'm'\n\n{ruled}", names)
    with pytest.raises(RpmsError, match=r"Mine has no 'learn'; write 'async def learn\(self, rec"):
        checked_method("mymodule:Mine", names["Mine"])
    assert takes_manual(checked_method("mymodule:Ruled", names["Ruled"]).learn)
    assert not takes_manual(checked_method("mymodule:Slogan", names["Slogan"]).learn)


def test_the_commands_refuse_it_before_anything_is_played(tmp_path: Path, shell: Shell) -> None:
    wrong = "class Mine(Slogan):\n    async def learn(self, records): ...\n"
    (tmp_path / "mymodule.py").write_text(f"{block('python')}\n\n{wrong}")
    for command in ("learn --method mymodule:Mine --out m.jsonl",
                    "run --set memory_method=mymodule:Mine",
                    "eval --set memory_method=mymodule:Mine --out e"):  # fmt: skip
        done = shell(f"rpms {command}", tmp_path)
        assert done.code == 2 and done.out == "" and done.err.count("\n") == 1
        assert f"Mine.learn: too many positional arguments; {LEARN}" in done.err
    assert {file.name for file in tmp_path.iterdir()} <= {"mymodule.py", "__pycache__"}
