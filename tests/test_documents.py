"""README and docs/: the Python in them runs, the command lines are understood, the YAML is ours."""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from itertools import takewhile
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
import typer.main
from typer.core import TyperCommand, TyperGroup

from rpms.commands.main import app
from rpms.graph import build_graph
from rpms.models.prices import rates_for
from tests.examples.conftest import Shell
from tests.examples.conftest import shell as shell  # its fixture

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


TRIED = [page for page in PAGES if page.name != "new-world.md"]
"""Pages of which every command is run and not only parsed, unless a mark says why it is not.

The commands of new-world.md are run in tests/examples/test_new_world_page.py.
"""


class Block(NamedTuple):
    """A fenced block, the reason why no test of this file runs it, and the output that follows."""

    language: str
    text: str
    mark: str
    output: str


BLOCK = re.compile(
    r"(?:^<!-- not run here: (?P<mark>[^\n]+) -->\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```\n"
    r"(?:\n```text\n(?P<output>.*?)^```)?",
    re.S | re.M,
)


def blocks_of(page: Path) -> list[Block]:
    found = BLOCK.finditer(page.read_text("utf-8"))
    return [Block(**{key: text or "" for key, text in one.groupdict().items()}) for one in found]


def blocks(*languages: str) -> list[tuple[Path, str]]:
    return [
        (page, block.text)
        for page in PAGES
        for block in blocks_of(page)
        if block.language in languages
    ]


def assert_printed(shown: str, out: str) -> None:
    """The lines of a page stand in the output in this order; '...' leaves out any number."""
    if not shown:
        return
    words = [re.escape(" ".join(line.split())) for line in shown.splitlines()]
    pattern = "\n".join("(?:.*\n)*?.*" if line == r"\.\.\." else line for line in words)
    printed = "\n".join(" ".join(line.split()) for line in out.splitlines())
    assert re.search(rf"^{pattern}$", printed, re.M), f"{shown}\n--- is not in\n{out}"


def shell_lines() -> Iterator[tuple[str, list[str]]]:
    """The words of every line that a page gives to the shell, with the page's name."""
    for page, text in blocks("sh", "bash"):
        for line in text.replace("\\\n", " ").splitlines():
            if words := shlex.split(line, comments=True):
                yield page.name, words


def commands() -> Iterator[tuple[str, list[str]]]:
    """Every call of rpms that is told whole, with the page it stands on."""
    for page, words in shell_lines():
        if words[0].rpartition("/")[2] == "rpms" and "..." not in words:
            yield page, [*takewhile(lambda word: word not in ("|", ">"), words[1:])]


@pytest.mark.engine
@pytest.mark.parametrize(
    "block",
    [
        pytest.param(block, id=page.name)
        for page in PAGES
        for block in blocks_of(page)
        if block.language == "python" and not block.mark
    ],
)
def test_the_python_of_a_page_runs(
    block: Block,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
    no_workers: None,
) -> None:
    code = block.text
    if '"local:' in code:
        request.getfixturevalue("shipped_model")
    main = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(ROOT)
    exec(code, vars(main))
    out = capsys.readouterr().out
    assert out.strip()
    for printed in re.findall(r"^ *print\(.*\)  # (.+)$", code, re.M):
        assert printed in out
    for printed in re.findall(r"^print\(.*\)\n((?:# .+\n)+)", code, re.M):
        assert " ".join(re.findall(r"# (.+)", printed)) in " ".join(out.split())
    if block.output:
        assert_printed(block.output, out)


