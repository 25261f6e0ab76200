"""``rpms diff-arms``: how often two arms print different prompts at the same states."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from rpms.commands.help_text import RUN
from rpms.commands.options import (
    EnvOption,
    JsonOption,
    PlanOption,
    SetOption,
    SplitOption,
    limit_option,
    option,
    print_json,
    read_set,
    typed_names,
)
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.output import print_safe, quantity

TASKS = 10
"""The number of tasks, if neither the command nor the plan gives it."""
LINES = 12
"""The most lines of an example that are printed."""


def diff_arms(
    env: EnvOption,
    arms: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ARM...",
            help="Two or more arms: a condition (D), or LABEL:SETTING=VALUE,... or "
            "LABEL=module:function, as for 'rpms eval --arm'. Each later arm is compared with the "
            "first.",
        ),
    ] = None,
    split: SplitOption = "",
    plan: PlanOption = "",
    limit: Annotated[int, limit_option("Play this many tasks.")] = TASKS,
    steps: Annotated[int, option(RUN, "Play at most this many steps of a task.", min=1)] = 50,
    seed: Annotated[int, option(RUN, "The seed of the player's errors.")] = 0,
    set_: SetOption = None,
    as_json: JsonOption = False,
    *,
    command_line: typer.Context,
) -> None:
    """Count the states at which two arms print different prompts; no model is called.

    A player that errs on 30% of its steps plays tasks of the learning split. Every arm executes its
    actions and builds its own prompts, an arm with a graph of its own by that graph. Arms that
    print the same prompts cannot differ in results.
    """  # fmt: skip
    from rpms.evals.running.diff_arms import diff_arms as compare
    from rpms.evals.running.plan_file import choose_arms

    options = {"env": env, "split": split, "limit": limit}
    names = typed_names(command_line)
    typed = {name: value for name, value in options.items() if name in names}
    base = RunContext(**read_set(set_ or ()))
    changed = [name for name in names if name != "seed"]  # here, that of the player
    selection, variants, _ = choose_arms(
        typed, base, arms=arms or (), plan=plan, typed_settings=changed
    )
    if len(variants) < 2:
        raise RpmsError("name two or more arms, as in: rpms diff-arms D none:arbitration=none")
    found = compare(
        variants, selection.env or env, split, selection.limit or TASKS, steps, seed,
        ids=selection.ids, types=selection.types,
    )  # fmt: skip
    if as_json:
        print_json([{**asdict(each), "share": each.share} for each in found])
        return
    for each in found:
        print_safe(
            f"{each.first} and {each.second} print different prompts at {each.differing} of "
            f"{each.states} states ({each.share:.0%})."
        )
        if each.example:
            print_safe(f"  for example in {each.where}; - only {each.first}, + only {each.second}:")
            shown, hidden = each.example[:LINES], len(each.example[LINES:])
            more = [f"... and {quantity(hidden, 'more line')}"] if hidden else []
            print_safe("\n".join(f"    {line}" for line in [*shown, *more]))
