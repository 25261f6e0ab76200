"""Conditions by letter or by the name of a sweep, each with a label that is true.

The sweeps are data (``presets.yaml``). A condition is called by its letter and by all that departs
from it. What every condition of a run shares (the model, its decoding, how long an episode may be,
what the prompt shows) stands on the protocol card instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field, TypeAdapter, field_validator

from rpms.memory_store.methods import METHODS, find_method
from rpms.memory_store.snapshot import OWN
from rpms.models.opening import CONTROLS
from rpms.rules.loader import checked
from rpms.vocabulary.context import RunContext, condition_name, settings
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import is_file, read_yaml
from rpms.vocabulary.spelling import Strict, offer

# Settings of the card, see evals/protocol_card.py; every other one belongs into the label.
ON_THE_CARD = frozenset({
    "model", "base_url", "timeout_s", "retry_deadline_s", "context_tokens", "max_steps",
    "max_tokens", "temperature", "seed", "constrain", "memory_file", "examples", "action_list",
    "system_prompt",
})  # fmt: skip
# Settings that do nothing unless another one is on; a label with them would claim a difference.
IDLE = {
    "memory": ("scf", "arbitration", "note_conflicts", "memory_file", "memory_method", "writer",
               "memory_control", "memory_form", "memory_types", "theta", "k", "token_budget",
               "memory_token_budget"),
    "rules": ("rules_scope", "arbitration", "note_conflicts"),
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
    if "hard" not in context.get("arbitration", "") or context.get("memory_method") == OWN:
        idle.add("note_conflicts")  # no text, or none that would be dropped
    method = METHODS.get(context.get("memory_method", ""))
    if method and not (method.cumulative and method.needs_model):
        idle.add("writer")  # what it reads was written before
    if context.get("guard") != "verify":
        idle |= {"max_retries", "fallback", "check_answers"}
    elif not context.get("max_retries"):
        idle.add("fallback")  # who is never asked again is never overruled
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
        # The guard joins the letter; a name that is no letter is not torn apart.
        begin = f"{first}+{guard}{space}{rest}" if first == letter else f"{begin}+{guard}"
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


METHOD = "{method}"
"""Stands in a memory file's name for the method of the condition."""
FILE = Path(__file__).with_name("presets.yaml")


def _possible(changes: dict[str, Any]) -> dict[str, Any]:
    """Settings as a file has them, if they are settings."""
    try:
        settings(changes)
    except RpmsError as error:
        raise ValueError(str(error)) from None  # told with its line, like any other mistake
    return changes


Changes = Annotated[dict[str, Any], AfterValidator(_possible)]


class PresetCondition(Strict, BaseModel):
    """One line of a sweep."""

    label: str
    condition: str
    set: Changes = {}
    memory_round: int = Field(default=0, ge=0)

    @field_validator("condition")
    @classmethod
    def _known(cls, condition: str) -> str:
        try:
            RunContext().under(condition)
        except RpmsError as error:
            raise ValueError(str(error)) from None
        return condition_name(condition)


class Preset(Strict, BaseModel):
    """A named sweep; ``set`` is for all its conditions."""

    about: str
    set: Changes = {}
    conditions: list[PresetCondition]


_PRESETS: TypeAdapter[dict[str, Preset]] = TypeAdapter(dict[str, Preset])


@cache
def load_presets() -> dict[str, Preset]:
    """All sweeps of our own data file."""
    return read_presets(FILE)


def read_presets(file: Path) -> dict[str, Preset]:
    """The sweeps of a file; the first mistake is told with its line."""
    presets = checked(file, *read_yaml(file), _PRESETS.validate_python)
    if not presets:
        raise RpmsError(f"{file}: no preset in it")
    return presets


def letters(
    conditions: Sequence[str], base: RunContext, fixed: Collection[str] = ()
) -> dict[str, RunContext]:
    """Conditions such as ``B`` or ``B+verify``, with the run's other settings.

    The labels tell what departs, but for the ``fixed`` settings: a protocol has them for all.
    """
    contexts = (base.under(name) for name in conditions)
    known = {*fixed} - {"guard"}
    return _with_controls({true_label(context, known=known): context for context in contexts})


