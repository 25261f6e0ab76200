from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from rpms.nodes.manual import load_manual
from rpms.rules.loader import line_of, load_tier, read_manual
from rpms.rules.manual import RULES_FOLDER
from rpms.rules.schema import UniversalTier
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import read_yaml


@pytest.mark.parametrize(
    ("file", "old", "new", "rule", "what"),
    [
        pytest.param(
            "universal.yaml", "    text: Check open spaces", "    tetx: Check open spaces",
            "U-SEARCH-004", r"rules\.2: unknown key 'tetx'; did you mean 'text'\?",
            id="mistyped key"),
        pytest.param(
            "alfworld/domain.yaml", "    text: Only one object",
            "    critcal: true\n    text: Only one object",
            "D-CONT-002", r"unknown key 'critcal'; did you mean 'critical'\?", id="unknown key"),
        pytest.param(
            "universal.yaml", "  - id: O-SEARCH-002\n",
            "  - <!>id: U-NEW-001\n    group: new\n  - id: O-SEARCH-002\n",
            "U-NEW-001", r"text: Field required", id="missing text"),
        pytest.param(
            "universal.yaml", "    text: Check open spaces before closed containers.",
            "    text: '  '", "U-SEARCH-004", r"text: .*at least 1 character", id="empty text"),
        pytest.param(
            "universal.yaml", "  - id: U-FAIL-001", "  - id: fail one",
            "fail one", r"id: .*pattern", id="bad id"),
        pytest.param(
            "universal.yaml", "  - id: U-FAIL-001\n    group: failure_recovery\n",
            "  - <!>group: failure_recovery\n",
            "rules.5", r"rules\.5\.id: Field required", id="no id at all"),
        pytest.param(
            "universal.yaml", "  - id: U-FAIL-002\n", "    <!>id: U-FAIL-002\n",
            "", r"the key 'id' is given a second time", id="forgotten dash"),
        pytest.param(
            "alfworld/environment.yaml", "    preconditions: [at(place), closed(place)]",
            "    preconditions: [at(place), closed(place]",
            "O-ACT-002", r"preconditions\.1: 'closed\(place' is not a", id="bad precondition"),
        pytest.param(
            "alfworld/environment.yaml", "    effects: [closed(place)]",
            "    effects: [\n      <!>is closed(place)]",
            "O-ACT-003", r"effects\.0: 'is closed\(place\)' is not a predicate", id="bad effect"),
        pytest.param(
            "alfworld/environment.yaml", "    when: [here_closed]", "    when: [here closed!]",
            "OS-003", r"when\.0: 'here closed!' is not a predicate", id="bad condition"),
        pytest.param(
            "alfworld/environment.yaml",
            "  - id: OS-001\n    when: [not hand_empty]\n    text: Holding {held}",
            "  - <!>id: OS-001\n    when: [not hand_empty]\n    text: Holding {hold}",
            "OS-001", r"nothing fills the blank '\{hold\}'", id="blank of a situation"),
        pytest.param(
            "alfworld/environment.yaml",
            "  - id: O-ACT-001\n    name: go_to\n    syntax: go to {place}",
            "  - <!>id: O-ACT-001\n    name: go_to\n    syntax: go to {there}",
            "O-ACT-001", r"nothing fills the blank '\{place\}'", id="blank of an action"),
        pytest.param(
            "alfworld/environment.yaml", "    critical: Only one object fits in the hand.",
            "    critical: [one, two]", "O-ACT-004", r"critical: .*string", id="wrong type"),
        pytest.param(
            "alfworld/domain.yaml", "tier: domain", "tier: domian", "", r"tier: ", id="wrong tier"),
    ],
)  # fmt: skip
def test_a_mistake_is_shown_with_file_line_and_rule(
    spoil: Any, rule_folder: Path, file: str, old: str, new: str, rule: str, what: str
) -> None:
    spoiled, line = spoil(file, old, new)
    with pytest.raises(RpmsError, match=what) as caught:
        read_manual(rule_folder / "alfworld", rule_folder)
    message = str(caught.value)
    assert message.startswith(f"{spoiled}:{line}: {rule}"), (line, message)
    assert "\n" not in message


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("tier: universal\nrules:\n  - id: U-A-1\n   text: x\n", 4),
        ("tier: universal\nrules: [\n", 3),
        ("tier: universal\nrules:\n\t- id: U-A-1\n", 3),
        ("tier: universal\nrules: !!python/name:os.system\n", 2),
        ("tier: 'universal\n", 2),
    ],
)
def test_broken_yaml_is_shown_with_its_line(tmp_path: Path, content: str, line: int) -> None:
    file = tmp_path / "universal.yaml"
    file.write_text(content)
    with pytest.raises(RpmsError) as caught:
        load_tier(file, UniversalTier)
    assert str(caught.value).startswith(f"{file}:{line}: not valid YAML: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"\x00\x01", b"", b"- 1\n", b"just words"])
def test_a_file_that_is_no_manual_at_all_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "universal.yaml"
    file.write_bytes(content)
    with pytest.raises(RpmsError) as caught:
        load_tier(file, UniversalTier)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["universal.yaml", "alfworld/domain.yaml"])
def test_a_missing_tier_is_named(rule_folder: Path, name: str) -> None:
    (rule_folder / name).unlink()
    with pytest.raises(RpmsError, match=r"cannot read .*No such file") as caught:
        read_manual(rule_folder / "alfworld", rule_folder)
    assert str(rule_folder / name) in str(caught.value)


def test_the_project_s_own_files_load() -> None:
    manual = load_manual("alfworld")
    assert manual.universal.rules and manual.domain.rules and manual.actions
    assert load_manual("alfworld") is manual


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ([], 1),
        (["rules"], 2),
        (["rules", 0], 3),
        (["rules", 0, "text"], 4),
        (["rules", 1], 5),
        (["rules", 1, "missing"], 5),
        (["rules", 9], 2),
        (["nowhere", 1], 1),
        (["rules", "word"], 2),
        (["rules", 0, "text", "deeper"], 4),
    ],
)
def test_the_line_of_the_deepest_part_that_exists(path: list[str | int], line: int) -> None:
    node = yaml.compose("tier: x\nrules:\n  - id: A\n    text: one\n  - id: B\n    text: two\n")
    assert line_of(node, path) == line


def test_nodes_and_data_tell_the_same() -> None:
    node, data = read_yaml(RULES_FOLDER / "universal.yaml")
    assert isinstance(data, dict)
    lines = (RULES_FOLDER / "universal.yaml").read_text().splitlines()
    for index, rule in enumerate(data["rules"]):
        assert lines[line_of(node, ["rules", index]) - 1].endswith(f"id: {rule['id']}")
