"""``rpms rules``: checks, shows, learns and audits the rule manual."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rpms.commands.help_text import App
from rpms.commands.options import (
    AGAIN,
    EnvOption,
    JsonOption,
    OnlyEnvOption,
    RulesOption,
    first_world,
    limit_option,
    print_json,
    refuse_empty,
)
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.limits import MOST_STEPS, MOST_TASKS
from rpms.vocabulary.output import print_wrapped, quantity

if TYPE_CHECKING:
    from rpms.guard.sources import Citations

rules_app = App()
OWN = "own"
"""Instead of a file: the policy that comes with the environment."""


@rules_app.command()
def check(
    env: OnlyEnvOption = "",
    rules: RulesOption = "",
    policy: Annotated[
        str,
        typer.Option(
            metavar="FILE.md",
            help="List the sentences of this policy that no rule cites; 'own' stands for the "
            "policy that comes with the environment.",
        ),
    ] = "",
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Every rule needs an allowed and a refused example, and every condition one that "
            "makes it true and one that makes it false; every tool says what its answers show.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Validate every rule file and compare it with the environment.

    The check runs the examples of rules ('allowed', 'refused') and compares the environment's tools
    with the manual. It also runs the first tasks of a custom environment and reports where the
    procedure has no applicable action. --rules is an overlay on the manual of one environment, by
    default the first.

    With --policy, the check also lists the sentences of a policy that no rule has as its 'source',
    and the sources that are not in the policy. With --strict they are problems, else information.
    """
    from rpms.commands.terminal_tables import print_rows
    from rpms.commands.world_check import check_world
    from rpms.envs import environment_names, get_environment
    from rpms.envs.registry import desk_names, missing_worlds
    from rpms.evals.analysis.tables import Table, count, label
    from rpms.vocabulary.files import read_text
    from rpms.vocabulary.output import open_console

    if policy and not env:
        raise RpmsError("--policy applies to one environment; name it with --env")
    if policy == OWN:
        policy = str(get_environment(env).policy or "")
        if not policy:
            raise RpmsError(f"{env} comes without a policy; name a file: --policy DESK/policy.md")
    text = read_text(Path(policy), "the policy") if policy else ""
    only = env or (first_world() if rules else "")
    worlds = map(get_environment, [only] if only else [*environment_names(), *desk_names()])
    checked = {world.name: check_world(world, rules, text, strict) for world in worlds}
    findings = [finding for each in checked.values() for finding in each.problems]
    counts = {name: each.counts for name, each in checked.items() if each.counts}
    cited = next((each.citations for each in checked.values() if each.citations), None)
    if as_json:
        listed = [{**finding._asdict(), "file": str(finding.file)} for finding in findings]
        citations = {"policy": _as_data(policy, cited)} if cited else {}
        print_json({"rules": counts, "problems": listed, **citations})
    else:
        heads = list(dict.fromkeys(head for each in counts.values() for head in each))
        rows = [[label(name), *(count(each.get(head, 0)) for head in heads)]
                for name, each in counts.items()]  # fmt: skip
        if rows:
            table = Table("", "", ["rules of", *heads], rows)
            print_rows(open_console(highlight=False), table)
        for finding in findings:
            print_wrapped(finding)
        if cited:
            _print_citations(policy, cited, strict)
        for advice in () if only else dict.fromkeys(missing_worlds().values()):
            print_wrapped(f"not checked: {advice}")
    if findings:
        raise RpmsError(f"{quantity(len(findings), 'problem')} in the rule manual, listed above")


@rules_app.command()
def schema(
    tier: Annotated[
        str, typer.Option(help="The file: environment, domain or universal.")
    ] = "environment",
) -> None:
    """Print the JSON Schema of a rule file, for editors and checks of your own.

    Write it beside the rules as environment.schema.json: the first line of a new desk's rules names
    that file, and editors with a YAML language server read it.
    """
    from rpms.rules.schema import TIERS, json_schema
    from rpms.vocabulary.spelling import offer

    if tier not in TIERS:
        raise RpmsError(f"--tier: '{tier}' is no rule file; {offer(tier, [*TIERS])}")
    print_json(json_schema(tier))


def _as_data(file: str, cited: Citations) -> dict[str, Any]:
    return {
        "file": file,
        "sentences": len(cited.sentences),
        "cited": [{**each._asdict(), "rules": rules} for each, rules in cited.cited],
        "uncited": [sentence._asdict() for sentence in cited.uncited],
        "excused": [{**each._asdict(), "reason": reason} for each, reason in cited.excused],
        "strange": [{"rule": rule, "source": source} for rule, source in cited.strange],
    }


