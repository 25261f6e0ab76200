"""What a hostile or a clumsy hand may type, or leave lying where a file is expected."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import Any

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
    found: tuple[Any, ...] = (
        None, True, False, 0, -1, 1, HUGE, -HUGE, 2**63, 1e308, -1.5, "", " ", "x" * 300, "\0",
        "a\nb", "💥", "{oops}", "{0}", "%s", "~nouser", "../../..", "/dev/zero", "2030-13-45", "Z",
        "A", "off", "os:path", [], {}, [[]], [None], {"": None}, {"a": {"b": []}}, [HUGE] * 3,
        ["x", 1, None], {"id": 5}, "not holding(", "holding(object)", "all",
    )  # fmt: skip
    return chance.choice(found)
