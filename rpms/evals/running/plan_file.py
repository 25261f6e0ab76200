"""Plans: an evaluation in one YAML file, with its tasks, settings, arms and comparisons.

The shipped plans are in ``plans/`` and are chosen by name; others are given as files. The options
of ``rpms eval`` write the same: ``--conditions`` and ``--arm`` the arms, ``--compare`` the pairs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, Field

from rpms.evals.running.arms import Variant, make_arm, parse_arm, read_settings
from rpms.memory_store.methods import METHODS, find_method
from rpms.memory_store.snapshot import OUR_METHOD
from rpms.models.opening import CONTROLS
from rpms.rules.loader import checked
from rpms.vocabulary.context import RunContext, condition_name
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import is_file, read_yaml
from rpms.vocabulary.spelling import Strict, offer

FOLDER = Path(str(files("rpms.evals"))) / "plans"
USUAL = "ablation"
"""The plan whose arms and pairs are those of a plan that lists none."""
CONTROL = " control (random)"
"""Ends the label of the arm that controls guard procedure."""
METHOD = "{method}"
"""In the name of a memory file, replaced by the memory method of the arm."""

Pairs = list[tuple[str, str]]


class TaskSelection(Strict, BaseModel):
    """The tasks of an evaluation, with their numbers of trials and repeats."""

    env: str = ""
    split: str = ""
    limit: int = 0
    spread: bool = False
    ids: list[str] = []
    types: list[str] = []
    trials: int = 1
    repeats: int = 1


class Plan(Strict, BaseModel):
    """The content of a plan file; the command line fills in what it leaves out.

    Attributes:
        about: its purpose in a sentence.
        source: the publication that it follows.
        differs: the differences from that publication, each with its reason.
        extends: the plan that it extends, by name or file.
        tasks: the tasks.
        settings: the settings of all arms; a typed option may not contradict them.
        arms: conditions and settings by label; by default those of the ablation.
        compare: the pairs of arms that the report tests, the one to compare with first; an arm in
            no pair is compared with the first one.
    """

    about: str = ""
    source: str = ""
    differs: list[str] = []
    extends: str = ""
    tasks: TaskSelection = TaskSelection()
    settings: dict[str, Any] = {}
    arms: dict[str, dict[str, Any]] = Field(default={}, min_length=1)
    compare: Pairs = []


class Chosen(NamedTuple):
    """What an evaluation runs and compares."""

    tasks: TaskSelection
    arms: dict[str, Variant]
    compare: Pairs


def shipped_plans() -> dict[str, Path]:
    """The files of the shipped plans, by name."""
    return {file.stem: file for file in sorted(FOLDER.glob("*.yaml"))}


def read_plan(name: str) -> Plan:
    """A shipped plan by its name, or a plan file; errors name the file and the line."""
    plan = _extended(name)
    if not plan.arms:
        usual = _read(USUAL)
        plan = plan.model_copy(update={"arms": usual.arms, "compare": usual.compare})
    for label in (label for pair in plan.compare for label in pair):
        if label not in plan.arms and label.removesuffix(CONTROL) not in plan.arms:
            raise RpmsError(f"plan {name}: compare: no arm '{label}'; {offer(label, plan.arms)}")
    return plan


def _extended(name: str, above: tuple[str, ...] = ()) -> Plan:
    """The plan with what it takes from those below it; ``above`` are those that extend it."""
    if name in above:
        raise RpmsError(f"plan {above[0]} extends itself: {' -> '.join([*above, name])}")
    plan = _read(name)
    if not plan.extends:
        return plan
    base = _extended(plan.extends, (*above, name))
    ours, theirs = (each.model_dump(exclude_unset=True) for each in (plan, base))
    merged = {name: {**theirs.get(name, {}), **ours.get(name, {})}
              for name in ("tasks", "settings")}  # fmt: skip
    if "arms" in ours:
        theirs.pop("compare", None)
    return Plan.model_validate({**theirs, **ours, **merged})


def _read(name: str) -> Plan:
    """The plan as its file has it, with the settings as a run takes them."""
    file = shipped_plans().get(name, Path(name))
    if name not in shipped_plans() and file.suffix not in (".yaml", ".yml") and not is_file(file):
        raise RpmsError(
            f"'{name}' is neither a plan nor a YAML file; {offer(name, [*shipped_plans()])}"
        )
    plan = checked(file, *read_yaml(file), Plan.model_validate)
    try:
        settings = read_settings(plan.settings)
        RunContext(**settings)
    except RpmsError as error:
        raise RpmsError(f"{file}: settings: {error}") from None
    return plan.model_copy(update={"settings": settings}) if settings else plan


def plan_context(name: str, base: RunContext, typed: Iterable[str]) -> tuple[Plan, RunContext]:
    """A plan, and the settings with those of the plan; no plan without a name.

    A typed setting that differs from the plan's is an error, even if it is the default.
    """
    plan = read_plan(name) if name else Plan()
    explicit = {each: base.plain[each] for each in typed if each in base.plain}
    refuse_contradiction(name, plan.settings, explicit)
    return plan, base.with_(**plan.settings)


def plan_tasks(name: str, plan: Plan, typed: Mapping[str, Any]) -> TaskSelection:
    """The tasks of a plan and the typed ones.

    A typed split replaces the plan's; any other value that contradicts the plan is an error.
    """
    fixed = plan.tasks.model_dump(exclude_unset=True)
    if "split" in typed:
        fixed.pop("split", None)
    refuse_contradiction(name, fixed, typed)
    return TaskSelection(**{**typed, **fixed})


def refuse_contradiction(plan: str, fixed: Mapping[str, Any], typed: Mapping[str, Any]) -> None:
    """Raise an error for a typed value that differs from the plan's."""
    for name, value in fixed.items():
        if name in typed and typed[name] != value:
            raise RpmsError(
                f"plan {plan} sets {name}={value}, not {typed[name]}; leave out the option or the "
                "plan, or write an arm of your own: --arm 'LABEL:SETTING=VALUE'"
            )


