"""Rule files: read with every mistake in its line, and folders of the user's own laid over them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from rpms.nodes.manual import load_manual
from rpms.rules import Manual
from rpms.rules.loader import BY_ID, load_tier, overlay, read_manual
from rpms.rules.manual import RULES_FOLDER, TIERS
from rpms.rules.schema import DomainTier, EnvironmentTier, UniversalTier
from rpms.vocabulary.belief import empty_belief
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.goal import GoalSpec

MANUAL = load_manual("alfworld")
WORLDS = ("alfworld", "scienceworld")
MODELS = {"universal": UniversalTier, "domain": DomainTier, "environment": EnvironmentTier}


@pytest.mark.parametrize(
    ("file", "old", "new", "rule", "what"),
    [
        pytest.param("universal.yaml", "    text: Check open spaces", "    tetx: Check open spaces",
            "U-SEARCH-004", r"rules\.2: unknown key 'tetx'; did you mean 'text'\?",
            id="mistyped key"),
        pytest.param("alfworld/domain.yaml", "    text: Only one object",
            "    critcal: true\n    text: Only one object",
            "D-CONT-002", r"unknown key 'critcal'; did you mean 'critical'\?", id="unknown key"),
        pytest.param("universal.yaml", "  - id: O-SEARCH-002\n",
            "  - <!>id: U-NEW-001\n    group: new\n  - id: O-SEARCH-002\n",
            "U-NEW-001", r"text: Field required", id="missing text"),
        pytest.param("universal.yaml", "    text: Check open spaces before closed containers.",
            "    text: '  '", "U-SEARCH-004", r"text: .*at least 1 character", id="empty text"),
        pytest.param("universal.yaml", "  - id: U-FAIL-001", "  - id: fail one",
            "fail one", r"id: .*pattern", id="bad id"),
        pytest.param("universal.yaml", "  - id: U-FAIL-001\n    group: failure_recovery\n",
            "  - <!>group: failure_recovery\n",
            "rules.5", r"rules\.5\.id: Field required", id="no id at all"),
        pytest.param("universal.yaml", "  - id: U-FAIL-002\n", "    <!>id: U-FAIL-002\n",
            "", r"the key 'id' is given a second time", id="forgotten dash"),
        pytest.param("alfworld/environment.yaml", "    preconditions: [at(place), closed(place)]",
            "    preconditions: [at(place), closed(place]",
            "O-ACT-002", r"preconditions\.1: 'closed\(place' is not a", id="bad precondition"),
        pytest.param("alfworld/environment.yaml", "    effects: [closed(place)]",
            "    effects: [\n      <!>is closed(place)]",
            "O-ACT-003", r"effects\.0: 'is closed\(place\)' is not a predicate", id="bad effect"),
        pytest.param("alfworld/environment.yaml", "    when: [here_closed]",
            "    when: [here closed!]", "OS-003",
            r"when\.0: 'here closed!' is not a predicate", id="bad condition"),
        pytest.param("alfworld/environment.yaml",
            "  - id: OS-001\n    when: [not hand_empty]\n    text: Holding {held}",
            "  - id: OS-001\n    when: [not hand_empty]\n    <!>text: Holding {hold}",
            "OS-001", r"nothing fills the blank '\{hold\}'", id="blank of a situation"),
        pytest.param("alfworld/environment.yaml",
            "  - id: O-ACT-001\n    name: go_to\n    syntax: go to {place}",
            "  - <!>id: O-ACT-001\n    name: go_to\n    syntax: go to {there}",
            "O-ACT-001", r"nothing fills the blank '\{place\}'", id="blank of an action"),
        pytest.param("alfworld/environment.yaml", "    critical: Only one object fits in the hand.",
            "    critical: [one, two]", "O-ACT-004", r"critical: .*string", id="wrong type"),
        pytest.param("alfworld/domain.yaml", "tier: domain", "tier: domian", "", r"tier: ",
            id="wrong tier"),
    ],
)  # fmt: skip
def test_a_mistake_is_shown_with_file_line_and_rule(
    tmp_path: Path, file: str, old: str, new: str, rule: str, what: str
) -> None:
    """It stands on the line of the mark ``<!>`` in the new text, else on its first line."""
    text = (RULES_FOLDER / file).read_text(encoding="utf-8")
    assert text.count(old) == 1
    spoiled = tmp_path / Path(file).name
    spoiled.write_text(text.replace(old, new.replace("<!>", "")), encoding="utf-8")
    line = (text[: text.index(old)] + new.rpartition("<!>")[0]).count("\n") + 1
    with pytest.raises(RpmsError, match=what) as caught:
        load_tier(spoiled, MODELS[spoiled.stem])
    message = str(caught.value)
    assert message.startswith(f"{spoiled}:{line}: {rule}"), (line, message)
    assert "\n" not in message


@pytest.mark.parametrize(
    ("content", "where"),
    [
        (b"tier: universal\nrules:\n  - id: U-A-1\n   text: x\n", ":4: not valid YAML: "),
        (b"tier: universal\nrules: [\n", ":3: not valid YAML: "),
        (b"tier: universal\nrules: !!python/name:os.system\n", ":2: not valid YAML: "),
        (b"\xff\xfe\x00", ""),
        (b"", ":1: "),
        (b"- 1\n", ":1: "),
        (b"just words", ":1: "),
    ],
)
def test_a_file_that_is_no_manual_at_all_is_refused(
    tmp_path: Path, content: bytes, where: str
) -> None:
    file = tmp_path / "universal.yaml"
    file.write_bytes(content)
    with pytest.raises(RpmsError) as caught:
        load_tier(file, UniversalTier)
    assert f"{file}{where}" in str(caught.value) and "\n" not in str(caught.value)


def test_a_missing_tier_is_named(tmp_path: Path) -> None:
    with pytest.raises(RpmsError, match=r"cannot read .*domain.yaml.*No such file"):
        read_manual(tmp_path)


def laid(folder: Path, **files: str) -> Manual:
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return overlay(MANUAL, folder)


def content(manual: Manual) -> list[Any]:
    tiers = (manual.universal, manual.domain, manual.environment)
    return [tier.model_dump() for tier in tiers] + [manual.extra, manual.order]


@cache
def shipped(world: str, tier: str) -> dict[str, Any]:
    folder = RULES_FOLDER if tier == "universal" else RULES_FOLDER / world
    data: dict[str, Any] = yaml.safe_load((folder / f"{tier}.yaml").read_text("utf-8"))
    return data


@st.composite
def parts_of(draw: st.DrawFn, data: dict[str, Any]) -> dict[str, Any]:
    """Some sections of a tier, and of lists and tables only some of the items."""
    chosen = draw(st.sets(st.sampled_from(sorted(data.keys() - {"tier"})), min_size=1))
    found = {}
    for name in chosen:
        value = data[name]
        if name in BY_ID:
            # Patterns that share an id are replaced together.
            ids = draw(st.sets(st.sampled_from(sorted({one["id"] for one in value}))))
            value = [one for one in value if one["id"] in ids]
        elif isinstance(value, dict):
            keys = draw(st.sets(st.sampled_from(sorted(value))))
            value = {key: value[key] for key in value if key in keys}
        found[name] = value
    return found


@settings(deadline=None, max_examples=12)
@given(st.data())
def test_a_manual_over_itself_is_the_same(data: st.DataObject) -> None:
    world = data.draw(st.sampled_from(WORLDS))
    tier = data.draw(st.sampled_from(TIERS))
    part = data.draw(parts_of(shipped(world, tier)))
    manual = load_manual(world)
    with TemporaryDirectory() as folder:
        (Path(folder) / f"{tier}.yaml").write_text(yaml.safe_dump(part, sort_keys=False))
        assert content(overlay(manual, Path(folder))) == content(manual)


def test_a_rule_takes_the_place_of_its_id_and_a_new_one_comes_last(tmp_path: Path) -> None:
    manual = laid(tmp_path, universal="""
