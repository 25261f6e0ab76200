"""What the planner can make out in a prompt: the task, its own turns, the knowledge blocks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

NEW_TASK = "A new task begins."
REFUSED = "Nothing happens"


class View(NamedTuple):
    """A prompt as the planner understands it.

    Attributes:
        places: names listed in the opening text.
        task: the task sentence.
        turns: (action, observation) pairs since the task began.
        state: the [Current State] lines by label, empty when the block is not there.
        sub_goal: name of the current sub-goal, empty when the block is not there.
        rules: ids of all rules in the prompt.
        likely: kinds of places from the locality rule, likeliest first.
        needs: what the last refused action lacked, from the situation lines.
        snippets: action sequences from past successes.
        avoid: actions that past failures warn about.
        schemas: verbs whose needs a verified schema states.
        whim: which beginner reads it; not part of the prompt.
    """

    places: list[str]
    task: str
    turns: list[tuple[str, str]]
    state: dict[str, str]
    sub_goal: str
    rules: set[str]
    likely: list[str]
    needs: str
    snippets: list[list[str]]
    avoid: list[str]
    schemas: set[str]
    whim: int = 0


def read_prompt(messages: Sequence[tuple[str, str]]) -> View:
    """Read (role, text) messages; only what follows the example is the task at hand."""
    start = max(
        (i for i, (role, text) in enumerate(messages) if role == "human" and NEW_TASK in text),
        default=max((i for i, (role, _) in enumerate(messages) if role == "human"), default=0),
    )
    opening = messages[start][1].rpartition(NEW_TASK)[2]
    turns = []
    for (role, said), (_, seen) in zip(messages[start + 1 :], messages[start + 2 :], strict=False):
        if role == "ai":
            turns.append((said.rpartition("Action:")[2].strip(), _observation(seen)))
    text = opening if start == len(messages) - 1 else f"{opening}\n{messages[-1][1]}"
    room = re.search(r"you see (.+?)\.\s+Your task", opening, re.S)
    task = re.search(r"Your task is to: (.+?)\.?\s*$", opening.strip())
    return View(
        places=names(room[1]) if room else [],
        task=task[1].strip() if task else "",
        turns=turns,
        state=_state(text),
        sub_goal=_first(r"Current sub-goal: (\w+)", text),
        rules=set(re.findall(r"(?:\[|- )([A-Z]+(?:-[A-Z]+)*-\d+)[\]:]", text)),
        likely=_first(r"is usually at: (.+)", text).split(" -> "),
        needs=_first(r"was refused: (.+)", text),
        snippets=[line.split(" -> ") for line in re.findall(r"^  OK: \w+: (.+)$", text, re.M)],
        avoid=re.findall(r"^  AVOID[^:]*: (.+)$", text, re.M),
        schemas=set(re.findall(r"^  SCHEMA: (\w+) ", text, re.M)),
    )


def names(listing: str) -> list[str]:
    """``a mug 2, a mug 1, and a pen 1`` -> names."""
    return re.findall(r"([a-z]+ \d+)", listing)


def kind(name: str) -> str:
    """``mug 2`` -> ``mug``."""
    return name.split(" ")[0]


def _observation(text: str) -> str:
    """The observation is what follows the blocks, where a layout puts them into this message."""
    return text.rpartition("\n\n")[2].strip() if text.startswith("[") else text.strip()


def _state(text: str) -> dict[str, str]:
    block = re.search(r"\[Current State\]\n((?:  .+\n?)+)", text)
    lines = block[1].splitlines() if block else []
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}


def _first(pattern: str, text: str) -> str:
    """The last mention counts: a growing prompt may hold older ones."""
    found = re.findall(pattern, text)
    return str(found[-1]).strip() if found else ""
