"""Rule files: read with every mistake in its line, and folders of the user's own laid over them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from shutil import copy, copytree
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from rpms.envs import get_environment
from rpms.envs.manuals import load_manual
from rpms.rules import Manual
from rpms.rules.loader import BY_ID, load_tier, overlay, read_manual
from rpms.rules.manual import RULES_FOLDER, TIERS
from rpms.rules.schema import UniversalTier
from rpms.vocabulary.belief import empty_belief
from rpms.vocabulary.categories import CATEGORIES
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.goal import GoalSpec

MANUAL = load_manual("alfworld")
WORLDS = ("alfworld", "scienceworld")


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


def own_world(world: Path, universal: str = "") -> Path:
    """The rules of a world like ALFWorld, perhaps with a Tier 1 of its own."""
    folder = world / "rules"
    copytree(get_environment("alfworld").rules, folder)
    copy(get_environment("alfworld").rules.parent / CATEGORIES, world)
    if universal:
        (folder / "universal.yaml").write_text(universal, encoding="utf-8")
    return folder


def test_a_world_s_own_tier_1_is_laid_over_the_shared_one(tmp_path: Path) -> None:
    assert content(read_manual(own_world(tmp_path / "none"))) == content(MANUAL)
    own = "rules:\n- {id: U-FAIL-001, text: Once is enough.}\n- {id: U-NEW-001, text: Sing.}\n"
    rules = read_manual(own_world(tmp_path / "over", own)).universal.rules
    shared = [rule.id for rule in MANUAL.universal.rules]
    assert [rule.id for rule in rules] == [*shared, "U-NEW-001"]
    assert {rule.id: rule.text for rule in rules}["U-FAIL-001"] == "Once is enough."
    whole = read_manual(own_world(tmp_path / "whole", f"replaces: true\n{own}")).universal.rules
    assert [rule.id for rule in whole] == ["U-FAIL-001", "U-NEW-001"]
    with pytest.raises(RpmsError, match=r"universal.yaml:2: U-NEW-001: rules.0.text: Field"):
        read_manual(own_world(tmp_path / "wrong", "rules:\n- {id: U-NEW-001}\n"))


def laid(folder: Path, **files: str) -> Manual:
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return overlay(MANUAL, folder)


def content(manual: Manual) -> list[Any]:
    tiers = (manual.universal, manual.domain, manual.environment)
    return [tier.model_dump() for tier in tiers] + [manual.extra]


@cache
def shipped(world: str, tier: str) -> dict[str, Any]:
    folder = RULES_FOLDER if tier == "universal" else get_environment(world).rules
    data: dict[str, Any] = yaml.safe_load((folder / f"{tier}.yaml").read_text("utf-8"))
    return data


@st.composite
def parts_of(draw: st.DrawFn, data: dict[str, Any]) -> dict[str, Any]:
    """Some sections of a tier, and of lists and tables only some of the items."""
    chosen = draw(st.sets(st.sampled_from(sorted(data.keys() - {"tier"})), min_size=1))
    part = {}
    for name in chosen:
        value = data[name]
        if name in BY_ID:
            # Patterns that share an id are replaced together.
            ids = draw(st.sets(st.sampled_from(sorted({rule["id"] for rule in value}))))
            value = [rule for rule in value if rule["id"] in ids]
        elif isinstance(value, dict):
            keys = draw(st.sets(st.sampled_from(sorted(value))))
            value = {key: value[key] for key in value if key in keys}
        part[name] = value
    return part


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
applicable:
  find_object: []
""", environment="""
wording: {phrases: {at: "stand at {0}"}}
built_together: []
""")  # fmt: skip
    assert manual.domain.categories["food"] == ["apple"]
    assert manual.domain.categories["toys"] == ["ball"]
    assert manual.domain.categories["dishes"] == MANUAL.domain.categories["dishes"]
    assert manual.domain.idle == "inventory" and manual.domain.applicable["find_object"] == []
    assert manual.domain.applicable["take_object"] == MANUAL.domain.applicable["take_object"]
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


def test_other_files_are_tiers_after_ours(tmp_path: Path) -> None:
    rule = "rules: [{id: L-%s, text: Sing.}]"
    manual = laid(
        tmp_path,
        b="tier: last\n" + rule % 2,
        a="tier: first\n" + rule % 1,
    )
    order = ["universal", "domain", "environment", "first", "last"]
    assert [name for name, _ in manual.tiers] == order
    goal = GoalSpec(sentence="", type="pick_and_place_simple", object="cd", state=None, count=1,
                    destination="safe", signature="")  # fmt: skip
    active = manual.active(goal, empty_belief())
    assert list(active) == [*order, "situation"]
    assert active["last"] == [{"id": "L-2", "text": "Sing."}]
    plain = MANUAL.active(goal, empty_belief())
    assert {name: active[name] for name in plain} == plain