@pytest.mark.engine
@pytest.mark.parametrize("page", [pytest.param(page, id=page.name) for page in TRIED])
def test_the_commands_of_a_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: Shell
) -> None:
    """One after the other in one folder, as a reader would who has a clone."""
    monkeypatch.setenv("COLUMNS", "80")
    for folder in ("docs", "examples"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    for block in blocks_of(page):
        if block.language in ("py", "bash") or (block.language == "sh" and block.mark):
            assert block.mark, f"say why it is not run, or write python or sh: {block.text}"
        elif block.language == "sh":
            done = shell(block.text.replace("\\\n", " "), tmp_path)
            assert done.code == ("exit code 1" in block.text), (block.text, done)
            assert_printed(block.output, done.out)


def test_the_command_lines_are_understood() -> None:
    """Parsed as the command line would, and not run."""
    lines = list(commands())
    assert lines
    program = typer.main.get_command(app)
    for page, words in lines:
        command: Any = program
        context = typer.Context(command)
        while isinstance(command, TyperGroup) and words:
            name, command, words = command.resolve_command(context, words)
            assert command is not None, (page, words)
            context = typer.Context(command, info_name=name, parent=context)
        if isinstance(command, TyperGroup):  # 'rpms worlds' is one, and a command
            assert command.invoke_without_command, page
        else:
            assert isinstance(command, TyperCommand)
            command.parse_args(context, list(words))


def test_no_page_sends_anyone_to_a_paid_model_without_a_budget() -> None:
    """One's own server has its address in the command."""
    seen = 0
    for page, words in commands():
        model = words[words.index("--model") + 1] if "--model" in words else ""
        paid = model.startswith(("openai:", "anthropic:", "MODEL"))
        if words[0] in ("eval", "learn") and paid and not any("127.0.0.1" in w for w in words):
            assert {"--budget-usd", "--budget-tokens"} & {*words}, (page, words)
            seen += 1
    assert seen


def test_the_readme_names_the_targets_of_a_fresh_machine() -> None:
    """One command runs the main job, the other one the tests: as the CI does."""
    targets = {*re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M)}
    (setup,) = [text for page, text in blocks("sh") if page == PAGES[0] and "make setup" in text]
    named = re.findall(r"^make ([a-z-]+)", setup, re.M)
    assert {"demo", "test"} <= {*named} <= targets
    assert re.search(r"^make .*\btest$", (ROOT / ".ci" / "run").read_text("utf-8"), re.M)


def test_the_options_in_the_text_exist() -> None:
    """Calls in running text may leave out arguments."""
    program, seen = typer.main.get_command(app), 0
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.S | re.M)
        for call in re.findall(r"`rpms\s([^`]+)`", text):
            command: Any = program
            words = shlex.split(call)
            for word in words:
                if not isinstance(command, TyperGroup):
                    break
                command = command.commands.get(word, command)
            known = {"--help", *(name for each in command.params for name in each.opts)}
            known |= {name for each in command.params for name in each.secondary_opts}
            options = {word for word in words if word.startswith("--")}
            assert not options - known - {"--install-completion"}, (page.name, call)
            seen += len(options)
    assert seen


def test_the_scripts_take_the_options_shown() -> None:
    seen = 0
    for page, words in shell_lines():
        if "python" not in words[:2] or "-c" in words:
            continue
        words = words[words.index("python") + 1 :]
        name = words[1].replace(".", "/") + ".py" if words[0] == "-m" else words[0]
        if not (ROOT / name).is_file():  # a module of another package
            continue
        source = (ROOT / name).read_text("utf-8")
        options = [word for word in words if word.startswith("--")]
        assert all(f'"{option}"' in source for option in options), (page, words)
        seen += len(options)
    assert seen


def test_files_that_are_named_exist() -> None:
    """By their path from the top or from rpms/, or by a name that some file of the package has."""
    names = {file.name for file in (ROOT / "rpms").rglob("*.*")}
    text = "\n".join(page.read_text("utf-8") for page in PAGES)
    paths = re.findall(r"`([\w./-]+\.(?:py|yaml|j2))`", text)
    missing = [path for path in paths if path not in names
               and not any((top / path).is_file() for top in (ROOT, ROOT / "rpms"))]  # fmt: skip
    assert paths and not missing


