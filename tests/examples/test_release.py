"""LangChain's own agent with our middleware: guarded, informed, recorded, and learned from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatResult
from langgraph.checkpoint.memory import InMemorySaver

from examples.release.agent import NAME, TOOLS, Pipeline, make_agent
from rpms import RpmsError, get_environment, learn, load, load_manual
from rpms.evals.run_folder import read_log, read_run
from rpms.middleware import Recorder, RulesGuard, StateMemory
from rpms.rules.semantics import action_of
from tests.command_line import in_process

ROOT = Path(__file__).resolve().parents[2]
CALL_IDS = map(str, count())
WAY = ["lock api", "build api", "test api", "deploy api", "unlock api"]
TASK: dict[str, Any] = {"messages": [("user", "Release the api.")]}
REFUSED = json.dumps({"error": "refused"})


class Scripted(GenericFakeChatModel):
    """Says what it is told to; keeps what it was sent."""

    model_name: str = "scripted"
    sent: list[list[BaseMessage]]

    def bind_tools(self, *_: Any, **__: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.sent.append(messages)
        return super()._generate(messages)


def script(*replies: str) -> Scripted:
    """Each reply has its calls by comma; the last says that it is over."""

    def calls(reply: str) -> Iterator[dict[str, Any]]:
        for tool, service in (call.split() for call in reply.split(", ")):
            yield {"name": tool, "args": {"service": service}, "id": next(CALL_IDS)}

    said = [AIMessage(f"I {reply}.", tool_calls=[*calls(reply)]) for reply in replies]
    return Scripted(messages=iter([*said, AIMessage("It is over.")]), sent=[])


def answers(ended: dict[str, Any]) -> list[str]:
    return [m.text for m in ended["messages"] if isinstance(m, ToolMessage)]


def guarded(model: Scripted, **chosen: Any) -> Any:
    """The guard alone."""
    guard: Any = RulesGuard(NAME, **chosen)
    return create_agent(model, [*map(Pipeline().tool, TOOLS)], middleware=[guard])


VETO = (
    "'deploy api' was not carried out [E-DEPLOY]: it needs api to be locked; it needs api to be "
    "tested, and api is changed. First: lock api. Choose another action, in the same form."
)


def test_a_call_that_cannot_work_is_answered_with_the_rule_and_what_would_mend_it() -> None:
    ended = guarded(script("status api", "deploy api", *WAY)).invoke(TASK)
    assert answers(ended)[1] == VETO and ended["messages"][4].status == "error"
    assert REFUSED not in answers(ended)
    episode = ended["episode"]
    assert episode["belief"]["flags"] == {"api": "live", "web": "changed"}
    assert episode["belief"]["holding"] == [] and episode["sub_goal"]["progress"] == 100
    assert [turn["action"] for turn in episode["history"]] == ["status api", *WAY]
    verdicts = [decision["verdict"] for decision in episode["decisions"]]
    assert verdicts == ["accepted", "asked_again", *["accepted"] * 5]
    assert (episode["condition"], episode["settings"]["guard"]) == ("A", "verify")


async def test_on_an_event_loop_it_is_the_same(tmp_path: Path) -> None:
    model = script("status api", "deploy api", *WAY)
    ended = await make_agent(model, str(tmp_path)).ainvoke(TASK)
    assert answers(ended)[1] == VETO and ended["episode"]["sub_goal"]["progress"] == 100
    assert all("[Current State]" in sent[0].text for sent in model.sent)
    (episode,) = read_run(tmp_path).episodes.values()
    assert episode.success and (episode.model_calls, episode.steps) == (8, 6)


@pytest.mark.parametrize(
    ("chosen", "replies", "vetoed"),
    [
        ({}, ["deploy api", "test api", "build api"], [True, True, False]),
        ({}, ["deploy api", "deploy api"], [True, False]),
        ({"reasks": 1}, ["deploy api", "test api"], [True, False]),
        ({"reasks": 0}, ["deploy api"], [False]),
        ({"guard": "off"}, ["deploy api", "test api"], [False, False]),
        ({"without_rules": "E-DEPLOY"}, ["deploy api"], [False]),
        # Side by side no call can count on another; what was played in vain need not be again.
        ({}, ["lock api, build api"], [False, True]),
        ({"reasks": 0}, ["deploy api", "deploy api"], [False, False]),
        ({"reasks": 9}, ["status api", "lock api", "lock web"], [False, False, True]),
    ],
)
def test_it_has_a_limit_and_can_be_switched_off(
    chosen: dict[str, Any], replies: list[str], vetoed: list[bool]
) -> None:
    ended = guarded(script(*replies), **chosen).invoke(TASK)
    assert [" was not carried out " in answer for answer in answers(ended)] == vetoed
    assert len(ended["episode"]["history"]) == vetoed.count(False)
    refusals = [turn["failed"] for turn in ended["episode"]["history"]]
    assert refusals == [
        answer == REFUSED for answer in answers(ended) if " was not carried out " not in answer
    ]


def test_only_what_the_guard_can_do_is_taken() -> None:
    with pytest.raises(RpmsError, match="guard='policy': tool calls are verified, or it is off"):
        RulesGuard(NAME, guard="policy")
    with pytest.raises(RpmsError, match="unknown setting 'reask'"):
        RulesGuard(NAME, reask=1)


@pytest.mark.parametrize(
    ("tool", "arguments", "action"),
    [
        ("build", {"service": "api", "fast": True}, "build api"),
        ("build", {}, "build()"),
        ("build", {"service": ""}, "build(service='')"),
        ("build", {"service": "a\nb"}, "build(service='a\\nb')"),
        ("search", {"query": "api", "most": 3}, "search(query='api', most=3)"),
    ],
)
def test_a_tool_call_is_the_action_of_its_name(
    tool: str, arguments: dict[str, Any], action: str
) -> None:
    assert action_of(load_manual(NAME), tool, arguments) == action


def test_the_guard_lets_pass_what_the_manual_does_not_know() -> None:
    def search(service: str) -> str:
        """Somebody else's tool."""
        return "Error: no such page"

    guard: Any = RulesGuard(NAME)
    ended = create_agent(script("search api"), [search], middleware=[guard]).invoke(TASK)
    (turn,) = ended["episode"]["history"]
    assert (turn["action"], turn["failed"], turn["thought"]) == (
        "search(service='api')", True, "I search api.",
    )  # fmt: skip
    assert ended["episode"]["decisions"] == []


