"""Prints the work of an agent with tools behind the guard, for ``rpms demo``.

The agent is LangChain's and its tools are the simulator's. Its model is scripted: it follows the
manual's procedure, except for a few planted calls against the rules.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage

from rpms.commands.story import Story
from rpms.envs import Demo, Environment, Planted
from rpms.envs.manuals import load_manual
from rpms.envs.registry import find_task
from rpms.graph import run_episode
from rpms.guard import Call, RulesGuard
from rpms.guard.conversation import DECISION
from rpms.guard.tools import arguments_of
from rpms.rules import match_action
from rpms.vocabulary.context import RunContext

if TYPE_CHECKING:
    from rich.console import Console

READ_AS: dict[str, Callable[[str], Any]] = {"number": float, "integer": int, "object": json.loads}


class StoryModel(GenericFakeChatModel):
    """A chat model with scripted replies."""

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        """Return the model itself, because the script already has the calls."""
        return self


def print_guarded(console: Console, world: Environment, choice: Demo) -> bool:
    """Run and print the scripted agent on the demo's task; return True if it was solved."""
    game, task = world.open_game(), find_task(world.name, choice.split, str(choice.story))
    first = game.reset(task)
    tools, guard = game.tools(), RulesGuard(world)
    script = [*planted(plan(world, choice, tools), choice.planted)]
    replies = [
        AIMessage("", tool_calls=[{"name": call.tool, "args": dict(call.arguments), "id": str(n)}])
        for n, call in enumerate(script)
    ]
    model = StoryModel(messages=iter([*replies, AIMessage("The work is done.")]))
    agent: Any = create_agent(model, tools, middleware=[guard])
    story, stopped = Story(console, world.name), 0
    story.head(
        first,
        f"{world.name}; a LangChain agent with {len(tools)} tools behind the guard. Its model is a "
        f"script: the manual's procedure with {len(choice.planted)} planted calls against the "
        "rules.\n",
    )
    options: Any = {"recursion_limit": 10 * len(script) + 20}
    request = {"messages": [("user", first)]}
    for part in agent.stream(request, options, stream_mode="updates"):
        for message in (part.get("tools") or {}).get("messages", []):
            stopped += _print_call(story, message, guard)
    solved = game.won()
    story.line("solved" if solved else "not solved", "bold green" if solved else "bold red",
               "according to the simulator")  # fmt: skip
    story.line("stopped", "bold yellow", f"{stopped} calls against the rules")
    return solved


def _print_call(story: Story, message: ToolMessage, guard: RulesGuard) -> bool:
    """Print one call and its answer; return True if the guard stopped it."""
    decision = message.response_metadata[DECISION]
    call, rule = str(Call(**decision["call"])), decision["rule"]
    if decision["ran"]:
        story.acted(call, message.text)
    else:
        story.vetoed(call, rule, decision["reason"], guard.source(rule))
    return not decision["ran"]


def plan(world: Environment, choice: Demo, tools: Sequence[Any]) -> list[Call]:
    """The calls by which the manual's procedure solves the task."""
    context = RunContext(model="first", max_steps=choice.steps).under("E")
    result = run_episode(choice.story, env=world.name, split=choice.split, context=context)
    manual = load_manual(world.name)
    schemas = {tool.name: arguments_of(tool) for tool in tools}
    calls = []
    for turn in result["history"]:
        if matched := match_action(manual, turn["action"]):
            rule, names = matched
            texts = {name: names[parameter] for name, parameter in rule.called.items()}
            calls.append(Call(rule.name, _typed(texts, schemas[rule.name])))
    return calls


def _typed(texts: Mapping[str, str], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the texts of an action to the argument types of the tool."""
    return {name: READ_AS.get(schema[name].get("type"), str)(text) for name, text in texts.items()}


def planted(calls: Sequence[Call], violations: Sequence[Planted]) -> Iterator[Call]:
    """The plan with the planted calls; the first of them comes twice, as if the model insisted."""
    by_tool = {call.tool: call for call in calls}
    pending = list(violations)
    for call in calls:
        for violation in [each for each in pending if each.before == call.tool]:
            pending.remove(violation)
            copied = by_tool[violation.tool].arguments if violation.tool in by_tool else {}
            forbidden = Call(violation.tool, {**copied, **violation.arguments})
            yield from [forbidden] * (2 if violation is violations[0] else 1)
        yield call
