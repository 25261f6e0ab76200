"""Whether a class of the user's own can be asked as a memory method is: told before any game."""

from __future__ import annotations

from inspect import Signature, iscoroutinefunction, isfunction, signature
from typing import Any

from rpms.nodes.memories.method import MemoryMethod
from rpms.vocabulary.errors import RpmsError

ASKED = [name for name in vars(MemoryMethod) if isfunction(getattr(MemoryMethod, name))]
ATTRIBUTES = {
    "name": str, "cumulative": bool, "learns": bool, "needs_file": bool, "needs_model": bool
}  # fmt: skip


def made(path: str, found: Any) -> MemoryMethod:
    """The method of a class, if it has the shape of one; the first fault is told in one line."""
    where = f"memory method '{path}'"
    if not (isinstance(found, type) and issubclass(found, MemoryMethod)):
        raise RpmsError(f"{where} is no subclass of rpms.nodes.memories.MemoryMethod")
    where += f": {found.__name__}"
    for name, kind in ATTRIBUTES.items():
        value = getattr(found, name, None)
        if not isinstance(value, kind) or value == "":
            example = "a name, such as 'mine'" if kind is str else "True or False"
            raise RpmsError(f"{where}.{name} is {value!r}; it must be {example}")
    for name in sorted(found.__abstractmethods__):
        raise RpmsError(f"{where} has no '{name}'; {_expected(name)}")
    if fault := _misfit(signature(found)):
        raise RpmsError(f"{where}() is made without arguments: {fault}")
    method = found()
    for name in ASKED:
        if fault := _fault(name, getattr(method, name)):
            raise RpmsError(f"{where}.{name}: {fault}; {_expected(name)}")
    return method


def takes_manual(method: MemoryMethod) -> bool:
    """Whether a method learns by the run's rules, too."""
    return "manual" in signature(method.learn).parameters


def _fault(name: str, own: Any) -> str:
    if not callable(own):
        return "it is no method"
    asked = getattr(MemoryMethod, name)
    if iscoroutinefunction(asked) != iscoroutinefunction(own):
        return "it is not async" if iscoroutinefunction(asked) else "it must not be async"
    given, taken = list(signature(asked).parameters)[1:], signature(own)
    also = {"manual"} & {*taken.parameters} if name == "learn" else ()
    return _misfit(taken, *given, **dict.fromkeys(also, ""))


def _misfit(taken: Signature, *given: str, **named: str) -> str:
    try:
        taken.bind(*given, **named)
    except TypeError as error:
        return str(error)
    return ""


def _expected(name: str) -> str:
    asked = getattr(MemoryMethod, name)
    word = "async def" if iscoroutinefunction(asked) else "def"
    return f"write '{word} {name}({', '.join(signature(asked).parameters)})'"