def play(out: Path, *replies: str, task: str = "Release the api.", **more: Any) -> Scripted:
    model = script(*replies)
    make_agent(model, str(out), **more).invoke({"messages": [("user", task)]})
    return model


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tasks, one of them twice, and one lost."""
    out = tmp_path_factory.mktemp("agents")
    play(out, "deploy api", *WAY)
    play(out, *WAY)
    play(out, "lock web", task="Release the web.")
    return out


def test_episodes_are_written_as_our_own_are(runs: Path) -> None:
    run = read_run(runs)
    assert [(*key, e.success, e.failure_mode, e.steps) for key, e in run.episodes.items()] == [
        ("D+verify", "Release_the_api.-899c4fe3", 1, 1, True, None, 5),
        ("D+verify", "Release_the_api.-899c4fe3", 2, 1, True, None, 5),
        ("D+verify", run.manifest.tasks[1].id, 1, 1, False, "wrong_termination", 1),
    ]
    assert run.manifest.model == "scripted" and run.manifest.split == "agent"
    first, *_ = run.episodes.values()
    assert (first.model_calls, first.asked_again, first.vetoes) == (7, 1, {"E-DEPLOY": 1})
    assert first.prompt_tokens and first.knowledge_tokens
    log = read_log(run.log_file(first))
    assert log is not None and len(log["steps"]) == 6  # the last is the answer
    assert [step["action"] for step in log["steps"]] == [*WAY, ""]
    assert [d["verdict"] for d in log["steps"][0]["decisions"]] == ["asked_again", "accepted"]
    assert log["steps"][1]["reply"] == "I build api.\nbuild api"
    system, *_, newest = (log["messages"][place] for _, place in log["steps"][1]["prompt"])
    needs = "needs <service> to be locked; <service> to be changed"
    assert f"[E-BUILD] build <service> | {needs}\n" in system
    assert "Holding: api" in system and newest.startswith('{"lock": "api"')
    assert load(runs).episodes.shape[0] == 3


def test_everything_that_reads_runs_reads_them(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    rpms, env = in_process(monkeypatch, capsys), ("--env", NAME)
    told = rpms("report", runs, "--all")
    assert told.code == 0 and "steps: not recorded" in told.out, told
    assert "the agent stopped at step 2" in (runs / "report.html").read_text("utf-8")
    refused = rpms("learn", *env, "--from-runs", runs, "--out", tmp_path / "memory.jsonl")
    assert refused.code == 2 and "with memory, guard verify" in refused.err
    words = ("--from-runs", runs, "--out")
    learned = rpms("learn", *env, *words, tmp_path / "memory.jsonl", "--allow", "a test")
    assert learned.code == 0 and "from 3 episodes" in learned.out, learned
    manual = rpms("rules", "learn", *env, *words, tmp_path / "manual")
    assert manual.code == 0 and "5 of 6 actions seen to work" in manual.out, manual
    assert rpms("rules", "check", *env).code == 0
    assert rpms("run", *env).code == 2


def test_memory_that_fits_the_state_is_in_the_prompt(runs: Path, tmp_path: Path) -> None:
    memory = tmp_path / "memory.jsonl"
    learn(memory, env=NAME, from_runs=runs, allow="a test", show=False)
    model = play(tmp_path / "out", *WAY, memory=str(memory))
    first, second = (sent[0].text for sent in model.sent[:2])
    # What was recorded with the lock does not fit while it is free, and the other way round.
    told = "From here, a similar task was solved by: "
    assert f"{told}lock api -> build api ->" in first and ": build api" not in first
    assert f"{told}build api -> test api ->" in second and ": lock api ->" not in second
    (episode,) = read_run(tmp_path / "out").episodes.values()
    assert episode.recalled > episode.dropped_scf > 0


def knowing(model: Scripted, *middleware: Any, **more: Any) -> Any:
    tools = [*map(Pipeline().tool, TOOLS)]
    return create_agent(model, tools, middleware=middleware, system_prompt="Be quick.", **more)


def test_what_changes_may_stand_behind_the_messages() -> None:
    model = script("lock api")
    knowing(model, StateMemory(NAME, layout="cache_friendly")).invoke(TASK)
    systems = [sent[0].text for sent in model.sent]
    assert systems[0] == systems[1] and systems[0].startswith("Be quick.\n\n[RULES")
    assert "Holding: api" in model.sent[1][-1].text and model.sent[1][-2].type == "tool"
    bare = script("lock api")
    knowing(bare, StateMemory(NAME, rules=False, memory=False)).invoke(TASK)
    assert [sent[0].text for sent in bare.sent] == ["Be quick."] * 2


def test_an_episode_may_go_on_elsewhere(tmp_path: Path) -> None:
    """A conversation is one episode, and what was said before is read from its messages."""
    saved, thread = InMemorySaver(), {"configurable": {"thread_id": "1"}}
    named = {**TASK, "episode": {"task": 7, "split": "seen"}}
    tools = [*map(Pipeline().tool, TOOLS)]

    def go_on(told: Any, replies: Sequence[str]) -> None:
        middleware: Any = [Recorder(NAME, tmp_path, won=lambda state: state["steps"] == 5)]
        agent: Any = create_agent(
            script(*replies), tools, middleware=middleware, checkpointer=saved
        )
        agent.invoke(told, thread)

    go_on(named, WAY[:2])
    go_on({"messages": [("user", "Go on.")]}, WAY[2:])
    run = read_run(tmp_path)
    assert {(e.task, e.split, e.condition) for e in run.episodes.values()} == {("7", "seen", "A")}
    (whole,) = run.episodes.values()
    assert (whole.steps, whole.model_calls, whole.success, whole.repeat) == (5, 7, True, 1)
    assert len((tmp_path / "episodes.jsonl").read_text().splitlines()) == 2
    log = read_log(run.log_file(whole))
    assert log is not None and [step["action"] for step in log["steps"]] == [*WAY, ""]


def test_a_folder_of_other_settings_is_refused_before_anything_is_played(runs: Path) -> None:
    model = script(*WAY)
    with pytest.raises(RpmsError, match=r"holds a run with other settings: .*reasks: 2 before"):
        make_agent(model, str(runs), reasks=1).invoke(TASK)
    assert model.sent == []


def test_a_world_of_tools_has_no_games_of_ours() -> None:
    world = get_environment(NAME)
    assert (world.splits(), world.tasks("agent")) == (["agent"], [])
    with pytest.raises(RpmsError, match="is played by an agent with tools, not by us"):
        world.open_game()
    assert world.command_templates()[1] == "lock {service}"
