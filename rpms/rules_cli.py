"""``rpms rules``: audit the manual, and show what a goal type gets to see of it."""

from __future__ import annotations

from typing import Annotated

import typer

from rpms.options import EnvOption
from rpms.vocabulary.errors import RpmsError

rules_app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@rules_app.command()
def check(
    env: Annotated[str, typer.Option(help="Only this environment.")] = "",
) -> None:
    """Validate every rule file and audit it against the real environment."""
    from rpms.envs import environment_names, get_environment
    from rpms.nodes.manual import load_manual
    from rpms.rules.audit import audit

    findings = []
    names = [get_environment(env).name] if env else environment_names()
    for name in names:
        world = get_environment(name)
        found = audit(world.rules, world.goal_types(), world.command_verbs())
        findings += found
        manual = load_manual(name)
        print(
            f"{name}: {len(manual.universal.rules)} universal, "
            f"{len(manual.domain.rules) + len(manual.domain.likely_places)} domain, "
            f"{len(manual.actions)} action rules, {len(manual.forbidden)} forbidden patterns, "
            f"{len(manual.environment.situations)} situations; {len(found)} problems"
        )
    for finding in findings:
        print(finding)
    if findings:
        raise RpmsError(f"{len(findings)} problem(s) in the rule manual, listed above")


@rules_app.command()
def show(
    goal_type: Annotated[str, typer.Option("--type", help="Goal type, e.g. a heat task.")],
    env: EnvOption,
    about: Annotated[str, typer.Option(help="Kind of object, for its locality rule.")] = "",
) -> None:
    """Print R_active for a goal type, as it enters the prompt at the first step."""
    from rpms.envs import get_environment
    from rpms.nodes.blocks import render_rules
    from rpms.nodes.manual import load_manual
    from rpms.vocabulary.belief import empty_belief
    from rpms.vocabulary.goal import GoalSpec

    known = get_environment(env).goal_types()
    if goal_type not in known:
        raise RpmsError(f"unknown goal type '{goal_type}'; {env} has: {', '.join(known)}")
    goal = GoalSpec(
        sentence="", type=goal_type, object=about, state=None, count=1, destination="",
        signature="",
    )  # fmt: skip
    rules = load_manual(env).active(goal, empty_belief())
    print(render_rules(get_environment(env), rules, goal))
