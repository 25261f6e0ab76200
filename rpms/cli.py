"""The command line. Bad input gets one clear line and exit code 2, never a traceback."""

from __future__ import annotations

import errno
import os
import sys
from io import TextIOWrapper
from traceback import format_exception
from types import TracebackType
from typing import Annotated, NoReturn

import typer

from rpms import __version__, completion
from rpms.eval_cli import evaluate
from rpms.export_cli import export
from rpms.learn_cli import learn
from rpms.memory_cli import memory_app
from rpms.models_cli import models_app
from rpms.options import (
    EngineOption,
    EnvOption,
    JsonOption,
    SplitOption,
    choose,
    conditions_option,
    limit_option,
    print_json,
    with_settings,
)
from rpms.report_cli import compare, report
from rpms.rules_cli import rules_app
from rpms.showing import say, say_place
from rpms.typed import in_typed_words
from rpms.view_cli import view
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.error_place import place_of
from rpms.vocabulary.errors import EnvironmentFault, RpmsError
from rpms.vocabulary.safe_text import redact

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

app = typer.Typer(
    name="rpms",
    help="Rules, belief and memory for LLM agents in closed worlds.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(rules_app, name="rules", help="Check and show the rule manual.")
app.add_typer(models_app, name="models", help="Fetch the weights of local models.")
app.add_typer(memory_app, name="memory", help="Look into a memory snapshot.")


def _print_version(wanted: bool) -> None:
    if wanted:
        say(f"rpms {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_print_version, help="Print it and end."),
    ] = False,
) -> None:
    """Options of every command."""


@app.command()
@with_settings()
def run(
    env: EnvOption,
    split: SplitOption = "",
    task: Annotated[str, typer.Option(help="Task id, trial name, or index.")] = "0",
    condition: Annotated[
        str,
        typer.Option(
            autocompletion=completion.condition,
            help="A baseline, B rules, C memory, D full, E policy; B+verify has a guard.",
        ),
    ] = "D",
    *,
    settings: RunContext,
    prompts: Annotated[bool, typer.Option(help="Also show every prompt.")] = False,
    memories: Annotated[bool, typer.Option(help="Also show every memory's fate.")] = False,
    engine: EngineOption = "",
    as_json: JsonOption = False,
) -> None:
    """Play one episode and watch each decision."""
    choose(engine)
    from rpms.terminal import play
    from rpms.vocabulary.turn import ERRORS

    context = settings.under(condition)
    result = play(env, split, task, context, show=not as_json, prompts=prompts, memories=memories)
    if as_json:
        print_json(result)
    if result["failure_mode"] in ERRORS:
        say_place(result["error_place"])
        kind = result["failure_mode"].replace("_", " ")
        raise RpmsError(f"the episode ended in a {kind}: {result['error']}; run it again to retry")


@app.command()
def worlds(as_json: JsonOption = False) -> None:
    """List the worlds that are installed, with their task lists and goal types."""
    from rpms.listing import print_worlds, world_rows

    rows = world_rows()
    if as_json:
        print_json(rows)
    else:
        print_worlds(rows)


@app.command()
def tasks(
    env: EnvOption,
    split: SplitOption = "",
    limit: Annotated[int, limit_option("0: all. Generated splits grow on request.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """List the tasks of a split, with what the goal parser reads from each sentence."""
    from rpms.envs import get_environment
    from rpms.listing import print_tasks, task_rows

    world = get_environment(env)
    rows = task_rows(world, split or world.splits()[0], limit or None)
    if as_json:
        print_json(rows)
    else:
        print_tasks(rows)


app.command()(learn)


app.command(name="eval")(evaluate)
app.command()(report)
app.command()(compare)
app.command()(export)
app.command()(view)


@app.command()
def graph() -> None:
    """Print the agent graph as Mermaid; works offline."""
    from rpms.graph import build_graph

    say(build_graph().get_graph().draw_mermaid().rstrip())


@app.command()
def demo(
    tasks: Annotated[int, limit_option("How many; 0: some of every type.")] = 0,
    conditions: Annotated[
        str, conditions_option("Which, by comma; else those of the preset 'demo'.")
    ] = "",
    env: Annotated[
        str, typer.Option(autocompletion=completion.worlds, help="Only this environment.")
    ] = "",
    split: SplitOption = "",
    out: Annotated[str, typer.Option(help="Folder for the runs.")] = "runs",
    as_json: JsonOption = False,
) -> None:
    """Watch every mechanism at work with the built-in planner; no key, no download."""
    from rpms.demo import run_demo
    from rpms.evals.arms import condition_names

    run_demo(condition_names(conditions), env, split, tasks, out, as_json)


def fail(message: str) -> NoReturn:
    """One line on standard error, exit code 2."""
    say(f"rpms: {redact(' '.join(message.split()))}", file=sys.stderr)
    raise SystemExit(2)


def _last_words(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Even the traceback of a bug is printed without keys."""
    say(redact("".join(format_exception(kind, error, trace))), end="", file=sys.stderr)


def _forget_odd_sizes() -> None:
    """A terminal whose size nobody can mean; the printing library would believe or trip over it."""
    for name in ("COLUMNS", "LINES"):
        if not 0 < len(size := os.environ.get(name, "")) < 5 or not size.isdecimal():
            os.environ.pop(name, None)


def _print_no_more() -> None:
    """What is left to print would fail again when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main() -> None:
    """Entry point of the ``rpms`` command."""
    sys.excepthook = _last_words
    _forget_odd_sizes()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # half a character in a name is no reason to end
            stream.reconfigure(errors="backslashreplace")
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()  # here, where a reader that has gone away is still ours to handle
    except (RpmsError, EnvironmentFault) as error:
        say_place(place_of(error.__cause__))
        fail(in_typed_words(error, sys.argv[1:]))
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except BrokenPipeError:
        _print_no_more()
        raise SystemExit(1) from None
    except OSError as error:
        # Whatever writes a file says which; without a name it is the output that had no room.
        if error.errno not in NO_ROOM or error.filename:
            raise
        _print_no_more()
        fail(f"cannot write the output: {error.strerror}")
    except Exception as error:
        # Typer raises its own usage errors (and only those) with a ready exit code.
        if type(error).__name__ == "NoArgsIsHelpError":
            say(error.format_message())  # type: ignore[attr-defined]
            raise SystemExit(0) from None
        if getattr(error, "exit_code", None) == 2 and hasattr(error, "format_message"):
            fail(f"{error.format_message()} (see: rpms --help)")
        if place := place_of(error):
            say_place(place)
            fail(f"{type(error).__name__} at {place['file']}:{place['line']}: {error}")
        raise
    raise SystemExit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
