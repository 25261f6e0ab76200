"""An error in a user's own code: where it was, and how one goes on when it is mended."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import rpms as public
from rpms.evals.analysis.report import read_report
from rpms.evals.analysis.report.page import step_pages
from rpms.evals.records.run_folder import read_run
from rpms.vocabulary.errors import RpmsError
from tests.command_line import Done, Rpms
from tests.evals.sample_runs import lines_of
from tests.page_data import data_of

KEY = "sk-a-key-of-mine-123456"
BROKEN = f"""
def chosen(state):
    return state["foo"]  # {KEY}


def scf(state):
    return {{"recalls": chosen(state)}}


def mine():
    import rpms

    return rpms.build_graph({{"scf": scf}})
"""
MENDED = BROKEN.replace('"foo"', '"recalls"')


def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> str:
    """A module of the user's own, for this process and for others."""
    name = f"own_{abs(hash(tmp_path))}"  # a process imports a module once
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return name


def line_with(tmp_path: Path, name: str, text: str) -> tuple[str, int]:
    """Where a text stands in the module."""
    file = tmp_path / f"{name}.py"
    return str(file), 1 + [text in line for line in file.read_text().splitlines()].index(True)


@pytest.mark.engine
def test_a_stage_is_mended_and_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rpms: Rpms
) -> None:
    run, name = tmp_path / "run", own(tmp_path, monkeypatch, BROKEN)
    file = tmp_path / f"{name}.py"
    words = ("eval", "--out", run, "--limit", "2", "--max-steps", "3", "--conditions", "D",
             "--arm", f"mine={name}:mine")  # fmt: skip

    def play(*more: str) -> Done:
        sys.modules.pop(name, None)  # as a process of its own would find it
        return rpms(*words, *more)

    done = play("--workers", "2")
    assert done.code == 2
    shown = (
        "rpms: 2 episodes failed in stage scf:\n"
        f'  File "{file}", line 7, in scf\n'
        '    return {"recalls": chosen(state)}\n'
    )
    assert shown in done.err and f'File "{file}", line 3, in chosen' in done.err
    assert done.err.count("in chosen") == 1 and "langgraph" not in done.err
    assert f"the first (error in your own code at {file}:3): KeyError: 'foo'" in done.err
    assert "Correct your code first" in done.err and "same command" not in done.err
    broken = [line for line in lines_of(run) if line["condition"] == "mine"]
    assert len(broken) == 2
    for line in broken:
        place = line["error_place"]
        assert (place["stage"], place["file"], place["line"]) == ("scf", str(file), 3)
        assert place["traceback"].endswith("KeyError: 'foo'\n")
    assert KEY not in done.err and KEY not in (run / "episodes.jsonl").read_text()
    rows = [
        row for _, page in step_pages(read_report(run), "") for row in data_of(page)["episodes"]
    ]
    places = [row["place"] for row in rows if row["c"] == "mine"]
    assert [place["stage"] for place in places] == ["scf"] * 2
    assert all("in chosen" in place["traceback"] for place in places)
    first = read_run(run).manifest.swapped["mine"]["nodes scf"]["hash"]

    file.write_text(MENDED)
    done = play("--workers", "0")
    assert done.code == 0 and "2 of 4 episodes are finished already" in done.err
    assert [line["error_place"] for line in lines_of(run)[-2:]] == [None, None]
    mended = read_run(run)
    assert mended.complete and len(mended.judged("mine")) == 2
    assert mended.manifest.swapped["mine"]["nodes scf"]["hash"] != first

    second, before = mended.manifest.swapped, (run / "episodes.jsonl").read_bytes()
    assert "have changed" not in done.err
    file.write_text(MENDED.replace("def chosen(state):", "def chosen(state, *more):"))
    done = play("--workers", "0")
    assert done.code == 0 and "the code of mine have changed" in done.err
    third = read_run(run).manifest.swapped["mine"]["nodes scf"]["hash"].split(", ")
    assert [third[0]] == [second["mine"]["nodes scf"]["hash"]] and len({*third}) == 2
    assert (run / "episodes.jsonl").read_bytes() == before
    assert "have changed" not in play("--workers", "0").err


