"""Damage done to good files: to their bytes, to their values, and to what they are."""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path
from random import Random
from typing import Any

import yaml

from tests.fuzz.values import DEEP, plain

JUNK = (b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\n", b"\r\n", b"\t", b"{", b"]",
        b'"', b"\\ud800", b"NaN", b"9" * 5000, b"-", b": ", b"&a ", b"*a",
        b"\xe2\x80\xa8")  # fmt: skip
WHOLE_YAML = (
    "&a [*a]", "a: &a {b: *a}", "&a {<<: *a}", "*a", "[" * 600, "- " * 9000, "{a: " * 500,
    "? [a]\n: b", "? {a: b}\n: c", "!!int abc", "!!int ''", "!!bool abc", "!!timestamp abc",
    "!!float abc", "!!binary '*'", "!!python/object/apply:os.getcwd []", "!!set [1]", "!!omap 1",
    "2030-13-45", "1:99:99", "a: 2030-02-30", "- - - -", "%YAML 9.9\n---\na", "---\na\n---\nb",
    "a: " + "9" * 5000, "0o9", "a: b: c", "\t", "a: |\n b\n  c\n d", "<<: 1", "!!null x", "...",
    "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
    "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n"
    "e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n",
)  # fmt: skip
WHOLE_JSON = ("[" * DEEP, '{"a":' * DEEP, "null", "[]", "{}", "5", '"x"', "1e999", "9" * 5000,
              '{"format": 1}', "{}{}", '{"a":1,"a":2}', '"\\ud800"', "\ufeff{}")  # fmt: skip


def scarred(chance: Random, data: bytes) -> bytes:
    """Some bytes changed, lost, doubled or put in."""
    for _ in range(chance.choice((1, 1, 1, 2, 8))):
        at, to = sorted(chance.choices(range(len(data) + 1), k=2))
        match chance.randrange(6):
            case 0 if data:
                at = min(at, len(data) - 1)
                data = data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]
            case 1:
                data = data[:at]
            case 2:
                data = data[:at] + chance.choice(JUNK) + data[at:]
            case 3:
                data = data[:at] + data[at:to] * 2 + data[to:]
            case 4:
                data = data[:at] + data[min(to, at + 20) :]
            case _:
                lines = data.split(b"\n")
                chance.shuffle(lines)
                data = b"\n".join(lines)
    return data


def altered(chance: Random, document: Any) -> Any:
    """The document with one value put in the place of another, lost, renamed or added."""
    document = copy.deepcopy(document)
    spots: list[tuple[Any, Any]] = []

    def visit(node: Any) -> None:
        items = node.items() if isinstance(node, dict) else enumerate(node)
        for key, value in items:
            spots.append((node, key))
            if isinstance(value, dict | list):
                visit(value)

    if not isinstance(document, dict | list) or not document:
        return plain(chance)
    visit(document)
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        node, key = chance.choice(spots)
        match chance.randrange(8):
            case 0 if isinstance(node, dict):
                node.pop(key, None)
            case 1 if isinstance(node, dict):
                node[chance.choice((f"{key}x", "", "id", "x" * 300, "A"))] = node.pop(key, None)
            case 2 if isinstance(node, list):
                node.append(plain(chance))
            case 3 if isinstance(node, list):
                node.clear()
            case 4 if isinstance(node, list):
                node.extend(node[:3])
            case _ if isinstance(node, dict) or key < len(node):
                node[key] = plain(chance)
            case _:
                pass
    return document


def json_text(document: Any) -> bytes:
    return json.dumps(document).encode()


def damaged_json(chance: Random, data: bytes) -> bytes:
    """A JSON document as an editor, a disk or an attacker may leave it."""
    kind = chance.randrange(10)
    if kind == 0:
        return chance.choice(WHOLE_JSON).encode()
    return scarred(chance, data) if kind < 4 else json_text(altered(chance, json.loads(data)))


def damaged_lines(chance: Random, data: bytes) -> bytes:
    """The same for one JSON document to the line; the others stay as they are."""
    if chance.random() < 0.2:
        return scarred(chance, data)
    lines = data.splitlines()
    at = chance.randrange(len(lines))
    lines[at] = damaged_json(chance, lines[at])
    return b"\n".join(lines) + b"\n"


def damaged_yaml(chance: Random, data: bytes) -> bytes:
    """The same for YAML."""
    kind = chance.randrange(10)
    if kind < 2:
        return chance.choice(WHOLE_YAML).encode()
    if kind < 4:
        return scarred(chance, data)
    if kind == 4:
        return data + b"\n" + chance.choice(WHOLE_YAML).encode()
    made = yaml.safe_dump(altered(chance, yaml.safe_load(data)), allow_unicode=True)
    return made.encode()


def put_something_else(chance: Random, file: Path) -> None:
    """No plain file, or none that can be read."""
    file.unlink(missing_ok=True)
    match chance.randrange(7):
        case 0:
            file.mkdir()
        case 1:
            os.mkfifo(file)
        case 2:
            file.symlink_to(file.name)
        case 3:
            file.symlink_to("/dev/zero")
        case 4:
            file.touch()
        case 5:
            file.write_bytes(b"x")
            file.chmod(0)
        case _:
            pass
