"""``rpms models``: the weights of local models."""

from __future__ import annotations

from typing import Annotated

import typer

models_app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@models_app.command()
def pull(name: Annotated[str, typer.Argument(help="Which model; see 'rpms models list'.")]) -> None:
    """Fetch a model's weights and check them; then use it as local:NAME."""
    from rpms.models.weights import pull as fetch

    fetch(name, lambda line: print(line, flush=True))


@models_app.command("list")
def list_models() -> None:
    """What can be pulled, and what has been."""
    from rpms.models.weights import catalogue, pulled

    for name, weights in catalogue().items():
        print(f"{name}: {weights.about}; {pulled(name) or 'not pulled yet'}")
