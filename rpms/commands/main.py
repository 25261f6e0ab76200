"""The entry point of ``rpms``. Bad input gives one clear line and exit code 2, no traceback."""

from __future__ import annotations

import errno
import os
import sys
from io import TextIOWrapper
from pathlib import Path
from traceback import format_exception
from types import TracebackType
from typing import Annotated, NoReturn

import typer

from rpms import __version__
from rpms.commands.audit import audit
from rpms.commands.demo import demo
from rpms.commands.diff_arms import diff_arms
from rpms.commands.eval import evaluate
from rpms.commands.export import export
from rpms.commands.generation import show_generation
from rpms.commands.help_text import App
from rpms.commands.learn import learn
from rpms.commands.listing import list_settings, models_app, plans, tasks, worlds_app
from rpms.commands.memory import memory_app
from rpms.commands.option_errors import advice_on_setting, in_typed_words
from rpms.commands.plot import plot
from rpms.commands.report import report
from rpms.commands.rules import rules_app
from rpms.commands.run import run
from rpms.vocabulary.error_place import place_of
from rpms.vocabulary.errors import EnvironmentFault, RpmsError
from rpms.vocabulary.generation import watching
from rpms.vocabulary.output import print_error_place, print_safe, print_wrapped
from rpms.vocabulary.safe_text import redact

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

app = App(
    name="rpms",
    help="Rules, belief and memory for LLM agents in closed worlds.",
    add_completion=True,
    pretty_exceptions_enable=False,
)
app.add_typer(rules_app, name="rules", help="Check, show, learn and audit the rule manual.")
app.add_typer(worlds_app, name="worlds")
app.add_typer(
    models_app, name="models", help="List models, and download the weights of local ones."
)
app.add_typer(memory_app, name="memory", help="Count, print and check the entries of a memory.")


def _print_version(switched_on: bool) -> None:
    if switched_on:
        print_safe(f"rpms {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Options of every command."""


for command in (run, tasks, learn):
    app.command()(command)
app.command(name="eval")(evaluate)
app.command(name="diff-arms")(diff_arms)
app.command(name="settings")(list_settings)
for command in (plans, report, plot, export, audit, demo):
    app.command()(command)


@app.command()
def graph(
    out: Annotated[
        str, typer.Option(help="Write a file, by its ending: .mmd, .png or .svg.", metavar="FILE")
    ] = "",
    condition: Annotated[
        str, typer.Option(help="Draw the path of this condition in full, the rest pale.")
    ] = "",
    source: Annotated[
        str,
        typer.Option(
            "--graph", help="A graph of your own, or a function that returns one.",
            metavar="MODULE:NAME",
        ),
    ] = "",
) -> None:  # fmt: skip
    """Print the agent graph as Mermaid, or draw it into a file; works offline."""
    from rpms.graph import build_graph
    from rpms.graph.compiled import open_graph
    from rpms.graph.drawing import mermaid, write_picture

    drawn = open_graph(source) if source else build_graph()
    context = drawn.defaults.under(condition) if condition else None
    if source and not condition:
        context = drawn.defaults
    if out:
        write_picture(drawn, Path(out), context)
    else:
        print_safe(mermaid(drawn, context))


def fail(message: str) -> NoReturn:
    """Print one line on standard error and exit with code 2."""
    print_wrapped(f"rpms: {redact(' '.join(message.split()))}", file=sys.stderr)
    raise SystemExit(2)


def _print_traceback(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Print the traceback of a bug without API keys."""
    print_safe(redact("".join(format_exception(kind, error, trace))), end="", file=sys.stderr)


def _silence_stdout() -> None:
    """Discard buffered output, which would fail again when Python exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main() -> None:
    """Entry point of the ``rpms`` command."""
    sys.excepthook = _print_traceback
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # names may contain lone surrogates
            stream.reconfigure(errors="backslashreplace")
    try:
        with watching(show_generation):
            code = app(standalone_mode=False)
        sys.stdout.flush()  # here, where a closed pipe is still handled below
    except (RpmsError, EnvironmentFault) as error:
        print_error_place(place_of(error.__cause__))
        fail(in_typed_words(error, sys.argv[1:]))
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except BrokenPipeError:
        _silence_stdout()
        raise SystemExit(1) from None
    except OSError as error:
        # An error about a file has its name; without one, standard output had no space left.
        if error.errno not in NO_ROOM or error.filename:
            raise
        _silence_stdout()
        fail(f"cannot write the output: {error.strerror}")
    except Exception as error:
        # Typer raises its own usage errors (and only those) with a ready exit code.
        if type(error).__name__ == "NoArgsIsHelpError":
            print_safe(error.format_message())  # type: ignore[attr-defined]
            raise SystemExit(0) from None
        if getattr(error, "exit_code", None) == 2 and hasattr(error, "format_message"):
            unknown = getattr(error, "option_name", "") if "No such" in str(error) else ""
            advice = unknown and advice_on_setting(unknown, sys.argv[1:])
            fail(advice or f"{error.format_message()} (see: rpms --help)")
        if place := place_of(error):
            print_error_place(place)
            fail(f"{type(error).__name__} at {place['file']}:{place['line']}: {error}")
        raise
    raise SystemExit(code if isinstance(code, int) else 0)
