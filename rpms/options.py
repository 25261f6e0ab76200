"""Options that several commands take."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from rpms import completion
from rpms.showing import say
from rpms.vocabulary.limits import MOST_IN_FLIGHT, MOST_STEPS, MOST_TASKS, MOST_WORKERS


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
        autocompletion=completion.worlds,
        help="A world, as 'rpms worlds' lists them, or MODULE:ATTRIBUTE; else the first.",
    ),
]
SplitOption = Annotated[
    str,
    typer.Option(
        "--split", autocompletion=completion.splits, help="Which tasks; else the usual ones."
    ),
]
ModelOption = Annotated[
    str,
    typer.Option(
        autocompletion=completion.models,
        help="One that 'rpms models list' names: sim, local:smollm2, PROVIDER:NAME ...",
    ),
]
ScfOption = Annotated[
    str,
    typer.Option(
        autocompletion=completion.one_of("off", "occupancy", "preconditions"),
        help="off | occupancy | preconditions",
    ),
]
ArbitrationOption = Annotated[
    str,
    typer.Option(
        autocompletion=completion.one_of("none", "soft", "hard", "hard+soft"),
        help="none | soft | hard | hard+soft",
    ),
]
GuardOption = Annotated[
    str,
    typer.Option(
        autocompletion=completion.one_of("off", *completion.GUARDS),
        help="off | verify | offer | policy",
    ),
]
LayoutOption = Annotated[
    str,
    typer.Option(
        autocompletion=completion.one_of("paper", "cache_friendly"), help="paper | cache_friendly"
    ),
]
TimeoutOption = Annotated[
    float, typer.Option(help="Seconds one model call may take; 0: 60, and 600 for local models.")
]
PatienceOption = Annotated[
    float, typer.Option(help="Seconds for which a model call that fails is made again.")
]
ConstrainOption = Annotated[
    str, typer.Option(help="off | grammar: hold replies to the action format, if the server can.")
]
ContextOption = Annotated[
    int, typer.Option(help="Leave out old turns beyond this; 0: the model's own limit.")
]
EngineOption = Annotated[
    str, typer.Option(help="python | textworld: which engine plays, where a world has two.")
]
RulesOption = Annotated[
    str,
    typer.Option("--rules", help="Folder of rule files, laid over the manual or in its place."),
]
WithoutOption = Annotated[
    list[str] | None,
    typer.Option("--without-rule", help="Id of a rule, or name of a tier, to leave out; again."),
]
MethodOption = Annotated[
    str, typer.Option(help="Whose memory: rpms, another by name, or MODULE:CLASS.")
]
CeilingOption = Annotated[
    int, typer.Option(help="Tokens of rules, state and memory together; memories go beyond that.")
]
ExamplesOption = Annotated[int, typer.Option(help="Solved tasks in the prompt, 0 to 2.")]
ListOption = Annotated[
    bool, typer.Option("--action-list", help="Show what the world would accept, step by step.")
]
ReplayOption = Annotated[
    list[str] | None,
    typer.Option(metavar="LABEL", help="Drop what this arm has played and play it again."),
]
WorkersOption = Annotated[
    int | None,
    typer.Option(min=0, max=MOST_WORKERS, help="Environment processes; 0: none, play in this one."),
]
ConcurrencyOption = Annotated[
    int, typer.Option(min=1, max=MOST_IN_FLIGHT, help="Episodes in flight, over all workers.")
]
MaxStepsOption = Annotated[
    int, typer.Option(min=0, max=MOST_STEPS, help="0: the environment's own budget.")
]


def conditions_option(help: str) -> Any:
    """``--conditions``: names by comma, completed by the shell."""
    return typer.Option(autocompletion=completion.conditions, help=help)


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
