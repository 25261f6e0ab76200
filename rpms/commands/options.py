"""Options that several commands take; those of a run's settings are made from their fields."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Annotated, Any

import typer

from rpms.vocabulary.context import Declaration, Group, RunContext, declarations
from rpms.vocabulary.limits import MOST_IN_FLIGHT, MOST_TASKS, MOST_WORKERS
from rpms.vocabulary.output import say

SETTINGS = "settings"
"""What a command calls the parameter that its settings are handed over in."""
LINE = "command_line"
"""What a command calls the parameter that tells which options were typed, if it has one."""
AGAIN = " May be given again."


def first_world() -> str:
    """The world used by default; asked for when a command runs, so that --help loads no world."""
    from rpms.envs.registry import FIRST_WORLD

    return FIRST_WORLD


EnvOption = Annotated[
    str,
    typer.Option(
        "--env",
        default_factory=first_world,
        show_default=False,
        help="A world, as 'rpms worlds' lists them, or MODULE:ATTRIBUTE; else the first.",
    ),
]
SplitOption = Annotated[str, typer.Option("--split", help="Which tasks; else the usual ones.")]
OnlyEnvOption = Annotated[str, typer.Option("--env", help="Only this environment.")]
EngineOption = Annotated[
    str, typer.Option(help="python | textworld: which engine plays, where a world has two.")
]
WorkersOption = Annotated[
    int | None,
    typer.Option(min=0, max=MOST_WORKERS, help="Environment processes; 0: none, play in this one."),
]
ConcurrencyOption = Annotated[
    int, typer.Option(min=1, max=MOST_IN_FLIGHT, help="Episodes in flight, over all workers.")
]


def with_settings(*groups: Group) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option for every setting, or for those of some groups.

    They stand where its parameter ``settings`` does, which is handed them as a ``RunContext``.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = signature(command, eval_str=True)
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
            named = {name: typed[name] for name in given(command_line) if name in typed}
            if LINE in own.parameters:
                values[LINE] = command_line
            command(**values, **{SETTINGS: RunContext(**named)})

        parameters: list[Parameter] = []
        if LINE not in own.parameters:  # Typer fills in one parameter of this kind
            parameters = [Parameter(LINE, Parameter.KEYWORD_ONLY, annotation=typer.Context)]
        for parameter in own.parameters.values():
            parameters += map(_parameter, chosen) if parameter.name == SETTINGS else [parameter]
        parameters = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in parameters]
        run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {}  # the signature has them, and Typer would look in both
        return run

    return decorate


def given(command_line: typer.Context) -> list[str]:
    """The parameters that the user gave himself, whatever their values."""
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
    """The option of one setting."""
    declared = declarations()[name]
    setting, choices, option = declared.setting, declared.choices, declared.option
    if declared.default is True:
        option += f"/--no-{option.removeprefix('--')}"
    return typer.Option(
        option,
        help=f"{setting.description}{AGAIN if setting.many else ''}",
        metavar="|".join(choices) or None,
        autocompletion=(lambda: list(choices)) if choices else None,
        min=setting.ge,
        max=setting.le,
    )


RulesOption = Annotated[str, setting_option("rules_dir")]
WithoutOption = Annotated[list[str] | None, setting_option("without_rules")]


def limit_option(help: str) -> Any:
    """``--limit`` and its like: how many tasks."""
    return typer.Option(min=0, max=MOST_TASKS, help=help)


def refuse_empty(text: str) -> str:
    """A path that was left out, as by an unset variable, must not become the current folder."""
    if not text.strip():
        raise typer.BadParameter("it is empty; name a file or a folder")
    return text


JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document, nothing else.")]


def choose(engine: str) -> None:
    """Nothing asked for leaves the choice to RPMS_ENGINE, and without that to ours."""
    if engine:
        from rpms.envs.alfworld.stock import choose_engine

        choose_engine(engine)


def print_json(data: Any) -> None:
    """One document on standard output."""
    # Control characters are left as JSON writes them: it may be a terminal that reads this.
    say(json.dumps(data, ensure_ascii=False, indent=2, default=sorted))  # a set has no order
