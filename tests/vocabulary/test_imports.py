"""Objects by import path."""

from __future__ import annotations

import os

import pytest

from rpms.vocabulary import imports
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.imports import is_path, load_object, only_installed


def test_an_object_is_found_by_its_path() -> None:
    assert load_object("os.path:join", "the stage") is os.path.join
    assert load_object("os:path.join", "the stage") is os.path.join


@pytest.mark.parametrize("text", ["", "os", "openai:gpt-4o-mini", "local:smollm2.gguf-x", ":join"])
def test_what_is_no_path_is_not_taken_for_one(text: str) -> None:
    assert not is_path(text)
    with pytest.raises(RpmsError, match=r"the stage .* is not an import path"):
        load_object(text, "the stage")


@pytest.mark.parametrize("text", ["os.path:nothing", "no_such_module_here:thing"])
def test_what_is_not_there_is_named(text: str) -> None:
    with pytest.raises(RpmsError, match=f"cannot load the model '{text}'"):
        load_object(text, "the model")


def test_a_server_follows_no_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imports, "_allowed", True)  # put back afterwards
    only_installed()
    with pytest.raises(RpmsError, match="this server does not follow import paths"):
        load_object("os.path:join", "the stage")
