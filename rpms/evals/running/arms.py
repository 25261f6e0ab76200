"""Arms of an evaluation: conditions with their own settings, files or graph.

An arm is written as ``D-off:condition=D,scf=off`` or ``mine=my_variants:mine``, or in a plan
(``plan_file.py``). Worker processes and other machines get a graph by the import path of a function
that returns it. Within one process any function or graph is an arm.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from shlex import shlex
from typing import Any

from rpms.graph.build import STAGES
from rpms.graph.compiled import GraphSource, RpmsGraph, open_graph
from rpms.models.opening import is_import_path
from rpms.vocabulary.context import RunContext, condition_name, declarations, refuse_unknown
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import read_text
from rpms.vocabulary.imports import is_path, load_object, path_of


@dataclass(frozen=True)
class Variant:
    """The parts of an arm; those that are left out are those of ``graph``, else the defaults.

    Attributes:
        context: the settings.
        graph: a graph of your own: a function that returns it, its import path
            (``my_variants:mine``), or within one process the graph itself.
        rules: a folder of rule files that extend or replace the shipped ones.
        memory: a memory file.
        model: a model's name, or the import path of a chat model or of a function that returns one.
    """

    context: RunContext | None = None
    graph: GraphSource = ""
    rules: str | PathLike[str] = ""
    memory: str | PathLike[str] = ""
    model: str | Callable[..., Any] = ""

    def base(self) -> RunContext:
        """The settings without files and model."""
        if self.context is None:
            return open_graph(self.graph).defaults if self.graph else RunContext()
        return self.context

    def settings(self) -> RunContext:
        """The arm's settings, files and model included."""
        changes: dict[str, Any] = {}
        if self.rules:
            changes["rules_dir"] = fspath(self.rules)
        if self.memory:
            changes["memory_file"] = fspath(self.memory)
        if self.model:
            changes["model"] = path_of(self.model, "the model")
        return self.base().with_(**changes)


Arm = RunContext | Variant | RpmsGraph | Callable[[], RpmsGraph] | str


def as_variant(arm: Arm) -> Variant:
    """An arm as a variant; a text is a condition, or the import path of a graph."""
    if isinstance(arm, Variant):
        return arm
    if isinstance(arm, RunContext):
        return Variant(arm)
    if isinstance(arm, str) and not is_path(arm):
        return Variant(RunContext().under(arm))
    if isinstance(arm, str | RpmsGraph) or callable(arm):
        return Variant(graph=arm)
    raise RpmsError(
        "an arm is a condition, a RunContext, a Variant, or a graph and how to make it, not a "
        f"{type(arm).__name__}"
    )


def travelling(graph: GraphSource, label: str) -> str:
    """The import path of an arm's graph, by which worker processes make it again."""
    if isinstance(graph, RpmsGraph):
        raise RpmsError(
            f"arm '{label}': a graph object cannot travel to worker processes. Give the function "
            "that returns it, or stay in one process: execution=rpms.ExecutionOptions(workers=0)"
        )
    script = getattr(sys.modules["__main__"], "__file__", None)
    if getattr(graph, "__module__", "") == "__main__" and script:
        name = getattr(graph, "__qualname__", "")
        path = f"{Path(script).stem}:{name}"  # its folder is on the import path
        if is_path(path):
            return path
    try:
        return path_of(graph, f"the graph of arm '{label}'")
    except RpmsError as error:
        raise RpmsError(
            f"{error}, or stay in one process: execution=rpms.ExecutionOptions(workers=0)"
        ) from None


def swapped_in(context: RunContext, graph: GraphSource | None) -> dict[str, dict[str, str]]:
    """The custom code of an arm, each function or class with its checksum."""
    sources: dict[str, str] = {}
    if graph:
        path = graph if isinstance(graph, str) else ""
        sources["graph"] = path
        for name, node in open_graph(graph).builder.own_nodes.items():
            part = f"nodes {name}" if name in STAGES else f"added {name}"
            sources[part] = definition_path(node, path)
    if is_import_path(context.model):
        sources["model"] = context.model
    if is_path(context.memory_method):
        sources["memory method"] = context.memory_method
    return {
        part: {"path": path or "an object of this process", "hash": code_hash(path) if path else ""}
        for part, path in sources.items()
    }


