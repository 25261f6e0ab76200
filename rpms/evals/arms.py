"""Arms as people write them: ``mine:nodes=pkg.mod:stages,scf=off``, or a plan in YAML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shlex import shlex
from typing import Any

from pydantic import BaseModel, Field

from rpms.evals.presets import letters, preset_contexts
from rpms.evals.protocols import apply_protocol
from rpms.evals.variants import Variant
from rpms.nodes.context import RunContext, condition_name
from rpms.rules.loader import checked
from rpms.vocabulary.context import declarations
from rpms.vocabulary.errors import BadSetting, RpmsError
from rpms.vocabulary.files import read_text, read_yaml
from rpms.vocabulary.spelling import Strict, offer

SWITCH = {"on": True, "true": True, "yes": True, "off": False, "false": False, "no": False}
OWN = ("condition", "nodes", "rules", "memory", "model")


class TaskSelection(Strict, BaseModel):
    """What is to be played, whoever the players are."""

    env: str = ""
    split: str = ""
    protocol: str = ""
    limit: int = 0
    spread: bool = False
    tasks: list[str] = []
    types: list[str] = []
    trials: int = 1
    repeats: int = 1


class PlanFile(TaskSelection):
    """A whole evaluation in one file; what it leaves out is as on the command line."""

    settings: dict[str, Any] = {}
    arms: dict[str, dict[str, Any]] = Field(min_length=1)


def choose_arms(
    selection: TaskSelection,
    base: RunContext,
    conditions: str = "",
    preset: str = "",
    arms: Sequence[str] = (),
    plan: Path | None = None,
) -> tuple[TaskSelection, dict[str, Variant]]:
    """What a command line asks for: tasks, and arms by letter, by preset, one by one or by plan."""
    if conditions and preset:
        raise RpmsError("give either --conditions or --preset")
    if plan is not None and (conditions or preset or arms):
        raise RpmsError("--plan names the arms: give it without --conditions, --preset and --arm")
    written = read_plan(plan) if plan is not None else None
    if written is not None:
        told = {
            name: getattr(written, name)
            for name in written.model_fields_set & {*TaskSelection.model_fields}
        }
        selection = selection.model_copy(update=told)
        base = base.with_(**read_settings(written.settings, f"{plan}: settings"))
    if selection.protocol:
        selection, base = _under_protocol(selection, base)
    if written is not None:
        return selection, {
            label: make_arm(given, base, f"{plan}: arm '{label}'")
            for label, given in written.arms.items()
        }
    found: dict[str, Variant] = {}
    if preset:
        found = {label: Variant(one) for label, one in preset_contexts(preset, base).items()}
    elif conditions or not arms:
        wanted = condition_names(conditions or "A,B,C,D")
        found = {label: Variant(one) for label, one in letters(wanted, base).items()}
    for text in arms:
        label, variant = parse_arm(text, base)
        if label in found:
            raise RpmsError(f"two arms are called '{label}'")
        found[label] = variant
    return selection, found


def _under_protocol(selection: TaskSelection, base: RunContext) -> tuple[TaskSelection, RunContext]:
    """The tasks and settings of a named protocol; what the user says besides must agree with it."""
    applied = apply_protocol(selection.protocol, base, selection.env)
    wanted: dict[str, Any] = {"trials": applied.trials, "repeats": applied.repeats}
    if applied.split:
        wanted["split"] = applied.split
    for name, value in wanted.items():
        given, usual = getattr(selection, name), TaskSelection.model_fields[name].default
        if given not in (usual, value):
            raise RpmsError(
                f"--protocol {selection.protocol} is played with {name}={value}, not {given}; "
                "leave one out"
            )
    return selection.model_copy(update=wanted), applied.context


def read_plan(file: Path) -> PlanFile:
    """The plan; the first mistake is told with its line."""
    return checked(file, *read_yaml(file), PlanFile.model_validate)


def parse_arm(text: str, base: RunContext) -> tuple[str, Variant]:
    """``label:key=value,...`` or a label alone, which must then be a condition's letter."""
    label, colon, rest = text.partition(":")
    if not label.strip():
        raise RpmsError(f"--arm '{text}' has no label; write LABEL:SETTING=VALUE,...")
    given: dict[str, Any] = {}
    for part in filter(None, map(str.strip, _parts(text, rest))):
        key, equals, value = part.partition("=")
        if not equals:
            raise RpmsError(f"--arm '{text}': '{part}' is not SETTING=VALUE")
        given[key.strip()] = value.strip()
    if not colon:
        given["condition"] = label = condition_name(label)
    return label.strip(), make_arm(given, base, f"--arm '{label}'")


def _parts(text: str, rest: str) -> Iterator[str]:
    """What stands between commas; within quotes a comma belongs to the value."""
    parts = shlex(rest, posix=True)
    parts.whitespace, parts.whitespace_split = ",", True
    parts.commenters = parts.escape = ""
    try:
        yield from parts
    except ValueError:
        raise RpmsError(f"--arm '{text}': a quote is opened and not closed") from None


def make_arm(given: Mapping[str, Any], base: RunContext, where: str) -> Variant:
    """An arm from plain settings over those of the run.

    ``rules`` and ``memory`` are switches where they say on or off, and files otherwise.
    """
    left = dict(given)
    context = base.under(str(left.pop("condition"))) if "condition" in left else base
    own: dict[str, Any] = {}
    for name in ("nodes", "rules", "memory", "model"):
        if name in left and _switch(left[name]) is None:
            own[name] = left.pop(name)
    try:
        return Variant(context.with_(**read_settings(left, where)), **own)
    except BadSetting as error:
        raise RpmsError(f"{where}: {error}") from None


def read_settings(given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Settings as the run context takes them; texts of a command line become numbers."""
    known = {name: declared.kind for name, declared in declarations().items()}
    if unknown := sorted(set(given) - set(known)):
        choice = offer(unknown[0], sorted({*known, *OWN}))
        raise RpmsError(f"{where}: unknown setting '{unknown[0]}'; {choice}")
    return {name: _fitting(name, value, known[name], where) for name, value in given.items()}


def _fitting(name: str, value: Any, kind: Any, where: str) -> Any:
    if kind is bool and (switch := _switch(value)) is not None:
        return switch
    if isinstance(value, bool) and kind not in (bool, int, float):
        return "on" if value else "off"  # YAML reads a bare off as false
    if kind in (int, float) and isinstance(value, str | int):
        try:
            return kind(value)
        except ValueError:
            raise RpmsError(f"{where}: {name}={value} is not a number") from None
    return value


def _switch(value: Any) -> bool | None:
    return value if isinstance(value, bool) else SWITCH.get(str(value).lower())


def condition_names(text: str) -> list[str]:
    """``--conditions`` as it was typed; an empty name between two commas is no condition either."""
    return [name.strip() for name in text.split(",")] if text else []


def listed(text: str) -> Sequence[str]:
    """Names by comma, or one per line of ``@FILE``, up to a tab as ``rpms tasks`` prints them."""
    if text.startswith("@"):
        lines = read_text(Path(text[1:]), "the list").splitlines()
        return [name for line in lines if (name := line.partition("\t")[0].strip())]
    return [name.strip() for name in text.split(",") if name.strip()]
