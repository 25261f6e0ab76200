"""The checksum of a user's function: it covers what the function uses, and nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rpms.evals.running.arms import swapped_in
from rpms.evals.running.code_hash import code_hash
from rpms.vocabulary.context import RunContext

MODULE = """
from functools import partial

import os

LIMIT = 3


def helper(text):
    return text[:LIMIT]


class Base:
    size = 1


class Method(Base):
    def recall(self, text):
        return helper(text)


def scf(state):
    other = helper(state)
    return other


def arbitration(state, level=1):
    return os.path.basename(state)


def other():
    return 0


stages = {"scf": scf, "arbitration": partial(arbitration, level=2)}


def mine():
    from rpms import build_graph

    return build_graph(stages)

if __name__ == "__main__":
    other = scf(1)
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path / f"hashed_{abs(hash(tmp_path))}.py"


@pytest.mark.parametrize(
    ("name", "before", "after", "changed"),
    [
        ("scf", "return 0", "return 1", False),
        ("scf", "import os", "import os  # of Python", False),
        ("scf", "other = scf(1)", "other = scf(2)", False),  # the script alone runs it
        ("scf", "other = helper(state)", "other = helper(state, 1)", True),
        ("scf", "text[:LIMIT]", "text[1:LIMIT]", True),
        ("scf", "LIMIT = 3", "LIMIT = 4", True),
        ("Method", "size = 1", "size = 2", True),
        ("Method", "return helper(text)", "return helper(text + text)", True),
        ("Method", "return other", "return other + 1", False),
        ("arbitration", "import os", "import posixpath as os", True),
        ("stages", "level=2", "level=3", True),
    ],
)
def test_it_changes_with_the_code_in_use(
    write: Path, name: str, before: str, after: str, changed: bool
) -> None:
    hashes = []
    for text in (MODULE, MODULE.replace(before, after)):
        write.write_text(text)
        sys.modules.pop(write.stem, None)
        hashes.append(code_hash(f"{write.stem}:{name}"))
    assert (hashes[0] != hashes[1]) == changed


def test_a_stage_is_named_by_its_function(write: Path) -> None:
    write.write_text(MODULE)
    swapped = swapped_in(RunContext(), f"{write.stem}:mine")
    assert {stage: code["path"] for stage, code in swapped.items()} == {
        "graph": f"{write.stem}:mine",
        "nodes arbitration": f"{write.stem}:mine",  # a partial has no name of its own
        "nodes scf": f"{write.stem}:scf",
    }
    assert swapped["nodes scf"]["hash"] == code_hash(f"{write.stem}:scf")
