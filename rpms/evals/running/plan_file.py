"""Plans: a whole evaluation in one YAML file, with its tasks, its settings and its arms.

The plans of this package lie in ``plans/`` and are chosen by name; any other is a file.
``--conditions`` and ``--arm`` are short forms for the arms of a plan.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from rpms.evals.records.conditions import true_label
from rpms.evals.running.arms import Variant, make_arm, parse_arm, read_settings
from rpms.memory_store.methods import METHODS, find_method
from rpms.memory_store.snapshot import OUR_METHOD
from rpms.models.opening import CONTROLS
from rpms.rules.loader import checked
from rpms.vocabulary.context import ABLATION, RunContext, condition_name, refuse_unknown
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import is_file, read_yaml
from rpms.vocabulary.spelling import Strict, offer

FOLDER = Path(str(files("rpms.evals"))) / "plans"
METHOD = "{method}"
"""Stands in a memory file's name for the memory method of the arm."""


class TaskSelection(Strict, BaseModel):
    """The tasks of an evaluation, and how often each is tried."""

    env: str = ""
    split: str = ""
    limit: int = 0
    spread: bool = False
    tasks: list[str] = []
    types: list[str] = []
    trials: int = 1
    repeats: int = 1


class Plan(TaskSelection):
    """An evaluation as a file has it; the command line decides what it leaves out.

    Attributes:
        about: what it is for, in a sentence.
        source: the publication that it follows.
        differs: in what it differs from that publication.
        extends: the plan that it adds to, by name or file.
        settings: the settings of all arms; no option and no arm may contradict them.
        varies: those of the settings that an arm may change all the same.
        arms: conditions and settings by label; left out, the conditions of the ablation.
    """

    about: str = ""
    source: str = ""
    differs: str = ""
    extends: str = ""
    settings: dict[str, Any] = {}
    varies: list[str] = []
    arms: dict[str, dict[str, Any]] | None = Field(default=None, min_length=1)


def shipped_plans() -> dict[str, Path]:
    """The files of the plans of this package, by name."""
    return {file.stem: file for file in sorted(FOLDER.glob("*.yaml"))}


def read_plan(name: str) -> Plan:
    """A shipped plan by its name, or a file; the first mistake is reported with its place."""
    file = shipped_plans().get(name, Path(name))
    if name not in shipped_plans() and file.suffix not in (".yaml", ".yml") and not is_file(file):
        raise RpmsError(
            f"unknown plan '{name}', and no FILE.yaml; {offer(name, [*shipped_plans()])}"
        )
    plan = checked(file, *read_yaml(file), Plan.model_validate)
    try:
        refuse_unknown(plan.varies)
        settings = read_settings(plan.settings)
        RunContext(**settings)
    except RpmsError as error:
        raise RpmsError(f"{file}: settings: {error}") from None
    plan = plan.model_copy(update={"settings": settings})
    return _extended(plan, name) if plan.extends else plan


def _extended(plan: Plan, name: str) -> Plan:
    """A plan with what it takes over from the one that it extends."""
    below = read_plan(plan.extends)
    if below.extends:
        raise RpmsError(f"plan {name} extends {plan.extends}, which extends another plan itself")
    own, taken = (each.model_dump(exclude_unset=True) for each in (plan, below))
    refuse_contradiction(plan.extends, _decided(below), _decided(plan), f"plan {name}: ")
    together = {
        "settings": {**below.settings, **plan.settings},
        "varies": [*below.varies, *plan.varies],
    }
    return Plan.model_validate({**taken, **own, **together})


def _decided(plan: Plan) -> dict[str, Any]:
    """The tasks and settings that a plan decides about."""
    tasks = plan.model_dump(include={*TaskSelection.model_fields}, exclude_unset=True)
    return {**tasks, **plan.settings}


def refuse_contradiction(
    plan: str,
    decided: Mapping[str, Any],
    chosen: Mapping[str, Any],
    where: str = "",
    varies: Collection[str] = (),
) -> None:
    """Refuse a value that was chosen explicitly and is not the plan's."""
    for name, value in decided.items():
        if name in chosen and chosen[name] != value:
            hint = "leave out that setting, or the plan"
            if name in varies:
                hint += f", or vary it in an arm: --arm 'LABEL:{name}={chosen[name]}'"
            raise RpmsError(f"{where}plan {plan} sets {name}={value}, not {chosen[name]}; {hint}")


