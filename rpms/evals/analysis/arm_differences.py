"""In what two arms differ: settings, the blocks that come with them, files by checksum, and code.

A file is known by its content, wherever it lies, and code by where it is imported from; only
where that is the same, by the checksum of its file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rpms.evals.records.conditions import in_effect
from rpms.evals.records.schema import Manifest
from rpms.vocabulary.context import RunContext

NODES = "nodes"
OURS = "ours"
# Of a checksum, enough to tell two apart.
SHOWN = 8
# Code that a setting names by its import path, as a manifest calls it.
NAMED_BY_SETTING = {"model": "model code", "memory method": "memory_method code"}
CODE = (NODES, *NAMED_BY_SETTING.values())

Swapped = Mapping[str, Mapping[str, str]]


class ArmOfRun(NamedTuple):
    """An arm by its label, in the manifest of its run."""

    manifest: Manifest
    label: str

    @property
    def memory(self) -> str:
        """The checksum of its memory; empty where none was recorded."""
        return self.manifest.hashes.memory.get(self.label, "")

    @property
    def manual(self) -> str:
        """The checksum of its rule manual."""
        return self.manifest.hashes.rules_of.get(self.label, self.manifest.hashes.rules)

    @property
    def code(self) -> Swapped:
        """What it takes from elsewhere."""
        return self.manifest.swapped.get(self.label, {})


def arm_differences(first: ArmOfRun, second: ArmOfRun) -> dict[str, str]:
    """Everything in which two arms differ, each with the two values where its name is not enough.

    Settings count where they have a meaning in both arms: without memory there is no arbiter.
    """
    usual = RunContext().plain  # of settings younger than the run
    a, b = (in_effect({**usual, **arm.manifest.conditions[arm.label]}) for arm in (first, second))
    found = {name: "" for name in a if name in b and a[name] != b[name]}
    if "memory_file" in a and "memory_file" in b:
        _by_content(found, ("memory_file",), "memory_file", first.memory, second.memory)
    _by_content(found, ("rules_dir", "without_rules"), "manual", first.manual, second.manual)
    return found | code_differences(first.code, second.code)


def difference_texts(first: ArmOfRun, second: ArmOfRun) -> list[str]:
    """The same in words: ``rules``, ``nodes (ours | scf from own_scf:stages)``."""
    differences = arm_differences(first, second).items()
    return [f"{name} ({values})" if values else name for name, values in differences]


def _by_content(
    found: dict[str, str], settings: tuple[str, ...], name: str, first: str, second: str
) -> None:
    """Settings that name files, the folder first, differ where the content does.

    ``name`` stands for a content that changed under the same settings.
    """
    if not (first and second):  # not recorded: the settings are all that is known
        return
    changed = [setting for setting in settings if setting in found]
    if first == second:
        for setting in changed:
            del found[setting]
    elif settings[0] in changed or not changed:
        found[changed[0] if changed else name] = f"{first[:SHOWN]} | {second[:SHOWN]}"


def code_differences(first: Swapped, second: Swapped) -> dict[str, str]:
    """Stages from elsewhere, and code that settings name by the same path, but of other content."""
    found: dict[str, str] = {}
    nodes = [
        {stages.removeprefix(f"{NODES} "): code for stages, code in side.items()
         if stages.startswith(f"{NODES} ")}
        for side in (first, second)
    ]  # fmt: skip
    if nodes[0] != nodes[1]:
        paths = [{stages: code.get("path", "") for stages, code in side.items()} for side in nodes]
        hashed = paths[0] == paths[1]
        found[NODES] = " | ".join(_words(side, hashed) for side in nodes)
    for kind, name in NAMED_BY_SETTING.items():
        one, other = first.get(kind, {}), second.get(kind, {})
        if one.get("path") == other.get("path") and one.get("hash") != other.get("hash"):
            hashes = f"{one.get('hash', '')[:SHOWN]} | {other.get('hash', '')[:SHOWN]}"
            found[name] = f"{one.get('path')}: {hashes}"
    return found


def _words(nodes: Swapped, hashed: bool) -> str:
    """``scf from own_scf:stages``, with the checksum where only that differs."""
    return ", ".join(
        f"{stages} from {code.get('path', '')}"
        + (f" {code.get('hash', '')[:SHOWN]}" if hashed else "")
        for stages, code in nodes.items()
    ) or OURS  # fmt: skip
