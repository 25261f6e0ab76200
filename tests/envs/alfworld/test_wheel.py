from __future__ import annotations

import re

import pytest

from rpms.envs.alfworld import alfworld_package
from rpms.vocabulary.errors import RpmsError


def test_new_wording_is_the_package_as_it_is() -> None:
    assert "(:action help" in alfworld_package.domain("move")
    assert 'template :: "move {o} to {r}"' in alfworld_package.grammar("move")
    assert alfworld_package.grammar("move").count("UNKNOWN GOAL") == 1


def test_older_wording_differs_only_in_its_words() -> None:
    assert "(:action help" not in alfworld_package.domain("put")
    code = re.sub(r";.*", "", alfworld_package.domain("put"))
    assert code.count("(") == code.count(")")
    grammar = alfworld_package.grammar("put")
    assert 'template :: "put {o} in/on {r}"' in grammar
    assert "You put the {o.name} in/on the {r.name}." in grammar
    assert "You arrive at {lend.name}." in grammar
    assert "action help" not in grammar
    assert "move " not in grammar.replace("remove ", "")


def test_goals_come_from_the_package() -> None:
    assert alfworld_package.goal_sentence("pick_two_obj_and_place", 1, "CellPhone", "Bed", "") == (
        "find two cellphone and put them in bed"
    )
    condition = alfworld_package.goal_condition("look_at_obj_in_light", "Pen", "", "DeskLamp")
    assert "(objectType ?ot DeskLampType)" in condition
    assert "?r - receptacle" in condition
    assert "#" not in condition


def test_an_unknown_version_of_the_package_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alfworld_package, "_data_file", lambda name: "something else")
    with pytest.raises(RpmsError, match=r"install alfworld==0\.4\.2"):
        alfworld_package.grammar.__wrapped__("put")
    with pytest.raises(RpmsError, match=r"install alfworld==0\.4\.2"):
        alfworld_package.domain.__wrapped__("put")


def test_a_missing_package_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(alfworld_package, "import_module", missing)
    with pytest.raises(RpmsError, match=r"alfworld package is not installed; run 'make setup'"):
        alfworld_package.goal_sentence("pick_two_obj_and_place", 1, "CellPhone", "Bed", "")
