"""Parse a model's reply, tolerantly, because small models rarely keep to a format.

A reply without a readable action counts as a format error and never raises.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from functools import lru_cache
from typing import Any, NamedTuple

from rpms.envs import get_environment
from rpms.rules import Manual

_LABEL = re.compile(r"^[\s>*_#`-]*action\s*(?:\d+)?\s*[*_`]*\s*[:=]\s*[*_`]*\s*(.*)$", re.I)
_THOUGHT = re.compile(r"^[\s>*_#`-]*(?:thought|think|reasoning)\s*[*_`]*\s*[:=]\s*[*_`]*\s*", re.I)
_STOP = re.compile(r"^[\s>*_#`-]*(?:obs|observation)\s*[*_`]*\s*:", re.I)
_FENCE = re.compile(r"^\s*```\w*\s*$")
# "Thought: ... Action: ..." on one line is as common as on two lines.
_INLINE = re.compile(r"(?<=[\w.,;:!?)\"'])\s+(?=[*_`]*Action\s?\d*\s?[*_`]*:)")
_LIST_MARK = re.compile(r"^\s*(?:\d+[.)]|[-*>])\s+")
_NEXT_LABEL = re.compile(r"\s+(?:action|obs|observation|thought)\s*:", re.I)
_REMARK = re.compile(r"[;\n]|\s->\s|\.\s|,?(?: and)? then |\s\(|\s#")
# Verbs that models use for the commands of any environment, besides those of the manual.
_LOOSE_VERBS = ("go", "goto", "walk", "pick", "grab", "place", "move", "toggle", "turn", "check")
_WRAPPING = " \t`*_\"'[]<>\u201c\u201d\u2018\u2019"


LONGEST_ACTION = 500
"""No environment has a longer command. Parsing time grows with the length of the text, so longer
actions are rejected."""


class Reply(NamedTuple):
    """A parsed reply; an empty action means a format error."""

    thought: str
    action: str


def read_action(text: str, env: str, manual: Manual) -> Reply:
    """Parse a reply; return its action in the environment's canonical wording."""
    thought, action = read_reply(text, _verbs(manual))
    if not action or len(action) > LONGEST_ACTION:
        return Reply(thought, "")
    return Reply(thought, get_environment(env).read_action(action))


@lru_cache(maxsize=64)
def _verbs(manual: Manual) -> frozenset[str]:
    return frozenset(rule.syntax.split()[0] for rule in manual.actions)


def read_reply(text: str, verbs: Collection[str]) -> Reply:
    """Return the thought and the first action of a reply.

    ``verbs`` are the first words of the available actions; a line without an "Action:" label
    counts as an action only if it starts with one of them.

    If a model invents further turns ("Action: ... Obs: ... Action: ..."), only its first action
    counts.
    """
    if (whole := _read_object(text)).action:
        return whole
    # Whitespace is collapsed because a degenerate reply can hold pages of it.
    spread = _INLINE.sub("\n", text).splitlines()
    lines = [" ".join(line.split()) for line in spread if line.strip() and not _FENCE.match(line)]
    since = 0
    for number, line in enumerate(lines):
        if _STOP.match(line):
            if (early := _unlabelled(lines[since:number], verbs)).action:
                return early
            since = number + 1
        if label := _LABEL.match(line):
            action = _clean(label[1])
            if not action and number + 1 < len(lines) and not _labelled(lines[number + 1]):
                action = _clean(lines[number + 1])
            if action:
                return Reply(_thought(lines[:number]), action)
    return _unlabelled(lines, verbs)


def _read_object(text: str) -> Reply:
    """Parse a reply that is one JSON object, as from servers that constrain it to a schema."""
    lines = [line for line in text.strip().splitlines() if not _FENCE.match(line)]
    bare = "\n".join(lines).strip()
    if not (bare.startswith("{") and bare.endswith("}")):
        return Reply("", "")
    try:
        fields: dict[str, Any] = json.loads(bare)
    except (ValueError, RecursionError):
        return Reply("", "")
    texts = {str(key).lower(): value for key, value in fields.items() if isinstance(value, str)}
    thought = " ".join(texts.get("thought", "").split())
    return Reply(thought, _clean(" ".join(texts.get("action", "").split())))


def _labelled(line: str) -> bool:
    return any(label.match(line) for label in (_LABEL, _THOUGHT, _STOP))


def _unlabelled(lines: list[str], verbs: Collection[str]) -> Reply:
    """Find a bare command in a reply without an "Action:" line, a common slip of small models.

    Reasoning comes before the command, so the last commands count; of a list, the first.
    """
    chosen = len(lines)
    action = ""
    for number in range(len(lines) - 1, -1, -1):
        line = "" if _labelled(lines[number]) else _clean(lines[number])
        words = line.lower().split()
        if words and (words[0] in verbs or words[0] in _LOOSE_VERBS) and len(words) <= 8:
            chosen, action = number, line
        elif action:
            break
    return Reply(_thought(lines[:chosen]), action)


def _thought(lines: list[str]) -> str:
    text = " ".join(_THOUGHT.sub("", line).strip() for line in lines)
    return " ".join(text.split())


def _clean(text: str) -> str:
    """Strip markdown, quotes, list marks and trailing remarks from an action."""
    action = _LIST_MARK.sub("", text).strip(_WRAPPING)
    action = _NEXT_LABEL.split(action, maxsplit=1)[0]
    action = _REMARK.split(action, maxsplit=1)[0]
    return action.strip(_WRAPPING).rstrip(".!,").strip(_WRAPPING)
