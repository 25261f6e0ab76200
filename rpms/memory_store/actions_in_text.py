"""Finds the actions that a free text advises, by the manual's syntax.

People and models write ``put the mug in the cabinet`` for the command ``put mug 1 in/on cabinet
1``. An uncertain match is left out, and so is everything after a negation in its sentence: a text
is never judged for something it does not say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache

from rpms.rules.manual import Manual
from rpms.rules.verdicts import match_action
from rpms.vocabulary.recall import BLANK

_SENTENCE = re.compile(r"[.!?;\n]|->")
_NEGATION = re.compile(
    r"\b(?:not|never|don't|doesn't|didn't|avoid|without|instead of|rather than|cannot|can't|"
    r"refused|failed|no need|unnecessary)\b", re.I,
)  # fmt: skip
_ARTICLE = re.compile(r"\b(?:the|a|an|some|your|this|that|any)\s+", re.I)
# Words that end a name.
_END = (
    "and|or|then|to|in|on|into|onto|at|by|as|so|if|because|before|after|when|while|which|until|"
    "since|where|for|from|with|but|using|first|again|is|are|was|will|may|should|must|can"
)
_WORD = rf"(?!(?:{_END})\b)[\w'-]+"
_SHORT, _LONG = f"{_WORD}(?: {_WORD}){{0,3}}?", f"{_WORD}(?: {_WORD}){{0,3}}"
# Words that stand for the task's object.
_OBJECT_WORDS = {"it", "object", "item", "target", "target object", "thing"}


@lru_cache(maxsize=16384)
def mentioned_actions(
    manual: Manual, text: str, thing: str, destination: str = ""
) -> tuple[str, ...]:
    """The commands in a text, in order; ``thing`` is the goal's object."""
    roles = {"object": thing, "the object": thing, "destination": destination}
    text = re.sub(r"<(\w+)>", r"{\1}", text)
    text = BLANK.sub(lambda blank: roles.get(blank[1], blank[1].removeprefix("a ")), text)
    actions: list[str] = []
    for sentence in _SENTENCE.split(text):
        plain = _ARTICLE.sub("", sentence)
        denied = _NEGATION.search(plain)
        mentions = [
            (match.start(), rule.syntax.format(**_names(match.groupdict(), thing)))
            for rule in manual.actions
            if rule.parameters
            for match in _mention(rule.syntax).finditer(plain)
            if denied is None or match.start() < denied.start()
        ]
        actions += [action for _, action in sorted(mentions)]
    return tuple(dict.fromkeys(action for action in actions if match_action(manual, action)))


def _names(words: Mapping[str, str], thing: str) -> dict[str, str]:
    names = {parameter: text.strip().lower() for parameter, text in words.items()}
    return {p: thing if name in _OBJECT_WORDS and thing else name for p, name in names.items()}


@cache
def _mention(syntax: str) -> re.Pattern[str]:
    """A pattern for the syntax in a sentence: ``in/on`` may be ``in``, ``on`` or ``into``."""
    parts = re.split(r"\{(\w+)\}", syntax)
    pattern = ""
    for number, part in enumerate(parts):
        if number % 2:
            last = not "".join(parts[number + 1 :]).strip()
            pattern += f"(?P<{part}>{_LONG if last else _SHORT})"
        else:
            pattern += " ".join(_spellings(word) for word in part.split(" "))
    return re.compile(rf"\b{pattern}\b", re.I)


def _spellings(word: str) -> str:
    parts = word.split("/")
    if len(parts) == 1:
        return re.escape(word)
    return f"(?:{'|'.join(map(re.escape, (word, *(f'{part}to' for part in parts), *parts)))})"
