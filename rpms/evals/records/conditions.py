"""Labels of arms, and the settings that have an effect in an arm.

An arm is called by the letter of its condition and by all that departs from it. What every arm of
a run shares (the model, its decoding, how long an episode may be, what the prompt shows) stands on
the protocol card instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from rpms.vocabulary.context import RunContext

# Settings of the card, see protocol_card.py; every other one belongs into the label.
ON_THE_CARD = frozenset({
    "model", "base_url", "timeout_s", "max_steps",
    "max_tokens", "temperature", "seed", "constrain", "memory_file", "examples", "action_list",
    "prompt_style",
})  # fmt: skip
# Settings that do nothing unless another one is on; a label with them would claim a difference.
IDLE = {
    "memory": ("scf", "arbitration", "memory_file", "memory_method",
               "memory_control", "memory_form", "theta", "k", "token_budget",
               "memory_token_budget"),
    "rules": ("rules_scope", "arbitration"),
}  # fmt: skip
_PLAIN = re.compile(r"[\w.+/:-]+")


def effective(context: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that have any effect."""
    idle = {name for switch, idle in IDLE.items() if not context.get(switch) for name in idle}
    if context.get("rules") or context.get("memory"):
        idle.add("state_block")  # they bring it along
    elif not context.get("state_block"):
        idle.add("layout")  # the baseline has no blocks to put in order
    if context.get("memory_token_budget"):
        idle.add("token_budget")  # memories alone are ever left out
    if context.get("guard") != "verify":
        idle |= {"max_retries", "check_answers"}
    return {name: value for name, value in context.items() if name not in idle}


def in_effect(context: Mapping[str, Any]) -> dict[str, Any]:
    """The effective settings, and the goal and state block that rules and memory bring along."""
    shown = context.get("rules") or context.get("memory") or context.get("state_block")
    return {**effective(context), "state_block": bool(shown)}


def true_label(
    context: RunContext, letter: str = "", label: str = "", known: Collection[str] = ()
) -> str:
    """``A+verify``, ``D scf=off theta=0.8``.

    What has an effect and is neither the letter's nor on the card is told, in the settings' order,
    but for the ``known`` ones, which ``label`` tells already.
    """
    letter = letter or context.condition
    usual = RunContext.for_condition(letter).plain
    context = context.with_(history=context.turns_shown)
    departures = {
        name: value
        for name, value in effective(context.plain).items()
        if value != usual[name] and name not in ON_THE_CARD and name not in known
    }
    begin = label or letter
    if guard := departures.pop("guard", ""):
        first, space, rest = begin.partition(" ")
        begin = f"{first}+{guard}{space}{rest}"
    return " ".join([begin, *(f"{name}={value_text(value)}" for name, value in departures.items())])


def find_label(typed: str, labels: Iterable[str]) -> str:
    """The label that was meant: exactly so, or else written large or small; as it is if none."""
    alike = {label for label in labels if label.lower() == typed.strip().lower()}
    return typed if typed in alike or len(alike) != 1 else alike.pop()


def value_text(value: Any) -> str:
    """Short, and never the same for two values of a setting."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, str) and _PLAIN.fullmatch(value):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
