"""One reader for any prompt: its messages as text -> what is printed in them.

It knows how our prompts are laid out (a list of actions, a worked example, bracketed blocks) and
plain English, but none of the words of a world. What is not printed is empty.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

NEW_TASK = "A new task begins."
_TASK = re.compile(r"Your task is to:?\s*(.+)", re.S)
_BLANK = re.compile(r"\{[^{}\n]+\}|<\w+>")
_EDGE = re.compile(r"[,.:;()\n\t]|\b(?:and|is|are|you see|containing|called|which|that)\b", re.I)
_ARTICLE = re.compile(r"^(?:\W*\b(?:a|an|the|on|in|to|you)\b)+ *", re.I)
_NEEDS = re.compile(r"^(?:\W*[A-Z][\w-]*\W+)?([a-z][^|\n]*?) *\| *needs: ([^|\n]+)", re.M)
_SMALL = re.compile(
    "a|an|n|the|some|any|it|them|this|that|one|two|three|first|then|next|and|or|but|if|to|in|on|"
    "into|of|at|by|for|from|with|under|near|around|above|below|is|are|be|will|which|when|than|"
    "your|you|task|find|get|bring|place|located|using|not|no|also", re.I,
)  # fmt: skip
Turn = tuple[str, str]  # what was done, what was seen then


class Template(NamedTuple):
    """A printed action such as ``do {this} with {that}``, and how to read one back."""

    text: str
    verb: str
    blanks: list[str]
    pattern: re.Pattern[str]

    def fill(self, names: Sequence[str]) -> str:
        """The action with these names in its blanks."""
        left = iter(names)
        return _BLANK.sub(lambda blank: next(left, blank[0]), self.text)


class Prompt:
    """A prompt as understood."""

    def __init__(self, messages: Sequence[tuple[str, str]]) -> None:
        """Read (role, text) messages; what stands before the mark is the example."""
        system = "\n".join(text for role, text in messages if role == "system")
        talk = [(role, text) for role, text in messages if role != "system"] or [("human", "")]
        start = max((i for i, (_, text) in enumerate(talk) if NEW_TASK in text), default=0)
        before, _, after = talk[start][1].rpartition(NEW_TASK)
        newest = talk[-1][1] if talk[start + 1 :] else ""
        example = [*talk[:start], ("human", before)] if start else [("human", "")]
        self.example_opening, self.example_task, self.example = _story(example)
        self.opening, self.task, self.turns = _story([("human", after), *talk[start + 1 :]])
        actions = re.findall(r"^[ \t]*(?:\d+[.)]|[-*]) (.+)$", system, re.M)
        self.templates = [template(text) for text in actions]
        self.refusal = _last(r'the answer is "(.+?)\.?"', system) or "?"
        self.text = text = "\n".join(_parts(after, True) + _parts(newest, True))
        state = _last(r"^\[.*\bState\]\n((?:  .*\n?)+)", text)
        self.state = dict(re.findall(r"(?:^|  )([A-Z][a-z ]+): (.*?)(?=  |$)", state, re.M))
        self.objective = _last(r"(?:Current sub-goal: |Current Objective\] )(.+)", text)
        self.needs = [(template(act), needs.split(";")) for act, needs in _NEEDS.findall(text)]
        self.diagnosis = _last(r"was refused: (.+?)\.?$", text)
        if vetoed := re.match(r"Not played[^:]*: (.+)\. Choose another", newest):
            self.diagnosis = vetoed[1].partition(" needs: ")[2] or vetoed[1]
        # Of a past success: its label, its actions, and whether there is a warning.
        self.advice = re.findall(r"^[ \t]*OK: ([^:\n]+): (.+)$(\n\s+WARNING)?", text, re.M)
        self.avoid = re.findall(r"^[ \t]*AVOID[^:\n]*: (.+)$", text, re.M)
        self.offered = re.findall(r"^[ \t]+\d+\. (.+?) \(.*\)$", text, re.M)

    def read(self, action: str) -> tuple[Template | None, list[str]]:
        """Which printed action this is, and of what; the longest wording fits best."""
        fits = [(t, match) for t in self.templates if (match := t.pattern.match(action))]
        found, match = max(fits, key=lambda fit: len(fit[0].verb), default=(None, None))
        return found, [name.strip() for name in match.groups()] if match else []

    def refused(self, turn: Turn) -> bool:
        """Whether the world said no, in the words of the system message, or the rules did."""
        return turn[1].startswith((self.refusal, "Not played"))

    def label(self, *stems: str) -> list[str]:
        """The names in the state line whose label begins like this."""
        found = (v for k, v in self.state.items() if k.lower().startswith(stems))
        return [name for name in names(next(found, "")) if name != "nothing"]


@lru_cache(maxsize=256)
def template(text: str) -> Template:
    """The pattern's groups are the names in the blanks."""
    parts = _BLANK.split(text.strip())
    pattern = re.compile("(.+)".join(map(re.escape, parts)) + "$", re.I)
    return Template(text.strip(), parts[0].strip(), _BLANK.findall(text), pattern)


def names(text: str) -> list[str]:
    """``a whatsit 2, the big whatsit (containing nothing)`` -> what may be names of things."""
    found = (_ARTICLE.sub("", part.strip()) for part in _EDGE.split(text))
    return list(dict.fromkeys(name for name in found if 0 < len(name.split()) < 6))


def phrases(sentence: str, templates: Sequence[Template]) -> list[str]:
    """What a task sentence names, in its order: the words between little words and verbs."""
    verbs = {t.verb.split()[0] for t in templates if t.verb}
    kept = [
        "|" if not word.isalpha() or _SMALL.fullmatch(word) or word.lower() in verbs else word
        for word in re.findall(r"[A-Za-z]\w*|\S", sentence)
    ]
    return list(dict.fromkeys(filter(None, map(str.strip, " ".join(kept).split("|")))))


def alike(name: str, wanted: str) -> bool:
    """One name says what the other says, perhaps in fewer words: ``whatsit 2``, ``big whatsit``."""
    one, other = kind(name).split(), kind(wanted).split()
    same = bool(one and other) and one[-1] == other[-1]
    return same and (set(one) <= set(other) or set(other) <= set(one))


def kind(name: str) -> str:
    """``whatsit 2`` -> ``whatsit``."""
    return re.sub(r"\s+\d+$", "", name.strip().lower())


def _story(talk: Sequence[tuple[str, str]]) -> tuple[str, str, list[Turn]]:
    """The opening, the task sentence, and what was done about it."""
    read = [(role, "\n".join(_parts(text, block=False))) for role, text in talk]
    pairs = pairwise(read[1:])
    turns = [(a.rpartition("Action:")[2].strip(), b) for (who, a), (_, b) in pairs if who == "ai"]
    opening, _, _ = read[0][1].partition("Your task is to")
    return opening, (_TASK.findall(read[0][1]) or [""])[0].strip(), turns


def _parts(text: str, block: bool) -> list[str]:
    """The paragraphs of a message that are blocks, or those that are not."""
    return [p.strip("\n") for p in text.split("\n\n") if p.lstrip().startswith("[") == block]


def _last(pattern: str, text: str) -> str:
    """The last mention counts: a growing prompt may hold older ones."""
    found = re.findall(pattern, text, re.M)
    return str(found[-1]).strip() if found else ""
