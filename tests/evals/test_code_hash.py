"""The name and the checksum of a user's code."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest

from rpms.evals.running.arms import code_hash, swapped_in
from rpms.vocabulary.context import RunContext

MODULE = """
from functools import partial

LIMIT = 3


class Method:
    pass


def scf(state):
    return state


stages = {"scf": scf, "arbitration": partial(scf)}


def mine():
    from rpms import build_graph

    return build_graph(stages)
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path / f"hashed_{abs(hash(tmp_path))}.py"


def test_it_is_the_checksum_of_the_file(write: Path) -> None:
    hashes = []
    for text in (MODULE, MODULE.replace("LIMIT = 3", "LIMIT = 4")):
        write.write_text(text)
        sys.modules.pop(write.stem, None)
        found = {code_hash(f"{write.stem}:{name}") for name in ("scf", "Method", "stages")}
        assert found == {hashlib.sha256(write.read_bytes()).hexdigest()[:12]}
        hashes.append(found)
    assert hashes[0] != hashes[1]


def test_a_stage_is_named_by_its_function(write: Path) -> None:
    write.write_text(MODULE)
    swapped = swapped_in(RunContext(), f"{write.stem}:mine")
    assert {stage: code["path"] for stage, code in swapped.items()} == {
        "graph": f"{write.stem}:mine",
        "nodes arbitration": f"{write.stem}:mine",  # a partial has no name of its own
        "nodes scf": f"{write.stem}:scf",
    }
    assert swapped["nodes scf"]["hash"] == code_hash(f"{write.stem}:scf")
