"""The settings that have an effect in an arm, in words.

The label of an arm is what its author wrote; the protocol card says what the arm is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from rpms.vocabulary.context import RunContext

# Settings with an entry of their own on the protocol card, or without an effect on results.
ON_THE_CARD = frozenset({
    "model", "base_url", "timeout_s", "max_steps", "max_tokens", "temperature", "seed", "constrain",
    "examples", "history", "prompt_style", "memory_file", "memory_form", "k",
    "memory_tokens", "rules_dir", "rules_scope", "without_rules",
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


def described(context: Mapping[str, Any]) -> str:
    """An arm by its condition and every other setting: ``A+verify``, ``D scf=off theta=0.8``.

    Settings with an entry of their own on the protocol card are left out.
    """
    names = ("rules", "memory", "state_block", "guard")
    name = RunContext(**{each: context[each] for each in names if each in context}).name
    defaults = RunContext.for_condition(name).plain
    departures = (
        f"{each}={value_text(value)}"
        for each, value in effective(context).items()
        if each in defaults and value != defaults[each] and each not in ON_THE_CARD
    )
    return " ".join([name, *departures])


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
