"""Options that several commands share; the options of settings are made from their fields."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Sequence
from functools import wraps
from inspect import Parameter, signature
from typing import Annotated, Any

import typer

from rpms.commands.help_text import EXECUTION, OUTPUT, RUN
from rpms.commands.help_text import SETTINGS as SETTINGS_PANEL
from rpms.vocabulary.context import (
    Declaration,
    Group,
    RunContext,
    declarations,
    refuse_unknown,
)
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.limits import MOST_IN_FLIGHT, MOST_TASKS, MOST_WORKERS
from rpms.vocabulary.output import print_safe

SETTINGS = "settings"
"""The name of the parameter through which a command receives its settings."""
LINE = "command_line"
"""The name of the parameter through which a command receives the parsed command line."""
AGAIN = " Repeatable."


def first_world() -> str:
    """The default environment, looked up when a command runs, so that --help loads none."""
    from rpms.envs.registry import FIRST_WORLD

    return FIRST_WORLD


def option(panel: str, help: str, *names: str, **more: Any) -> Any:
    """An option with its help group and its sentence."""
    return typer.Option(*names, help=help, rich_help_panel=panel, **more)


def limit_option(help: str, panel: str = RUN) -> Any:
    """An option for a number of tasks, such as ``--limit``."""
    return option(panel, help, min=0, max=MOST_TASKS)


EnvOption = Annotated[
    str,
    option(
        RUN,
        "The environment ('rpms worlds' lists them).",
        "--env",
        default_factory=first_world,
        show_default=False,
        metavar="NAME|MODULE:ATTRIBUTE",
    ),
]
SplitOption = Annotated[str, option(RUN, "The split; by default the usual one.", "--split")]


def plan_names() -> list[str]:
    from rpms.evals.running.plan_file import shipped_plans

    return [*shipped_plans()]


PlanOption = Annotated[
    str,
    option(
        RUN,
        "Follow a plan ('rpms plans' lists them).",
        "--plan",
        metavar="NAME|FILE.yaml",
        autocompletion=plan_names,
    ),
]
OnlyEnvOption = Annotated[str, option(RUN, "Use only this environment; by default all.", "--env")]
WorkersOption = Annotated[
    int | None,
    option(
        EXECUTION,
        "Worker processes; by default one for each processor.",
        min=0,
        max=MOST_WORKERS,
        metavar="N",
    ),
]
ConcurrencyOption = Annotated[
    int,
    option(
        EXECUTION,
        "Episodes in flight, over all workers.",
        min=1,
        max=MOST_IN_FLIGHT,
    ),
]
SpreadOption = Annotated[
    bool,
    option(
        RUN,
        "With --limit: stratify by task type.",
        "--spread",
    ),
]
CacheOption = Annotated[
    str,
    option(
        EXECUTION,
        "Keep greedy replies in this file, and answer from it.",
        metavar="FILE",
    ),
]
BudgetUsdOption = Annotated[
    float,
    option(
        EXECUTION,
        "Stop when the folder's runs have cost N dollars.",
        min=0,
    ),
]
BudgetTokensOption = Annotated[
    int,
    option(
        EXECUTION,
        "Stop when the folder's runs have cost N tokens.",
        min=0,
    ),
]


SET = "set_"
"""The name of the parameter through which a command receives the values of ``--set``."""


def completed_settings(incomplete: str) -> list[str]:
    """The names of settings with ``=``, or the values of the one that is typed already."""
    declared = declarations().get(incomplete.partition("=")[0])
    if declared and "=" in incomplete:
        return [f"{declared.name}={value}" for value in declared.choices]
    return [f"{each.name}=" for each in declarations().values() if each.setting.option is not None]


SetOption = Annotated[
    list[str] | None,
    option(
        SETTINGS_PANEL,
        f"Set any of 'rpms settings'.{AGAIN}",
        "--set",
        metavar="NAME=VALUE",
        autocompletion=completed_settings,
    ),
]


def read_set(texts: Sequence[str], groups: Collection[Group] = ()) -> dict[str, Any]:
    """The settings that ``--set`` names, with their types."""
    from rpms.evals.running.arms import read_settings

    changes: dict[str, Any] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        declared = declarations().get(name)
        try:
            if not equals:
                raise RpmsError("write NAME=VALUE")
            refuse_unknown([name])
            if declared and declared.setting.option is None:
                raise RpmsError(f"the condition decides '{name}'; name a condition instead")
            if declared and groups and declared.setting.group not in groups:
                raise RpmsError(f"'{name}' has no effect on this command")
            if name in changes:
                raise RpmsError(f"'{name}' is set twice")
            changes |= read_settings({name: value})
        except RpmsError as error:
            raise RpmsError(f"--set {text}: {error}") from None
    return changes


def with_settings(*groups: Group) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command ``--set``, and the options of the settings that have their own.

    They replace its parameter ``settings``, which receives them as a ``RunContext``. With
    ``groups``, only settings of these groups can be changed.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        declared_signature = signature(command, eval_str=True)
        chosen = [
            declared
            for declared in declarations().values()
            if declared.setting.option and (not groups or declared.setting.group in groups)
        ]

        @wraps(command)
        def run(*, command_line: typer.Context, set_: list[str] | None, **values: Any) -> None:
            typed = {declared.name: values.pop(declared.name) for declared in chosen}
            changes = read_set(set_ or (), groups)
            options = own_names(command_line)
            if twice := [name for name in changes if name in options]:
                option = declarations()[twice[0]].setting.option
                raise RpmsError(f"{option} and --set {twice[0]} set the same; leave out one")
            explicit = changes | {name: typed[name] for name in options if name in typed}
            if LINE in declared_signature.parameters:
                values[LINE] = command_line
            command(**values, **{SETTINGS: RunContext(**explicit)})

        parameters: list[Parameter] = []
        if LINE not in declared_signature.parameters:  # Typer fills in one parameter of this kind
            parameters = [Parameter(LINE, Parameter.KEYWORD_ONLY, annotation=typer.Context)]
        setting_parameters = [
            *map(_parameter, chosen),
            Parameter(SET, Parameter.KEYWORD_ONLY, default=None, annotation=SetOption),
        ]
        for parameter in declared_signature.parameters.values():
            parameters += setting_parameters if parameter.name == SETTINGS else [parameter]
        parameters = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in parameters]
        new_signature = declared_signature.replace(parameters=parameters)
        run.__signature__ = new_signature  # type: ignore[attr-defined]
        run.__annotations__ = {}  # Typer reads both, and the signature has them
        return run

    return decorate


def own_names(command_line: typer.Context) -> list[str]:
    """The parameters that the user typed, even with their default values."""
    sources = {name: command_line.get_parameter_source(name) for name in command_line.params}
    return [name for name, source in sources.items() if source and "DEFAULT" not in source.name]


def typed_names(command_line: typer.Context) -> list[str]:
    """The parameters that the user typed, with the settings that ``--set`` names."""
    changes = command_line.params.get(SET) or ()
    return [*own_names(command_line), *(text.partition("=")[0].strip() for text in changes)]


def _parameter(declared: Declaration) -> Parameter:
    kind = str if declared.choices else declared.kind
    annotation = Annotated[kind, setting_option(declared.name)]  # type: ignore[valid-type]
    return Parameter(
        declared.name, Parameter.KEYWORD_ONLY, default=declared.default, annotation=annotation
    )


def setting_option(name: str) -> Any:
    """The option of a setting, with the first part of its description."""
    declared = declarations()[name]
    setting, choices = declared.setting, declared.choices
    return option(
        SETTINGS_PANEL,
        f"{re.split('[;:,]', setting.description)[0].rstrip('.')}.",
        setting.option or "",
        metavar="|".join(choices) or None,
        autocompletion=(lambda: list(choices)) if choices else None,
        min=setting.ge,
        max=setting.le,
    )


RulesOption = Annotated[str, setting_option("rules_dir")]


def refuse_empty(text: str) -> str:
    """Reject an empty path, as from an unset variable: it must not mean the current folder."""
    if not text.strip():
        raise typer.BadParameter("the path is empty; name a file or a folder")
    return text


JsonOption = Annotated[bool, option(OUTPUT, "Print one JSON document and nothing else.", "--json")]


def print_json(data: Any) -> None:
    # Control characters stay escaped, because the reader may be a terminal.
    print_safe(json.dumps(data, ensure_ascii=False, indent=2, default=sorted))  # a set has no order