@pytest.mark.engine
def test_an_arm_that_always_fails_at_one_line_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rpms: Rpms
) -> None:
    run, name = tmp_path / "run", own(tmp_path, monkeypatch, BROKEN)
    done = rpms("eval", "--out", run, "--limit", "6", "--max-steps", "1", "--workers", "0",
                "--concurrency", "30", "--conditions", "D",
                "--arm", f"mine={name}:mine")  # fmt: skip
    place = f"{tmp_path / name}.py:3"
    assert done.code == 2 and f"error in mine at {place}: KeyError: 'foo'" in done.err
    assert f"mine stopped: every episode failed at {place}: KeyError: 'foo'" in done.err
    assert "Stopped, because every episode failed at one line: mine." in " ".join(done.err.split())
    played = [line["condition"] for line in lines_of(run)]
    assert played.count("mine") == 3 and played.count("D") == 6
    assert not read_run(run).complete and read_run(run).manifest.finished is None


MODEL = """
from langchain_core.language_models import BaseChatModel


class Chat(BaseChatModel):
    @property
    def _llm_type(self):
        return "mine"

    def _generate(self, messages, stop=None, run_manager=None, **others):
        return messages["here"]


def make():
    return Chat()
"""
MEMORY = """
from rpms.memory_store.methods.rpms import RpmsMemory


class Mine(RpmsMemory):
    def recall(self, request):
        return request.carried["here"]


class Learning(RpmsMemory):
    name = "mine"
    needs_model = False

    async def learn(self, records, ask, manual=None):
        return records["there"]


class Carrying(RpmsMemory):
    cumulative, needs_model = True, False

    async def carry(self, carried, record, ask):
        return carried["over"]
"""
WORLD = """
import rpms
from rpms.commands.world_template.world import World


class Game:
    def __init__(self, game):
        self._game = game

    def __getattr__(self, name):
        return getattr(self._game, name)

    def step(self, action):
        raise rpms.EnvironmentFault("the lamp is out")


class Mine(World):
    folder = World().folder

    {method}:
        return {{}}["here"]


class Dark(World):
    folder = World().folder

    def open_game(self):
        return Game(super().open_game())


WORLD = Mine()
DARK = Dark()
"""


