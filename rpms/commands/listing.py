"""``rpms worlds``, ``tasks``, ``plans`` and ``models``: list what can be run."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from importlib.util import find_spec
from keyword import iskeyword
from os.path import lexists
from pathlib import Path
from typing import Annotated, Any

import typer

from rpms.commands.help_text import App
from rpms.commands.options import EnvOption, JsonOption, SplitOption, limit_option, print_json
from rpms.vocabulary.context import declarations
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.output import open_console, print_safe, print_wrapped, quantity

models_app = App()
worlds_app = App(invoke_without_command=True, no_args_is_help=False)

# Each template folder, and the word in it that the chosen name replaces.
PLACEHOLDERS = {"world_template": "storeroom", "desk_template": "desk_template"}
NEXT_STEPS = {
    "world_template": (
        "run it: rpms run --env {name} --condition E --model first",
        "after each change: rpms rules check --env {name}",
    ),
    "from": (
        "put the guard in front of your tools: from {name}.world import WORLD; "
        "create_agent(..., middleware=[RulesGuard(WORLD)])",
        "say what the answers show and write the first rule in {name}/rules/environment.yaml",
        "after each change: rpms rules check --env {name}",
    ),
    "desk_template": (
        "see the guard stop calls against the policy: python -m {name}.agent",
        "audit the recorded conversation: rpms audit {name}.jsonl --env {name}",
        "after each change: rpms rules check --env {name} --policy {name}/policy.md",
        "run its tests (pip install pytest): python -m pytest {name}",
    ),
}


@worlds_app.command()
def new(
    name: Annotated[str, typer.Argument(help="The name of the environment and of its folder.")],
    tools: Annotated[
        bool,
        typer.Option("--tools", help="Write an agent with tools, a policy and a guard instead."),
    ] = False,
    source_of_tools: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="MODULE:TOOLS",
            help="Write the rules' skeleton for these tools: a list, or a function that makes one.",
        ),
    ] = "",
    policy: Annotated[
        str,
        typer.Option(
            metavar="FILE.md", help="With --from: one entry per sentence, each not yet decided."
        ),
    ] = "",
) -> None:
    """Write a small working environment into a new folder, to start your own from.

    With --from it is the guard of an agent that exists: every tool with its arguments and types.
    """
    from rpms.envs import environment_names
    from rpms.envs.registry import BUILT_IN, DESKS
    from rpms.vocabulary.files import make_folder, read_text, write_whole

    if not name.isidentifier() or iskeyword(name):
        raise RpmsError(f"'{name}' is not a Python module name; use letters, digits and '_'")
    if lexists(name) or name in {*BUILT_IN, *DESKS, *environment_names()} or find_spec(name):
        raise RpmsError(f"'{name}' already exists, here or installed; choose another name")
    if policy and not source_of_tools:
        raise RpmsError("--policy applies to --from; name your tools: --from module:tools")
    if source_of_tools:
        from rpms.commands.desk_from_tools import skeleton

        text = read_text(Path(policy), "the policy") if policy else ""
        for part, content in skeleton(name, source_of_tools, text).items():
            make_folder((name / Path(part)).parent)
            write_whole(name / Path(part), content)
        for line in NEXT_STEPS["from"]:
            print_wrapped(line.format(name=name))
        return
    template = "desk_template" if tools else "world_template"
    source, placeholder = Path(__file__).parent / template, PLACEHOLDERS[template]
    for file in source.rglob("*.*"):
        if file.suffix != ".pyc":
            copy = name / Path(str(file.relative_to(source)).replace(placeholder, name))
            text = read_text(file).replace(f"{__package__}.{template}", name)
            make_folder(copy.parent)
            write_whole(copy, text.replace(placeholder, name))
    for line in NEXT_STEPS[template]:
        print_wrapped(line.format(name=name))


@worlds_app.callback()
def worlds(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the installed environments, with their splits and goal types."""
    if context.invoked_subcommand:
        return
    from rpms.commands.terminal_tables import print_stacked
    from rpms.envs import environment_names, get_environment
    from rpms.envs.registry import desk_names, missing_worlds

    rows: list[dict[str, Any]] = [
        {
            "name": world.name,
            "splits": world.splits(),
            "learning_split": world.learning_split,
            "goal_types": world.goal_types(),
            "max_steps": world.max_steps,
        }
        for world in map(get_environment, environment_names())
    ]
    if as_json:
        print_json(rows)
        return
    for row in rows:
        lines = {
            "splits": ", ".join(row["splits"]),
            "goal types": ", ".join(row["goal_types"]),
            "steps": str(row["max_steps"]),
        }
        print_stacked(open_console(highlight=False), row["name"], lines)
    if desks := desk_names():
        print_wrapped(f"desks, for the guard, the audit and the rule check: {', '.join(desks)}")
    for advice in dict.fromkeys(missing_worlds().values()):
        print_wrapped(advice)


def tasks(
    env: EnvOption,
    split: SplitOption = "",
    limit: Annotated[
        int,
        limit_option("List this many tasks; 0 means all. Generated splits grow on request."),
    ] = 0,
    as_json: JsonOption = False,
) -> None:
    """List the tasks of a split, with the goal parsed from each sentence."""
    from rpms.envs import world_with_tasks

    world = world_with_tasks(env)
    rows = []
    for task in world.tasks(split or world.splits()[0], limit or None):
        goal = world.parse_goal(task["goal"])  # all but the id comes from the sentence alone
        parsed = {key: goal[key] for key in ("type", "object", "state", "count", "destination")}
        rows.append({"index": task["index"], "id": task["id"], "goal": task["goal"], **parsed})
    if as_json:
        print_json(rows)
    else:
        _print_tasks(rows)