rules:
  - {id: U-NEW-001, text: Sing.}
  - {id: U-FAIL-001, text: Never again., source: a paper, confidence: 0.5, support: 3}
""")  # fmt: skip
    before, after = MANUAL.universal.rules, manual.universal.rules
    place = [rule.id for rule in before].index("U-FAIL-001")
    assert [rule.id for rule in after] == [*(rule.id for rule in before), "U-NEW-001"]
    changed = after[place]
    assert (changed.text, changed.source) == ("Never again.", "a paper")
    assert (changed.confidence, changed.support) == (0.5, 3)
    assert manual.domain == MANUAL.domain and manual.environment == MANUAL.environment


def test_tables_are_changed_by_key_and_other_values_whole(tmp_path: Path) -> None:
    manual = laid(tmp_path, domain="""
categories: {food: [apple], toys: [ball]}
idle: inventory
serves:
  find_object: []
""", environment="""
wording: {phrases: {at: "stand at {0}"}}
built_together: []
""")  # fmt: skip
    assert manual.domain.categories["food"] == ["apple"]
    assert manual.domain.categories["toys"] == ["ball"]
    assert manual.domain.categories["dishes"] == MANUAL.domain.categories["dishes"]
    assert manual.domain.idle == "inventory" and manual.domain.serves["find_object"] == []
    assert manual.domain.serves["take_object"] == MANUAL.domain.serves["take_object"]
    phrases = MANUAL.environment.wording.phrases | {"at": "stand at {0}"}
    assert manual.environment.wording.phrases == phrases
    assert manual.environment.built_together == []


def test_patterns_of_one_rule_are_replaced_together(tmp_path: Path) -> None:
    manual = laid(tmp_path, environment="""
