"""An arm of an evaluation that departs from ours: in its settings, its files or its code.

Code travels to worker processes and to other machines by import path, and each process imports it
anew. What cannot be found that way is refused at once, with what to do about it.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import isfunction, signature
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from rpms.graph.build import Swapped
from rpms.models.opening import is_own
from rpms.nodes.context import RunContext
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.imports import is_path, load_object, path_of

ALL = "*"
"""Stands for the stages of an object that holds several."""
DIGITS = 12

Paths = dict[str, str]
"""Import paths by the stage they replace, or under ``ALL`` one of a mapping of stages."""


@dataclass(frozen=True)
class Variant:
    """What one arm is made of; whatever is left out is as in ``context``.

    Attributes:
        context: toggles and decoding.
        nodes: the import path of a mapping of stages by name (``pkg.mod:stages``), or a mapping of
            stage names to import paths or functions of a module.
        rules: a folder of rule files over, or instead of, those shipped with us.
        memory: a memory file.
        model: a model's name, or the import path of a chat model or of a function that makes one.
    """

    context: RunContext = field(default_factory=RunContext)
    nodes: str | Mapping[str, str | Callable[..., Any]] = ""
    rules: str | PathLike[str] = ""
    memory: str | PathLike[str] = ""
    model: str | Callable[..., Any] = ""

    def settings(self) -> RunContext:
        """The arm's settings, files and model included."""
        changes: dict[str, Any] = {}
        if self.rules:
            changes["rules_dir"] = fspath(self.rules)
        if self.memory:
            changes["memory_file"] = fspath(self.memory)
        if self.model:
            changes["model"] = path_of(self.model, "the model")
        return self.context.with_(**changes)

    def paths(self) -> Paths:
        """Where the arm's own stages are imported from."""
        if isinstance(self.nodes, str):
            return {ALL: self.nodes} if self.nodes else {}
        return {name: path_of(one, f"stage '{name}'") for name, one in self.nodes.items()}


Arm = RunContext | Variant


def as_variant(arm: Arm) -> Variant:
    """An arm as a variant; plain settings swap nothing."""
    if isinstance(arm, Variant):
        return arm
    if isinstance(arm, RunContext):
        return Variant(arm)
    raise RpmsError(f"an arm is a RunContext or a Variant, not a {type(arm).__name__}")


def load_stages(paths: Mapping[str, str]) -> dict[str, Swapped]:
    """The swapped stages themselves, as ``build_graph`` takes them."""
    found: dict[str, Swapped] = {}
    for name, path in paths.items():
        loaded = load_object(path, "the stages" if name == ALL else f"stage '{name}'")
        if name != ALL:
            found[name] = loaded
            continue
        if isfunction(loaded) and not signature(loaded).parameters:
            loaded = loaded()
        if not isinstance(loaded, Mapping):
            raise RpmsError(
                f"'{path}' must be a mapping of stage names to functions, or a function without "
                "arguments that makes one"
            )
        found.update(loaded)
    return found


def swapped_in(context: RunContext, paths: Paths) -> dict[str, dict[str, str]]:
    """What an arm takes from elsewhere, each with a checksum of the file it comes from."""
    found: dict[str, dict[str, str]] = {}
    for name, path in paths.items():
        stages = ", ".join(sorted(load_stages({name: path})))
        found[f"nodes {stages}"] = {"path": path, "hash": source_hash(path)}
    if is_own(context.model):
        found["model"] = {"path": context.model, "hash": source_hash(context.model)}
    if is_path(context.memory_method):
        path = context.memory_method
        found["memory method"] = {"path": path, "hash": source_hash(path)}
    return found


def source_hash(path: str) -> str:
    """A checksum of the file that an import path leads into."""
    load_object(path, "the object")
    file = getattr(sys.modules[path.partition(":")[0]], "__file__", None)
    data = Path(file).read_bytes() if file else path.encode()
    return hashlib.sha256(data).hexdigest()[:DIGITS]
