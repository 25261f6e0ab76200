from __future__ import annotations

import pytest

from rpms.evals.bench import startup


def test_every_program_is_measured_next_to_a_bare_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    found = startup.bench_startup(tries=1)
    assert next(iter(found)) == "python -c pass"
    assert {"import rpms", "rpms --help", "rpms --version"} <= found.keys()
    assert all(seconds > 0 for seconds in found.values())


def test_a_program_that_fails_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(startup, "PROGRAMS", {"nonsense": ("-c", "raise SystemExit(3)")})
    with pytest.raises(RuntimeError, match="ended with 3"):
        startup.bench_startup(tries=1)
