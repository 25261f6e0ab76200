"""``rpms demo``: prints one chosen task step by step, under one condition after the other.

The environment declares the task, the conditions and the model (``Environment.demo``). One task is
no result: the last lines print the rate over many tasks, if the model's card has it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rpms.commands.help_text import OUTPUT, RUN
from rpms.commands.options import (
    EnvOption,
    SetOption,
    option,
    read_set,
    setting_option,
)
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.output import open_console, quantity

if TYPE_CHECKING:
    from rpms.commands.demo_episodes import ShownEpisode
    from rpms.commands.story import Story
    from rpms.envs import Demo, Environment
    from rpms.evals.running.plan import RunPlan

GUARDS = {
    "off": "",
    "verify": "; a guard returns an action that violates a rule to the model, with the reason",
    "offer": "; a guard adds a short list of actions",
    "procedure": "; a guard constrains the reply to a short list of actions",
}


def demo(
    env: EnvOption,
    model: Annotated[
        str,
        option(
            RUN,
            "Run this model, as 'rpms models list' shows it; by default the environment's choice. "
            "'sim' is a planner that takes no time.",
        ),
    ] = "",
    base_url: Annotated[str, setting_option("base_url")] = "",
    set_: SetOption = None,
    conditions: Annotated[
        str,
        option(
            RUN, "Run these conditions, separated by commas; by default the environment's choice."
        ),
    ] = "",
    out: Annotated[
        str,
        option(OUTPUT, "Write the run to the folder demo-ENV in this folder, replacing the last."),
    ] = ("runs"),
    show: Annotated[bool, option(OUTPUT, "Also open the page in a browser.", "--open")] = False,
) -> None:
    """Watch a model on one task: without rules and memory, then with both and a guard.

    In an environment of tools, watch an agent behind the guard; its scripted model breaks rules.
    """
    from rpms.commands.demo_episodes import check_folder, show_episodes, write_demo
    from rpms.commands.story import Story
    from rpms.envs import get_environment
    from rpms.evals.analysis.report import read_report
    from rpms.evals.analysis.report.page import write_page
    from rpms.evals.running.evaluate import check_plan

    world = get_environment(env)
    choice = world.demo
    if choice.planted:
        _show_guarded(world, choice, bool(model or base_url or conditions or set_))
        return
    plan = _plan(world, choice, model, base_url, conditions, read_set(set_ or ()))
    folder = Path(out or "runs") / f"demo-{world.name}"
    check_folder(folder)
    _check_model(plan)
    console = open_console(highlight=False)
    story = Story(console, plan.env)
    _print_head(story, plan)
    with console.status("loading the model"):
        check_plan(plan)
    shown = asyncio.run(show_episodes(console, plan))
    write_demo(folder, plan, shown)
    address = write_page(read_report(folder)).resolve().as_uri()
    _print_end(story, plan, shown, address)
    if show:
        import webbrowser

        webbrowser.open(address)


def _show_guarded(world: Environment, choice: Demo, has_options: bool) -> None:
    from rpms.commands.guarded_story import print_guarded

    if has_options:
        raise RpmsError(
            f"the demo of {world.name} runs a script behind the guard; it takes no --model, "
            "--base-url, --conditions or --set"
        )
    if not print_guarded(open_console(highlight=False), world, choice):
        raise typer.Exit(1)


def _plan(
    world: Environment, choice: Demo, model: str, base_url: str, conditions: str,
    changes: Mapping[str, Any],
) -> RunPlan:  # fmt: skip
    """One task under each condition; replies of the environment's own model have its limit."""
    from rpms.evals.running.plan import make_plan
    from rpms.evals.running.plan_file import condition_names
    from rpms.models.opening import LABELS

    name = model or choice.model
    base = RunContext(
        model=name,
        base_url=base_url,
        max_steps=choice.steps,
        max_tokens=choice.max_tokens if name == choice.model else 0,
        # A language model then reads the beginning of its prompt only once.
        layout="paper" if name in LABELS else "cache_friendly",
    )
    base = base.with_(**changes)
    contexts = [base.under(each) for each in condition_names(conditions) or choice.conditions]
    plan = make_plan(
        world.name, choice.split, {each.name: each for each in contexts}, choice.story + 1
    )
    return replace(plan, tasks=plan.tasks[choice.story :])


