"""Loose names: what a phrase such as ``water in metal pot`` refers to, and what is printed of it.

Some worlds number their things (``mug 2``), others describe them: one and the same pot is
``metal pot``, ``pot in sink`` or ``metal pot containing water``. Whatever cannot be told from the
words is left undecided here, because a wrong "no" would throw good advice away.

A *phrase* is what an agent says and may be short for a name; a *printed* name is what a world says
and may be longer than the name. The two are compared the other way round.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from rpms.vocabulary.belief import kind_of

Truth = bool | None

# What follows tells where a thing is, what it contains or where a door leads, not what it is.
_TAIL = re.compile(r" (?:in|on|containing|to) | \(")
_WORD = re.compile(r"[^\W\d]+")
# A word behind a name that says how old the thing is, not that it is something else.
_AGES = ("egg", "seed", "plant", "tree")
_SMALL_WORDS = {"a", "an", "the", "in", "on", "to", "of", "with", "containing"}


@lru_cache(maxsize=65536)
def bare_name(phrase: str) -> str:
    """The thing itself, its number kept: ``flower pot 2 containing soil`` -> ``flower pot 2``."""
    return _TAIL.split(phrase.lower(), 1)[0].removeprefix("the ").strip()


@lru_cache(maxsize=65536)
def is_a(phrase: str, kinds: frozenset[str]) -> Truth:
    """Whether the thing is of one of the kinds: a ``wood cup`` is a ``cup``.

    ``furnace`` may be short for ``blast furnace``: undecided.
    """
    kind = kind_of(bare_name(phrase))
    if kind in kinds or any(kind.endswith(f" {other}") for other in kinds):
        return True
    return None if any(other.endswith(f" {kind}") for other in kinds) else False


@lru_cache(maxsize=65536)
def same_thing(phrase: str, name: str) -> bool:
    """Whether a phrase can stand for a known name: ``apple in bowl`` for ``red apple``."""
    spoken, known = bare_name(phrase), bare_name(name)
    return spoken in (known, kind_of(known)) or kind_of(known).endswith(f" {spoken}")


@lru_cache(maxsize=65536)
def refers_to(phrase: str, thing: str) -> bool:
    """Whether a phrase may mean a thing: ``liquid tin`` or ``tin in cup`` for ``tin``.

    The container of a thing is not the thing: ``cup containing tin`` does not mean it. In English
    the last word says what a thing is, so a ``tin cup`` is no ``tin``. Behind the name may stand a
    label, a description (``with a steel surface``) or the age of what lives (``blue jay egg``).
    """
    spoken, meant = bare_name(phrase), bare_name(thing)
    if f" {meant}".endswith(f" {spoken}"):
        return True
    _, named, behind = f" {spoken} ".partition(f" {meant} ")
    first, *more = behind.split() or [""]
    return bool(named) and (
        first in ("", "with") or (not more and (_labels(first) or first in _AGES))
    )


def _labels(word: str) -> bool:
    """Whether a word tells individuals of one kind apart: a number or a single letter."""
    return word.isdigit() or len(word) == 1


@lru_cache(maxsize=65536)
def same_kind(name: str, other: str) -> bool:
    """Whether two names mean one kind of thing: the same words, a plural or a label aside.

    Each word counts: ``non-living thing`` is no ``living thing``, ``red-orange paint`` no ``orange
    paint``. ``unknown substance b`` and ``unknown substance c`` are two of one kind.
    """
    words, others = _kind_words(name), _kind_words(other)
    return len(words) == len(others) and all(map(_same_word, words, others))


def _kind_words(name: str) -> list[str]:
    words = name.lower().split()
    return [word for word in words if not _labels(word)] or words


def _same_word(word: str, other: str) -> bool:
    return word == other or other in _plurals(word) or word in _plurals(other)


def _plurals(word: str) -> tuple[str, ...]:
    """How a word may be written in the plural."""
    if word.endswith(("s", "x", "z", "ch", "sh", "o")):
        return (f"{word}es", f"{word}s")
    if word.endswith("y"):
        return (f"{word[:-1]}ies", f"{word}s")
    if word.endswith(("f", "fe")):
        return (f"{word.removesuffix('e')[:-1]}ves", f"{word}s")
    return (f"{word}s",)


def find_name(phrase: str, names: Iterable[str]) -> str | None:
    """The known name a phrase stands for; None if there is none, or more than one."""
    fitting = [name for name in names if same_thing(phrase, name)]
    if phrase in fitting:
        return phrase
    return fitting[0] if len(fitting) == 1 else None


@lru_cache(maxsize=65536)
def same_words(printed: str, name: str) -> bool:
    """Whether a thing of this name can be printed so: ``red apple`` for the ``apple``.

    Adjectives come first, so both end alike: an ``orange wire`` is no ``orange``. Only eggs are
    printed with a word behind, and ``bee 3`` is printed without its number.
    """
    longer, shorter = printed.lower().split(), name.lower().split()
    if name[-1:].isdigit() and not printed[-1:].isdigit():
        shorter = shorter[:-1]
    if longer[-1:] == ["egg"] != shorter[-1:]:
        longer = longer[:-1]
    return longer[-1:] == shorter[-1:] and set(shorter) <= set(longer)


def find(names: Iterable[str], name: str) -> str | None:
    """The entry that stands for a thing: exactly, printed with more words, or with fewer."""
    known = list(names)
    if name in known:
        return name
    fitting = [other for other in known if same_words(other, name) or same_words(name, other)]
    return fitting[0] if fitting else None


def words_of(phrases: Iterable[str]) -> set[str]:
    """The telling words of some names."""
    return {word for phrase in phrases for word in _WORD.findall(phrase.lower())} - _SMALL_WORDS
