"""LangChain's own agent with our middleware: guarded, informed, recorded, and learned from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from examples.release.agent import NAME, TOOLS, WORLD, Pipeline, make_agent
from rpms import Recorder, RpmsError, StateMemory, get_environment, learn, load
from rpms.evals.records.run_folder import read_log, read_run
from rpms.graph.state_memory import EpisodeFollower
from rpms.guard import Call, RulesGuard
from tests.command_line import Rpms
from tests.evals.sample_runs import analysis_of
from tests.examples.release_play import TASK, WAY, agent_of, answers, play, script
from tests.page_data import data_of

ROOT = Path(__file__).resolve().parents[2]
REFUSED = json.dumps({"error": "refused"})
VETO = (
    "deploy(service='api') was not carried out [E-DEPLOY]: it needs api to be locked; it needs api "
    "to be tested, and api is changed. First: lock(service='api')."
)


def test_a_call_that_cannot_work_is_answered_with_the_rule_and_what_would_help() -> None:
    model = script("status api", "deploy api", *WAY)
    ended = agent_of(model, EpisodeFollower(NAME), RulesGuard(WORLD)).invoke(TASK)
    assert answers(ended)[1] == VETO and ended["messages"][4].status == "error"
    assert REFUSED not in answers(ended)
    episode = ended["episode"]
    assert episode["belief"]["flags"] == {"api": "live", "web": "changed"}
    assert episode["belief"]["holding"] == []
    assert [turn["action"] for turn in episode["history"]] == ["status api", *WAY]
    verdicts = [decision["verdict"] for decision in episode["decisions"]]
    assert verdicts == ["accepted", "retried", *["accepted"] * 5]
    assert (episode["condition"], episode["settings"]["guard"]) == ("A", "verify")


async def test_on_an_event_loop_it_is_the_same(tmp_path: Path) -> None:
    model = script("status api", "deploy api", *WAY)
    ended = await make_agent(model, str(tmp_path)).ainvoke(TASK)
    assert answers(ended)[1] == VETO and ended["episode"]["sub_goal"]["progress"] == 100
    assert all("[Current State]" in sent[0].text for sent in model.sent)
    (episode,) = read_run(tmp_path).episodes.values()
    assert episode.success and (episode.model_calls, episode.steps) == (8, 6)


@pytest.mark.parametrize(
    ("replies", "vetoed"),
    [
        (["deploy api", "test api", "build api"], [True, True, True]),
        (["deploy api"] * 4, [True] * 4),
        (["status api", "lock api", "lock web"], [False, False, True]),
        # The calls of a reply may run in any order: each must be right without the others, too.
        (["lock api, build api"], [False, True]),
        (["lock api, lock web"], [False, True]),
        (["lock api", "build api, status api, test web"], [False, False, False, True]),
    ],
)
def test_a_call_against_the_rules_is_refused_each_time(
    replies: list[str], vetoed: list[bool], tmp_path: Path
) -> None:
    """And each refusal is among the decisions, also one that equals the one before."""
    ended = make_agent(script(*replies), str(tmp_path)).invoke(TASK)
    assert [" was not carried out " in answer for answer in answers(ended)] == vetoed
    episode = ended["episode"]
    assert REFUSED not in answers(ended) and len(episode["history"]) == vetoed.count(False)
    assert [d["verdict"] == "retried" for d in episode["decisions"]] == vetoed
    run = read_run(tmp_path)
    (line,) = run.episodes.values()
    counts = analysis_of(run, line)
    assert (counts.proposals, counts.verdicts["retried"]) == (len(vetoed), vetoed.count(True))
    log = read_log(run.log_file(line))
    assert log is not None
    logged = [decision for step in log["steps"] for decision in step.get("decisions", ())]
    assert logged == episode["decisions"]


@pytest.mark.parametrize(
    ("tool", "arguments", "action"),
    [
        ("build", {"service": "api"}, "build api"),
        ("build", {"service": "api", "fast": True}, "build(service='api', fast=True)"),
        ("build", {}, "build()"),
        ("build", {"service": ""}, "build(service='')"),
        ("build", {"service": "a\nb"}, "build(service='a\\nb')"),
        ("search", {"query": "api", "most": 3}, "search(query='api', most=3)"),
    ],
)
def test_prompts_logs_and_memories_write_a_call_as_the_manual_does(
    tool: str, arguments: dict[str, Any], action: str
) -> None:
    """One that the manual has no words for is written as a call."""
    assert EpisodeFollower(NAME).action(Call(tool, arguments)) == action


def search(service: str) -> str:
    """Somebody else's tool."""
    return "Error: no such page"


def test_a_tool_that_the_manual_does_not_know_is_an_error_unless_it_is_allowed() -> None:
    tools = [*map(Pipeline().tool, TOOLS), search]

    def ask(**chosen: Any) -> Any:
        middleware: Any = [EpisodeFollower(NAME), RulesGuard(WORLD, **chosen)]
        return create_agent(script("search api"), tools, middleware=middleware).invoke(TASK)

    with pytest.raises(RpmsError, match="search"):
        ask()
    episode = ask(unknown="allow")["episode"]
    (turn,) = episode["history"]
    assert (turn["action"], turn["failed"], turn["thought"]) == (
        "search(service='api')", True, "I search api.",
    )  # fmt: skip