HOP = "actions:\n- id: E-HOP\n  name: hop\n  syntax: hop {place}\n  "


@pytest.mark.parametrize(
    ("name", "text", "line", "problem"),
    [
        ("universal", "rules:\n  - id: U-NEW-001\n    tetx: Sing.", 3,
         "U-NEW-001: rules.0: unknown key 'tetx'; did you mean 'text'?"),
        ("environment", f"{HOP}rejected_means_her: place", 5,
         "E-HOP: actions.0: unknown key 'rejected_means_her'; did you mean 'rejected_means_here'?"),
        ("universal", "rules:\n  - id: U-NEW-001\n    group: new", 2,
         "U-NEW-001: rules.0.text: Field required"),
        ("universal", "rules:\n  - id: U-NEW-001\n    text: '  '", 3, "at least 1 character"),
        ("universal", "rules:\n  - {id: fail one, text: Hm.}", 2, "fail one: rules.0.id: "),
        ("universal", "rules:\n  - text: Hm.", 2, "rules.0.id: Field required"),
        ("universal", "rules:\n  - id: U-A-1\n    text: Hm.\n    id: U-A-2", 4,
         "the key 'id' is given a second time"),
        ("universal", "rules:\n  - {id: U-NEW-001, text: Sing., confidence: 2}", 2, "confidence"),
        ("universal", "tier: domain\nrules: []", 1, "tier: Input should be 'universal'"),
        ("universal", "rules: []\nreplaces: perhaps", 2, "replaces: should be true or false"),
        ("universal", "- rules", 1, "no sections"),
        ("domain", "replaces: true\nrules: []", 1, "procedures"),
        ("domain", "applicable:\n  a: [{action: b, because: c, when: [is it]}]", 2,
         "applicable.a.0.when.0: 'is it' is not a predicate"),
        ("environment", f"{HOP}effects: []\n  preconditions:\n  - closed(place", 7,
         "E-HOP: actions.0.preconditions.0: 'closed(place' is not a predicate"),
        ("environment", f"{HOP}preconditions: []\n  effects: [is open(place)]", 6,
         "E-HOP: actions.0.effects.0: 'is open(place)' is not a predicate"),
        ("environment", f"{HOP}preconditions: []\n  effects: []\n  if_refused: no {{there}}", 2,
         "E-HOP: actions.0: nothing fills the blank '{there}'"),
        ("environment", f"{HOP}preconditions: []\n  effects: []\n  critical: [a, b]", 7,
         "E-HOP: actions.0.critical: "),
        ("environment", "situations:\n- id: S-1\n  text: Hm.\n  when: [here closed!]", 4,
         "S-1: situations.0.when.0: 'here closed!' is not a predicate"),
        ("environment", "situations:\n- {id: S-1, when: [], text: 'A {hold}.'}", 2,
         "nothing fills the blank '{hold}'"),
        ("universal", "rules:\n  - {id: U-NEW-001, text: Sing., requires: [voices]}", 2,
         "U-NEW-001: rules.0.requires.0: "),
        ("environment", "features: [wings]", 1, "features.0: "),
        ("environment", "forbidden:\n- id: F-1\n  for: [all]\n  action: hop\n  where: {}\n"
         "  when: [is it]", 6, "F-1: forbidden.0.when.0: 'is it' is not a predicate"),
        ("mine", "tier: mine\nrules: []\nactions: []", 3, "unknown key"),
        ("mine", "tier: domain\nrules: []", 1, "domain.yaml"),
        ("mine", "tier: situation\nrules: []", 1, "another name"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_line_and_its_rule(
    name: str, text: str, line: int, problem: str, tmp_path: Path
) -> None:
    with pytest.raises(RpmsError) as error:
        laid(tmp_path, **{name: text})
    assert str(error.value).startswith(f"{tmp_path / name}.yaml:{line}: ")
    assert problem in str(error.value) and "\n" not in str(error.value)


def test_a_folder_that_cannot_be_laid_over_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(RpmsError, match="holds no rule files; give a folder with any of"):
        overlay(MANUAL, tmp_path)
    with pytest.raises(RpmsError, match="is no folder"):
        overlay(MANUAL, tmp_path / "gone")
    with pytest.raises(RpmsError, match="the tier 'mine' is there already; choose another"):
        laid(tmp_path, a="tier: mine\nrules: []", b="tier: mine\nrules: []")
