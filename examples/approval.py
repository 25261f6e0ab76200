"""Human approval: a person approves, edits or rejects every action.

``python examples/approval.py`` asks in the terminal; a web page or a server works the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

import rpms


def approve(state: rpms.EpisodeState) -> Command[Literal["env_step", "llm_call"]]:
    """Wait for ``{"type": "approve"}``, ``"edit"`` with an action or ``"reject"`` with why."""
    answer = interrupt({"action": state["action"], "observation": state["observation"]})
    if answer["type"] == "reject":
        reason = f"That was refused: {answer['message']} Choose another action."
        refusal = [("ai", state["reply"]), ("human", reason)]
        return Command(
            goto="llm_call", update={"action": "", "prompt": [*state["prompt"], *refusal]}
        )
    return Command(goto="env_step", update={"action": answer.get("action", state["action"])})


def play(answer: Callable[[dict[str, str]], dict[str, str]], **options: Any) -> dict[str, Any]:
    """Run an episode that asks ``answer`` about every action; options go to ``build_graph``."""
    graph = rpms.build_graph(before={"env_step": approve}, checkpointer=InMemorySaver(), **options)
    thread: Any = {"configurable": {"thread_id": "approval"}}
    result: dict[str, Any] = graph.invoke({"task": 0}, thread)
    while "__interrupt__" in result:
        question = result["__interrupt__"][0].value
        result = graph.invoke(Command(resume=answer(question)), thread)
    return result


def ask(question: dict[str, str]) -> dict[str, str]:
    """Ask in the terminal."""
    print(f"\n{question['observation']}\nThe agent would: {question['action']}")
    typed = input(
        "Press Enter to approve, type another action, or 'no, REASON' to reject: "
    ).strip()
    if typed.startswith("no,"):
        return {"type": "reject", "message": typed.removeprefix("no,").strip()}
    return {"type": "edit", "action": typed} if typed else {"type": "approve"}


if __name__ == "__main__":
    print(play(ask)["success"])
