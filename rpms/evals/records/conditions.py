"""Labels of arms, and the settings that have an effect in an arm.

An arm is labelled by the letter of its condition and the settings that differ from it. Settings
that all arms of a run share (model, decoding, number of steps, prompt) are on the protocol card.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, get_args

from rpms.vocabulary.context import CONDITIONS, Guard, RunContext

# Settings on the protocol card (protocol_card.py); all others belong in the label.
ON_THE_CARD = frozenset({
    "model", "base_url", "timeout_s", "max_steps",
    "max_tokens", "temperature", "seed", "constrain", "memory_file", "examples", "action_list",
    "prompt_style",
})  # fmt: skip
# Settings without effect unless another one is on; a label with them would claim a difference.
IDLE = {
    "memory": ("scf", "arbitration", "arbitration_extras", "memory_file", "memory_method",
               "memory_control", "memory_form", "theta", "k", "memory_tokens"),
    "rules": ("rules_scope", "arbitration", "arbitration_extras"),
}  # fmt: skip
_PLAIN = re.compile(r"[\w.+/:-]+")


def effective(context: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that have an effect in this arm."""
    idle = {name for switch, idle in IDLE.items() if not context.get(switch) for name in idle}
    if context.get("rules") or context.get("memory"):
        idle.add("state_block")  # they always show it
    elif not context.get("state_block"):
        idle.add("layout")  # the baseline has no blocks to put in order
    if context.get("arbitration") == "none":
        idle.add("arbitration_extras")
    if context.get("guard") != "verify":
        idle |= {"max_retries", "check_answers"}
    return {name: value for name, value in context.items() if name not in idle}


def in_effect(context: Mapping[str, Any]) -> dict[str, Any]:
    """The effective settings, and whether the state block is shown, as rules and memory imply."""
    shown = context.get("rules") or context.get("memory") or context.get("state_block")
    return {**effective(context), "state_block": bool(shown)}


def true_label(
    context: RunContext, letter: str = "", label: str = "", labelled: Collection[str] = ()
) -> str:
    """``A+verify``, ``D scf=off theta=0.8``.

    Lists the effective settings that differ from the condition's and are not on the card, except
    the ``labelled`` ones, which ``label`` includes already.
    """
    letter = letter or context.condition
    defaults = RunContext.for_condition(letter).plain
    context = context.with_(history=context.turns_shown)
    departures = {
        name: value
        for name, value in effective(context.plain).items()
        if value != defaults[name] and name not in ON_THE_CARD and name not in labelled
    }
    start = label or letter
    if guard := departures.pop("guard", ""):
        first, space, rest = start.partition(" ")
        start = f"{first}+{guard}{space}{rest}"
    return " ".join([start, *(f"{name}={value_text(value)}" for name, value in departures.items())])


def condition_of(context: Mapping[str, Any]) -> str:
    """The condition that an arm's settings start from: ``D``, or with a guard ``D+verify``."""
    names = ("rules", "memory", "state_block", "guard")
    return RunContext(**{name: context[name] for name in names if name in context}).name


def is_condition(label: str) -> bool:
    """True for ``D`` and ``D+verify``; other labels are of arms of one's own."""
    letter, plus, guard = label.partition("+")
    return letter in CONDITIONS and (not plus or guard in get_args(Guard))


def find_label(typed: str, labels: Iterable[str]) -> str:
    """The label as typed, or else the only one that differs in case; if none fits, as typed."""
    alike = {label for label in labels if label.lower() == typed.strip().lower()}
    return typed if typed in alike or len(alike) != 1 else alike.pop()


def value_text(value: Any) -> str:
    """A short text, different for different values of a setting."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, str) and _PLAIN.fullmatch(value):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