def code_hash(path: str) -> str:
    """The checksum of the file behind an import path; empty if its module has no file."""
    module = definition_path(load_object(path, "the object"), path).partition(":")[0]
    file = getattr(sys.modules[module], "__file__", None)
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()[:12] if file else ""


def definition_path(thing: Any, path: str) -> str:
    """``module:name`` of a function or class that its module defines by this name.

    Other objects (a lambda, a partial, an instance) have the path that led to them.
    """
    module, name = (getattr(thing, field, "") for field in ("__module__", "__qualname__"))
    is_defined = getattr(sys.modules.get(module), name, None) is thing
    return f"{module}:{name}" if is_defined else path


SWITCH = {"on": True, "true": True, "yes": True, "off": False, "false": False, "no": False}
FIELDS = ("condition", "graph", "rules", "memory", "model", "memory_round")
"""The fields of an arm besides settings."""
DECIDES = {
    "condition": ("rules", "memory", "state_block"),
    "rules": ("rules_dir",),
    "memory": ("memory_file",),
}
"""The settings that a field decides besides that of its own name."""


def parse_arm(text: str) -> tuple[str, dict[str, Any]]:
    """The label and fields of ``label:key=value,...``; a label alone must be a condition.

    ``label=package.module:function`` is short for ``label:graph=package.module:function``.
    """
    label, colon, rest = text.partition(":")
    if "=" in label:
        label, _, rest = text.partition("=")
        rest = f"graph={rest}"
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


def make_arm(
    fields: Mapping[str, Any], base: RunContext, where: str = "", stated: Collection[str] = ()
) -> Variant:
    """An arm from the fields of a plan and the settings of the run.

    ``rules`` and ``memory`` are switches if their value is on or off, and files otherwise.
    ``stated`` are the settings that the plan or the command line sets.
    """
    parts = {
        name: fields[name]
        for name in ("graph", "rules", "memory", "model")
        if name in fields and _switch(fields[name]) is None
    }
    settings = {k: v for k, v in fields.items() if k not in {*parts, "condition", "memory_round"}}
    graph = open_graph(parts["graph"]) if parts.get("graph") else None
    try:
        if graph:
            base = _settings_of_graph(graph.defaults, base, stated, fields)
        context = base.under(str(fields["condition"])) if "condition" in fields else base
        return Variant(context.with_(**read_settings(settings)), **parts)
    except RpmsError as error:
        raise RpmsError(f"{where}: {error}" if where else str(error)) from None


def _settings_of_graph(
    built: RunContext, run: RunContext, stated: Collection[str], fields: Collection[str]
) -> RunContext:
    """The settings of a graph with those that the run states.

    Where both set one to different values, the arm has to choose. Which settings a graph was built
    with is not known, only which of them differ from the defaults.
    """
    decided = {*fields, *(name for field in fields for name in DECIDES.get(field, ()))}
    usual, changes = RunContext().plain, {name: run.plain[name] for name in stated}
    for name, value in changes.items():
        if name not in decided and built.plain[name] not in (value, usual[name]):
            raise RpmsError(
                f"the run sets {name}={value}, and the graph of this arm "
                f"{name}={built.plain[name]}; write the one that counts into the "
                f"arm, for example {name}={value}"
            )
    return built.with_(**changes)


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
        if not (names := [name for line in lines if (name := line.partition("\t")[0].strip())]):
            raise RpmsError(f"the list {text[1:]} is empty")  # no name would mean every task
        return names
    return [name.strip() for name in text.split(",") if name.strip()]
