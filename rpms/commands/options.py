"""Options that several commands share; the options of settings are made from their fields."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Annotated, Any

import typer

from rpms.commands.help_text import EXECUTION, GUARD, KNOWLEDGE, MEMORY, MODEL, OUTPUT, PROMPT, RUN
from rpms.vocabulary.context import Declaration, Group, RunContext, declarations
from rpms.vocabulary.limits import MOST_IN_FLIGHT, MOST_TASKS, MOST_WORKERS
from rpms.vocabulary.output import print_safe

SETTINGS = "settings"
"""The name of the parameter through which a command receives its settings."""
LINE = "command_line"
"""The name of the parameter through which a command receives the parsed command line."""
AGAIN = " The option may be repeated."
SETTING_PANELS: dict[Group, str] = {
    "run": RUN,
    "knowledge": KNOWLEDGE,
    "memory": MEMORY,
    "guard": GUARD,
    "prompt": PROMPT,
    "model": MODEL,
}


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
        "The environment, as 'rpms worlds' lists it, or MODULE:ATTRIBUTE; by default the first.",
        "--env",
        default_factory=first_world,
        show_default=False,
        metavar="NAME",
    ),
]
SplitOption = Annotated[
    str, option(RUN, "The list of tasks; by default the environment's usual one.", "--split")
]


def plan_names() -> list[str]:
    from rpms.evals.running.plan_file import shipped_plans

    return [*shipped_plans()]


PlanOption = Annotated[
    str,
    option(
        RUN,
        "Follow a plan that 'rpms plans' lists, or one of a file.",
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
        "The number of environment processes, by default one for each processor; 0 runs all "
        "episodes in this process.",
        min=0,
        max=MOST_WORKERS,
        metavar="N",
    ),
]
ConcurrencyOption = Annotated[
    int,
    option(
        EXECUTION,
        "Run this many episodes at the same time, over all workers.",
        min=1,
        max=MOST_IN_FLIGHT,
    ),
]
SpreadOption = Annotated[
    bool,
    option(
        RUN,
        "With --limit, take a sample of the whole split, stratified over task types, instead of "
        "its first tasks.",
        "--spread",
    ),
]
BudgetUsdOption = Annotated[
    float,
    option(
        EXECUTION,
        "Stop when the folder of runs has cost this many dollars; 0 never stops.",
        min=0,
    ),
]
BudgetTokensOption = Annotated[
    int,
    option(
        EXECUTION,
        "Stop when the folder of runs has cost this many tokens; 0 never stops.",
        min=0,
    ),
]


def with_settings(*groups: Group) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option for every setting, or for those of some groups.

    They replace its parameter ``settings``, which receives them as a ``RunContext``.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        declared_signature = signature(command, eval_str=True)
        chosen = [
            declared
            for declared in declarations().values()
            if declared.option and (not groups or declared.setting.group in groups)
        ]

        @wraps(command)
        def run(*, command_line: typer.Context, **values: Any) -> None:
            typed = {declared.name: values.pop(declared.name) for declared in chosen}
            for declared in chosen:
                if declared.setting.many:
                    typed[declared.name] = ",".join(typed[declared.name] or ())
            explicit = {name: typed[name] for name in typed_names(command_line) if name in typed}
            if LINE in declared_signature.parameters:
                values[LINE] = command_line
            command(**values, **{SETTINGS: RunContext(**explicit)})

        parameters: list[Parameter] = []
        if LINE not in declared_signature.parameters:  # Typer fills in one parameter of this kind
            parameters = [Parameter(LINE, Parameter.KEYWORD_ONLY, annotation=typer.Context)]
        for parameter in declared_signature.parameters.values():
            parameters += map(_parameter, chosen) if parameter.name == SETTINGS else [parameter]
        parameters = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in parameters]
        new_signature = declared_signature.replace(parameters=parameters)
        run.__signature__ = new_signature  # type: ignore[attr-defined]
        run.__annotations__ = {}  # Typer reads both, and the signature has them
        return run

    return decorate


def typed_names(command_line: typer.Context) -> list[str]:
    """The parameters that the user typed, even with their default values."""
    sources = {name: command_line.get_parameter_source(name) for name in command_line.params}
    return [name for name, source in sources.items() if source and "DEFAULT" not in source.name]


def _parameter(declared: Declaration) -> Parameter:
    kind = str if declared.choices else declared.kind
    default = declared.default
    if declared.setting.many:
        kind, default = list[str] | None, None
    annotation = Annotated[kind, setting_option(declared.name)]  # type: ignore[valid-type]
    return Parameter(declared.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def setting_option(name: str) -> Any:
    declared = declarations()[name]
    setting, choices, typed = declared.setting, declared.choices, declared.option
    if declared.default is True:
        typed += f"/--no-{typed.removeprefix('--')}"
    return option(
        SETTING_PANELS[setting.group],
        f"{setting.description}{AGAIN if setting.many else ''}",
        typed,
        metavar="|".join(choices) or None,
        autocompletion=(lambda: list(choices)) if choices else None,
        min=setting.ge,
        max=setting.le,
    )


RulesOption = Annotated[str, setting_option("rules_dir")]
WithoutOption = Annotated[list[str] | None, setting_option("without_rules")]


def refuse_empty(text: str) -> str:
    """Reject an empty path, as from an unset variable: it must not mean the current folder."""
    if not text.strip():
        raise typer.BadParameter("the path is empty; name a file or a folder")
    return text


JsonOption = Annotated[bool, option(OUTPUT, "Print one JSON document and nothing else.", "--json")]


def print_json(data: Any) -> None:
    # Control characters stay escaped, because the reader may be a terminal.
    print_safe(json.dumps(data, ensure_ascii=False, indent=2, default=sorted))  # a set has no order
