"""What the planner makes out in a prompt of the science house."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from rpms.models.sim.reading import NEW_TASK
from rpms.models.sim.science_scene import MENU

_OPENING = re.compile(r"This (?:room|outside location) is called ")
_TASK = re.compile(r"^Your task is to (.+)$", re.M)
_RULE = re.compile(r"^\s*(?:- |\[)?([A-Z]\d?(?:-[A-Z]+)*-\d+)[\]:]\s*(.*)$", re.M)
_MENU_OPENS = "Ambiguous request"


class ScienceView(NamedTuple):
    """A prompt as the planner understands it.

    Attributes:
        task: the task sentence, without its opening words.
        turns: (action, answer) pairs; the first is the opening look.
        state: the [Current State] lines by label, empty when the block is not there.
        objective: the [Current Objective], empty when the block is not there.
        rules: the texts of all rules in the prompt by id.
        snippets: action sequences from past successes.
        avoid: actions that past failures warn about; the critical ones have True.
        menu: numbered choices that wait for an answer.
        whim: which beginner reads it; not part of the prompt.
    """

    task: str
    turns: list[tuple[str, str]]
    state: dict[str, str]
    objective: str
    rules: dict[str, str]
    snippets: list[list[str]]
    avoid: dict[str, bool]
    menu: list[tuple[str, str]]
    whim: int = 0


def is_science(messages: Sequence[tuple[str, str]]) -> bool:
    """The openings of the two worlds differ; all else could be in either."""
    return any(_OPENING.search(text) and _TASK.search(text) for _, text in messages)


def read_science(messages: Sequence[tuple[str, str]], whim: int = 0) -> ScienceView:
    """Read (role, text) messages; only what follows the example is the task at hand."""
    humans = [i for i, (role, _) in enumerate(messages) if role == "human"]
    start = max((i for i in humans if NEW_TASK in messages[i][1]), default=0)
    if start == 0 and humans and NEW_TASK not in messages[humans[0]][1]:
        start = humans[0]
    opening = messages[start][1].rpartition(NEW_TASK)[2] if messages else ""
    turns = [("look around", _answer(opening))]
    for (role, said), (_, seen) in zip(messages[start + 1 :], messages[start + 2 :], strict=False):
        if role == "ai":
            turns.append((" ".join(said.rpartition("Action:")[2].split()), _answer(seen)))
    text = opening if start >= len(messages) - 1 else f"{opening}\n{messages[-1][1]}"
    tasks = _TASK.findall(opening)
    last = turns[-1][1]
    return ScienceView(
        task=tasks[-1].strip() if tasks else "",
        turns=turns,
        state=_state(text),
        objective=_last(re.findall(r"^\[Current Objective\] (.+)$", text, re.M)),
        rules=dict(_RULE.findall(text)),
        snippets=[line.split(" -> ") for line in re.findall(r"^  OK: [^:]+: (.+)$", text, re.M)],
        avoid={
            action.strip(): bool(critical)
            for critical, action in re.findall(r"^  AVOID( \[CRITICAL\])?: (.+)$", text, re.M)
        },
        menu=MENU.findall(last) if last.startswith(_MENU_OPENS) else [],
        whim=whim,
    )


def _answer(text: str) -> str:
    """What the world said: in one layout knowledge blocks stand before it."""
    text = text.strip("\n")
    if found := list(_OPENING.finditer(text)):
        return text[found[-1].start() :]
    return text.rpartition("\n\n")[2] if text.startswith("[") else text


def _state(text: str) -> dict[str, str]:
    """The labelled values; the first line of the block holds three of them."""
    blocks = re.findall(r"\[Current State\]\n((?: {2}.+\n?)+)", text)
    found: dict[str, str] = {}
    for line in blocks[-1].splitlines() if blocks else []:
        for part in re.split(r" {2,}(?=[A-Z][a-z]+: )", line.strip()):
            label, _, value = part.partition(":")
            found[label.strip()] = value.strip()
    return found


def _last(found: list[str]) -> str:
    return found[-1].strip() if found else ""
