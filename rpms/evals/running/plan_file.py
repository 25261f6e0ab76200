"""Plans: an evaluation in one YAML file, with its tasks, settings and arms.

The shipped plans are in ``plans/`` and are chosen by name; others are given as files.
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
"""In the name of a memory file, replaced by the memory method of the arm."""


class TaskSelection(Strict, BaseModel):
    """The tasks of an evaluation, with their numbers of trials and repeats."""

    env: str = ""
    split: str = ""
    limit: int = 0
    spread: bool = False
    tasks: list[str] = []
    types: list[str] = []
    trials: int = 1
    repeats: int = 1


class Plan(TaskSelection):
    """The content of a plan file; the command line fills in what it leaves out.

    Attributes:
        about: its purpose in a sentence.
        source: the publication that it follows.
        differs: the differences from that publication.
        extends: the plan that it extends, by name or file.
        settings: the settings of all arms; no option and no arm may contradict them.
        varies: the settings that an arm may nevertheless change.
        arms: conditions and settings by label; by default the conditions of the ablation.
    """

    about: str = ""
    source: str = ""
    differs: str = ""
    extends: str = ""
    settings: dict[str, Any] = {}
    varies: list[str] = []
    arms: dict[str, dict[str, Any]] | None = Field(default=None, min_length=1)


def shipped_plans() -> dict[str, Path]:
    """The files of the shipped plans, by name."""
    return {file.stem: file for file in sorted(FOLDER.glob("*.yaml"))}


def read_plan(name: str) -> Plan:
    """A shipped plan by its name, or a plan file; errors name the file and the line."""
    file = shipped_plans().get(name, Path(name))
    if name not in shipped_plans() and file.suffix not in (".yaml", ".yml") and not is_file(file):
        raise RpmsError(
            f"'{name}' is neither a plan nor a YAML file; {offer(name, [*shipped_plans()])}"
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
    """A plan merged with the one that it extends."""
    base = read_plan(plan.extends)
    if base.extends:
        raise RpmsError(
            f"plan {name} extends {plan.extends}, which extends another plan itself; extend "
            f"{base.extends} instead"
        )
    fields, base_fields = (each.model_dump(exclude_unset=True) for each in (plan, base))
    refuse_contradiction(plan.extends, _fixed_values(base), _fixed_values(plan), f"plan {name}: ")
    merged = {
        "settings": {**base.settings, **plan.settings},
        "varies": [*base.varies, *plan.varies],
    }
    return Plan.model_validate({**base_fields, **fields, **merged})


def _fixed_values(plan: Plan) -> dict[str, Any]:
    """The tasks and settings that a plan sets."""
    tasks = plan.model_dump(include={*TaskSelection.model_fields}, exclude_unset=True)
    return {**tasks, **plan.settings}


def refuse_contradiction(
    plan: str,
    fixed: Mapping[str, Any],
    chosen: Mapping[str, Any],
    where: str = "",
    varies: Collection[str] = (),
) -> None:
    """Raise an error for an explicitly chosen value that differs from the plan's."""
    for name, value in fixed.items():
        if name in chosen and chosen[name] != value:
            hint = "leave out the setting or the plan"
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
    """The tasks and arms of a command line; typed arms replace those of the plan.

    A typed setting that differs from the plan's is an error, even if it is the default.
    """
    chosen = read_plan(plan) if plan else Plan()
    explicit = {name: base.plain[name] for name in typed_settings if name in base.plain}
    explicit |= typed.model_dump(include=typed.model_fields_set)
    refuse_contradiction(plan, _fixed_values(chosen), explicit, varies=chosen.varies)
    if conditions or arms:
        chosen = chosen.model_copy(update={"arms": _typed_arms(conditions, arms)})
    tasks = chosen.model_dump(include={*TaskSelection.model_fields}, exclude_unset=True)
    return typed.model_copy(update=tasks), plan_arms(chosen, base, plan)


