"""Options that several commands take."""

from __future__ import annotations

from typing import Annotated

import typer


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
ModelOption = Annotated[
    str, typer.Option(help="'sim', 'random', local:smollm2, local:FILE.gguf, or PROVIDER:NAME.")
]
