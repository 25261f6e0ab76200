"""Every setting of a run, for its page: the protocol card tells the ones that figures hang on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rpms.evals.protocol_card import NONE, SHOWN, joined
from rpms.evals.records import Manifest
from rpms.nodes.context import RunContext
from rpms.vocabulary.safe_text import redact

Section = tuple[str, dict[str, str]]


def settings_of(manifest: Manifest) -> list[Section]:
    """Titled lists of names and values, without those that are empty."""
    run = {
        **manifest.settings,
        "workers": manifest.workers,
        "concurrency": manifest.concurrency,
        "ray": manifest.ray,
        "started": manifest.created,
        "finished": manifest.finished,
    }
    sections = [
        ("Agent and model", _of_conditions(manifest)),
        ("Run", {name: _told(value) for name, value in run.items() if value is not None}),
        ("Checksums", _checksums(manifest)),
        ("Memories", _memories(manifest)),
        ("Swapped in", _swapped(manifest)),
        ("Sessions", _sessions(manifest)),
        ("Versions", manifest.versions),
    ]
    return [(title, values) for title, values in sections if values]


def _of_conditions(manifest: Manifest) -> dict[str, str]:
    """One value where all conditions share it; a setting younger than the run has its default."""
    usual = RunContext().plain
    contexts = {label: {**usual, **own} for label, own in manifest.conditions.items()}
    names = dict.fromkeys(name for context in contexts.values() for name in context)
    return {
        name: joined({label: _told(c.get(name)) for label, c in contexts.items()}) for name in names
    }


def _checksums(manifest: Manifest) -> dict[str, str]:
    hashes = manifest.hashes
    found = {"rules": hashes.rules, "prompts": hashes.prompts}
    found |= {f"memory of {label}": digest for label, digest in hashes.memory.items()}
    found |= {f"rules of {label}": digest for label, digest in hashes.rules_of.items()}
    return {name: digest for name, digest in found.items() if digest}


def _memories(manifest: Manifest) -> dict[str, str]:
    return {
        digest[:SHOWN]: "; ".join(
            [
                f"{known.entries} entries",
                *_list("from", known.sources),
                *_list("learned by", known.learned_by),
            ]
        )
        for digest, known in manifest.memories.items()
    }


def _swapped(manifest: Manifest) -> dict[str, str]:
    return {
        f"{what} of {label}": " ".join(one.values())
        for label, found in manifest.swapped.items()
        for what, one in found.items()
    }


def _sessions(manifest: Manifest) -> dict[str, str]:
    told = {}
    for number, session in enumerate(manifest.sessions, start=1):
        spent = session.spent
        cost = [f"{spent.tokens:,} tokens"] if spent else ["broken off"]
        if spent and spent.usd is not None:
            cost.append(f"{spent.usd:.2f} USD")
        told[str(number)] = ", ".join(
            [f"from {session.started}", f"commit {session.commit}", *cost]
        )
    return told


def _list(words: str, values: Iterable[str]) -> list[str]:
    text = " and ".join(values)
    return [f"{words} {text}"] if text else []


def _told(value: Any) -> str:
    """A value as the command line takes it; an address without its password."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return NONE if value in ("", None) else redact(str(value))
