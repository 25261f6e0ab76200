"""Games for the tests: the official ones where they are at hand, generated ones otherwise."""

from __future__ import annotations

import atexit
import fcntl
import json
import os
import pickle
import random
import shutil
import signal
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import settings

from rpms.envs.alfworld.adapter import ENVIRONMENT, AlfworldGame
from rpms.envs.alfworld.tasks import ensure_games
from rpms.envs.manuals import load_manual
from rpms.evals.analysis.report import page
from rpms.evals.running import evaluate
from rpms.evals.running.runner import local_pool
from rpms.graph.build import LLM_CALL
from rpms.graph.own_nodes import RETRIED
from rpms.models.local import missing
from rpms.vocabulary.belief import Belief
from tests.envs.playing import task_of
from tests.openai_server import OpenAIServer, serving
from tools.compare_engines import missing_stock

pytest_plugins = ["tests.real_runs", "tests.scripted_episode"]

# A busy machine may pause any example: how long one takes says nothing about the code.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

# A call that fails is made again by the real policy, but at once.
for call in (LLM_CALL, RETRIED["llm_call"]):
    pauses = {"initial_interval": 0.01, "max_interval": 0.02, "jitter": False}
    call["retry_policy"] = call["retry_policy"]._replace(**pauses)

# What is started in the background ignores Ctrl-C, and so do its children: they are tested with it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Nobody's home decides what is tested: this one is empty, the same for all workers of a run, and
# holds what they make (generated games, replies). Workers inherit it with the environment.
if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ["HOME"] = tempfile.mkdtemp(prefix="rpms-tests-")
    atexit.register(shutil.rmtree, os.environ["HOME"], ignore_errors=True)
    places = ("XDG_", "ALFWORLD_DATA", "RPMS_CACHE", "RPMS_PRICES")
    for variable in [name for name in os.environ if name.startswith(places)]:
        del os.environ[variable]
HOME = Path(os.environ["HOME"])

NAMED = os.environ.get("RPMS_TEST_ARCHIVES")
ARCHIVES = Path(NAMED or Path(__file__).resolve().parents[2] / "shared" / "alfworld")
HAVE_OFFICIAL = (ARCHIVES / "valid_seen.tar.xz").is_file()
if NAMED and not HAVE_OFFICIAL:
    raise pytest.UsageError(f"RPMS_TEST_ARCHIVES: there is no valid_seen.tar.xz in {NAMED}")
ASK_FOR_OFFICIAL = {"have_official", "alfworld_data", "official_games", "put_games"}
WHICH_GAMES = (
    "official valid_seen and valid_train games, and 12 in the older wording"
    if HAVE_OFFICIAL
    else "generated homes only (no official archives beside the checkout)"
)

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)
NO_BROWSER = f"no browser found; looked for {', '.join(BROWSERS)}"
NO_STOCK = "stock TextWorld is not installed (make textworld)"


def pytest_report_header() -> list[str]:
    """Say on which games, browser and model this run's results stand."""
    absent = " and ".join(missing())
    stock = f"transcripts only, {NO_STOCK}" if missing_stock() else "transcripts and live"
    model = f"left out, {absent} not installed (make local)" if absent else "SmolLM2-135M"
    return [
        f"ALFWorld games: {WHICH_GAMES}",
        f"equality with stock TextWorld: {stock}",
        f"browser: {BROWSER or NO_BROWSER}",
        f"local language model: {model}",
    ]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests need a browser; who plays official games, where there are any, is marked.

    Tests of the shipped model wait for one another, so they stand together: in the share of one
    worker, while the other has something else to do.
    """
    items.sort(key=lambda item: "shipped_model" not in getattr(item, "fixturenames", ()))
    for item in items:
        if isinstance(item, pytest.Function) and ASK_FOR_OFFICIAL & set(item.fixturenames):
            item.add_marker("official")
        if BROWSER is None and item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.skip(reason=NO_BROWSER))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name every test that did not run, and for want of what: a pass would claim too much."""
    skipped: dict[str, list[str]] = {}
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr
        skipped.setdefault(str(reason).removeprefix("Skipped: "), []).append(report.nodeid)
    passed = [report.nodeid for report in terminalreporter.stats.get("passed", [])]
    recorded, live = (
        sum(f"test_stock.py::{name}[" in nodeid for nodeid in passed)
        for name in ("test_plays_as_stock_did", "test_plays_as_stock_does")
    )
    if recorded or live:
        terminalreporter.section("equality with stock TextWorld")
        terminalreporter.write_line(f"{recorded} transcripts of its games replayed without it")
        why = NO_STOCK if missing_stock() else "not asked for in this run"
        compared = f"{live} sets of games compared" if live else f"not compared, {why}"
        terminalreporter.write_line(f"live: {compared}")
    if skipped:
        terminalreporter.section("left out")
    for reason, names in skipped.items():
        terminalreporter.write_line(f"{len(names)} tests did not run, {reason}:")
        for name in names:
            terminalreporter.write_line(f"  {name}")