def _typed_arms(conditions: str, arms: Sequence[str]) -> dict[str, dict[str, Any]]:
    fields = condition_fields(condition_names(conditions))
    for label, settings in map(parse_arm, arms):
        if label in fields:
            raise RpmsError(f"two arms have the label '{label}'; give each its own")
        fields[label] = settings
    return fields


def condition_names(text: str) -> list[str]:
    """The conditions of a comma-separated list; an empty name stays, so that it is an error."""
    return [name.strip() for name in text.split(",")] if text else []


def condition_fields(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Conditions as the arms of a plan."""
    return {condition_name(name): {"condition": name} for name in names}


def condition_contexts(names: Sequence[str], base: RunContext) -> dict[str, RunContext]:
    """Conditions by label, with the settings of ``base``."""
    plan = Plan.model_construct(arms=condition_fields(names))
    return {label: arm.settings() for label, arm in plan_arms(plan, base).items()}


def plan_arms(plan: Plan, base: RunContext, name: str = "") -> dict[str, Variant]:
    """The arms of a plan by label; an arm with guard policy is followed by its control.

    The control is a random choice from the same list of actions; it shows what the model adds to
    the policy.
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
            raise RpmsError(f"two arms have the label '{label}'; give each its own")
        if context.guard == "policy" and context.model not in CONTROLS:
            control = replace(variant, context=variant.context.with_(model="random"), model="")
            variants[f"{label} control (random)"] = control
    return variants


def _label(
    label: str, fields: Mapping[str, Any], context: RunContext, shared: Collection[str]
) -> str:
    """A label that begins with its condition lists all other differences; other labels stay.

    Settings that the plan sets for all arms are on the protocol card instead.
    """
    condition = condition_name(str(fields.get("condition", context.condition)))
    letter, plus, _ = condition.partition("+")
    labelled = {*shared, *fields, *({"rules_dir"} if "rules" in fields else ())} - {"guard"}
    if label == condition:
        return true_label(context, labelled=labelled)
    if label.partition(" ")[0] not in (condition, letter):
        return label
    return true_label(
        context, letter, label, {*labelled, "guard"} if plus or "guard" in fields else labelled
    )


def _with_memory(variant: Variant, fields: Mapping[str, Any], where: str) -> Variant:
    """The arm with the memory file of its round or method, unless it gives another."""
    context = variant.settings()
    file = context.memory_file
    if number := fields.get("memory_round"):
        if not str(number).isdecimal():
            raise RpmsError(f"{where}: memory_round={number} is not a number; give 1, 2, ...")
        file = str(round_file(file, int(number)))
    elif METHOD in file or (
        fields.get("memory_method") in METHODS and not {"memory", "memory_file"} & {*fields}
    ):
        file = method_file(context)
    if file == context.memory_file:
        return variant
    return replace(variant, context=variant.context.with_(memory_file=file), memory="")


def method_file(context: RunContext) -> str:
    """The memory file of an arm's method, from a pattern with ``{method}``; empty if it has none.

    Without a pattern the file is that of the default method, and other methods have none.
    """
    method, memory = find_method(context.memory_method), context.memory_file
    if not context.memory or not method.learns:
        return ""
    if METHOD not in memory:
        if method.name == OUR_METHOD:
            return memory
        if method.needs_file:
            raise RpmsError(
                f"memory method '{method.name}' needs its own memory file: give --memory a pattern "
                f"such as 'm.{METHOD}.jsonl', and learn each file with 'rpms learn --method NAME'"
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
    """The snapshot after a round, which is beside the output of ``rpms learn``."""
    if not memory:
        raise RpmsError(
            "the learning curve needs the snapshots of each round: give --memory FILE as written "
            "by 'rpms learn --rounds 3 --out FILE'"
        )
    file = Path(memory).with_suffix(f".round{number}.jsonl")
    if not is_file(file):
        raise RpmsError(
            f"no memory of round {number}: {file} is missing; make it with 'rpms learn --rounds'"
        )
    return file
