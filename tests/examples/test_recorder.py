"""Run files of somebody's own agent: the folder is checked first, and the agent never suffers."""

from __future__ import annotations

import fcntl
import logging
import math
import resource
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

import rpms
from examples.release.agent import NAME, WORLD, Release
from rpms import Recorder, RpmsError, StateMemory, load
from rpms.envs import get_environment
from rpms.evals.records.run_folder import LOCK, read_log, read_run
from rpms.evals.running import runner
from rpms.evals.running.learn import find_runs, gather
from rpms.guard import RulesGuard
from tests.command_line import Rpms
from tests.evals.sample_runs import write_run
from tests.examples.release_play import TASK, WAY, agent_of, answers, script
from tests.page_data import data_of

ROOT = Path(__file__).resolve().parents[2]
OVER = "It is over."


def arms(out: Path) -> list[str]:
    """The label of every episode, in the order they were written."""
    return [episode.condition for episode in read_run(out).episodes.values()]


def record(out: Path, *replies: str, agent: str | None = None, **chosen: Any) -> Any:
    """One episode of an agent with the recorder alone."""
    model = script(*replies or WAY[:1], **chosen.pop("of_model", {}))
    return agent_of(model, Recorder(NAME, out, **chosen), name=agent).invoke(TASK)


# --- the folder is checked when the recorder is made


def of_a_file(folder: Path) -> None:
    folder.write_text("no folder")


def of_other_files(folder: Path) -> None:
    folder.mkdir()
    for name in ("a.txt", "b.txt", "c.txt", "d.txt"):
        (folder / name).write_text("")


def of_another_manifest(folder: Path) -> None:
    folder.mkdir()
    (folder / "manifest.json").write_text('{"name": "an app"}')


def of_an_evaluation(folder: Path) -> None:
    write_run(folder, {"A": [True]})


def of_another_world(folder: Path) -> None:
    record(folder)
    manifest = folder / "manifest.json"
    manifest.write_text(manifest.read_text().replace(NAME, "another.world:WORLD"))


def of_no_steps(folder: Path) -> None:
    record(folder)
    shutil.rmtree(folder / "steps")
    (folder / "steps").write_text("no folder")


def of_no_episodes(folder: Path) -> None:
    record(folder)
    (folder / "episodes.jsonl").unlink()
    (folder / "episodes.jsonl").mkdir()


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (of_a_file, r"cannot write to .*: File exists"),
        (of_other_files, r"holds other files \(a.txt, b.txt, c.txt, ...\); give a new or an empty"),
        (of_another_manifest, "not a valid manifest"),
        (of_an_evaluation, "holds a run of 'rpms eval'; give another folder"),
        (of_another_world, "holds episodes of another.world:WORLD, not of examples.release"),
        (of_no_steps, r"cannot read and write in .*steps: Not a directory"),
        (of_no_episodes, "it is no plain file; give another name"),
    ],
)
def test_a_folder_that_cannot_be_used_is_refused_when_the_recorder_is_made(
    tmp_path: Path, make: Any, reason: str
) -> None:
    make(tmp_path / "out")
    with pytest.raises(RpmsError, match=reason):
        Recorder(NAME, tmp_path / "out")


def test_an_environment_in_place_of_its_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RpmsError, match=f"Recorder takes the name .*: '{NAME}'"):
        Recorder(get_environment(NAME), tmp_path / "out")  # type: ignore[arg-type]


def test_a_folder_below_a_file_and_a_full_disk_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RpmsError, match=r"cannot write to .*Not a directory"):
        Recorder(NAME, tmp_path / "file" / "out")
    with full_disk(), pytest.raises(RpmsError, match=r"cannot read and write in .*File too large"):
        Recorder(NAME, tmp_path / "out")
    Recorder(NAME, tmp_path / "out")  # what the attempt has left is no other file


# --- afterwards nothing is raised into the agent