def _check_model(plan: RunPlan) -> None:
    """Raise an error about the model before anything is printed; weights are loaded later."""
    from rpms.models.chat import open_chat
    from rpms.models.local import is_local
    from rpms.models.opening import choices

    name = plan.context.model
    needs = {choice.name: choice.missing for choice in choices()}.get(name.partition("?")[0])
    if needs and is_local(name):
        raise RpmsError(
            f"model '{name}' is not ready: {needs}; or watch the planner, which needs nothing: "
            "rpms demo --model sim"
        )
    if not is_local(name):
        open_chat(plan.env, plan.context)


def meaning(context: RunContext) -> str:
    """What the model gets under these settings, in one sentence."""
    if not context.has_blocks:
        prompt = "the prompt has the task, one solved example and the steps so far"
    else:
        parts = ["the state", *["rules"] * context.rules, *["memories"] * context.memory]
        prompt = (
            f"the prompt also has {', '.join(parts[:-1])}{' and ' if parts[1:] else ''}{parts[-1]}"
        )
    return prompt + GUARDS[context.guard]


def _print_head(story: Story, plan: RunPlan) -> None:
    from rpms.models.local import is_local
    from rpms.models.opening import LABELS

    (task,) = plan.tasks
    name = plan.context.model
    model = f"model {name}{', on the processor of this machine' if is_local(name) else ''}"
    where = f"{plan.env} {plan.split}, task {task['index']} (chosen)"
    story.head(task["goal"], f"{where}; {LABELS.get(name, model)}")
    for label, context in plan.conditions.items():
        story.line(label, "dim", meaning(context))
    story.console.print()


def _print_end(
    story: Story, plan: RunPlan, shown: Mapping[str, ShownEpisode], address: str
) -> None:
    """Print what happened, the rate over many tasks, and where every step is."""
    for label, episode in shown.items():
        story.line(label, "bold green" if episode.success else "bold yellow", outcome(episode))
    for text in ["", *_judgement(plan), ""]:
        story.console.print(text, markup=False)
    story.console.print(f"Every step, with its prompt: {address}", markup=False, soft_wrap=True)


def outcome(episode: ShownEpisode) -> str:
    """What happened in an episode, in one line."""
    line, rejected = episode.result.line, len(episode.rejected)
    if episode.success:
        end = f"won after {quantity(line.steps, 'step')}"
    elif episode.stopped:
        end = f"stopped after {quantity(line.steps, 'step')}"
    else:
        score = f", score {line.score:g}" if line.score else ""
        end = f"not won in {quantity(line.steps, 'step')}{score}"
    repeats = f" ({quantity(episode.repeats, 'repeat')})" if episode.repeats else ""
    vetoed = (
        f", {quantity(episode.vetoed, 'proposal')} vetoed by the guard" if episode.vetoed else ""
    )
    return f"{end}; {quantity(rejected, 'action')} rejected{repeats}{vetoed}"


def _judgement(plan: RunPlan) -> Iterator[str]:
    from rpms.models.opening import LABELS
    from rpms.models.weights import results_of

    if plan.context.model in LABELS:
        yield "The planner is not a language model, so this is no evidence for the method."
        return
    yield "This task was chosen to show the mechanisms, so it is no result."
    if results := results_of(plan.context.model):
        rates = [f"{results.won[label]:.0%} under {label}" for label in plan.conditions
                 if label in results.won]  # fmt: skip
        if rates:
            tunings = "this tuning" if results.tunings == 1 else f"{results.tunings} tunings"
            setup = f" ({results.setup})" if results.setup else ""
            yield (
                f"Over {results.tasks} tasks of {results.split}{setup} {tunings} won "
                f"{' and '.join(rates)}."
            )