def preset_contexts(
    name: str, base: RunContext, fixed: Collection[str] = ()
) -> dict[str, RunContext]:
    """The conditions of a sweep with the run's other settings; ``fixed`` as for ``letters``."""
    contexts: dict[str, RunContext] = {}
    preset = find_preset(name)
    for line in preset.conditions:
        context = _context(line, base)
        # Where it would be idle a condition stays as it is: other sweeps of a folder may share it.
        shared = preset.set.keys() & effective(context.plain).keys()
        context = context.with_(**{setting: preset.set[setting] for setting in shared})
        # What the whole run was given besides is not in the sweep's own label.
        letter, plus, _ = line.condition.partition("+")
        known = {*line.set, *({*fixed} - {"guard"}), *(["guard"] if plus else [])}
        contexts[true_label(context, letter, line.label, known)] = context
    return _with_controls(contexts)


def find_preset(name: str) -> Preset:
    """A sweep of ours by its name, or one of the user's own as ``FILE.yaml:NAME``."""
    if ".yaml" not in name and ".yml" not in name:
        presets = load_presets()
        if name not in presets:
            raise RpmsError(
                f"unknown preset '{name}', and no FILE.yaml:NAME; {offer(name, presets)}"
            )
        return presets[name]
    file, _, preset = name.partition(":")
    own = read_presets(Path(file))
    if not preset and len(own) == 1:
        return next(iter(own.values()))
    if preset not in own:
        raise RpmsError(f"{file} has no preset '{preset}'; {offer(preset, own)}")
    return own[preset]


def _with_controls(contexts: dict[str, RunContext]) -> dict[str, RunContext]:
    """Each policy with its control: else nobody could tell what the model adds."""
    both: dict[str, RunContext] = {}
    for label, context in contexts.items():
        both[label] = context
        if context.guard == "policy" and context.model not in CONTROLS:
            both[f"{label} control (random)"] = context.with_(model="random")
    return both


def _context(line: PresetCondition, base: RunContext) -> RunContext:
    changes = dict(line.set)
    if line.memory_round:
        changes["memory_file"] = str(round_file(base.memory_file, line.memory_round))
    context = base.under(line.condition).with_(**changes)
    if "memory_method" in changes or METHOD in base.memory_file:
        return context.with_(memory_file=method_file(context))
    return context


def method_file(context: RunContext) -> str:
    """The memory of a condition's own method, by a pattern with ``{method}``; empty without one.

    Without a pattern our own memory is whatever was named, and the others have none.
    """
    method, memory = find_method(context.memory_method), context.memory_file
    if not context.memory or not method.learns:
        return ""
    if METHOD not in memory:
        if method.name == OWN:
            return memory
        if method.needs_file:
            raise RpmsError(
                f"memory method '{method.name}' needs a memory of its own: give --memory a pattern "
                f"such as 'm.{METHOD}.jsonl', and learn each with 'rpms learn --method NAME'"
            )
        return ""
    file = Path(memory.replace(METHOD, method.name))
    if is_file(file):
        return str(file)
    if method.needs_file or method.name == OWN:
        raise RpmsError(
            f"no memory of method '{method.name}': {file} is missing; make it with 'rpms learn "
            f"--method {method.name} --out {file}'"
        )
    return ""


def round_file(memory: str, number: int) -> Path:
    """The snapshot after a round, which lies beside ``learn``'s output."""
    if not memory:
        raise RpmsError(
            "the learning curve needs the snapshots of each round: give --memory FILE as written "
            "by 'rpms learn --rounds 3 --out FILE'"
        )
    file = Path(memory).with_suffix(f".round{number}.jsonl")
    if not is_file(file):
        raise RpmsError(f"no memory of round {number}: {file} is missing")
    return file