def choose_arms(
    typed: TaskSelection,
    base: RunContext,
    conditions: str = "",
    arms: Sequence[str] = (),
    plan: str = "",
    typed_settings: Collection[str] = (),
) -> tuple[TaskSelection, dict[str, Variant]]:
    """The tasks and arms of a command line; arms that are typed replace those of the plan.

    A plan contradicts what was typed, even where a typed value is the default.
    """
    chosen = read_plan(plan) if plan else Plan()
    explicit = {name: base.plain[name] for name in typed_settings if name in base.plain}
    explicit |= typed.model_dump(include=typed.model_fields_set)
    refuse_contradiction(plan, _decided(chosen), explicit, varies=chosen.varies)
    if conditions or arms:
        chosen = chosen.model_copy(update={"arms": _typed_arms(conditions, arms)})
    tasks = chosen.model_dump(include={*TaskSelection.model_fields}, exclude_unset=True)
    return typed.model_copy(update=tasks), plan_arms(chosen, base, plan)


def _typed_arms(conditions: str, arms: Sequence[str]) -> dict[str, dict[str, Any]]:
    fields = condition_fields(condition_names(conditions))
    for label, own in map(parse_arm, arms):
        if label in fields:
            raise RpmsError(f"two arms are called '{label}'")
        fields[label] = own
    return fields


def condition_names(text: str) -> list[str]:
    """The conditions of a list by comma; an empty name between two commas is none either."""
    return [name.strip() for name in text.split(",")] if text else []


def condition_fields(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Conditions as the arms of a plan."""
    return {condition_name(name): {"condition": name} for name in names}


def condition_contexts(names: Sequence[str], base: RunContext) -> dict[str, RunContext]:
    """Conditions by label, with the settings of ``base``."""
    plan = Plan.model_construct(arms=condition_fields(names))
    return {label: arm.settings() for label, arm in plan_arms(plan, base).items()}


def plan_arms(plan: Plan, base: RunContext, name: str = "") -> dict[str, Variant]:
    """The arms of a plan by label; an arm under a policy is followed by its control.

    Without the control, a random choice from the same short list, nobody could say what the model
    adds to the policy.
    """
    base = base.with_(**plan.settings)
    fixed = {key: value for key, value in plan.settings.items() if key not in plan.varies}
    arms = condition_fields(ABLATION) if plan.arms is None else plan.arms
    variants: dict[str, Variant] = {}
    for label, fields in arms.items():
        bare = [*fields] == ["condition"] and condition_name(fields["condition"]) == label
        where = "" if bare else f"plan {name}: arm '{label}'" if name else f"--arm '{label}'"
        variant = make_arm(fields, base, where)
        refuse_contradiction(name, fixed, variant.settings().plain, f"arm '{label}': ")
        variant = _with_memory(variant, fields, where)
        context = variant.settings()
        label = _label(label, fields, context, plan.settings)
        if variants.setdefault(label, variant) != variant:
            raise RpmsError(f"two arms are called '{label}'")
        if context.guard == "policy" and context.model not in CONTROLS:
            control = replace(variant, context=variant.context.with_(model="random"), model="")
            variants[f"{label} control (random)"] = control
    return variants


def _label(
    label: str, fields: Mapping[str, Any], context: RunContext, shared: Collection[str]
) -> str:
    """A label that begins with its condition names all other departures; any other label stays.

    Departures that the plan sets for all arms stand on the protocol card.
    """
    condition = condition_name(str(fields.get("condition", context.condition)))
    letter, plus, _ = condition.partition("+")
    known = {*shared, *fields, *({"rules_dir"} if "rules" in fields else ())} - {"guard"}
    if label == condition:
        return true_label(context, known=known)
    if label.partition(" ")[0] not in (condition, letter):
        return label
    return true_label(
        context, letter, label, {*known, "guard"} if plus or "guard" in fields else known
    )


def _with_memory(variant: Variant, fields: Mapping[str, Any], where: str) -> Variant:
    """The arm with the memory file of its round or of its method, where it names no other."""
    context = variant.settings()
    file = context.memory_file
    if number := fields.get("memory_round"):
        if not str(number).isdecimal():
            raise RpmsError(f"{where}: memory_round={number} is not a number of a round")
        file = str(round_file(file, int(number)))
    elif METHOD in file or (
        fields.get("memory_method") in METHODS and not {"memory", "memory_file"} & {*fields}
    ):
        file = method_file(context)
    if file == context.memory_file:
        return variant
    return replace(variant, context=variant.context.with_(memory_file=file), memory="")


def method_file(context: RunContext) -> str:
    """The memory of an arm's own method, by a pattern with ``{method}``; empty without one.

    Without a pattern our own memory is the file that was named, and the others have none.
    """
    method, memory = find_method(context.memory_method), context.memory_file
    if not context.memory or not method.learns:
        return ""
    if METHOD not in memory:
        if method.name == OUR_METHOD:
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
    if method.needs_file or method.name == OUR_METHOD:
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
