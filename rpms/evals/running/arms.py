"""Arms of an evaluation: conditions with their own settings, files or code.

An arm is written as ``mine:nodes=pkg.mod:stages,scf=off``, or in a plan (``plan_file.py``). Worker
processes and other machines get code by import path, and each process imports it. An object without
an import path is an error at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import isfunction, signature
from os import PathLike, fspath
from pathlib import Path
from shlex import shlex
from typing import Any

from rpms.evals.running.code_hash import code_hash, definition_path
from rpms.graph.build import Node
from rpms.models.opening import is_import_path
from rpms.vocabulary.context import RunContext, condition_name, declarations, refuse_unknown
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import read_text
from rpms.vocabulary.imports import is_path, load_object, path_of

ALL = "*"
"""The key of an import path that leads to a mapping of stages."""

Paths = dict[str, str]
"""Import paths by the stage they replace, or under ``ALL`` that of a mapping of stages."""


@dataclass(frozen=True)
class Variant:
    """The parts of an arm; those that are left out are as in ``context``.

    Attributes:
        context: the settings.
        nodes: the import path of a mapping of stages by name (``pkg.mod:stages``), or a mapping of
            stage names to import paths or functions of a module.
        rules: a folder of rule files that extend or replace the shipped ones.
        memory: a memory file.
        model: a model's name, or the import path of a chat model or of a function that returns one.
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
        """The import paths of the arm's custom stages."""
        if isinstance(self.nodes, str):
            return {ALL: self.nodes} if self.nodes else {}
        return {name: path_of(stage, f"stage '{name}'") for name, stage in self.nodes.items()}


Arm = RunContext | Variant


def as_variant(arm: Arm) -> Variant:
    """An arm as a variant."""
    if isinstance(arm, Variant):
        return arm
    if isinstance(arm, RunContext):
        return Variant(arm)
    raise RpmsError(f"an arm is a RunContext or a Variant, not a {type(arm).__name__}")


def load_stages(paths: Mapping[str, str]) -> dict[str, Node]:
    """The swapped stages, in the form that ``build_graph`` takes."""
    stages: dict[str, Node] = {}
    for name, path in paths.items():
        loaded = load_object(path, "the stages" if name == ALL else f"stage '{name}'")
        if name != ALL:
            stages[name] = loaded
            continue
        if isfunction(loaded) and not signature(loaded).parameters:
            loaded = loaded()
        if not isinstance(loaded, Mapping):
            raise RpmsError(
                f"'{path}' must be a mapping of stage names to functions, or a function without "
                "arguments that returns one"
            )
        stages.update(loaded)
    return stages


def swapped_in(context: RunContext, paths: Paths) -> dict[str, dict[str, str]]:
    """The custom code of an arm, each function or class with its checksum."""
    sources: dict[str, str] = {}
    for name, path in paths.items():
        for stage, function in sorted(load_stages({name: path}).items()):
            sources[f"nodes {stage}"] = definition_path(function, path)
    if is_import_path(context.model):
        sources["model"] = context.model
    if is_path(context.memory_method):
        sources["memory method"] = context.memory_method
    return {part: {"path": path, "hash": code_hash(path)} for part, path in sources.items()}


SWITCH = {"on": True, "true": True, "yes": True, "off": False, "false": False, "no": False}
FIELDS = ("condition", "nodes", "rules", "memory", "model", "memory_round")
"""The fields of an arm besides settings."""


def parse_arm(text: str) -> tuple[str, dict[str, Any]]:
    """The label and fields of ``label:key=value,...``; a label alone must be a condition."""
    label, colon, rest = text.partition(":")
    if not label.strip():
        raise RpmsError(f"--arm '{text}' has no label; write LABEL:SETTING=VALUE,...")
    fields: dict[str, Any] = {}
    for part in filter(None, map(str.strip, _parts(text, rest))):
        key, equals, value = part.partition("=")
        if not equals:
            raise RpmsError(f"--arm '{text}': '{part}' is not SETTING=VALUE")
        fields[key.strip()] = value.strip()
    if not colon:
        fields["condition"] = label = condition_name(label)
    return label.strip(), fields


def _parts(text: str, rest: str) -> Iterator[str]:
    """The parts between commas; a comma within quotes belongs to the value."""
    parts = shlex(rest, posix=True)
    parts.whitespace, parts.whitespace_split = ",", True
    parts.commenters = parts.escape = ""
    try:
        yield from parts
    except ValueError:
        raise RpmsError(f"--arm '{text}': a quote is not closed") from None


def make_arm(fields: Mapping[str, Any], base: RunContext, where: str = "") -> Variant:
    """An arm from the fields of a plan and the settings of the run.

    ``rules`` and ``memory`` are switches if their value is on or off, and files otherwise.
    """
    parts = {
        name: fields[name]
        for name in ("nodes", "rules", "memory", "model")
        if name in fields and _switch(fields[name]) is None
    }
    settings = {k: v for k, v in fields.items() if k not in {*parts, "condition", "memory_round"}}
    try:
        context = base.under(str(fields["condition"])) if "condition" in fields else base
        return Variant(context.with_(**read_settings(settings)), **parts)
    except RpmsError as error:
        raise RpmsError(f"{where}: {error}" if where else str(error)) from None


def read_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with the types of the run context; texts of a command line become numbers."""
    kinds = {name: declared.kind for name, declared in declarations().items()}
    refuse_unknown(settings, FIELDS)
    return {name: _converted(name, value, kinds[name]) for name, value in settings.items()}


def _converted(name: str, value: Any, kind: Any) -> Any:
    if kind is bool and (switch := _switch(value)) is not None:
        return switch
    if isinstance(value, bool) and kind not in (bool, int, float):
        return "on" if value else "off"  # YAML reads a bare off as false
    if kind in (int, float) and isinstance(value, str | int):
        try:
            return kind(value)
        except ValueError:
            raise RpmsError(f"{name}={value} is not a number") from None
    return value


def _switch(value: Any) -> bool | None:
    return value if isinstance(value, bool) else SWITCH.get(str(value).lower())


def listed(text: str) -> Sequence[str]:
    """Comma-separated names, or one per line of ``@FILE``, up to a tab as ``rpms tasks`` prints."""
    if text.startswith("@"):
        lines = read_text(Path(text[1:]), "the list").splitlines()
        return [name for line in lines if (name := line.partition("\t")[0].strip())]
    return [name.strip() for name in text.split(",") if name.strip()]