def _print_tasks(rows: list[dict[str, Any]]) -> None:
    """Print the tasks on a terminal in two lines each, else in one line each.

    A single line begins with the id and separates its parts by tabs, for ``cut`` and ``grep``;
    ``--tasks @FILE`` accepts such lines. The count is on standard error.
    """
    from rich.markup import escape

    console = open_console(highlight=False)
    for row in rows:
        if console.is_terminal:
            console.print(f"[bold]{escape(row['id'])}[/]", soft_wrap=True)
            console.print(f"  [dim]{row['index']}, {row['type']}:[/] {escape(row['goal'])}")
        else:
            print_safe(
                row["id"], row["index"], row["type"], " ".join(row["goal"].split()), sep="\t"
            )
    counts = sorted(Counter(row["type"] for row in rows).items())
    summary = f"{quantity(len(rows), 'task')}: " + ", ".join(f"{n} {k}" for k, n in counts)
    open_console(file=sys.stderr, highlight=False).print(summary)


def plans(as_json: JsonOption = False) -> None:
    """List the plans that 'rpms eval --plan NAME' can run, with their arms and comparisons."""
    from rich.markup import escape

    from rpms.commands.terminal_tables import print_stacked
    from rpms.evals.running.plan_file import read_plan, shipped_plans

    rows = {name: read_plan(name) for name in shipped_plans()}
    if as_json:
        print_json({name: plan.model_dump(exclude_unset=True) for name, plan in rows.items()})
        return
    for name, plan in rows.items():
        lines = {"about": [plan.about], "extends": [plan.extends]}
        if not plan.extends:  # else the other plan has them
            lines |= {"source": [plan.source], "differs": [f"- {each}" for each in plan.differs]}
        lines["arms"] = [*map(_arm, plan.arms, plan.arms.values())]
        lines["compare"] = [f"{first} with {second}" for first, second in plan.compare]
        texts = {key: escape("\n".join(each)) for key, each in lines.items() if any(each)}
        print_stacked(open_console(highlight=False), name, texts)


def _arm(label: str, fields: Mapping[str, Any]) -> str:
    """The label of an arm, and its settings if the label is not just its condition."""
    settings = ", ".join(f"{name}={_value(value)}" for name, value in fields.items())
    return label if fields == {"condition": label} else f"{label}: {settings}"


def list_settings(as_json: JsonOption = False) -> None:
    """List the settings that --set changes, with their defaults and the values of the paper."""
    from rpms.commands.terminal_tables import print_stacked
    from rpms.evals.running.plan_file import read_plan

    paper = read_plan("paper").settings
    rows = [
        {
            "name": declared.name,
            "option": declared.setting.option or "",
            "default": declared.default,
            "paper": paper.get(declared.name, declared.default),
            "choices": declared.choices,
            "description": declared.setting.description,
        }
        for declared in declarations().values()
        if declared.setting.option is not None
    ]
    if as_json:
        print_json(rows)
        return
    lines = {}
    for row in rows:
        option = f", or {row['option']}" if row["option"] else ""
        choices = f" One of {', '.join(row['choices'])}." if row["choices"] else ""
        values = f"default {_value(row['default'])}"
        if row["paper"] != row["default"]:
            values += f", paper {_value(row['paper'])}"
        lines[row["name"]] = f"{row['description']}{choices} ({values}{option})"
    print_stacked(open_console(highlight=False), "Change them with --set NAME=VALUE", lines)


def _value(value: Any) -> str:
    """A value as ``--set`` takes it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value) or "empty"


@models_app.command()
def pull(
    name: Annotated[
        str, typer.Argument(help="The name of the model, as 'rpms models list' shows it.")
    ],
) -> None:
    """Download a model's weights, or merge its adapter; then use it as local:NAME."""
    from rpms.models.local import prepare_weights

    prepare_weights(name, print_wrapped)
    print_wrapped(f"ready: --model local:{name}")


@models_app.command("list")
def list_models(as_json: JsonOption = False) -> None:
    """List the models for --model: those that work now, and what the others need."""
    from rich.markup import escape

    from rpms.commands.terminal_tables import print_stacked
    from rpms.models.opening import choices
    from rpms.models.weights import catalogue, pulled

    models = choices()
    if as_json:
        print_json([{**model._asdict(), "usable": not model.missing} for model in models])
        return
    console = open_console(highlight=False)
    usable: dict[str, str] = {}
    unusable: dict[str, str] = {}
    for model in models:
        line = escape(": ".join(filter(None, (model.description, model.missing))))
        (unusable if model.missing else usable)[model.name] = line
    print_stacked(console, "Usable now", usable)
    print_stacked(console, "Not yet usable", unusable)
    console.print(
        "In Python, pass any LangChain chat model as an object; rpms.models.controls.Replay "
        "replays a list of actions."
    )
    for name in catalogue():
        if file := pulled(name):
            print_wrapped(f"weights of local:{name}: {file}")
