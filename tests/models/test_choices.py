"""``rpms models list``: every model, and what it still needs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rpms.models import choices as listing
from rpms.models.opening import LABELS, Choice, choices
from rpms.models.weights import catalogue, folder
from tests.command_line import in_process


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Choice]:
    """What a machine without keys, packages and weights gets to see."""
    for key in listing.KEYS.values():
        monkeypatch.delenv(key, raising=False)
    monkeypatch.setenv("RPMS_CACHE", str(tmp_path))
    monkeypatch.setattr(listing, "find_spec", lambda name: None)
    return {one.name: one for one in choices()}


def test_ours_work_everywhere_and_the_others_say_what_they_need(found: dict[str, Choice]) -> None:
    ready = {name for name, one in found.items() if not one.missing}
    assert ready == {*LABELS, "MODULE:NAME"}
    assert found["local:smollm2"].missing == "run 'make local'"
    for name in catalogue():
        need = f"run 'make local' and run 'rpms models pull {name}'"
        assert found[f"local:{name}"].missing == need
    assert found["groq:NAME"].missing == "pip install langchain-groq and set GROQ_API_KEY"
    assert "'rpms[anthropic]'" in found["anthropic:NAME"].missing


def test_a_key_and_weights_are_seen(
    found: dict[str, Choice], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "find_spec", lambda name: object())
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-shown")
    name = next(iter(catalogue()))
    folder().mkdir(parents=True)
    (folder() / catalogue()[name].file).touch()
    now = {one.name: one for one in choices()}
    assert not now["openai:NAME"].missing and not now[f"local:{name}"].missing
    assert now["anthropic:NAME"].missing == "set ANTHROPIC_API_KEY"
    assert "sk-not-shown" not in str(now)


def test_the_command_prints_all_of_them(
    found: dict[str, Choice], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    rpms = in_process(monkeypatch, capsys)
    done = rpms("models", "list")
    usable, _, rest = done.out.partition("Not yet")
    assert done.code == 0 and max(map(len, done.out.splitlines())) <= 80
    for name, one in found.items():
        assert name in (rest if one.missing else usable)
    told = json.loads(rpms("models", "list", "--json").out)
    assert {one["name"] for one in told if one["usable"]} == {*LABELS, "MODULE:NAME"}
