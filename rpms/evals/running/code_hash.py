"""The checksum of a function or class: its source, and all that it uses of its own module.

The module is split into its statements. The checksum covers the one that defines the object and,
from there, each one that defines a name in use: helpers, base classes, constants, imports. So an
edit elsewhere in the module changes nothing. Code of other modules is not covered.
"""

from __future__ import annotations

import ast
import hashlib
import sys
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from symtable import SymbolTable, symtable
from typing import Any

from rpms.vocabulary.imports import load_object

DIGITS = 12


def code_hash(path: str) -> str:
    """The checksum of the object of an import path."""
    module, _, attribute = definition_path(load_object(path, "the object"), path).partition(":")
    return _digest(_source_of(module, attribute.partition(".")[0]) or path)


def definition_path(thing: Any, path: str) -> str:
    """``module:name`` of a function or class that its module defines by this name.

    Other objects (a lambda, a partial, an instance) have the path that led to them.
    """
    module, name = (getattr(thing, field, "") for field in ("__module__", "__qualname__"))
    is_defined = getattr(sys.modules.get(module), name, None) is thing
    return f"{module}:{name}" if is_defined else path


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def _source_of(module: str, name: str) -> str:
    """The statements behind a name, in their order; the whole text if none defines it."""
    file = getattr(sys.modules[module], "__file__", None)
    if not file or not file.endswith(".py"):
        return ""
    with tokenize.open(file) as source:  # in the encoding that the file declares
        text = source.read()
    statements = [*_statements(text)]
    definitions: dict[str, list[int]] = {}
    for number, (_, names) in enumerate(statements):
        for defined in names:
            definitions.setdefault(defined, []).append(number)
    uses = {number: _used(source) for number, (source, _) in enumerate(statements)}
    needed = _reached(definitions.get(name, ()), definitions, uses)
    return "\n".join(statements[number][0] for number in sorted(needed)) or text


def _statements(text: str) -> Iterator[tuple[str, set[str]]]:
    """The source of each statement of a module, and the names that it defines."""
    lines = text.split("\n")
    for node in ast.parse(text).body:
        if _is_script(node):
            continue
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
        source = "\n".join(lines[first - 1 : node.end_lineno])
        table = symtable(source, "module", "exec")
        defined = {symbol.get_name() for symbol in table.get_symbols()
                   if symbol.is_assigned() or symbol.is_imported()}  # fmt: skip
        yield source, defined


def _is_script(node: ast.stmt) -> bool:
    """True for ``if __name__ == "__main__":``, which no import runs."""
    return isinstance(node, ast.If) and "__name__" in ast.dump(node.test)


def _used(source: str) -> set[str]:
    return {*_global_names(symtable(source, "module", "exec"))}


def _global_names(table: SymbolTable) -> Iterator[str]:
    """The names of the module that a statement or a function in it uses."""
    is_module = table.get_type() == "module"
    for symbol in table.get_symbols():
        if symbol.is_referenced() and (is_module or symbol.is_global()):
            yield symbol.get_name()
    for inner in table.get_children():
        yield from _global_names(inner)


def _reached(
    start: Iterable[int], definitions: Mapping[str, Iterable[int]], uses: Mapping[int, set[str]]
) -> set[int]:
    """The statements that are needed, directly or through others."""
    reached, waiting = set[int](), [*start]
    while waiting:
        number = waiting.pop()
        if number not in reached:
            reached.add(number)
            waiting += [each for name in uses[number] for each in definitions.get(name, ())]
    return reached
