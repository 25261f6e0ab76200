"""The differences of two arms: settings, blocks of the prompt, files and code.

Files are compared by content, not by path. Code is compared by import path, and by the checksum of
its file if the path is the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rpms.evals.records.conditions import in_effect
from rpms.evals.records.schema import Manifest
from rpms.vocabulary.context import RunContext

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
    differences = {name: "" for name in a if name in b and a[name] != b[name]}
    if "memory_file" in a and "memory_file" in b:
        _compare_content(differences, ("memory_file",), "memory_file", first.memory, second.memory)
    _compare_content(
        differences, ("rules_dir", "without_rules"), "manual", first.manual, second.manual
    )
    return differences | code_differences(first.code, second.code)


def difference_texts(first: ArmOfRun, second: ArmOfRun) -> list[str]:
    """The differences as text: ``rules``, ``nodes (ours | scf from own_scf:stages)``."""
    differences = arm_differences(first, second).items()
    return [f"{name} ({values})" if values else name for name, values in differences]


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
        {stages.removeprefix(f"{NODES} "): code for stages, code in side.items()
         if stages.startswith(f"{NODES} ")}
        for side in (first, second)
    ]  # fmt: skip
    if nodes[0] != nodes[1]:
        paths = [{stages: code.get("path", "") for stages, code in side.items()} for side in nodes]
        hashed = paths[0] == paths[1]
        differences[NODES] = " | ".join(_stages_text(side, hashed) for side in nodes)
    for kind, name in CODE_SETTINGS.items():
        one, other = first.get(kind, {}), second.get(kind, {})
        if one.get("path") == other.get("path") and one.get("hash") != other.get("hash"):
            hashes = f"{one.get('hash', '')[:SHOWN]} | {other.get('hash', '')[:SHOWN]}"
            differences[name] = f"{one.get('path')}: {hashes}"
    return differences


def _stages_text(nodes: Swapped, hashed: bool) -> str:
    """``scf from own_scf:stages``, with the checksum if only that differs."""
    return ", ".join(
        f"{stages} from {code.get('path', '')}"
        + (f" {code.get('hash', '')[:SHOWN]}" if hashed else "")
        for stages, code in nodes.items()
    ) or OURS  # fmt: skip
