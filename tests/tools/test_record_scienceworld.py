from __future__ import annotations

import json

import pytest

from tools.record_scienceworld import dump, pack, shared_parts


def unpack(packed: dict) -> list[str]:
    return [packed["sentence"].format(*packed["rows"][row]) for row in packed["variations"]]


def test_sentences_become_one_with_gaps() -> None:
    sentences = [
        "Boil water. When the water is above 10.5 degrees, stop.",
        "Boil liquid tin. When the liquid tin is above -3.0 degrees, stop.",
        "Boil water. When the water is above 10.5 degrees, stop.",
    ]
    packed = pack(sentences)
    assert packed == {
        "sentence": "Boil {0}. When the {0} is above {1} degrees, stop.",
        "rows": [["water", "10.5"], ["liquid tin", "-3.0"]],
        "variations": [0, 1, 0],
    }
    assert unpack(packed) == sentences


def test_a_sentence_that_never_changes_has_no_gaps() -> None:
    assert pack(["Find it."] * 3) == {"sentence": "Find it.", "rows": [[]], "variations": [0] * 3}


def test_gaps_may_be_at_both_ends() -> None:
    sentences = ["red box", "green bag", "red bag", "green box"]
    assert unpack(pack(sentences)) == sentences
    assert shared_parts(sentences) == ["", " ", ""]


def test_sentences_that_do_not_fit_are_refused() -> None:
    with pytest.raises(SystemExit, match="does not fit all of"):
        pack(["Boil it.", "Boil it well."])


def test_the_file_is_json_with_short_diffs() -> None:
    recorded = {"a": pack(["x 1", "x 2"]), "b": pack(["y"])}
    text = dump(recorded)
    assert json.loads(text) == recorded
    assert '  "rows": [["1"], ["2"]],' in text.splitlines()
