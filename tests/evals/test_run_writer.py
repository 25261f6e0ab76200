from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from rpms.evals.records import Episode, EpisodeLine, Manifest
from rpms.evals.run_folder import EPISODES, MANIFEST, RunWriter, slug, step_log_file
from rpms.vocabulary.errors import RpmsError
from tests.evals.sample_runs import episode, manifest


def line(task: str, condition: str = "A", mode: str | None = None) -> EpisodeLine:
    return EpisodeLine(**episode(condition, 0, mode is None, task=task, failure_mode=mode))


@pytest.fixture
def writer(tmp_path: Path) -> RunWriter:
    return RunWriter(tmp_path / "run")


def test_what_is_appended_is_found_again(writer: RunWriter) -> None:
    writer.append(line("a/1"), gzip.compress(b"{}"))
    writer.append(line("b/2", mode="timeout"), gzip.compress(b"{}"))
    assert writer.finished(EpisodeLine) == {
        ("A", "a/1", 1, 1): line("a/1"), ("A", "b/2", 1, 1): line("b/2", mode="timeout")
    }  # fmt: skip
    assert gzip.decompress(step_log_file(writer.folder, "A", "b/2").read_bytes()) == b"{}"


def test_the_last_line_of_an_episode_counts(writer: RunWriter) -> None:
    writer.append(line("a", mode="model_error"), b"")
    writer.append(line("a"), b"")
    assert [e.failure_mode for e in writer.finished(Episode).values()] == [None]
    assert len((writer.folder / EPISODES).read_text().splitlines()) == 2


@pytest.mark.parametrize("torn", ['{"condition": "A", "ta', '{"condition": "A", "task": "c"}', "{"])
def test_a_torn_last_line_is_cut_off_before_going_on(writer: RunWriter, torn: str) -> None:
    writer.append(line("a"), b"")
    writer.append(line("b"), b"")
    file = writer.folder / EPISODES
    whole = file.read_bytes()
    file.write_bytes(whole + torn.encode())
    assert {key.task for key in writer.finished(Episode)} == {"a", "b"}
    assert file.read_bytes() == whole
    writer.append(line("c"), b"")
    assert {key.task for key in writer.finished(Episode)} == {"a", "b", "c"}


@pytest.mark.parametrize("damaged", ["nonsense", "[]", '{"condition": "A", "task": "c"}', "\0"])
def test_a_damaged_line_tells_of_no_episode_and_is_counted(writer: RunWriter, damaged: str) -> None:
    writer.append(line("a"), b"")
    with (writer.folder / EPISODES).open("a") as out:
        out.write(f"{damaged}\n")
    writer.append(line("b"), b"")
    assert {key.task for key in writer.finished(Episode)} == {"a", "b"} and writer.damaged == 1


def test_a_folder_has_one_writer_at_a_time(writer: RunWriter) -> None:
    with pytest.raises(RpmsError, match="being written by another"):
        RunWriter(writer.folder)
    writer.close()
    RunWriter(writer.folder).close()


def test_the_manifest_is_replaced_whole(writer: RunWriter) -> None:
    assert writer.manifest() is None
    for count in (1, 2):
        writer.write_manifest(Manifest(**manifest(["A"], count, later="kept")))
    assert writer.manifest() == Manifest(**manifest(["A"], 2, later="kept"))
    assert json.loads((writer.folder / MANIFEST).read_text()) == manifest(["A"], 2, later="kept")
    assert sorted(p.name for p in writer.folder.iterdir()) == [".lock", MANIFEST]


@pytest.mark.parametrize("text", ["", "[]", '{"format": 99}', "{"])
def test_a_foreign_manifest_is_refused(writer: RunWriter, text: str) -> None:
    (writer.folder / MANIFEST).write_text(text)
    with pytest.raises(RpmsError, match="not a manifest"):
        writer.manifest()


def test_a_place_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RpmsError, match="cannot write to"):
        RunWriter(tmp_path / "file" / "run")


def test_slugs_are_file_names_and_never_collide() -> None:
    texts = ["a/b", "a_b", "a b", "D arbitration=hard+soft", "x" * 300, "x" * 301, "..", "ü"]
    slugs = [slug(text) for text in texts]
    assert len(set(slugs)) == len(texts)
    assert all("/" not in s and len(s) <= 89 and s not in (".", "..") for s in slugs)
    assert slug("a/b").startswith("a_b-") and json.dumps(slug("ü")).isascii()
