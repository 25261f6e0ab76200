"""Formats help texts: options in groups, in whole sentences, without parser types and limits.

Rich could draw the groups too, but its import takes longer than the rest of ``--help``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

RUN, SETTINGS, EXECUTION, OUTPUT = "What to run", "Settings", "Execution", "Output"
OTHER = "Options"
F = TypeVar("F", bound=Callable[..., Any])
PANELS = (RUN, SETTINGS, EXECUTION, OUTPUT, OTHER)
"""The groups of options, in the order of the help."""
NAMES = 34
"""The width of the names of options."""
WIDTH = 100
UNGROUPED = 10
"""A command with at most this many options shows them without groups."""
WHOLE = 1000
"""Length limit of a command's sentence in the list of commands; high enough for any."""


def write_options(command: Any, context: Any, formatter: Any) -> None:
    """Print the arguments of a command, then its options by group."""
    params = [param for param in command.get_params(context) if not param.hidden]
    arguments = [param for param in params if param.param_type_name == "argument"]
    options = [param for param in params if param.param_type_name == "option"]
    panels: dict[str, list[tuple[str, str]]] = {name: [] for name in PANELS}
    for param in options:
        panel = param.rich_help_panel or OUTPUT
        panels[panel if len(options) > UNGROUPED else OTHER].append(option_row(param))
    sections = {"Arguments": [(p.metavar or p.name.upper(), p.help or "") for p in arguments]}
    for name, rows in {**sections, **panels}.items():
        if rows:
            with formatter.section(name):
                formatter.write_dl(rows, col_max=NAMES)


def option_row(option: Any) -> tuple[str, str]:
    """The name and placeholder of an option, and its sentence with the default."""
    default, names = option.default, [*option.opts, *option.secondary_opts]
    number = isinstance(default, int | float) and not option.is_flag
    value = "" if option.is_flag else f" {option.metavar or ('N' if number else 'TEXT')}"
    extra = "  [required]" if option.required else ""
    if not option.is_flag and option.show_default and default not in (None, "", [], (), 0):
        extra = f"  [default: {default:g}]" if number else f"  [default: {default}]"
    return f"{' / '.join(names)}{value}", f"{option.help or ''}{extra}"


class Command(TyperCommand):
    """A command with grouped options."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        write_options(self, ctx, formatter)

    def get_short_help_str(self, limit: int = WHOLE) -> str:
        """The whole first sentence."""
        return super().get_short_help_str(WHOLE)


class Group(TyperGroup):
    """A command with sub-commands, each listed with its whole first sentence."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        write_options(self, ctx, formatter)
        self.format_commands(ctx, formatter)

    def get_short_help_str(self, limit: int = WHOLE) -> str:
        """The whole first sentence."""
        return super().get_short_help_str(WHOLE)


class App(typer.Typer):
    """A Typer app whose commands have these help texts."""

    def __init__(self, **options: Any) -> None:
        defaults = {
            "context_settings": {"max_content_width": WIDTH},
            "no_args_is_help": True,
            "add_completion": False,
            "rich_markup_mode": None,
        }
        super().__init__(cls=Group, **{**defaults, **options})

    def command(self, *names: Any, **options: Any) -> Callable[[F], F]:
        """Add a command, as ``typer.Typer`` does."""
        return super().command(*names, **{"cls": Command, **options})