@pytest.mark.engine
@pytest.mark.parametrize(
    ("text", "arm", "stage", "mode"),
    [
        (MODEL, {"model": "{}:make"}, "llm_call", "model_error"),
        (MEMORY, {"memory_method": "{}:Mine"}, "goal_retrieval", "infrastructure_error"),
    ],
    ids=["model", "memory"],
)
def test_a_model_and_a_memory(
    text: str, arm: dict[str, str], stage: str, mode: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    name = own(tmp_path, monkeypatch, text)
    context = public.RunContext(**{key: path.format(name) for key, path in arm.items()})  # type: ignore[arg-type]
    with pytest.raises(RpmsError, match="episodes"):
        public.evaluate(
            {"mine": context},
            out=tmp_path / "run",
            limit=2,
            execution=public.ExecutionOptions(workers=0),
        )
    file, number = line_with(tmp_path, name, '["here"]')
    for line in lines_of(tmp_path / "run"):
        place = line["error_place"]
        assert (place["stage"], place["file"], place["line"]) == (stage, file, number)
        assert line["failure_mode"] == mode
    shown = capsys.readouterr().err
    assert shown.count(f'File "{file}", line {number}') == 1
    assert f"rpms: 2 episodes failed in stage {stage}:" in shown


@pytest.mark.parametrize(
    ("method", "stage"),
    [
        ("def update_belief(self, previous, action, observation)", "belief_update"),
        ("def true_state(self, facts)", ""),
        ("", "env_step"),
    ],
)
def test_a_world(
    method: str, stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rpms: Rpms
) -> None:
    name = own(tmp_path, monkeypatch, WORLD.format(method=method or "def none(self)"))
    file, number = line_with(tmp_path, name, '["here"]' if method else "the lamp is out")
    env = f"{name}:{'WORLD' if method else 'DARK'}"
    few = ("--limit", "2", "--workers", "0", "--conditions", "B")
    done = rpms("eval", "--out", tmp_path / "run", "--env", env, *few)
    assert done.code == 2 and "2 of the 2 episodes of this session ended in an error" in done.err
    assert done.err.count(f'File "{file}", line {number}') == 1
    for line in lines_of(tmp_path / "run"):
        place = line["error_place"]
        assert (place["stage"], place["file"], place["line"]) == (stage, file, number)
    if stage:
        alone = rpms("run", "--env", env, "--condition", "B")
        assert alone.code == 2 and f"rpms: raised in stage {stage}:" in alone.err
        assert f'File "{file}", line {number}' in alone.err
        assert "rich" not in alone.err and "langgraph" not in alone.err


def test_what_is_raised_before_the_first_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rpms: Rpms
) -> None:
    name = own(tmp_path, monkeypatch, WORLD.format(method="def tasks(self, split, count=None)"))
    file, number = line_with(tmp_path, name, '["here"]')
    for words in (["eval", "--out", tmp_path], ["learn", "--out", tmp_path / "m.jsonl"], ["run"]):
        done = rpms(*words, "--env", f"{name}:WORLD")
        assert done.code == 2 and f'File "{file}", line {number}, in tasks' in done.err
        assert done.err.splitlines()[-1] == f"rpms: KeyError at {file}:{number}: 'here'"
    (tmp_path / "unloadable.py").write_text("\nstages = {}['here']\n")
    done = rpms("eval", "--out", tmp_path / "run", "--arm", "mine=unloadable:stages")
    assert done.code == 2 and f'File "{tmp_path}/unloadable.py", line 2, in <module>' in done.err
    last = "rpms: --arm: cannot load the graph 'unloadable:stages': "
    assert done.err.splitlines()[-1].startswith(last)


@pytest.mark.engine
def test_a_memory_that_learns_and_a_memory_that_carries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rpms: Rpms
) -> None:
    name = own(tmp_path, monkeypatch, MEMORY)
    few = ("--limit", "1", "--workers", "0", "--max-steps", "2")
    done = rpms("learn", "--out", tmp_path / "m.jsonl", "--method", f"{name}:Learning", *few)
    file, number = line_with(tmp_path, name, '["there"]')
    assert done.code == 2 and f'File "{file}", line {number}, in learn' in done.err
    carrying = ("--conditions", "C", "--set", f"memory_method={name}:Carrying", "--trials", "2")
    done = rpms("eval", "--out", tmp_path / "run", *few, *carrying)
    assert done.code == 2 and "in carry" in done.err
    last = lines_of(tmp_path / "run")[-1]
    assert last["trial"] == 2 and last["error_place"]["file"] == file


SPOILING = """
from pathlib import Path
from rpms.nodes.belief_update import belief_update


def spoiled(state, runtime):
    Path(__file__).with_name("universal.yaml").write_text("rules:\\n- {id: U-1, txt: Look.}\\n")
    return belief_update(state)


def mine():
    import rpms

    return rpms.build_graph({"belief_update": spoiled})
"""


@pytest.mark.engine
def test_a_rule_file_that_breaks_while_it_is_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rpms: Rpms
) -> None:
    """It is read again when it changes; here by a stage of the user's that spoils it."""
    name = own(tmp_path, monkeypatch, SPOILING)
    rules = tmp_path / "universal.yaml"
    rules.write_text("rules:\n- {id: U-1, text: Look twice.}\n")
    arm = f"mine={name}:mine,rules={tmp_path},condition=B"
    words = ("eval", "--out", tmp_path / "run", "--limit", "1", "--workers", "0", "--arm", arm)
    done = rpms(*words)
    assert done.code == 2 and f"{rules}:2: U-1: " in done.err
    at_once = rpms(*words)
    assert at_once.code == 2 and at_once.err.startswith(f"rpms: {rules}:2: U-1: ")
    assert at_once.err.count("\n") == 1
