"""What a hostile or a clumsy hand may type or leave lying, and damage done to good files."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import yaml

NUMBERS = (
    "-1", "-0", "0", "1", "2", "3.5", "1e999", "-1e999", "nan", "inf", "-inf", str(10**20),
    str(10**40), str(-(10**40)), "9" * 5000, "0x10", "1_0", "1,5", "٣", "", " ", "--", "one",
)  # fmt: skip
WORDS = (
    "", " ", ".", "..", "-", "--", "=", "==", ",", ",,", ":", "::", "@", "*", "?", "%s%n", "{}",
    "{0}", "{method}", "{round}", "$HOME", "`id`", "\\", '"', "'", "\t", "a\nb", "\x1b[31mred",
    "\x07", "\u202eabc", "💥", "é" * 200, "x" * 300, "y" * 5000, "\udcff", "a\udc80b", "../x",
    "~", "~nouser", "~nouser/x", "@~nouser", "@nowhere", "@/dev/null", "null", "true", "off",
    "A", "B", "D", "A,B", "A,,B", "Z", "A+verify", "A+", "D+verify+x", "E+offer", "a", "2x2",
    "os:getcwd", "os:", ":getcwd", "..:x", "json.decoder:JSONDecoder", "no.such:thing", "1:2",
    "x:scf=off", "x:scf", "x:condition=Z", ":scf=off", "x:nodes=os:path", "x:seed=1e9",
    "rpms", "sim", "random", "local:", "local:nowhere", "local:nowhere?ctx=-1", "openai:", "a:b:c",
    "alfworld", "generated_seen", "generated_unseen", "valid_unseen", "train", "atif",
    "chat", "decision", "episode", "pick_and_place_simple", "U-SEARCH-001", "universal",
    "reflexion",
    "nowhere.yaml:x", "nowhere.yaml", ".yaml:", "http://", "http://[::1", "file:///etc/passwd",
)  # fmt: skip
PLACES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/stdout", "/proc/self/mem", "nowhere",
           "nowhere/below/it", "z" * 300, "a/" * 2000)  # fmt: skip


LAID_OUT = ("folder", "pipe", "loop", "dangling", "device", "empty", "empty.yaml", "latin.yaml",
            "nul.jsonl", "locked")  # fmt: skip


def lay_out(folder: Path) -> None:
    """Things in a folder that are no plain files, or no readable ones: ``LAID_OUT``."""
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe")
    (folder / "loop").symlink_to("loop")
    (folder / "dangling").symlink_to("nothing/there")
    (folder / "device").symlink_to("/dev/zero")
    (folder / "empty").touch()
    (folder / "empty.yaml").touch()
    (folder / "latin.yaml").write_bytes("name: caf\xe9\n".encode("latin-1"))
    (folder / "nul.jsonl").write_bytes(b"\0" * 64)
    (folder / "locked").write_text("secret")
    (folder / "locked").chmod(0)


DEEP = 50_000
HUGE = 10**40


def plain(chance: Random) -> Any:
    """A value for a document where something else is expected."""
    values: tuple[Any, ...] = (
        None, True, False, 0, -1, 1, HUGE, -HUGE, 2**63, 1e308, -1.5, "", " ", "x" * 300, "\0",
        "a\nb", "💥", "{oops}", "{0}", "%s", "~nouser", "../../..", "/dev/zero", "2030-13-45", "Z",
        "A", "off", "os:path", [], {}, [[]], [None], {"": None}, {"a": {"b": []}}, [HUGE] * 3,
        ["x", 1, None], {"id": 5}, "not holding(", "holding(object)", "all",
    )  # fmt: skip
    return chance.choice(values)


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
    """Some bytes lost, doubled or put in."""
    for _ in range(chance.choice((1, 1, 1, 2, 8))):
        at, to = sorted(chance.choices(range(len(data) + 1), k=2))
        data = chance.choice((
            data[:at], data[:at] + chance.choice(JUNK) + data[at:], data[:to] + data[at:],
            data[:at] + data[min(to, at + 20):], data[:at] + b"\x01" + data[at + 1:],
        ))  # fmt: skip
    return data


def altered(chance: Random, document: Any) -> Any:
    """The document with one value put in the place of another, lost, renamed or added."""
    document = copy.deepcopy(document)
    spots = list(_spots(document))
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        node, key = chance.choice(spots or [([document], 0)])
        match chance.randrange(6), isinstance(node, dict):
            case 0, True:
                node.pop(key, None)
            case 1, True:
                node[chance.choice((f"{key}x", "", "id", "x" * 300, "A"))] = node.pop(key, None)
            case 0, False:
                node.extend([plain(chance), *node[:3]])
            case 1, False:
                node.clear()
            case _ if isinstance(node, dict) or key < len(node):
                node[key] = plain(chance)
            case _:
                pass
    return document if spots else plain(chance)


def _spots(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every place of a document, by what holds it."""
    if isinstance(node, dict | list):
        for key, value in [*node.items()] if isinstance(node, dict) else enumerate(node):
            yield node, key
            yield from _spots(value)


def damaged_json(chance: Random, data: bytes) -> bytes:
    """A JSON document as an editor, a disk or an attacker may leave it."""
    kind = chance.randrange(10)
    if kind == 0:
        return chance.choice(WHOLE_JSON).encode()
    if kind < 4:
        return scarred(chance, data)
    return json.dumps(altered(chance, json.loads(data))).encode()


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
    return yaml.safe_dump(altered(chance, yaml.safe_load(data)), allow_unicode=True).encode()


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
