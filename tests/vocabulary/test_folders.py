from __future__ import annotations

from pathlib import Path

import pytest

from rpms.envs.alfworld.tasks import data_root
from rpms.models.prices import rates_for
from rpms.models.response_cache import default_file
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.folders import cache_dir, expanded


def test_where_things_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.delenv("RPMS_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert cache_dir() == Path("/home/me/.cache/rpms")
    monkeypatch.setenv("XDG_CACHE_HOME", "~/other")
    assert cache_dir() == Path("/home/me/other/rpms")
    monkeypatch.setenv("RPMS_CACHE", "~/mine")
    assert cache_dir() == Path("/home/me/mine") == expanded("~/mine", "it")


@pytest.mark.parametrize(
    ("variable", "use"),
    [
        ("RPMS_CACHE", cache_dir),
        ("ALFWORLD_DATA", data_root),
        ("RPMS_RESPONSE_CACHE", default_file),
        ("RPMS_PRICES", lambda: rates_for("openai:x")),
    ],
)
def test_a_home_that_nobody_has(
    variable: str, use: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "~nouser/x")
    assert callable(use)
    with pytest.raises(RpmsError, match=f"{variable}: '~nouser/x'"):
        use()