@cache
def headings(page: Path) -> set[str]:
    """The anchors of a page, as GitHub and the site make them of its headings."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.S | re.M)
    titles = [
        re.sub(r"[^\w\- ]", "", title.lower()) for title in re.findall(r"^#+ (.+)$", text, re.M)
    ]
    return {title.replace(" ", "-") for title in titles}


def test_links_lead_to_files_and_headings() -> None:
    cards = sorted((ROOT / "rpms" / "models" / "adapters").glob("*.md"))
    seen, broken = 0, list[str]()
    for page in [*PAGES, *cards]:
        for link in re.findall(r"\]\(([^)\s]*)\)", page.read_text("utf-8")):
            name, _, anchor = link.partition("#")
            if "://" in link:
                continue
            target = (page.parent / name).resolve() if name else page
            seen += bool(anchor)
            if not target.exists() or (anchor and anchor not in headings(target)):
                broken.append(f"{page.name}: {link}")
    assert seen and not broken


def test_the_rules_and_plans_shown_stand_in_files() -> None:
    """Every line, comments aside. tests/examples/test_desk.py has the rules of the desk."""
    texts = [file.read_text("utf-8") for top in ("rpms", "docs", "examples")
             for file in (ROOT / top).rglob("*.yaml")]  # fmt: skip
    files = " ".join(" ".join(texts).split())
    for page, text in blocks("yaml"):
        if page.name not in ("README.md", "guard-your-agent.md") and "0.15" not in text:
            for line in text.splitlines():
                bare = re.sub(r"\s+#.*", "", line).strip()
                assert " ".join(bare.split()) in files, line


def test_the_prices_shown_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (shown,) = [text for _, text in blocks("yaml") if "0.15" in text]
    (tmp_path / "prices.yaml").write_text(shown, encoding="utf-8")
    monkeypatch.setenv("RPMS_PRICES", str(tmp_path / "prices.yaml"))
    assert rates_for("openai:my-llama", "http://10.0.0.5:8000/v1")


def test_pictures_are_small_files_of_the_repository() -> None:
    shown = [
        page.parent / name
        for page in PAGES
        for name in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", page.read_text("utf-8"))
    ]
    assert shown and all(1_000 < picture.stat().st_size < 150_000 for picture in shown)


def test_the_picture_of_the_graph_has_its_nodes() -> None:
    picture = (ROOT / "docs" / "images" / "graph.svg").read_text(encoding="utf-8")
    nodes = {name for name in build_graph().get_graph().nodes if not name.startswith("__")}
    assert {*re.findall(r'class="node"[^>]*>(\w+)<', picture)} == nodes


def test_the_figures_of_the_readme_are_those_of_the_page_of_results() -> None:
    readme, page = ((ROOT / name).read_text("utf-8") for name in ("README.md", "docs/results.md"))
    (section,) = re.findall(r"^## Results\n(.*?)^## ", readme, re.M | re.S)
    shares = re.findall(r"[\d.]+%", section)
    assert shares and all(f"| {share} |" in page for share in shares)


def test_the_first_table_says_what_was_not_run() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (row,) = re.findall(r"^\| the paper's models.*", readme, re.M)
    assert row.endswith("| not run |")


def test_the_tables_that_a_script_fills_have_their_marks() -> None:
    for name in ("README.md", "docs/results.md"):
        page = (ROOT / name).read_text(encoding="utf-8")
        assert re.search(
            r"^<!-- table:valid_seen -->\n\|.*^<!-- /table:valid_seen -->$", page, re.M | re.S
        )


def test_extras_are_installed_from_a_clone() -> None:
    """No package index has us; without -e the environment of a clone would be cut off from it."""
    known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    extras = re.findall(r"pip install (?!\"langgraph-cli)(.*)\[(\w+)\]", text)
    assert extras
    for source, extra in extras:
        assert source == "-e '." and extra in known["project"]["optional-dependencies"]


def test_every_tool_has_a_line() -> None:
    page = (ROOT / "tools" / "README.md").read_text(encoding="utf-8")
    scripts = {file.stem for file in (ROOT / "tools").glob("[!_]*.py")}
    assert {*re.findall(r"^\| `(\w+)` \|", page, re.M)} == scripts