@pytest.fixture(scope="session")
def stock_textworld() -> None:
    """Asked for by tests that need stock TextWorld, which is an extra."""
    if missing_stock():
        pytest.skip(NO_STOCK)


def _unpack(*names: str) -> Path:
    """Unpack archives once per run; safe when several test workers start together."""
    target = HOME / names[0]  # no split's name, which tests look for in a path
    if not target.is_dir():
        work = Path(tempfile.mkdtemp(dir=HOME))
        for name in names:
            with tarfile.open(ARCHIVES / name) as archive:
                archive.extractall(work, filter="data")
        try:
            work.rename(target)
        except OSError:
            shutil.rmtree(work)
    return target


@pytest.fixture(scope="session")
def have_official() -> bool:
    """Whether this run plays official games."""
    return HAVE_OFFICIAL


@pytest.fixture(scope="session")
def alfworld_data() -> Path:
    """A folder to use as ALFWORLD_DATA, with valid_seen and valid_train when they are at hand."""
    if HAVE_OFFICIAL:
        return _unpack("valid_seen.tar.xz", "valid_train.tar.xz")
    return ensure_games("generated_seen", 60)[0].parents[3].parent


@pytest.fixture(scope="session")
def official_games(alfworld_data: Path) -> list[Path]:
    """Game files in the newer wording, in sorted order."""
    if not HAVE_OFFICIAL:  # always the same ones, whatever other tests generate beside them
        return sorted(ensure_games("generated_seen", 60))
    return sorted(alfworld_data.glob("json_2.1.1/*/*/*/game.tw-pddl"))


@pytest.fixture(scope="session")
def put_games() -> list[Path]:
    """Game files in the older wording (put X in/on Y)."""
    if HAVE_OFFICIAL:
        files = sorted(_unpack("put_dialect_sample.tar.xz").glob("json_2.1.1/*/*/*/game.tw-pddl"))
        return [file for file in files if json.loads(file.read_text())["solvable"]]
    return ensure_games("generated_seen", 12, dialect="put")


class Step(NamedTuple):
    """One step of a random walk."""

    before: Belief
    action: str
    observation: str
    after: Belief


class Walk(NamedTuple):
    """The steps of a walk through one game, and where its belief parted from the truth."""

    game: Path
    steps: list[Step]
    disagreements: list[str]


# So many parts can be walked at the same time by different test workers.
CHUNKS = 2
STEPS_PER_GAME = 160
IDLE = ("examine", "inventory", "look")
TOOLS = ("go to microwave", "go to fridge", "go to sinkbasin", "go to desk", "go to sidetable")


