"""Reads the game's rules, its grammar and its limits from the installed alfworld package.

Generated homes must obey exactly the rules of the official games, so nothing is copied here. Only
two light modules of the package are imported, in a few milliseconds; its environment module would
take seconds.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module, resources
from types import ModuleType
from typing import Literal

from rpms.vocabulary.errors import RpmsError

Dialect = Literal["move", "put"]
"""``move`` is the wording of alfworld 0.4 games, ``put`` that of the games before it."""

DIALECTS: tuple[Dialect, ...] = ("move", "put")

# The wording before 0.4, as edits of today's grammar.
_PUT_WORDING = (
    ("You arrive at {r.name}.", "You arrive at {lend.name}."),
    ("You move the {o.name} to the {r.name}.", "You put the {o.name} in/on the {r.name}."),
    ('template :: "move {o} to {r}"', 'template :: "put {o} in/on {r}"'),
)


@cache
def domain(dialect: Dialect) -> str:
    """The PDDL domain; the older games had no ``help`` action."""
    text = _data_file("alfred.pddl")
    if dialect == "put":
        return _before(text, "(:action help") + ")\n"
    return text


@cache
def grammar(dialect: Dialect) -> str:
    """The text grammar, still with ``UNKNOWN GOAL`` where the task sentence belongs."""
    text = _data_file("alfred.twl2")
    if dialect == "put":
        text = _before(text, "action help {")
        for new, old in _PUT_WORDING:
            if new not in text:
                raise _unexpected("alfred.twl2", new)
            text = text.replace(new, old)
    return text


@cache
def can_hold(receptacle: str) -> frozenset[str]:
    """Kinds of object that the game lets a kind of receptacle hold."""
    return frozenset(_module("gen.constants").VAL_RECEPTACLE_OBJECTS.get(receptacle, ()))


@cache
def with_trait(trait: str) -> frozenset[str]:
    """Kinds of object that are ``Cleanable``, ``Heatable``, ``Coolable``, ``Sliceable``..."""
    return frozenset(_module("gen.constants").VAL_ACTION_OBJECTS[trait])


@cache
def containers() -> frozenset[str]:
    """Kinds of object that can be carried and hold things themselves, such as a mug."""
    return frozenset(_module("gen.constants").MOVABLE_RECEPTACLES)


def goal_condition(task_type: str, obj: str, parent: str, toggle: str) -> str:
    """The PDDL goal of a task, which closes the problem as the package's template does."""
    template: str = _module("gen.goal_library").gdict[task_type]["pddl"]
    return template.replace("#", "-").format(obj=obj, recep=parent, toggle=toggle)


def goal_sentence(task_type: str, wording: int, obj: str, parent: str, toggle: str) -> str:
    """The task in one of the package's two wordings, without the full stop."""
    template: str = _module("gen.goal_library").gdict[task_type]["templates"][wording]
    return template.format(obj=obj.lower(), recep=parent.lower(), toggle=toggle.lower())


def _module(name: str) -> ModuleType:
    try:
        return import_module(f"alfworld.{name}")
    except ImportError as error:
        raise _missing() from error


def _data_file(name: str) -> str:
    try:
        return (resources.files("alfworld") / "data" / name).read_text(encoding="utf-8")
    except (ImportError, OSError) as error:
        raise _missing() from error


def _before(text: str, marker: str) -> str:
    head, separator, _ = text.partition(marker)
    if not separator:
        raise _unexpected("its data files", marker)
    return head.rstrip() + "\n"


def _missing() -> RpmsError:
    # --no-deps, because one dependency is TextWorld, which has to be compiled.
    return RpmsError(
        "the alfworld package is not installed; run 'make setup', or, if you installed RPMS from a "
        "wheel, 'pip install --no-deps alfworld==0.4.2'"
    )


def _unexpected(file: str, marker: str) -> RpmsError:
    return RpmsError(
        f"the installed alfworld version is not supported ({marker!r} is missing from {file}); "
        "install alfworld==0.4.2"
    )
