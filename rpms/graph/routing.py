"""Conditional edges: a stage that is switched off is not visited.

Edges read the state alone, where the settings of the run are kept: a person may then take an
episode up at any stage, e.g. in Studio, and LangGraph can say where it goes from there. They name
the few keys they read, so that LangGraph need not collect the others. The ``Literal`` return types
are what it draws, so the picture of the graph shows every way through it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Literal, get_args, get_type_hints

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.graph._branch import BranchSpec
from langgraph.pregel._read import ChannelRead
from typing_extensions import TypedDict

from rpms.nodes.context import RunContext
from rpms.nodes.state import Decisions, follow

USUAL = RunContext().plain


class Toggles(TypedDict, total=False):
    """What decides which stages are visited."""

    settings: dict[str, Any]


class Ended(TypedDict, total=False):
    """What decides whether there is a next stage."""

    done: bool


class Answered(TypedDict, total=False):
    """What decides what is done with a reply."""

    settings: dict[str, Any]
    done: bool


class Judged(TypedDict, total=False):
    """What decides whether the model is asked again."""

    decisions: Decisions


def after_reset(state: Ended) -> Literal["belief_update", "__end__"]:
    """A world that does not start ends the episode as an infrastructure error."""
    return "__end__" if state["done"] else "belief_update"


def after_belief(state: Toggles) -> Literal["rule_assembly", "goal_retrieval", "prompt_build"]:
    """Rules first, then memory, or straight to the prompt for the baseline."""
    return "rule_assembly" if _settings(state)["rules"] else after_rules(state)


def after_rules(state: Toggles) -> Literal["goal_retrieval", "prompt_build"]:
    """Rules-only skips every memory stage."""
    return "goal_retrieval" if _settings(state)["memory"] else "prompt_build"


def after_retrieval(state: Toggles) -> Literal["scf", "arbitration", "prompt_build"]:
    """SCF unless it is off; then whatever follows it."""
    return "scf" if _settings(state)["scf"] != "off" else after_scf(state)


def after_scf(state: Toggles) -> Literal["arbitration", "prompt_build"]:
    """Arbitration needs rules to arbitrate with: with rules off nothing is arbitrated."""
    on = _settings(state)["rules"] and _settings(state)["arbitration"] != "none"
    return "arbitration" if on else "prompt_build"


def after_llm(state: Answered) -> Literal["action_arbitration", "env_step", "__end__"]:
    """With the guard off the action is played as it is; a stage of one's own may end it here."""
    if state["done"]:
        return "__end__"
    settings = state.get("settings") or USUAL
    return "env_step" if settings["guard"] == "off" else "action_arbitration"


def after_action(state: Judged) -> Literal["llm_call", "env_step"]:
    """A vetoed action goes back to the model, as often as the stage before decides."""
    return "llm_call" if state["decisions"][-1]["verdict"] == "asked_again" else "env_step"


def after_step(state: Ended) -> Literal["belief_update", "__end__"]:
    """Next decision, or the end of the episode."""
    return "__end__" if state["done"] else "belief_update"


def _settings(state: Toggles) -> dict[str, Any]:
    return state.get("settings") or USUAL


class Route(Runnable[Any, str]):
    """A conditional edge that is decided in place; LangGraph would hand it to a thread.

    Within a graph it is given the stage's update (see ``Edge``); the rest of what it reads is
    still as it was before the stage.
    """

    name: str

    def __init__(self, decide: Callable[[Any], str]) -> None:
        """LangGraph reads from the annotations what the edge reads and where it may lead."""
        update_wrapper(self, decide)
        self._decide = decide
        self.name = decide.__name__
        hints = get_type_hints(decide)
        self.ends: list[str] = list(get_args(hints["return"]))
        self.reads: list[str] = list(hints["state"].__annotations__)

    def __call__(self, state: Any) -> str:
        """Where to go."""
        return self._decide(state)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> str:
        """Where to go after a stage that returned ``input``."""
        return self._decide(self._seen(input, config or {}))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> str:
        """Where to go after a stage that returned ``input``."""
        return self._decide(self._seen(input, config or {}))

    def _seen(self, update: Any, config: RunnableConfig) -> dict[str, Any]:
        """What the edge reads, as the stage leaves it."""
        plain = isinstance(update, dict)  # a stage of one's own may return a Command
        state: dict[str, Any] = ChannelRead.do_read(config, select=self.reads, fresh=not plain)
        if plain:
            follow(state, {key: update[key] for key in self.reads if key in update})
        return state


class Edge(BranchSpec):
    """LangGraph's conditional edge, but for how it sees what the stage wrote.

    LangGraph copies every channel of the state, some fifty, for the one or two that an edge reads.
    """

    def run(self, writer: Any, reader: Any = None) -> Any:
        """What follows the stage; ``Route`` reads for itself."""
        return super().run(writer, None)


ROUTES: dict[str, Route] = {
    "reset_env": Route(after_reset),
    "belief_update": Route(after_belief),
    "rule_assembly": Route(after_rules),
    "goal_retrieval": Route(after_retrieval),
    "scf": Route(after_scf),
    "llm_call": Route(after_llm),
    "action_arbitration": Route(after_action),
    "env_step": Route(after_step),
}
"""Where it goes on after each stage that has more than one way out."""