@pytest.fixture(scope="session")
def walked_games(official_games: list[Path], put_games: list[Path]) -> list[Path]:
    """Games for random walks: official and generated ones, in both wordings, each once."""
    games = [
        *official_games[:: max(1, len(official_games) // 40)][:40],
        *put_games[:10],
        *ensure_games("generated_unseen", 12),
        *ensure_games("generated_unseen", 6, dialect="put"),
    ]
    return list(dict.fromkeys(games))


@pytest.fixture(params=range(CHUNKS))
def chunk(request: pytest.FixtureRequest) -> int:
    """A test that asks for this runs once per chunk of the walks."""
    number: int = request.param
    return number


@pytest.fixture(scope="session")
def walks(walked_games: list[Path], shared_folder: Path) -> Callable[[int], list[Walk]]:
    """The random walks of one chunk, walked once per run by the first worker to need them."""

    @lru_cache(maxsize=1)
    def load(number: int) -> list[Walk]:
        store = shared_folder / f"walks-{number}.pickle"
        with store.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not store.is_file():
                game = AlfworldGame()
                chunk = [_walk(game, file) for file in walked_games[number::CHUNKS]]
                game.close()
                store.write_bytes(pickle.dumps(chunk))
        walked: list[Walk] = pickle.loads(store.read_bytes())
        return walked

    return load


def _walk(game: AlfworldGame, file: Path) -> Walk:
    """Two thirds admissible commands in the agent's wording, one third anything at all."""
    rng = random.Random(file.parent.name)
    belief = ENVIRONMENT.first_belief(game.reset(task_of(file)))
    walk = Walk(file, [], ENVIRONMENT.belief_errors(belief, game.facts()))
    for _ in range(STEPS_PER_GAME):
        action = _propose(rng, game, belief)
        observation = game.step(action).observation
        after = ENVIRONMENT.update_belief(belief, action, observation)
        walk.steps.append(Step(belief, action, observation, after))
        wrong = ENVIRONMENT.belief_errors(after, game.facts())
        walk.disagreements.extend(f"after '{action}' -> '{observation}': {what}" for what in wrong)
        belief = after
    return walk


def _propose(rng: random.Random, game: AlfworldGame, belief: Belief) -> str:
    if rng.random() < 2 / 3:
        # Verbs take turns and a full hand draws towards the tools; among all commands alike most
        # would be walks, and hardly ever would an object be brought to where it can be heated.
        by_verb: dict[str, list[str]] = {}
        for command in game.commands():
            by_verb.setdefault(command.split()[0], []).append(command)
        verbs = sorted(by_verb.keys() - {"help"})
        verb = rng.choices(verbs, [1 if verb in IDLE else 4 for verb in verbs])[0]
        tools = [c for c in by_verb[verb] if c.startswith(TOOLS)]
        drawn = tools and belief["holding"] and rng.random() < 0.5
        return rng.choice(tools if drawn else by_verb[verb])
    rule = rng.choice(load_manual("alfworld").actions)
    things = [*belief["last_seen"], *belief["holding"]] or ["mug 1"]
    near = [p for p in (belief["location"], *belief["reachable"]) if p] or belief["places"]
    pool = {"object": things, "tool": things, "thing": [*things, *near], "place": belief["places"]}
    names = {
        name: rng.choice(near if name == "place" and rng.random() < 0.5 else pool[name])
        for name in rule.parameters
    }
    return rule.syntax.format(**names)


@pytest.fixture(scope="session")
def local_model() -> str:
    """The name of a real language model on this machine, small enough for every run."""
    if absent := missing():
        pytest.skip(f"no real language model was asked: {' and '.join(absent)} not installed")
    return "local:smollm2?ctx=2048"


@pytest.fixture(autouse=True)
def no_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that a test writes has no plots, which take a second to draw.

    The page of the tests in a browser has them: it is written for the whole session.
    """
    monkeypatch.setattr(page, "pictures", lambda data: [])


@pytest.fixture
def no_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would be played in a process for each processor is played in this one."""
    monkeypatch.setattr(
        evaluate, "local_pool", lambda plan, workers, meter=None: local_pool(plan, 0, meter)
    )


@pytest.fixture
def openai_server() -> Iterator[OpenAIServer]:
    """A scripted OpenAI-compatible server on this machine."""
    with serving() as server:
        yield server
