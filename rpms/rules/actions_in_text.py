"""Actions that a free text advises, read by the manual's own syntax.

Texts written by people or models say ``put the mug in the cabinet`` where the command is
``put mug 1 in/on cabinet 1``. What cannot be read with certainty is left out: a text is never
judged for something it does not say. So is whatever stands after a negation in its sentence.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cache, lru_cache

from rpms.rules.manual import Manual
from rpms.rules.predicates import evaluate, need
from rpms.rules.semantics import match_action
from rpms.vocabulary.belief import empty_belief, kind_of
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
# Words that stand for what the task asks for.
_MEANT = {"it", "object", "item", "target", "target object", "thing"}
# Preconditions that depend on what things are, not on where the agent is.
_STATIC = {"kind", "can_contain"}


@lru_cache(maxsize=16384)
def mentioned_actions(
    manual: Manual, text: str, thing: str, destination: str = ""
) -> tuple[str, ...]:
    """The commands in a text, in its order; ``thing`` is what the goal is about."""
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
    return {p: thing if name in _MEANT and thing else name for p, name in names.items()}


@cache
def _mention(syntax: str) -> re.Pattern[str]:
    """The syntax as it may stand in a sentence: ``in/on`` is said ``in``, ``on`` or ``into``."""
    parts = re.split(r"\{(\w+)\}", syntax)
    pattern = ""
    for number, part in enumerate(parts):
        if number % 2:
            last = not "".join(parts[number + 1 :]).strip()
            pattern += f"(?P<{part}>{_LONG if last else _SHORT})"
        else:
            pattern += " ".join(_ways(word) for word in part.split(" "))
    return re.compile(rf"\b{pattern}\b", re.I)


def _ways(word: str) -> str:
    ways = word.split("/")
    if len(ways) == 1:
        return re.escape(word)
    return f"(?:{'|'.join(re.escape(way) for way in (word, *(f'{w}to' for w in ways), *ways))})"


def never_works(manual: Manual, action: str, kinds: Collection[str]) -> tuple[str, str]:
    """The rule and the words for why an action can work at no moment; empty where it may.

    Judged by what kind of thing its names are, and only if such things are among ``kinds``.
    """
    matched = match_action(manual, action)
    if matched is None or not all(kind_of(name) in kinds for name in matched[1].values()):
        return "", ""
    rule, names = matched
    for each in rule.needs:
        static = each.name in _STATIC or each.name in manual.facts.affordances
        if static and evaluate(each, empty_belief(), manual.facts, names) is False:
            return rule.id, need(each, names, manual.facts)
    return "", ""