@contextmanager
def full_disk() -> Iterator[None]:
    """No file may hold anything."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def logged() -> Iterator[list[str]]:
    """What the recorder has logged, with what was raised."""
    lines: list[str] = []

    class Listener(logging.Handler):
        def emit(self, entry: logging.LogRecord) -> None:
            lines.append(self.format(entry))

    listener = Listener()
    logging.getLogger("rpms.recorder").addHandler(listener)
    yield lines
    logging.getLogger("rpms.recorder").removeHandler(listener)


def test_a_disk_that_fills_up_is_logged_and_the_next_episode_is_written(
    tmp_path: Path, logged: list[str]
) -> None:
    recorder = Recorder(NAME, tmp_path)
    with full_disk():
        ended = agent_of(script(*WAY), recorder).invoke(TASK)
    assert len(answers(ended)) == 5 and ended["messages"][-1].text == OVER
    (line,) = logged
    assert "an episode is not recorded" in line and "File too large" in line
    assert "Traceback" not in line
    agent_of(script(*WAY), recorder).invoke(TASK)
    (episode,) = read_run(tmp_path).episodes.values()
    assert (episode.steps, episode.success, len(logged)) == (5, True, 1)


def test_a_folder_that_is_removed_is_made_again_and_one_that_cannot_be_is_logged(
    tmp_path: Path, logged: list[str]
) -> None:
    out = tmp_path / "out"
    recorder = Recorder(NAME, out)
    shutil.rmtree(out)
    agent_of(script("lock api"), recorder).invoke(TASK)
    assert len(read_run(out).episodes) == 1 and logged == []
    shutil.rmtree(out)
    out.write_text("a file")
    assert agent_of(script("lock api"), recorder).invoke(TASK)["messages"][-1].text == OVER
    assert len(logged) == 1 and "cannot write to" in logged[0]


def test_a_folder_that_somebody_keeps_locked_is_not_waited_for_without_end(
    tmp_path: Path, logged: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder(NAME, tmp_path)
    monkeypatch.setattr(runner, "WAIT_S", 0.05)
    with (tmp_path / LOCK).open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        ended = agent_of(script("lock api"), recorder).invoke(TASK)
    assert ended["messages"][-1].text == OVER
    assert len(logged) == 1 and "is being written by another" in logged[0]


class Failing(Release):
    """A world whose own code raises an exception where it is told to."""

    where = ""

    def sub_goal(self, *told: Any) -> Any:
        if self.where == "sub_goal":
            raise ZeroDivisionError("in sub_goal")
        return super().sub_goal(*told)

    def parse_goal(self, sentence: str) -> Any:
        if self.where == "parse_goal":
            raise ZeroDivisionError("in parse_goal")
        return super().parse_goal(sentence)

    def read_answer(self, *told: Any) -> Any:
        if self.where == "read_answer":
            raise ZeroDivisionError("in read_answer")
        return super().read_answer(*told)

    @property
    def rules(self) -> Path:
        return WORLD.rules


FAILING = Failing()
FAILING_NAME = f"{__name__}:FAILING"


@pytest.mark.parametrize("where", ["sub_goal", "parse_goal", "read_answer"])
async def test_a_world_that_raises_is_logged(
    where: str, tmp_path: Path, logged: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With ``invoke`` and on an event loop."""
    recorder = Recorder(FAILING_NAME, tmp_path)
    monkeypatch.setattr(recorder.env, "where", where, raising=False)
    for model in (script("lock api"), script("lock api")):
        agent = agent_of(model, recorder)
        ended = await agent.ainvoke(TASK) if logged else agent.invoke(TASK)
        assert ended["messages"][-1].text == OVER and len(answers(ended)) == 1
    assert all(f"ZeroDivisionError: in {where}" in line for line in logged) and logged
    assert [file.name for file in tmp_path.iterdir()] == [LOCK]
    monkeypatch.setattr(recorder.env, "where", "")
    agent_of(script(*WAY), recorder).invoke(TASK)
    assert [episode.steps for episode in read_run(tmp_path).episodes.values()] == [5]


def test_a_judge_that_raises_is_logged(tmp_path: Path, logged: list[str]) -> None:
    def won(state: Mapping[str, Any]) -> bool:
        raise KeyError("no such part of the state")

    assert record(tmp_path, won=won)["messages"][-1].text == OVER
    assert len(logged) == 1 and "KeyError: 'no such part of the state'" in logged[0]


