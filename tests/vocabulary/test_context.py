from __future__ import annotations

import pickle
from dataclasses import asdict, fields

import pytest
from pydantic import TypeAdapter

from rpms.nodes.state import settings_of
from rpms.vocabulary.context import CONDITIONS, RunContext, settings
from rpms.vocabulary.errors import RpmsError


@pytest.mark.parametrize(
    ("letter", "rules", "memory"),
    [("A", False, False), ("B", True, False), ("C", False, True), ("D", True, True)],
)
def test_conditions(letter: str, rules: bool, memory: bool) -> None:
    context = RunContext.for_condition("S").under(letter)
    assert (context.rules, context.memory) == (rules, memory)
    assert context.condition == letter
    assert RunContext(rules=rules, memory=memory).condition == letter
    # The state alone is S, and with rules or memory it is no condition of its own.
    alone = RunContext(rules=rules, memory=memory, state_block=True)
    assert alone.condition == (letter if rules or memory else "S")
    assert context.under("S") == RunContext.for_condition("S")
    assert RunContext.for_condition("s+Verify").name == "S+verify"


def test_defaults_are_full_rpms_with_greedy_decoding() -> None:
    context = RunContext()
    assert (context.condition, context.model, context.temperature) == ("D", "sim", 0)
    assert (context.scf, context.arbitration) == ("occupancy", "hard+soft")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rules": "no"}, "rules='no' is not possible: input should be a valid boolean"),
        ({"k": "3"}, "k='3' is not possible: input should be a valid integer"),
        ({"model": object}, "model="),
        ({"guard": None}, "choose from off, verify, offer, procedure"),
        ({"temperature": float("inf")}, "temperature"),
        ({"max_tokens": -1}, "max_tokens=-1 is not possible: input should be greater"),
        ({"scf": "on"}, "scf='on' is not possible; choose from off, occupancy, preconditions"),
        ({"arbitration": "all"}, "choose from none, soft, hard, hard+soft"),
        ({"layout": "wide"}, "choose from paper, cache_friendly"),
        ({"theta": 1.1}, "theta"),
        ({"temperature": -0.1}, "temperature"),
        ({"timeout_s": float("nan")}, "timeout_s"),
    ],
)
def test_impossible_values_are_refused(change: dict[str, object], message: str) -> None:
    for attempt in (
        lambda: RunContext(**change),  # type: ignore[arg-type]
        lambda: RunContext().with_(**change),
        lambda: RunContext.for_condition("A", **change),
        lambda: settings(change),
    ):
        with pytest.raises(RpmsError) as caught:
            attempt()
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)


def test_unknown_condition() -> None:
    with pytest.raises(RpmsError, match="unknown condition 'F'; choose from A, S, B, C, D, E"):
        RunContext.for_condition("F")
    assert list(CONDITIONS) == ["A", "S", "B", "C", "D", "E"]


@pytest.mark.parametrize("guard", ["off", "verify", "offer", "procedure"])
@pytest.mark.parametrize("letter", "ASBCD")
def test_a_condition_carries_its_guard_in_its_name(letter: str, guard: str) -> None:
    context = RunContext.for_condition(f"{letter}+{guard}", guard="offer")
    assert context == RunContext(guard="offer").under(letter).with_(guard=guard)
    name = {"D+procedure": "E"}.get(f"{letter}+{guard}", f"{letter}+{guard}")
    assert context.name == name.removesuffix("+off")


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("B+", "guard='' is not possible; choose from off, verify, offer, procedure"),
        ("F+verify", "unknown condition 'F+verify'"),
        ("E+verify", "condition 'E+verify': E has guard procedure already"),
    ],
)
def test_a_guard_that_is_not_there_is_refused(condition: str, message: str) -> None:
    with pytest.raises(RpmsError) as refused:
        RunContext.for_condition(condition)
    assert message in str(refused.value)


def test_a_server_may_give_a_dictionary_or_nothing() -> None:
    assert settings(None) == RunContext()
    assert settings({"rules": False, "max_steps": 3}) == RunContext(rules=False, max_steps=3)
    context = RunContext(k=1)
    assert settings(context) is context
    with pytest.raises(RpmsError, match="unknown setting 'scff'; did you mean 'scf'"):
        settings({"scff": "off"})


def test_studio_can_show_it_as_a_form() -> None:
    """Plain values with the choices listed; anything else would break the JSON schema."""
    schema = TypeAdapter(RunContext).json_schema()
    assert set(schema["properties"]) == {field.name for field in fields(RunContext)}
    assert schema["properties"]["scf"]["enum"] == ["off", "occupancy", "preconditions"]
    rules = schema["properties"]["rules"]
    assert (rules["default"], rules["title"], rules["type"]) == (True, "Rules", "boolean")
    for name, form in schema["properties"].items():
        assert form["type"] in {"boolean", "string", "integer", "number"}
        assert form["title"] and form["description"].endswith(".") and "default" in form, name


def test_the_state_carries_it_as_plain_data() -> None:
    context = RunContext.for_condition("C", k=2, model="openai:m")
    assert context.plain == asdict(context) and settings(context.plain) == context
    assert pickle.loads(pickle.dumps(context)) == context
    changed = context.with_(k=1)
    assert (changed.plain["k"], changed.model, context.k) == (1, "openai:m", 2)


def test_an_edited_setting_of_a_wrong_type_is_named() -> None:
    with pytest.raises(RpmsError, match=r"^k=\[3\] "):
        settings_of({"settings": {**RunContext().plain, "k": [3]}})