forbidden:
  - {id: D-HEAT-001, for: [pick_heat_then_place_in_recep], action: open, where: {place: safe}}
  - {id: D-HEAT-001, for: [pick_heat_then_place_in_recep], action: close, where: {place: safe}}
""")  # fmt: skip
    mine = [pattern.action for pattern in manual.forbidden if pattern.id == "D-HEAT-001"]
    assert mine == ["open", "close"]
    assert len(manual.forbidden) == len(MANUAL.forbidden) + 1


def test_a_file_that_replaces_is_the_whole_tier(tmp_path: Path) -> None:
    manual = laid(tmp_path, universal="replaces: true\nrules: [{id: U-ONE-001, text: Sing.}]")
    assert [rule.id for rule in manual.universal.rules] == ["U-ONE-001"]


def test_other_files_are_tiers_in_the_order_they_ask_for(tmp_path: Path) -> None:
    rule = "rules: [{id: L-%s, text: Sing.}]"
    manual = laid(
        tmp_path,
        a="tier: last\n" + rule % 1,
        b="tier: second\nafter: universal\n" + rule % 2,
        c="tier: third\nafter: second\n" + rule % 3,
        d="tier: beside\nafter: universal\n" + rule % 4,
    )
    order = ["universal", "second", "third", "beside", "domain", "environment", "last"]
    assert [name for name, _ in manual.tiers] == order
    goal = GoalSpec(sentence="", type="pick_and_place_simple", object="cd", state=None, count=1,
                    destination="safe", signature="")  # fmt: skip
    active = manual.active(goal, empty_belief())
    assert list(active) == [*order, "situation"]
    assert active["third"] == [{"id": "L-3", "text": "Sing."}]
    plain = MANUAL.active(goal, empty_belief())
    assert {name: active[name] for name in plain} == plain


@pytest.mark.parametrize(
    ("name", "text", "line", "told"),
    [
        ("universal", "rules:\n  - id: U-NEW-001\n    txt: Sing.", 3, "U-NEW-001"),
        ("universal", "rules:\n  - {id: U-NEW-001, text: Sing., confidence: 2}", 2, "confidence"),
        ("universal", "tier: domain\nrules: []", 1, "tier"),
        ("universal", "rules: []\nreplaces: perhaps", 2, "replaces"),
        ("universal", "- rules", 1, "no sections"),
        ("domain", "replaces: true\nrules: []", 1, "procedures"),
        ("environment", "situations:\n  - {id: S-1, when: ['not a word'], text: Hm.}", 2, "S-1"),
        ("mine", "tier: mine\nrules: []\nactions: []", 3, "unknown key"),
        ("mine", "tier: domain\nrules: []", 1, "domain.yaml"),
        ("mine", "tier: situation\nrules: []", 1, "another name"),
        ("mine", "tier: mine\nafter: yours\nrules: []", 2, "no tier 'yours'"),
        ("mine", "tier: mine\nafter: mine\nrules: []", 2, "no tier 'mine' before it"),
    ],
)
def test_a_mistake_is_told_with_its_line(
    name: str, text: str, line: int, told: str, tmp_path: Path
) -> None:
    with pytest.raises(RpmsError) as error:
        laid(tmp_path, **{name: text})
    assert str(error.value).startswith(f"{tmp_path / name}.yaml:{line}: ")
    assert told in str(error.value) and "\n" not in str(error.value)


def test_a_folder_that_cannot_be_laid_over_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(RpmsError, match="holds no rule files; give a folder with any of"):
        overlay(MANUAL, tmp_path)
    with pytest.raises(RpmsError, match="is no folder"):
        overlay(MANUAL, tmp_path / "gone")
    with pytest.raises(RpmsError, match=r"another file here is the tier 'mine'"):
        laid(tmp_path, a="tier: mine\nrules: []", b="tier: mine\nrules: []")
