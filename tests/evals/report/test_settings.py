"""Every setting of a run is on its page."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from rpms.evals.report import read_report
from rpms.evals.report.page import render_page
from rpms.evals.report.settings import settings_of
from rpms.evals.run_folder import read_run
from rpms.nodes.context import RunContext
from tests.evals.sample_runs import contexts, write_run


def test_every_setting_is_told_once_or_by_condition(tmp_path: Path) -> None:
    made = contexts("A", "D")
    made["D"]["base_url"] = "https://me:secret@example.org/v1"
    spent = {"tokens": 1200, "usd": 0.5}
    sessions = [{"started": "2026-01-02T12:00", "commit": "abc1234", "spent": spent},
                {"started": "2026-01-02T20:00", "commit": "def5678"}]  # fmt: skip
    folder = write_run(
        tmp_path, {"A": [True], "D": [True]}, conditions=made, workers=3, sessions=sessions,
        memories={"f" * 64: {"sources": ["a split"], "learned_by": ["sim"], "entries": 7}},
        swapped={"D": {"scf": {"path": "mine:filter", "hash": "12ab"}}},
    )  # fmt: skip
    sections = dict(settings_of(read_run(folder).manifest))
    agent = sections["Agent and model"]
    assert set(agent) == {field.name for field in fields(RunContext)}
    assert agent["memory"] == "off (A) | on (D)"
    assert agent["k"] == "3" and agent["rules_dir"] == "none"
    assert "secret" not in str(sections) and "example.org" in agent["base_url"]
    assert sections["Run"]["workers"] == "3" and "ray" not in sections["Run"]
    assert sections["Checksums"]["rules"] == "r" * 64
    assert sections["Memories"] == {"f" * 8: "7 entries; from a split; learned by sim"}
    assert sections["Swapped in"] == {"scf of D": "mine:filter 12ab"}
    assert (
        sections["Sessions"]["1"] == "from 2026-01-02T12:00, commit abc1234, 1,200 tokens, 0.50 USD"
    )
    assert sections["Sessions"]["2"].endswith("broken off")
    page = render_page(read_report(folder))
    assert "<dt>memory_method</dt><dd>rpms</dd>" in page and "<summary>Protocol" in page
