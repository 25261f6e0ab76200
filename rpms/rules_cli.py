"""``rpms rules``: audit the manual, and show what a goal type gets to see of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rpms.options import EnvOption, RulesOption, WithoutOption, first_world
from rpms.vocabulary.errors import RpmsError

if TYPE_CHECKING:
    from rpms.rules import Manual

rules_app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@rules_app.command()
def check(
    env: Annotated[str, typer.Option(help="Only this environment.")] = "",
    rules: RulesOption = "",
) -> None:
    """Validate every rule file and audit it against the real environment.

    A folder of your own is laid over the manual of one world: the first, if none is named.
    """
    from rpms.envs import environment_names, get_environment
    from rpms.nodes.manual import load_manual
    from rpms.rules.audit import audit

    findings = []
    env = env or (first_world() if rules else "")
    names = [get_environment(env).name] if env else environment_names()
    for name in names:
        world = get_environment(name)
        over = Path(rules) if rules else None
        found = audit(world.rules, world.goal_types(), world.command_verbs(), over=over)
        findings += found
        if rules and found:  # a manual with such mistakes may not be loaded for a run
            continue
        manual = load_manual(name, rules)
        more = "".join(f"{len(tier)} {own}, " for own, tier in manual.extra.items())
        print(
            f"{name}: {len(manual.universal.rules)} universal, "
            f"{len(manual.domain.rules) + len(manual.domain.likely_places)} domain, {more}"
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
    rules: RulesOption = "",
    without_rule: WithoutOption = None,
) -> None:
    """Print R_active for a goal type, as it enters the prompt at the first step.

    What rules say of where they come from is not part of the prompt; it stands below.
    """
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
    manual = load_manual(env, rules, ",".join(without_rule or []))
    active = manual.active(goal, empty_belief())
    print(render_rules(get_environment(env), active, goal))
    shown = {line["id"] for tier in active.values() for line in tier}
    if told := list(_origins(manual, shown)):
        print("\nWhere rules come from:", *told, sep="\n  ")


def _origins(manual: Manual, shown: Collection[str]) -> Iterator[str]:
    """A line for each rule that says where it comes from, how sure it is or what supports it."""
    domain, world = manual.domain, manual.environment
    sentences = [rule for _, tier in manual.tiers for rule in tier]
    for rule in (*sentences, *domain.likely_places, *domain.here, *world.actions,
                 *world.situations, *world.forbidden):  # fmt: skip
        said = {name: getattr(rule, name) for name in ("source", "confidence", "support")}
        words = [f"{name} {value}" for name, value in said.items() if value not in ("", None)]
        if words and rule.id in shown:
            yield f"{rule.id}: {', '.join(words)}"
