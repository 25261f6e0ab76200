"""``rpms run``: runs one episode and prints it while it runs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from rpms.commands.generation import YesOption
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
from rpms.vocabulary.output import open_console, print_error_place, quantity, with_article

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from rich.console import Console

    from rpms.graph.run import StepEvent
    from rpms.nodes.state import EpisodeOutput, EpisodeState


OUTPUTS = (
    "success", "score", "steps", "invalid_actions", "format_errors", "failure_mode", "error",
    "error_place", "prompt_tokens", "cached_tokens", "output_tokens", "history",
)  # fmt: skip
"""The fields of the result that ``--json`` prints."""


def escape(text: str) -> str:
    """Escape Rich's markup; imported here, because ``--help`` needs no Rich."""
    from rich.markup import escape

    return escape(text)


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
    yes: YesOption = False,
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

    from rpms.evals.running.plan_file import plan_context, plan_tasks
    from rpms.graph.build import build_graph
    from rpms.graph.run import stream_episode
    from rpms.vocabulary.turn import ERRORS

    names = typed_names(command_line)
    chosen, base = plan_context(plan, settings, names)
    context = base.under(condition)
    typed = {name: value for name, value in (("env", env), ("split", split)) if name in names}
    selection = plan_tasks(plan, chosen, typed)
    env, split = selection.env or env, selection.split or split
    console = open_console(quiet=as_json, highlight=False)
    split, model = _prepare(console, env, split, task, context)
    show = RunnableLambda(partial(_print_prompt, console), name="show_prompt")
    graph = build_graph(after={"prompt_build": show} if prompts else None, model=model)
    result: EpisodeOutput = {}
    for event in stream_episode(task, env=env, split=split, context=context, graph=graph):
        if "turn" in event:
            _print_step(console, env, cast("StepEvent", event))
            if memories:
                _print_memories(console, cast("StepEvent", event))
        else:
            result = event
    _print_end(console, result)
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


def _prepare(
    console: Console, env: str, split: str, task: str, context: RunContext
) -> tuple[str, BaseChatModel]:
    """The split and the model of an episode.

    Everything is looked up before the episode starts, so a wrong name or a missing key is an error
    at once and not a failed episode.
    """
    from rpms.envs import get_environment
    from rpms.envs.manuals import load_manual
    from rpms.memory_store.methods import check_memory
    from rpms.models.chat import open_chat
    from rpms.models.opening import LABELS
    from rpms.nodes.reset_env import find_task
    from rpms.prompts.examples import check_prompts

    split = split or get_environment(env).splits()[0]
    spec = find_task(env, split, task)
    load_manual(env, context.rules_dir, context.without_rules)
    check_prompts(env, context)
    model = open_chat(env, context)
    check_memory(env, context)
    name = LABELS.get(context.model, context.model)
    console.print(f"[bold]{escape(spec['goal'])}[/]\n({escape(spec['id'])})")
    console.print(f"[dim]{env} {split}, condition {context.name}, model {escape(name)}[/]\n")
    return split, model


def _print_step(console: Console, env: str, event: StepEvent) -> None:
    from rpms.envs import get_environment

    turn, belief = event["turn"], event["belief"]
    counts = f"{quantity(event['rules'], 'rule')}, {quantity(event['memories'], 'memory')}"
    if event["dropped"]:
        counts += f" ({event['dropped']} dropped)"
    where, step = get_environment(env).whereabouts(belief), event["sub_goal"]
    pointer = f"{step['name']} {step['progress']}%; " if step["name"] else ""
    console.print(f"[dim]{turn['step']:>3}  {where}{pointer}{counts}[/]")
    if turn["thought"]:
        console.print(f"     [italic]{escape(turn['thought'])}[/]")
    for decision in event["decisions"]:
        if decision["verdict"] != "accepted":
            rule = f" [{decision['rule']}]" if decision["rule"] else ""
            proposal = decision["proposal"] or "(no action could be read)"
            repair = f"; {decision['repair']}" if decision["repair"] else ""
            verdict = f"{proposal}: {decision['verdict']}{rule}, {decision['reason']}{repair}"
            console.print(f"     [yellow]{escape(verdict)}[/]")
    action = turn["action"] or "(no action could be read)"
    console.print(f"     [bold cyan]> {escape(action)}[/]")
    style = "red" if turn["failed"] else "green"
    console.print(f"     [{style}]{escape(turn['observation'])}[/]\n")


def _print_memories(console: Console, event: StepEvent) -> None:
    """Print every candidate with its score and its outcome: shown, warned or dropped, and why."""
    from rpms.vocabulary.recall import NOTE

    for recall in event["recalls"]:
        kind, advises = recall["entry"]["type"], recall["advice"]
        advice = " -> ".join(advises["printed"]) or "; ".join(advises["places"])
        if kind == NOTE:
            kind, advice = recall["entry"]["kind"], recall["entry"]["text"].partition("\n")[0]
        text = escape(f"{kind} {recall['score']:.2f} {advice}")
        rule = f" by {recall['rule']}" if recall["rule"] else ""
        if recall["dropped_by"]:
            outcome = f"[red]{recall['dropped_by']}{rule}: {escape(recall['reason'])}[/]"
        elif recall["warning"]:
            outcome = f"[yellow]warned{rule}: {escape(recall['warning'])}[/]"
        else:
            outcome = "[green]shown[/]"
        console.print(f"     {text}\n       {outcome}")
    if truncated := event["truncated"]:
        counts = ", ".join(f"{count} {outcome}" for outcome, count in truncated.items())
        console.print(f"     and {sum(truncated.values())} more: {counts}")


def _print_end(console: Console, result: EpisodeOutput) -> None:
    verdict = (
        "[bold green]success[/]"
        if result["success"]
        else f"[bold red]failed: {result['failure_mode']}[/] {escape(result['error'])}"
    )
    console.print(
        f"{verdict} after {quantity(result['steps'], 'step')}, score {result['score']:g}, "
        f"{result['invalid_actions']} rejected, {result['prompt_tokens']} prompt tokens"
    )


def _print_prompt(console: Console, state: EpisodeState) -> None:
    """A node that the graph runs after ``prompt_build``."""
    from langchain_core.messages import convert_to_openai_messages

    for message in cast(Any, convert_to_openai_messages(state["prompt"])):
        console.print(f"[dim]--- {message['role']}[/]")
        console.print(escape(message["content"]))
