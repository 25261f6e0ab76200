"""The differences of two arms: settings, blocks of the prompt, files and code.

Files are compared by content, not by path. Code is named by module and function, and compared by
the checksum of that function if the name is the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rpms.evals.records.conditions import in_effect
from rpms.evals.records.schema import Manifest
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.imports import is_path

NODES = "nodes"
OURS = "ours"
# The shown characters of a checksum.
SHOWN = 8
# Code that a setting gives by import path: the manifest's name, and the name of the difference.
CODE_SETTINGS = {"model": "model code", "memory method": "memory_method code"}

Swapped = Mapping[str, Mapping[str, str]]


class ArmOfRun(NamedTuple):
    """An arm by its label, in the manifest of its run."""

    manifest: Manifest
    label: str

    @property
    def memory(self) -> str:
        """The checksum of its memory; empty if none was recorded."""
        return self.manifest.hashes.memory.get(self.label, "")

    @property
    def manual(self) -> str:
        """The checksum of its rule manual."""
        return self.manifest.hashes.rules_of.get(self.label, self.manifest.hashes.rules)

    @property
    def code(self) -> Swapped:
        """Its custom code."""
        return self.manifest.swapped.get(self.label, {})


def arm_differences(first: ArmOfRun, second: ArmOfRun) -> dict[str, str]:
    """The differences of two arms by name; files and code with both values.

    Only settings with an effect in both arms count: an arm without memory has no arbitration.
    """
    defaults = RunContext().plain  # for settings that are newer than the run
    a, b = (
        in_effect({**defaults, **arm.manifest.conditions[arm.label]}) for arm in (first, second)
    )
    differences = {name: _paths_text(a[name], b[name])
                   for name in a if name in b and a[name] != b[name]}  # fmt: skip
    if "memory_file" in a and "memory_file" in b:
        _compare_content(differences, ("memory_file",), "memory_file", first.memory, second.memory)
    _compare_content(
        differences, ("rules_dir", "without_rules"), "manual", first.manual, second.manual
    )
    return differences | code_differences(first.code, second.code)


def difference_texts(first: ArmOfRun, second: ArmOfRun) -> list[str]:
    """The differences as text: ``rules``, ``nodes (ours | scf from own_scf:scf)``."""
    differences = arm_differences(first, second).items()
    return [f"{name} ({values})" if values else name for name, values in differences]


def _paths_text(first: object, second: object) -> str:
    """Both values if one is the import path of a user's code; empty for a plain setting."""
    values = str(first), str(second)
    return " | ".join(values) if any(map(is_path, values)) else ""


def _compare_content(
    differences: dict[str, str], settings: tuple[str, ...], name: str, first: str, second: str
) -> None:
    """Settings with file names, the folder first, count as different if the content differs.

    ``name`` is the difference if the content changed under the same settings.
    """
    if not (first and second):  # no checksum was recorded, so the settings decide
        return
    changed = [setting for setting in settings if setting in differences]
    if first == second:
        for setting in changed:
            del differences[setting]
    elif settings[0] in changed or not changed:
        differences[changed[0] if changed else name] = f"{first[:SHOWN]} | {second[:SHOWN]}"


def code_differences(first: Swapped, second: Swapped) -> dict[str, str]:
    """Different custom stages, and code with the same import path but different content."""
    differences: dict[str, str] = {}
    nodes = [
        {part.removeprefix(f"{NODES} ").removeprefix("added "): code
         for part, code in side.items() if part.startswith((f"{NODES} ", "added ", "graph"))}
        for side in (first, second)
    ]  # fmt: skip
    stages = [name for name in {**nodes[0], **nodes[1]} if nodes[0].get(name) != nodes[1].get(name)]
    if stages:
        one, other = ({name: side[name] for name in stages if name in side} for side in nodes)
        hashed = _paths(one) == _paths(other)
        differences[NODES] = f"{_stages_text(one, hashed)} | {_stages_text(other, hashed)}"
    for kind, name in CODE_SETTINGS.items():
        codes = first.get(kind, {}), second.get(kind, {})
        paths, hashes = ([code.get(field, "") for code in codes] for field in ("path", "hash"))
        if paths[0] == paths[1] and hashes[0] != hashes[1]:
            differences[name] = f"{paths[0]}: {hashes[0][:SHOWN]} | {hashes[1][:SHOWN]}"
    return differences


def _paths(nodes: Swapped) -> dict[str, str]:
    return {stage: code.get("path", "") for stage, code in nodes.items()}


def _stages_text(nodes: Swapped, hashed: bool) -> str:
    """``scf from own_scf:scf``, with the checksum if only that differs."""
    return ", ".join(
        f"{stage} from {code.get('path', '')}"
        + (f" {code.get('hash', '')[:SHOWN]}" if hashed else "")
        for stage, code in nodes.items()
    ) or OURS  # fmt: skip
