"""``rpms run``: runs one episode and prints it while it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast

import typer

from rpms.commands.help_text import OUTPUT, RUN
from rpms.commands.options import (
    EnvOption,
    JsonOption,
    PlanOption,
    SplitOption,
    option,
    print_json,
    typed_names,
    with_settings,
)
from rpms.vocabulary.context import TITLES, RunContext, condition_title
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.output import open_console, print_error_place, with_article

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from rpms.nodes.env_step import StepEvent
    from rpms.nodes.state import EpisodeOutput


OUTPUTS = (
    "success", "score", "steps", "invalid_actions", "format_errors", "failure_mode", "error",
    "error_place", "prompt_tokens", "cached_tokens", "output_tokens", "history",
)  # fmt: skip
"""The fields of the result that ``--json`` prints."""


@with_settings()
def run(
    env: EnvOption,
    split: SplitOption = "",
    task: Annotated[
        str, option(RUN, "The task, by its index in the split, its id, or the end of its id.")
    ] = "0",
    condition: Annotated[
        str,
        option(
            RUN,
            f"The condition: {', '.join(map(condition_title, TITLES))}; D+verify is D with a "
            "guard.",
        ),
    ] = "D",
    plan: PlanOption = "",
    *,
    settings: RunContext,
    prompts: Annotated[bool, option(OUTPUT, "Also print every prompt.", "--prompts")] = False,
    memories: Annotated[
        bool, option(OUTPUT, "Also print the outcome of every memory.", "--memories")
    ] = False,
    as_json: JsonOption = False,
    command_line: typer.Context,
) -> None:
    """Run one episode and print each decision."""
    from langchain_core.runnables import RunnableLambda

    from rpms.commands.story import Story
    from rpms.envs import get_environment
    from rpms.evals.running.plan_file import plan_context, plan_tasks
    from rpms.graph.build import build_graph
    from rpms.graph.run import stream_episode
    from rpms.models.opening import LABELS
    from rpms.vocabulary.turn import ERRORS

    names = typed_names(command_line)
    chosen, base = plan_context(plan, settings, names)
    context = base.under(condition)
    typed = {name: value for name, value in (("env", env), ("split", split)) if name in names}
    selection = plan_tasks(plan, chosen, typed)
    env, split = selection.env or env, selection.split or split
    split = split or get_environment(env).splits()[0]
    goal, model = _prepare(env, split, task, context)
    console = open_console(quiet=as_json, highlight=False)
    story = Story(console, env, context, brief=False, memories=memories)
    name = LABELS.get(context.model, context.model)
    story.head(goal, f"{env} {split}, condition {context.name}, model {name}\n")
    show = RunnableLambda(story.print_prompt, name="show_prompt")
    graph = build_graph(after={"prompt_build": show} if prompts else None, model=model)
    result: EpisodeOutput = {}
    for event in stream_episode(task, env=env, split=split, context=context, graph=graph):
        if "turn" in event:
            story.print_step(cast("StepEvent", event))
        else:
            result = event
    story.end(result)
    if as_json:
        head = {"task": result["task_id"], "env": env, "split": split}
        head |= {"condition": result["condition"], "model": context.model}
        print_json({**head, **{name: result.get(name) for name in OUTPUTS}})
    if result["failure_mode"] in ERRORS:
        print_error_place(result["error_place"])
        kind = result["failure_mode"].replace("_", " ")
        raise RpmsError(
            f"the episode ended in {with_article(kind)}: {result['error']}; run it again to retry"
        )


def _prepare(env: str, split: str, task: str, context: RunContext) -> tuple[str, BaseChatModel]:
    """The goal with the task's id, and the model.

    Everything is looked up before the episode starts, so a wrong name or a missing key is an error
    at once and not a failed episode.
    """
    from rpms.envs.manuals import load_manual
    from rpms.envs.registry import find_task
    from rpms.memory_store.methods import check_memory
    from rpms.models.chat import open_chat
    from rpms.prompts.examples import check_prompts

    spec = find_task(env, split, task)
    load_manual(env, context.rules_dir, context.without_rules)
    check_prompts(env, context)
    model = open_chat(env, context)
    check_memory(env, context)
    return f"{spec['goal']}\n({spec['id']})", model