def test_an_episode_that_could_not_be_read_once_is_written_whole_later(
    tmp_path: Path, logged: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read again from its messages, so that no step is missing or counted twice."""
    recorder = Recorder(FAILING_NAME, tmp_path)

    class Moody(type(script())):  # type: ignore[misc]
        def _generate(self, messages: Any, *more: Any, **options: Any) -> Any:
            where = "read_answer" if len(self.sent) == 1 else ""
            monkeypatch.setattr(recorder.env, "where", where, raising=False)
            return super()._generate(messages, *more, **options)

    plain = script(*WAY)
    agent_of(Moody(messages=plain.messages, sent=[]), recorder).invoke(TASK)
    assert logged
    (episode,) = read_run(tmp_path).episodes.values()
    assert (episode.steps, episode.model_calls, episode.success) == (5, 6, True)


@pytest.mark.parametrize(
    ("of_model", "model", "temperature"),
    [
        ({"model_name": None}, "Scripted", 0.0),
        ({"model_name": ""}, "Scripted", 0.0),
        ({"model_name": 7, "temperature": "warm"}, "Scripted", 0.0),
        ({"model_name": "qwen2:latest", "temperature": -1}, "qwen2:latest", 0.0),
        ({"model_name": "half \ud83d", "temperature": 1}, "half \ufffd", 1.0),
    ],
)
def test_a_model_without_a_name_or_with_an_odd_one_is_recorded(
    of_model: dict[str, Any], model: str, temperature: float, tmp_path: Path, logged: list[str]
) -> None:
    record(tmp_path, of_model=of_model)
    run = read_run(tmp_path)
    (label,) = run.conditions
    assert logged == [] and run.model(label) == model
    assert run.settings(label)["temperature"] == temperature


ODD: dict[str, list[Any]] = {
    "no message": [],
    "an empty one": [("user", "")],
    "half a character": [("user", "Release the \ud83d api.")],
    "blocks": [HumanMessage([{"type": "text", "text": "Release"}, {"type": "image", "url": "x"}])],
    "an answer to nothing": [ToolMessage("{}", tool_call_id="none"), HumanMessage("Release api")],
    "two calls of one id": [
        HumanMessage("Release the api."),
        AIMessage("", tool_calls=[{"name": "lock", "args": {}, "id": "1"}] * 2),
        ToolMessage("one", tool_call_id="1"),
        ToolMessage("two", tool_call_id="1"),
    ],
    "odd arguments": [
        HumanMessage("Release the api."),
        AIMessage("", tool_calls=[
            {"name": "lock", "args": {"service": math.nan, "x": [{"y": math.inf}]}, "id": "1"},
            {"name": "", "args": {"service": "\ud83d"}, "id": None},
        ]),
        ToolMessage('{"nothing": NaN}', tool_call_id="1"),
        ToolMessage("boom", tool_call_id="1", status="error"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("messages", ODD.values(), ids=ODD)
def test_odd_messages_are_recorded_or_logged(
    messages: list[Any], tmp_path: Path, logged: list[str]
) -> None:
    ended = agent_of(script("lock api"), Recorder(NAME, tmp_path)).invoke({"messages": messages})
    assert ended["messages"][-1].text == OVER
    if not any(message.text for message in ended["messages"] if message.type == "human"):
        # The world looks for its goal in the last word, and there is none.
        assert "IndexError" in logged[0] and [file.name for file in tmp_path.iterdir()] == [LOCK]
        return
    assert logged == []
    run = read_run(tmp_path)
    (episode,) = run.episodes.values()
    assert not run.damaged and not episode.is_error
    log = read_log(run.log_file(episode))
    assert log is not None and log["steps"][-2]["action"] == "lock api"


def test_agents_that_run_side_by_side_are_all_written(tmp_path: Path, logged: list[str]) -> None:
    model, recorder = script(), Recorder(NAME, tmp_path)
    model.messages = iter([AIMessage(OVER, id=str(number)) for number in range(8)])
    agent_of(model, recorder).batch([TASK] * 8)
    assert logged == []
    assert sorted(e.repeat for e in read_run(tmp_path).episodes.values()) == [*range(1, 9)]


def test_an_exception_of_the_model_is_the_agents_own(tmp_path: Path, logged: list[str]) -> None:
    model = script()
    model.messages = iter(())
    with pytest.raises(RuntimeError, match="StopIteration"):
        agent_of(model, Recorder(NAME, tmp_path)).invoke(TASK)
    assert logged == []


# --- arms


def test_an_arm_is_called_by_the_agents_name(tmp_path: Path) -> None:
    record(tmp_path, agent="refund_desk")
    record(tmp_path, name="  the\nrefund desk ", agent="refund_desk")
    record(tmp_path)
    assert arms(tmp_path) == ["refund_desk", "the refund desk", NAME]
    settings = [read_run(tmp_path).settings(label) for label in arms(tmp_path)]
    assert settings[0] == settings[1] == settings[2]


async def test_also_on_an_event_loop(tmp_path: Path) -> None:
    agent = agent_of(script("lock api"), Recorder(NAME, tmp_path), name="refund_desk")
    await agent.ainvoke(TASK)
    assert arms(tmp_path) == ["refund_desk"]


def test_what_the_agent_has_of_ours_stands_in_the_settings_of_its_arm(tmp_path: Path) -> None:
    """Also of an episode with one model call, and that alone is in the run."""
    middleware = [StateMemory(NAME), Recorder(NAME, tmp_path, name="desk"), RulesGuard(WORLD)]
    agent_of(script(), *middleware).invoke(TASK)
    run = read_run(tmp_path)
    assert run.conditions == ["desk"]
    settings = run.settings("desk")
    assert (settings["rules"], settings["memory"], settings["guard"]) == (True, True, "verify")
    agent_of(script(), Recorder(NAME, tmp_path, name="desk")).invoke(TASK)
    (_, other) = read_run(tmp_path).conditions
    assert other == "desk (2)" and read_run(tmp_path).settings(other)["guard"] == "off"


def test_other_settings_are_another_arm(tmp_path: Path) -> None:
    for _ in range(2):  # each finds its own arm again
        record(tmp_path, name="desk")
        record(tmp_path, name="desk", of_model={"model_name": "other", "temperature": 0.5})
        record(tmp_path, name="desk", of_model={"model_name": "m" * 200})
    run = read_run(tmp_path)
    first, second, third = run.conditions
    assert (first, second, third) == ("desk", "desk (2)", "desk (3)")
    assert [run.model(label) for label in run.conditions] == ["scripted", "other", "m" * 200]
    assert [len(run.played(label)) for label in run.conditions] == [2, 2, 2]


@pytest.fixture
def own_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A world of one's own, whose rules may be edited."""
    folder = tmp_path / "recorded_desk"
    shutil.copytree(WORLD.rules, folder / "rules")
    (folder / "world.py").write_text(
        "from examples.release.agent import Release\n\nclass Desk(Release):\n    pass\n\n"
        "WORLD = Desk()\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "recorded_desk.world:WORLD"
    get_environment.cache_clear()


def test_an_edited_rule_is_another_arm_from_the_next_recorder_on(
    own_world: str, tmp_path: Path, logged: list[str]
) -> None:
    out, file = tmp_path / "out", tmp_path / "recorded_desk" / "rules" / "environment.yaml"

    def recorder() -> Recorder:
        return Recorder(own_world, out, name="desk")

    first, before = recorder(), file.read_text()
    agent_of(script("lock api"), first).invoke(TASK)
    file.write_text(before.replace("E-DEPLOY", "E-RELEASE"))
    agent_of(script("lock api"), first).invoke(TASK)  # it goes by the rules that it was made with
    agent_of(script("lock api"), recorder()).invoke(TASK)
    file.write_text(before)
    agent_of(script("lock api"), recorder()).invoke(TASK)
    run = read_run(out)
    plain, edited = run.conditions
    assert logged == [] and plain == "desk"
    assert edited == "desk (2)"
    assert run.manifest.hashes.rules_of[plain] != run.manifest.hashes.rules_of[edited]
    assert [len(run.played(label)) for label in (plain, edited)] == [3, 1]


def test_another_memory_is_another_arm(tmp_path: Path) -> None:
    memory, out = tmp_path / "memory.jsonl", tmp_path / "out"

    def play() -> None:
        knowing = StateMemory(NAME, memory=memory)
        agent_of(script(*WAY), knowing, Recorder(NAME, out, name="desk")).invoke(TASK)

    runs = tmp_path / "runs"
    record(runs, *WAY)
    rpms.learn(memory, env=NAME, from_runs=runs, allow="a test", show=False)
    play()
    record(runs, "lock api", "build api")
    rpms.learn(memory, env=NAME, from_runs=runs, allow="another test", show=False)
    play()
    first, second = read_run(out).conditions
    assert (first, second) == ("desk", "desk (2)")


def test_episodes_of_another_split_are_logged(tmp_path: Path, logged: list[str]) -> None:
    """A run has one split, which says what may be learned from it."""
    record(tmp_path)
    named = {**TASK, "episode": {"split": "seen"}}
    agent_of(script("lock api"), Recorder(NAME, tmp_path)).invoke(named)
    assert len(arms(tmp_path)) == 1
    assert len(logged) == 1 and "split: agent before, seen now" in logged[0]


def test_everything_that_reads_runs_shows_the_name(
    tmp_path: Path, rpms: Rpms, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    out, other = tmp_path / "out", "refund desk (2)"
    record(out, *WAY, name="refund desk")
    record(out, name="refund desk", of_model={"model_name": "other"})
    told = rpms("report", out)
    assert told.code == 0 and "refund desk" in told.out and "(2)" in told.out
    pages = [out / "report.html", *(out / "report-steps").glob("*.html")]
    for page in pages:
        shown = {row["c"] for row in data_of(page.read_text("utf-8"))["episodes"]}
        assert shown == {"refund desk", other}
    assert sorted(load(out).episodes["condition"]) == ["refund desk", other]
    (source, _) = gather(find_runs(out, NAME), allowed="a test").sources
    assert "1 round of condition refund desk," in source
