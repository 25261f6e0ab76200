"""The pairs of arms that a report tests, and the differences of two arms.

Arms differ in settings, blocks of the prompt, files and code. Files are compared by content, not by
path. Code is named by module and function, and compared by the checksum of that function if the
name is the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rpms.evals.records.conditions import in_effect
from rpms.evals.records.run_folder import Run
from rpms.evals.records.schema import Manifest
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.imports import is_path

PARTS = {"state_block": "state", "memory": "memory", "rules": "rules"}
"""Settings that switch a whole part of the agent, and the part's name."""
IMPLIED = {"rules": "state_block", "memory": "state_block", "memory_method": "memory_file",
           "commit": "manual"}  # fmt: skip
"""A change of the first always changes the second, so the second is not counted."""
NODES = "nodes"
OURS = "ours"
# The shown characters of a checksum.
SHOWN = 8
# Code that a setting gives by import path: the manifest's name, and the name of the difference.
CODE_SETTINGS = {"model": "model code", "memory method": "memory_method code"}

Swapped = Mapping[str, Mapping[str, str]]


class Comparison(NamedTuple):
    """Two arms. If they differ in one of PARTS only, ``part`` is the one that the second has."""

    first: str
    second: str
    part: str = ""


def comparisons(run: Run) -> list[Comparison]:
    """The pairs that the verdict tests: those of the plan, or all arms with those asked for.

    An arm in no pair of the plan is compared with the first arm.
    """
    arms, against = run.conditions, run.against
    if against:
        pairs = [
            (first, second)
            for number, first in enumerate(against)
            for second in arms
            if second not in against[: number + 1]
        ]
    else:
        pairs = [pair for pair in run.manifest.compare if {*pair} <= {*arms}]
        compared = {arm for pair in pairs for arm in pair}
        pairs += [(arms[0], arm) for arm in arms[1:] if arm not in compared]
    return [Comparison(first, second, _part(run, first, second)) for first, second in pairs]


def _part(run: Run, first: str, second: str) -> str:
    """The part of the agent that the second arm has beyond the first, if they differ only in it."""
    names = {*arm_differences(run.manifest, first, second)}
    part, *more = names - {IMPLIED[name] for name in names if name in IMPLIED} or {""}
    return part if not more and part in PARTS and run.settings(second).get(part) else ""


def arm_differences(manifest: Manifest, first: str, second: str) -> dict[str, str]:
    """The differences of two arms by name; files and code with both values.

    Only settings with an effect in both arms count: an arm without memory has no arbitration.
    """
    arms, hashes = (first, second), manifest.hashes
    defaults = RunContext().plain  # for settings that are newer than the run
    a, b = (in_effect({**defaults, **manifest.conditions[arm]}) for arm in arms)
    differences = {name: _paths_text(a[name], b[name])
                   for name in a if name in b and a[name] != b[name]}  # fmt: skip
    if "memory_file" in a and "memory_file" in b:
        memories = (hashes.memory.get(arm, "") for arm in arms)
        _compare_content(differences, ("memory_file",), "memory_file", *memories)
    manuals = (hashes.rules_of.get(arm, hashes.rules) for arm in arms)
    _compare_content(differences, ("rules_dir", "without_rules"), "manual", *manuals)
    return differences | code_differences(*(manifest.swapped.get(arm, {}) for arm in arms))


def difference_text(manifest: Manifest, first: str, second: str) -> str:
    """``rules, nodes (ours | scf from own_scf:scf)``."""
    differences = arm_differences(manifest, first, second).items()
    return ", ".join(f"{name} ({values})" if values else name for name, values in differences)


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