def test_what_a_person_made_of_a_call_is_what_was_played(tmp_path: Path) -> None:
    """The decision has both: the call that was proposed and the one that ran."""
    rules, thread = tmp_path / "rules", {"configurable": {"thread_id": "1"}}
    rules.mkdir()
    (rules / "environment.yaml").write_text(
        "tier: environment\npolicy:\n  - {id: P-WEB, action: lock, text: Not the web., "
        'needs: ["one_of(service, api)"], on_violation: ask}\n'
    )
    middleware = [Recorder(NAME, tmp_path / "out"), RulesGuard(WORLD, rules=rules)]
    agent = agent_of(script("lock web"), *middleware, checkpointer=InMemorySaver())
    assert "__interrupt__" in agent.invoke(TASK, thread)
    edited = {"name": "lock", "args": {"service": "api"}}
    ended = agent.invoke(Command(resume={"type": "edit", "edited_action": edited}), thread)
    (decision,) = ended["episode"]["decisions"]
    assert (decision["proposal"], decision["played"]) == ("lock web", "lock api")
    (line,) = read_run(tmp_path / "out").episodes.values()
    log = read_log(read_run(tmp_path / "out").log_file(line))
    assert log is not None and log["steps"][0]["action"] == "lock api"


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
        ("release", "Release_the_api.-899c4fe3", 1, 1, True, None, 5),
        ("release", "Release_the_api.-899c4fe3", 2, 1, True, None, 5),
        ("release", run.manifest.tasks[1].id, 1, 1, False, "wrong_termination", 1),
    ]
    assert run.manifest.model == "scripted" and run.manifest.split == "agent"
    first, *_ = run.episodes.values()
    counts = analysis_of(run, first)
    assert (first.model_calls, counts.verdicts["retried"]) == (7, 1)
    assert counts.vetoes == {"E-DEPLOY": 1}
    assert first.prompt_tokens and counts.knowledge_tokens
    log = read_log(run.log_file(first))
    assert log is not None and len(log["steps"]) == 6  # the last is the answer
    assert [step["action"] for step in log["steps"]] == [*WAY, ""]
    assert [d["verdict"] for d in log["steps"][0]["decisions"]] == ["retried", "accepted"]
    assert log["steps"][1]["reply"] == "I build api.\nbuild api"
    system, *_, newest = (log["messages"][place] for _, place in log["steps"][1]["prompt"])
    needs = "needs <service> to be locked; <service> to be changed"
    assert f"[E-BUILD] build <service> | {needs}\n" in system
    assert "Holding: api" in system and newest.startswith('{"lock": "api"')
    played = run.settings("release")
    assert (played["rules"], played["memory"], played["guard"]) == (True, True, "verify")
    assert [*load(runs).episodes["condition"]] == ["release"] * 3


def test_everything_that_reads_runs_reads_them(
    runs: Path, tmp_path: Path, rpms: Rpms, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    env = ("--env", NAME)
    told = rpms("report", runs, "--all")
    assert told.code == 0 and "steps: not recorded" in " ".join(told.out.split()), told
    assert "50.0% 2/3" in " ".join(told.out.split()), told.out
    page = data_of((runs / "report.html").read_text("utf-8"))
    assert [row["why"] for row in page["episodes"] if row["why"]] == ["the agent stopped at step 2"]
    refused = rpms("learn", *env, "--from-runs", runs, "--out", tmp_path / "memory.jsonl")
    assert refused.code == 2 and "with memory, guard verify" in refused.err
    words = ("--from-runs", runs, "--out")
    learned = rpms("learn", *env, *words, tmp_path / "memory.jsonl", "--allow", "a test")
    assert learned.code == 0 and "from 3 episodes" in learned.out, learned
    assert "of condition release, with memory" in (tmp_path / "memory.jsonl").read_text()
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
    run = read_run(tmp_path / "out")
    counts = analysis_of(run, *run.episodes.values())
    assert counts.recalled > counts.dropped["scf"] > 0


def knowing(model: Any, *middleware: Any) -> Any:
    return agent_of(model, *middleware, system_prompt="Be quick.")


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
    assert {(e.task, e.split, e.condition) for e in run.episodes.values()} == {("7", "seen", NAME)}
    (whole,) = run.episodes.values()
    assert (whole.steps, whole.model_calls, whole.success, whole.repeat) == (5, 7, True, 1)
    assert len((tmp_path / "episodes.jsonl").read_text().splitlines()) == 2
    log = read_log(run.log_file(whole))
    assert log is not None and [step["action"] for step in log["steps"]] == [*WAY, ""]


def test_a_world_of_tools_has_no_games_of_ours() -> None:
    world = get_environment(NAME)
    assert (world.splits(), world.tasks("agent")) == (["agent"], [])
    with pytest.raises(RpmsError, match="has no simulator: run an agent with tools"):
        world.open_game()
    assert world.command_templates()[1] == "lock {service}"
