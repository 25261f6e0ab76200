"""``rpms models``: what can be given as ``--model``, and the weights of local models."""

from __future__ import annotations

from typing import Annotated

import typer

from rpms.commands import completion
from rpms.commands.options import JsonOption, print_json
from rpms.vocabulary.output import say

models_app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@models_app.command()
def pull(
    name: Annotated[
        str,
        typer.Argument(
            autocompletion=completion.pullable, help="Which model; see 'rpms models list'."
        ),
    ],
) -> None:
    """Fetch a model's weights and check them; then use it as local:NAME."""
    from rpms.models.weights import pull as fetch

    fetch(name, lambda line: say(line, flush=True))


@models_app.command("list")
def list_models(as_json: JsonOption = False) -> None:
    """Every model that can be given as --model: which work now, and what the others need."""
    from rich.markup import escape

    from rpms.commands.terminal_tables import print_stacked
    from rpms.models.opening import choices
    from rpms.models.weights import catalogue, pulled
    from rpms.vocabulary.output import open_console

    found = choices()
    if as_json:
        print_json([{**one._asdict(), "usable": not one.missing} for one in found])
        return
    console = open_console(highlight=False)
    ready = {one.name: escape(one.about) for one in found if not one.missing}
    lacking = {
        one.name: escape(": ".join(filter(None, (one.about, one.missing))))
        for one in found
        if one.missing
    }
    print_stacked(console, "Usable now", ready)
    print_stacked(console, "Not yet", lacking)
    console.print(
        "In Python any LangChain chat model will do, as an object; rpms.models.controls.Replay "
        "plays a list of actions."
    )
    for name in catalogue():
        if file := pulled(name):
            say(f"weights of local:{name}: {file}")
