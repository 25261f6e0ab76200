"""Objects by import path."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.imports import is_path, load_object


def test_an_object_is_found_by_its_path() -> None:
    assert load_object("os.path:join", "the stage") is os.path.join
    assert load_object("os:path.join", "the stage") is os.path.join


@pytest.mark.parametrize("text", ["", "os", "openai:gpt-4o-mini", "local:smollm2.gguf-x", ":join"])
def test_what_is_no_path_is_not_taken_for_one(text: str) -> None:
    assert not is_path(text)
    with pytest.raises(RpmsError, match=r"the stage .* is no import path"):
        load_object(text, "the stage")


@pytest.mark.parametrize("text", ["os.path:nothing", "no_such_module_here:thing"])
def test_what_is_not_there_is_named(text: str) -> None:
    with pytest.raises(RpmsError, match=f"cannot load the model '{text}'"):
        load_object(text, "the model")


def test_a_server_follows_no_path() -> None:
    code = (
        "from rpms.vocabulary.imports import load_object, only_installed\n"
        "only_installed()\n"
        "load_object('os.path:join', 'the stage')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "this server follows no import paths" in done.stderr
