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
    SplitOption,
    limit_option,
    option,
    print_json,
)
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.output import print_safe, quantity

LINES = 12
"""The most lines of an example that are printed."""


def diff_arms(
    env: EnvOption,
    arms: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ARM...",
            help="Two or more arms: a condition (D), or LABEL:SETTING=VALUE,... as for 'rpms eval "
            "--arm'. Each later arm is compared with the first.",
        ),
    ] = None,
    split: SplitOption = "",
    plan: PlanOption = "",
    limit: Annotated[int, limit_option("Play this many tasks.")] = 10,
    steps: Annotated[int, option(RUN, "Play at most this many steps of a task.", min=1)] = 50,
    seed: Annotated[int, option(RUN, "The seed of the player's errors.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Count the states at which two arms print different prompts; no model is called.

    A player that errs on 30% of its steps plays tasks of the learning split. At each of its states
    the prompt of every arm is built. Arms that print the same prompts cannot differ in results.
    """  # fmt: skip
    from rpms.evals.running.diff_arms import diff_arms as compare
    from rpms.evals.running.plan_file import choose_arms

    selection, variants, _ = choose_arms({}, RunContext(), arms=arms or (), plan=plan)
    env = selection.env or env
    if len(variants) < 2:
        raise RpmsError("name two or more arms, as in: rpms diff-arms D none:arbitration=none")
    contexts = {label: variant.settings() for label, variant in variants.items()}
    found = compare(contexts, env, split, limit, max_steps=steps, seed=seed)
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
