"""The reply format as a grammar: what a server may hold a model's words to.

Built from action syntaxes such as ``take {object} from {place}``, which are data: this file
knows no world. The grammar fixes the form of a reply, never which thing is named in it; a model
can still name what is not there, and that is the agent's mistake to make.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

LONGEST_THOUGHT = 240
LONGEST_WORD = 20
LONGEST_NUMBER = 3
"""A small model that falls into repeating one digit must come to an end."""
MOST_WORDS = 8
"""``metal pot containing water in kitchen`` has six."""
# Printable ASCII without the colon: no thought can look like an "Action:" label. Without the
# quotation mark, the backslash and square brackets no form of it needs escaping.
_THOUGHT = "[ !#-9;-Z^-~]"
_LETTERS = f"[a-zA-Z]{{1,{LONGEST_WORD}}}"
_NUMBER = f"[0-9]{{1,{LONGEST_NUMBER}}}"
_BLANK = re.compile(r"\{\w+\}")


def reply_gbnf(syntaxes: Sequence[str]) -> str:
    """A GBNF grammar (llama.cpp, vLLM): an optional thought, then one action."""
    actions = " |\n  ".join(" ".join(_gbnf_parts(syntax)) for syntax in syntaxes)
    return "\n".join(
        (
            'root ::= ("Thought: " thought "\\n")? "Action: " action',
            f"thought ::= {_THOUGHT}{{1,{LONGEST_THOUGHT}}}",
            f"action ::= {actions}",
            f'name ::= word (" " word){{0,{MOST_WORDS - 1}}}',
            f'word ::= {_LETTERS} ("-" {_LETTERS})? | {_NUMBER}',
            "",
        )
    )


def reply_schema(syntaxes: Sequence[str]) -> dict[str, Any]:
    """The same for servers that take a JSON schema: ``{"thought": ..., "action": ...}``."""
    thought = f"^{_THOUGHT}{{0,{LONGEST_THOUGHT}}}$"
    return {
        "type": "object",
        "properties": {
            "thought": {"type": "string", "pattern": thought},
            "action": {"type": "string", "pattern": f"^({_actions(syntaxes)})$"},
        },
        "required": ["thought", "action"],
        "additionalProperties": False,
    }


def fits(text: str, syntaxes: Sequence[str]) -> bool:
    """Whether a reply keeps to the format, in words or as JSON."""
    return bool(_reply(tuple(syntaxes)).fullmatch(text.strip())) or _fits_json(text, syntaxes)


def _fits_json(text: str, syntaxes: Sequence[str]) -> bool:
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return False
    action = said.get("action") if isinstance(said, Mapping) else None
    return isinstance(action, str) and bool(re.fullmatch(_actions(syntaxes), action))


@lru_cache(maxsize=8)
def _reply(syntaxes: tuple[str, ...]) -> re.Pattern[str]:
    thought = f"(?:Thought: {_THOUGHT}{{1,{LONGEST_THOUGHT}}}\n)?"
    return re.compile(f"{thought}Action: (?:{_actions(syntaxes)})")


def _actions(syntaxes: Sequence[str]) -> str:
    """All actions as one regular expression, in the subset that JSON schemas may use."""
    word = f"({_LETTERS}(-{_LETTERS})?|{_NUMBER})"
    name = f"{word}( {word}){{0,{MOST_WORDS - 1}}}"
    return "|".join(
        name.join(re.escape(part).replace("\\ ", " ") for part in _BLANK.split(syntax))
        for syntax in syntaxes
    )


def _gbnf_parts(syntax: str) -> list[str]:
    fixed = [json.dumps(part) if part else "" for part in _BLANK.split(syntax)]
    parts = [fixed[0]]
    for part in fixed[1:]:
        parts += ["name", part]
    return [part for part in parts if part]
