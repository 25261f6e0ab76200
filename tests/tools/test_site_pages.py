"""The site of docs/: it builds without a warning, and a link that leads nowhere is one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import rpms
from tools.site_pages import GENERATED, command_page, reference_page, schema_page, start_page

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
built = pytest.mark.skipif(
    find_spec("mkdocs") is None, reason="mkdocs is not installed (make setup-dev)"
)


def build(config: Path, site: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", config, "-d", site],
        cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True,
        check=False, timeout=600,
    )  # fmt: skip


@built
def test_the_site_builds_and_has_every_public_name(tmp_path: Path) -> None:
    done = build(ROOT / "mkdocs.yml", tmp_path)
    assert done.returncode == 0, done.stderr
    reference = (tmp_path / "reference.html").read_text(encoding="utf-8")
    for name in rpms.__all__:
        assert re.search(rf'<h\d id="rpms\.[\w.]*\b{name}"', reference), name
    start = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert 'href="memory.html"' in start
    # With no network its pictures, scripts and styles are there.
    loaded = re.findall(r'<(?:img|script|link)\b[^>]*?\b(?:src|href)="([^"#?]+)"', start)
    assert len(loaded) > 5
    assert [name for name in loaded if not (tmp_path / name).is_file()] == []


@built
def test_links_that_lead_nowhere_stop_the_build(tmp_path: Path) -> None:
    """Without the reference, which is what takes time."""
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    page = tmp_path / "docs" / "new.md"
    page.write_text("# New\n\n[a](elsewhere.md) [b](rules.md#nowhere)\n", encoding="utf-8")
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    config = config.replace("hooks: [tools/site_pages.py]\n", "").split("nav:\n  - Start")[0]
    (tmp_path / "mkdocs.yml").write_text(config, encoding="utf-8")
    done = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert done.returncode == 1
    assert "elsewhere.md" in done.stderr and "#nowhere" in done.stderr


def test_every_page_is_in_the_navigation() -> None:
    shown = re.findall(r"[\w-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert sorted(shown) == sorted([*GENERATED, *(page.name for page in PAGES[1:])])


def test_links_lead_to_files_of_the_repository() -> None:
    """Also those that are no pages of the site, and those in the README."""
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
        for link in re.findall(r"\]\((?!https?://|#)([^)#\s]+)", text):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_the_pages_that_no_file_holds() -> None:
    assert "](docs/" not in start_page() and start_page().startswith("# RPMS")
    assert reference_page().count("::: rpms.") == len(rpms.__all__)
    assert "## `rpms eval`" in command_page() and '"preconditions"' in schema_page()