def choose_arms(
    typed_tasks: Mapping[str, Any],
    base: RunContext,
    conditions: str = "",
    arms: Sequence[str] = (),
    compare: Sequence[str] = (),
    plan: str = "",
    typed_settings: Collection[str] = (),
) -> Chosen:
    """The tasks, arms and pairs of a command line; typed arms and pairs replace those of the plan.

    The report passes over a pair of the plan whose arms are not both there.
    """
    name = plan or USUAL
    chosen, context = plan_context(name, base, typed_settings)
    stated = [name for name in context.plain if name in {*chosen.settings, *typed_settings}]
    if conditions or arms:
        variants = plan_arms(_typed_arms(conditions, arms), context, stated=stated)
    else:
        variants = plan_arms(chosen.arms, context, plan, stated)
    pairs = [_typed_pair(pair, variants) for pair in compare] or chosen.compare
    return Chosen(plan_tasks(name, chosen, typed_tasks), variants, pairs)


def _typed_pair(text: str, labels: Collection[str]) -> tuple[str, str]:
    first, _, second = (part.strip() for part in text.partition(":"))
    for label in (first, second):
        if label not in labels:
            raise RpmsError(
                f"--compare '{text}': no arm '{label}'; write FIRST:SECOND, {offer(label, labels)}"
            )
    return first, second


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
    arms = plan_arms(condition_fields(names), base)
    return {label: arm.settings() for label, arm in arms.items()}


def plan_arms(
    arms: Mapping[str, Mapping[str, Any]],
    base: RunContext,
    plan: str = "",
    stated: Collection[str] = (),
) -> dict[str, Variant]:
    """The arms of a plan by label; an arm with guard procedure is followed by its control.

    The control is a random choice from the same list of actions; it shows what the model adds to
    the procedure.
    """
    variants: dict[str, Variant] = {}
    for label, fields in arms.items():
        bare = [*fields] == ["condition"] and condition_name(fields["condition"]) == label
        where = "" if bare else f"plan {plan}: arm '{label}'" if plan else f"--arm '{label}'"
        variants[label] = variant = _with_memory(
            make_arm(fields, base, where, stated), fields, where
        )
        if variant.settings().guard == "procedure" and variant.settings().model not in CONTROLS:
            control = replace(variant, context=variant.base().with_(model="random"), model="")
            variants[f"{label}{CONTROL}"] = control
    return variants


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
    return replace(variant, context=variant.base().with_(memory_file=file), memory="")


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
