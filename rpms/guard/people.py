"""Asks a person about a call: by an interrupt of the graph, in the form of LangChain's own."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

from langgraph.types import interrupt

from rpms.guard.decision import Judgement
from rpms.vocabulary.calls import Call

LOG = logging.getLogger("rpms.guard")


class PersonDecision(NamedTuple):
    """A person's decision about a call: approved, changed, or neither."""

    approved: bool = False
    arguments: dict[str, Any] | None = None
    why: str = ""


def ask(call: Call, judgement: Judgement) -> PersonDecision:
    """Interrupt the graph until a person has decided; only a clear yes approves.

    The request has the form of LangChain's own for one call. It is answered by ``{"type":
    "approve"}``, ``{"type": "edit", "edited_action": {"name": ..., "args": {...}}}`` or
    ``{"type": "reject", "message": ...}``.
    """
    description = f"{call} is against [{judgement.rule}]: {judgement.reason}."
    question = {
        "type": "tool_approval",
        "name": call.tool,
        "args": dict(call.arguments),
        "description": description,
        "rule": judgement.rule,
        "reason": judgement.reason,
        "allowed_decisions": ["approve", "edit", "reject"],
    }
    try:
        answer = interrupt(question)
    except (RuntimeError, KeyError):  # LangGraph raises these when no graph is running
        return PersonDecision(why="a person has to be asked, and only a graph can do that")
    if isinstance(answer, Mapping) and isinstance(answer.get("decisions"), list):
        answer = answer["decisions"][0] if len(answer["decisions"]) == 1 else {}
    decision = answer if isinstance(answer, Mapping) else {"type": answer}
    edited = decision.get("edited_action")
    if decision.get("type") == "approve":
        return PersonDecision(approved=True)
    if decision.get("type") == "reject":
        message = f": {decision['message']}" if decision.get("message") else ""
        return PersonDecision(why=f"a person was asked and rejected it{message}")
    if decision.get("type") == "edit" and isinstance(edited, Mapping):
        arguments = edited.get("args")
        if edited.get("name", call.tool) == call.tool and isinstance(arguments, Mapping):
            return PersonDecision(arguments=dict(arguments))
    LOG.warning("an answer to %s could not be read: %r", description, answer)
    return PersonDecision(why="a person was asked, and the answer could not be read")
