"""Loose names: matches a phrase such as ``water in metal pot`` with the name of a thing.

Some worlds number their things (``mug 2``), others describe them: the same pot is ``metal pot``,
``pot in sink`` or ``metal pot containing water``. A match that the words do not decide is left
undecided, because a wrong "no" would discard good advice.

A *phrase* is written by an agent and may be shorter than the name; a *printed* name is written by a
world and may be longer than the name. The two are compared in opposite directions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from rpms.vocabulary.belief import kind_of

Truth = bool | None

# Begins a part that says where a thing is, what it contains or where a door leads.
_TAIL = re.compile(r" (?:in|on|containing|to) | \(")
_WORD = re.compile(r"[^\W\d]+")
# A word after a name that says how old the thing is, not that it is something else.
_AGES = ("egg", "seed", "plant", "tree")
_SMALL_WORDS = {"a", "an", "the", "in", "on", "to", "of", "with", "containing"}


@lru_cache(maxsize=65536)
def bare_name(phrase: str) -> str:
    """The name alone, with its number: ``flower pot 2 containing soil`` -> ``flower pot 2``."""
    return _TAIL.split(phrase.lower(), 1)[0].removeprefix("the ").strip()


@lru_cache(maxsize=65536)
def is_a(phrase: str, kinds: frozenset[str]) -> Truth:
    """Return whether the thing is of one of the kinds: a ``wood cup`` is a ``cup``.

    ``furnace`` may be short for ``blast furnace``: undecided.
    """
    kind = kind_of(bare_name(phrase))
    if kind in kinds or any(kind.endswith(f" {other}") for other in kinds):
        return True
    return None if any(other.endswith(f" {kind}") for other in kinds) else False


@lru_cache(maxsize=65536)
def same_thing(phrase: str, name: str) -> bool:
    """Return whether a phrase can stand for a name: ``apple in bowl`` for ``red apple``."""
    short, full = bare_name(phrase), bare_name(name)
    return short in (full, kind_of(full)) or kind_of(full).endswith(f" {short}")


@lru_cache(maxsize=65536)
def refers_to(phrase: str, thing: str) -> bool:
    """Return whether a phrase may mean a thing: ``liquid tin`` or ``tin in cup`` for ``tin``.

    The container of a thing is not the thing: ``cup containing tin`` does not mean it. In English
    the last word says what a thing is, so a ``tin cup`` is not ``tin``. The name may be followed by
    a label, a description (``with a steel surface``) or a stage of life (``blue jay egg``).
    """
    text, target = bare_name(phrase), bare_name(thing)
    if f" {target}".endswith(f" {text}"):
        return True
    _, match, tail = f" {text} ".partition(f" {target} ")
    next_word, *more = tail.split() or [""]
    return bool(match) and (
        next_word in ("", "with") or (not more and (_labels(next_word) or next_word in _AGES))
    )


def _labels(word: str) -> bool:
    """Return whether a word distinguishes things of one kind: a number or a single letter."""
    return word.isdigit() or len(word) == 1


@lru_cache(maxsize=65536)
def same_kind(name: str, other: str) -> bool:
    """Return whether two names are of one kind: the same words except for plurals and labels.

    Each word counts: ``non-living thing`` is not ``living thing``, ``red-orange paint`` not
    ``orange paint``. ``unknown substance b`` and ``unknown substance c`` are of one kind.
    """
    words, others = _kind_words(name), _kind_words(other)
    return len(words) == len(others) and all(
        word == another or another in _plurals(word) or word in _plurals(another)
        for word, another in zip(words, others, strict=True)
    )


def _kind_words(name: str) -> list[str]:
    words = name.lower().split()
    return [word for word in words if not _labels(word)] or words


def _plurals(word: str) -> tuple[str, ...]:
    """The possible plural forms of a word."""
    if word.endswith(("s", "x", "z", "ch", "sh", "o")):
        return (f"{word}es", f"{word}s")
    if word.endswith("y"):
        return (f"{word[:-1]}ies", f"{word}s")
    if word.endswith(("f", "fe")):
        return (f"{word.removesuffix('e')[:-1]}ves", f"{word}s")
    return (f"{word}s",)


def find_name(phrase: str, names: Iterable[str]) -> str | None:
    """The name that a phrase stands for; None if there is none, or more than one."""
    matches = [name for name in names if same_thing(phrase, name)]
    if phrase in matches:
        return phrase
    return matches[0] if len(matches) == 1 else None


@lru_cache(maxsize=65536)
def same_words(printed: str, name: str) -> bool:
    """Return whether a thing of this name can be printed so: ``red apple`` for the ``apple``.

    Adjectives come first, so both end with the same word: an ``orange wire`` is not an ``orange``.
    Only eggs are printed with a word after the name, and ``bee 3`` without its number.
    """
    longer, shorter = printed.lower().split(), name.lower().split()
    if name[-1:].isdigit() and not printed[-1:].isdigit():
        shorter = shorter[:-1]
    if longer[-1:] == ["egg"] != shorter[-1:]:
        longer = longer[:-1]
    return longer[-1:] == shorter[-1:] and set(shorter) <= set(longer)


def find(names: Iterable[str], name: str) -> str | None:
    """The entry for a thing: its exact name, or a form with more words or fewer."""
    entries = list(names)
    if name in entries:
        return name
    matches = [other for other in entries if same_words(other, name) or same_words(name, other)]
    return matches[0] if matches else None


def words_of(phrases: Iterable[str]) -> set[str]:
    """The words of some names, without articles and prepositions."""
    return {word for phrase in phrases for word in _WORD.findall(phrase.lower())} - _SMALL_WORDS


def replace_names(text: str, names: Mapping[str, str]) -> str:
    """Exchange names in a text, each with or without a number after it."""
    if not names:
        return text
    longest_first = sorted(names, key=len, reverse=True)
    pattern = re.compile(rf"(?<!\w)({'|'.join(map(re.escape, longest_first))})(?!\w)")
    return pattern.sub(lambda match: names[match[1]], text)
