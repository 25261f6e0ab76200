"""``rpms rules audit``: the tables it prints, and the drawing beside them."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from rpms.envs import get_environment
from rpms.manual_audit import Trial, audit_curve, audit_manual
from rpms.manual_learning import Study, learn_by_exploring
from rpms.rules_cli import audit
from rpms.vocabulary.errors import RpmsError

WORLD = get_environment("examples.lighthouse.world:WORLD")
TRIAL = Trial(WORLD, "rocks", 1)


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("learned")
    learn_by_exploring(Study(WORLD, folder, steps=100), 3)
    return folder


def test_a_world_without_readable_rules_gets_predictions(
    learned: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    audit_manual(TRIAL, learned)
    told = capsys.readouterr().out
    assert "only predictions are judged" in told
    assert "called" in told and any(line.startswith("go_to ") for line in told.splitlines())


def test_only_the_named_actions_count(capsys: pytest.CaptureFixture[str]) -> None:
    audit_manual(Trial(WORLD, "rocks", 1, only=("open", "close")), None)
    lines = capsys.readouterr().out.partition("───\n")[2].splitlines()
    assert {line.split()[0] for line in lines if line.strip()} == {"all", "open", "close"}


def test_the_curve_is_printed_and_drawn(learned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    audit_curve(TRIAL, learned)
    rows = capsys.readouterr().out.partition("───\n")[2].splitlines()[:3]
    assert [row.split()[0] for row in rows] == ["1", "2", "all"]
    drawn = ElementTree.fromstring((learned / "curve.svg").read_text(encoding="utf-8"))
    titles = [one.text or "" for one in drawn.iter("{http://www.w3.org/2000/svg}title")]
    assert len([one for one in titles if one.startswith("impossible, ")]) == 3


def test_nothing_kept_no_curve(tmp_path: Path) -> None:
    with pytest.raises(RpmsError, match="nothing was kept there"):
        audit_curve(TRIAL, tmp_path)


def test_no_manual_no_audit(tmp_path: Path) -> None:
    with pytest.raises(RpmsError, match="is no folder"):
        audit_manual(TRIAL, tmp_path / "missing")


def test_without_a_word_it_is_not_judged_on_test_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(
        "rpms.manual_audit.audit_manual", lambda trial, *_: asked.append(trial.split)
    )
    for name in ("alfworld", "scienceworld"):
        audit(env=name)
    assert asked == ["generated_unseen", "dev"]
