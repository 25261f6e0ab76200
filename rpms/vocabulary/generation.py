"""Scenes that a split generates on request: a command line shows their progress."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class NewScenes(NamedTuple):
    """The number of scenes to generate, their name in the plural, and their folder."""

    number: int
    noun: str
    folder: Path


# Enters before the first scene; the result is called after each.
Watch = Callable[[NewScenes], AbstractContextManager[Callable[[], None]]]

_watch: Watch | None = None


@contextmanager
def watching(watch: Watch) -> Iterator[None]:
    """Let ``watch`` see all scenes that are generated; without it, none is announced."""
    global _watch
    before, _watch = _watch, watch
    try:
        yield
    finally:
        _watch = before


def watched(items: Iterable[T], scenes: NewScenes) -> Iterator[T]:
    """Yield the items, one for each scene, under the eyes of the watch."""
    with _watch(scenes) if _watch and scenes.number > 0 else nullcontext(lambda: None) as count_one:
        for item in items:
            yield item
            count_one()
