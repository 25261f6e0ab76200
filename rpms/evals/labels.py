"""Labels that are true: a condition is called by its letter and by all that departs from it.

What every condition of a run shares (the model, its decoding, how long an episode may be, what the
prompt shows) stands on the protocol card instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from rpms.nodes.context import CONDITIONS, RunContext

# Settings of the card, see evals/protocol.py; every other one belongs into the label.
ON_THE_CARD = frozenset({
    "model", "base_url", "timeout_s", "patience_s", "context_tokens", "max_steps", "max_tokens",
    "temperature", "seed", "constrain", "memory_file", "examples", "action_list",
})  # fmt: skip
# Settings that do nothing unless another one is on; a label with them would claim a difference.
IDLE = {
    "memory": (
        "scf",
        "arbitration",
        "memory_file",
        "memory_method",
        "memory_control",
        "theta",
        "k",
        "ceiling",
    ),
    "rules": ("arbitration",),
}
_PLAIN = re.compile(r"[\w.+/:-]+")


def effective(context: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that have any effect."""
    idle = {name for switch, idle in IDLE.items() if not context.get(switch) for name in idle}
    if not (context.get("rules") or context.get("memory")):
        idle.add("layout")  # the baseline has no blocks to put in order
    if context.get("guard") != "verify":
        idle |= {"reasks", "fall_back"}
    elif not context.get("reasks"):
        idle.add("fall_back")  # who is never asked again is never overruled
    return {name: value for name, value in context.items() if name not in idle}


def departures(context: RunContext, letter: str) -> dict[str, Any]:
    """What has an effect and is neither the letter's nor on the card, in the settings' order."""
    usual = RunContext.for_condition(letter).plain
    return {
        name: value
        for name, value in effective(context.plain).items()
        if name not in ON_THE_CARD and value != usual[name]
    }


def true_label(
    context: RunContext, letter: str = "", label: str = "", told: Collection[str] = ()
) -> str:
    """``A+verify``, ``D scf=off theta=0.8``.

    Args:
        context: what is played.
        letter: the condition that was asked for; the context's own by default.
        label: how it begins, if not with the letter.
        told: settings that this beginning tells already.
    """
    letter = letter or context.condition
    found = {k: v for k, v in departures(context, letter).items() if k not in told}
    begin = label or letter
    if guard := found.pop("guard", ""):
        first, space, rest = begin.partition(" ")
        # The guard joins the letter; a name that is no letter is not torn apart.
        begin = f"{first}+{guard}{space}{rest}" if first == letter else f"{begin}+{guard}"
    return " ".join([begin, *(f"{name}={_value(value)}" for name, value in found.items())])


def find_label(typed: str, labels: Iterable[str]) -> str:
    """The label that was meant: exactly so, or else written large or small; as it is if none."""
    found = {label for label in labels if label.lower() == typed.strip().lower()}
    return typed if typed in found or len(found) != 1 else found.pop()


def is_letter(label: str) -> bool:
    """Whether a label is a condition of the paper (or E) with nothing changed."""
    return label in CONDITIONS


def _value(value: Any) -> str:
    """Short, and never the same for two values of a setting."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, str) and _PLAIN.fullmatch(value):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