def _print_citations(file: str, cited: Citations, strict: bool) -> None:
    """Print the sentences with their rules; with ``strict``, open ones are among the problems."""
    from rpms.guard.sources import UNDECIDED

    for sentence, rules in cited.cited:
        print_wrapped(f"{file}:{sentence.line}: {', '.join(rules)}: {sentence.text}")
    for sentence in () if strict else cited.uncited:
        print_wrapped(f"{file}:{sentence.line}: no rule cites: {sentence.text}")
    for sentence, reason in cited.excused:
        if reason != UNDECIDED:
            print_wrapped(f"{file}:{sentence.line}: not checkable ({reason}): {sentence.text}")
        elif not strict:
            print_wrapped(f"{file}:{sentence.line}: {reason}: {sentence.text}")
    undecided = sum(reason == UNDECIDED for _, reason in cited.excused)
    for rule, source in () if strict else cited.strange:
        print_wrapped(f"{rule}: not in {file}: {source}")
    print_wrapped(
        f"{file}: {quantity(len(cited.sentences), 'sentence')}, {len(cited.cited):,} cited by a "
        f"rule, {len(cited.excused) - undecided:,} not checkable, {len(cited.uncited):,} not cited"
        + (f", {undecided:,} {UNDECIDED}" if undecided else "")
    )


@rules_app.command()
def show(
    goal_type: Annotated[str, typer.Option("--type", help="The goal type.")],
    env: EnvOption,
    kind: Annotated[
        str,
        typer.Option("--about", help="The kind of object whose locality rule is shown."),
    ] = "",
    rules: RulesOption = "",
    without_rule: Annotated[
        list[str] | None,
        typer.Option(help=f"Leave out this rule or tier, by id or name.{AGAIN}"),
    ] = None,
) -> None:
    """Print a goal type: its steps, the applicable actions of each, and the rules in the prompt."""
    from rpms.commands.type_page import type_page
    from rpms.envs import get_environment
    from rpms.envs.manuals import load_manual
    from rpms.vocabulary.goal import GoalSpec

    world = get_environment(env)
    types = dict.fromkeys(world.goal_types(), None) | world.task_types()
    if goal_type not in types:
        raise RpmsError(f"unknown goal type '{goal_type}'; {env} has: {', '.join(types)}")
    if types[goal_type] == "":
        print_wrapped(f"{goal_type} is left out, as in the paper: no rule applies to it.")
        return
    goal = GoalSpec(
        sentence="", type=goal_type, object=kind, state=None, count=1, destination="",
        signature="",
    )  # fmt: skip
    if sentence := types[goal_type]:
        goal = world.parse_goal(sentence)
    manual = load_manual(env, rules, ",".join(without_rule or []))
    print_wrapped("\n".join(type_page(world, manual, goal)))


@rules_app.command()
def learn(
    out: Annotated[
        str, typer.Option(callback=refuse_empty, help="The folder for the learned manual.")
    ],
    env: EnvOption,
    explore: Annotated[int, limit_option("Explore this many tasks of the learning split.")],
    seed: Annotated[int, typer.Option(help="The seed of the exploration.")] = 0,
    steps: Annotated[
        int,
        typer.Option(
            min=0,
            max=MOST_STEPS,
            help="Try this many commands in each task; 0 means the usual number.",
        ),
    ] = 0,
) -> None:
    """Learn the rules of Tier 3 from the environment's answers, without a language model."""
    from rpms.envs import get_environment
    from rpms.rule_learning.learn import learn_by_exploring

    learn_by_exploring(get_environment(env), Path(out), explore, seed, steps, print_wrapped)


@rules_app.command()
def audit(
    env: EnvOption,
    folder: Annotated[
        str, typer.Argument(help="The folder of a learned manual; by default the shipped manual.")
    ] = "",
    split: Annotated[
        str,
        typer.Option(
            help="The split to audit it on; by default the first that is not for testing."
        ),
    ] = "",
    games: Annotated[
        int, typer.Option(min=1, max=MOST_TASKS, help="Audit it on this many games.")
    ] = 20,
    seed: Annotated[int, typer.Option(help="The seed of the exploration.")] = 0,
    only: Annotated[str, typer.Option(help="Audit only these actions, separated by commas.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Audit a manual on games: the precision and recall of its rules, and its predictions."""
    from rpms.commands.terminal_tables import print_rows
    from rpms.envs import get_environment
    from rpms.rule_learning.audit import audit_manual
    from rpms.vocabulary.output import open_console

    world = get_environment(env)
    names = tuple(name.strip() for name in only.split(",") if name.strip())
    # Not a test split: a manual in development must not be tuned on the tasks of its evaluation.
    default = next(name for name in world.splits() if "test" not in name.split("_"))
    over = Path(folder) if folder else None
    findings = audit_manual(world, over, split or default, games, seed, names)
    if as_json:
        print_json(findings.as_json())
        return
    console = open_console(highlight=False)
    for part in findings.described():
        if isinstance(part, str):
            print_wrapped(part)
        else:
            console.print()
            print_rows(console, part)
            console.print()
