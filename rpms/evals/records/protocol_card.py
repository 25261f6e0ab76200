"""The protocol card: everything that decides a result.

Published results differ in these points and rarely report them, so every table carries the card.
All of it comes from the manifest. Points that an older run did not record are "not recorded".
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from rpms.envs import get_environment
from rpms.evals.records.conditions import described
from rpms.evals.records.schema import Manifest
from rpms.vocabulary.context import ALL_TURNS, RunContext
from rpms.vocabulary.limits import MOST_TASKS

UNKNOWN = "not recorded"
NONE = "none"
# The maximal number of missing task types that the card lists.
LISTED_TYPES = 6
# The shown characters of a checksum.
SHOWN = 8
# The checksum of no file: a method that reads none, or an environment without a shipped memory.
EMPTY = hashlib.sha256().hexdigest()

Card = dict[str, str]


def protocol_card(manifest: Manifest, among: Collection[str] | None = None) -> Card:
    """The card of a run or of some arms; a value that differs names the arms that have it."""
    defaults = RunContext().plain
    contexts = {
        label: {**defaults, **context}
        for label, context in manifest.conditions.items()
        if among is None or label in among
    }
    readers = [label for label, context in contexts.items() if context["memory"]]
    settings = manifest.settings
    world = get_environment(manifest.env)

    def each(name: str, default: Any = UNKNOWN) -> str:
        return joined({label: str(context[name] or default) for label, context in contexts.items()})

    steps = settings.get("max_steps") or world.max_steps or UNKNOWN
    return {
        "split": f"{manifest.env} {manifest.split}",
        "tasks": f"{len(manifest.tasks)} ({_digest(task.id for task in manifest.tasks)})",
        "types missing": types_missing(manifest) or NONE if manifest.split_types else UNKNOWN,
        "arms": _arms(contexts) or "as their labels say",
        "wording": manifest.wording or UNKNOWN,
        "steps": each("max_steps", steps),
        "examples": each("examples", 0),
        "history": joined({label: "all turns" if c["history"] == ALL_TURNS else
                           f"last {c['history']}" for label, c in contexts.items()}),
        "system prompt": each("prompt_style"),
        "trials": str(settings.get("trials") or 1),
        "repeats": str(settings.get("repeats") or 1),
        "decoding": joined({label: _decoding(c, world.max_tokens)
                            for label, c in contexts.items()}),
        "learning data": joined({label: _sources(manifest, label) for label in readers}),
        "memory": joined({label: memory_of(manifest, label) for label in readers}),
        "recall": joined({label: _recall(contexts[label]) for label in readers}),
        "rules": joined({label: _rules(manifest, label) for label, c in contexts.items()
                          if c["rules"]}),
        "rules printed": joined({label: c["rules_scope"] for label, c in contexts.items()
                                 if c["rules"]}),
    }  # fmt: skip


def _arms(contexts: Mapping[str, Mapping[str, Any]]) -> str:
    """``D scf=off; mine: D+verify``: each arm that is not just the condition of its label."""
    parts = []
    for label, text in ((label, described(context)) for label, context in contexts.items()):
        if not f"{label} ".startswith(f"{text} "):
            parts.append(text if text.startswith(f"{label} ") else f"{label}: {text}")
    return "; ".join(parts)


def types_missing(manifest: Manifest) -> str:
    """``1 of 6 (heat then place)``: the task types of the split that no task of the run has."""
    present = {task.name or task.type for task in manifest.tasks}
    missing = [name for name in manifest.split_types if name not in present]
    if not missing:
        return ""
    world = get_environment(manifest.env)
    words = [*map(world.type_label, missing[:LISTED_TYPES])]
    if len(missing) > len(words):
        words.append(f"and {len(missing) - len(words)} more")
    return f"{len(missing)} of {len(manifest.split_types)} ({', '.join(words)})"


def card_text(card: Mapping[str, str]) -> str:
    """The card in one line."""
    return "; ".join(f"{name}: {value}" for name, value in card.items())


def protocol_of(manifest: Manifest) -> str:
    """The card of a run in one line."""
    return card_text(protocol_card(manifest))


def card_differences(first: Mapping[str, str], second: Mapping[str, str]) -> list[str]:
    """``name: first -> second`` for each recorded point in which two cards differ."""
    return [
        f"{name}: {first[name]} -> {second[name]}"
        for name in first
        if first[name] != second[name] and UNKNOWN not in (first[name], second[name])
    ]


def joined(values: Mapping[str, str]) -> str:
    """The value that all conditions share, or else each value with its conditions."""
    groups: dict[str, list[str]] = {}
    for label, value in values.items():
        groups.setdefault(value, []).append(label)
    if len(groups) < 2:
        return next(iter(groups), NONE)
    return " | ".join(f"{value} ({', '.join(labels)})" for value, labels in groups.items())


def _decoding(context: Mapping[str, Any], max_tokens: int) -> str:
    tokens = context["max_tokens"] or max_tokens or UNKNOWN
    replies = "free" if context["constrain"] == "off" else str(context["constrain"])
    return (
        f"temperature {context['temperature']:g}, seed {context['seed']}, at most {tokens} tokens, "
        f"{replies} replies"
    )


def _recall(context: Mapping[str, Any]) -> str:
    """The form and the limits of memories in the prompt."""
    k = "all" if context["k"] >= MOST_TASKS else f"at most {context['k']} of each type"
    tokens = context["memory_tokens"]
    limit = f"{tokens} tokens" if tokens else "no token limit"
    types = "the paper's types" if context["prompt_style"] == "paper" else "all types"
    return f"{context['memory_form']}, {k}, {types}, {limit}"


def memory_of(manifest: Manifest, label: str) -> str:
    """The shortened checksum of an arm's memory."""
    return _short(manifest.hashes.memory.get(label, ""))


def _sources(manifest: Manifest, label: str) -> str:
    digest = manifest.hashes.memory.get(label, "")
    if digest == EMPTY:
        return NONE
    memory = manifest.memories.get(digest)
    return " and ".join(memory.sources) if memory and memory.sources else UNKNOWN


def _rules(manifest: Manifest, label: str) -> str:
    return _short(manifest.hashes.rules_of.get(label, manifest.hashes.rules))


def _short(digest: str) -> str:
    return NONE if digest == EMPTY else digest[:SHOWN] or UNKNOWN


def _digest(ids: Iterable[str]) -> str:
    """A shortened checksum of task ids in any order."""
    return hashlib.sha256("\n".join(sorted(ids)).encode()).hexdigest()[:SHOWN]
