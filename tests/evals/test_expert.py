"""The expert as a player of ordinary arms, and its lessons."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from rpms.envs import Environment, get_environment
from rpms.envs.manuals import load_manual
from rpms.evals.records.run_folder import read_log, read_run
from rpms.evals.running.arms import Variant
from rpms.evals.running.evaluate import ExecutionOptions, evaluate
from rpms.evals.running.expert import corrections, llm_call
from rpms.evals.running.expert_export import TRIES, ExpertTasks, LessonPlan, export_expert
from rpms.evals.running.export_chat import ChatFormat, export_chat
from rpms.evals.running.plan import Job, choose_tasks
from rpms.evals.running.runner import RunSession
from rpms.memory_store.methods import MemoryMethod
from rpms.nodes.state import EpisodeState
from rpms.prompts.reply import read_action
from rpms.rules import check_action, forbidden_by
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.goal import GoalSpec
from rpms.vocabulary.turn import Decision, Turn
from tests.evals import sample_runs
from tests.scripted_episode import under

SPLIT = "generated_seen"
Rows = list[dict[str, Any]]
VETO = "Choose another action, in the same form."


def taught(out: Path, conditions: str, limit: int, *arms: str, **how: Any) -> tuple[Rows, Rows]:
    """The lines of whole episodes, and what is known of each."""
    form = ChatFormat(how.pop("per", "episode"))
    execution = {"workers": how.pop("workers", 0), "show": how.pop("show", False)}
    tasks = {"split": SPLIT, "limit": limit, "conditions": list(conditions), "arms": arms, **how}
    export_expert(ExpertTasks("alfworld", **tasks), out / "x.jsonl", form, **execution)
    files = [out / name for name in ("x.jsonl", "x.meta.jsonl")]
    lines, about = [[json.loads(row) for row in file.read_text().splitlines()] for file in files]
    return lines, about


def mistakes(world: Environment, goal: GoalSpec, belief: Belief) -> list[Decision]:
    """The decisions of thirty experts that err at the second step."""
    turn = Turn(step=1, thought="", action="wait", observation="", failed=False, reply="")
    state = EpisodeState(
        env=world.name, split="train", task="t", goal=goal, belief=belief, steps=1, recalls=[],
        sub_goal=world.sub_goal(goal, belief, []), ineffective=[], played_in={}, decisions=[],
        history=[turn],
    )  # fmt: skip
    erring = [RunContext(seed=seed, temperature=1.0) for seed in range(30)]
    return [llm_call(under(state, context))["decisions"][0] for context in erring]


@pytest.mark.engine
def test_a_mistake_is_followed_by_recovery_or_by_itself_and_never_a_target(tmp_path: Path) -> None:
    lines, about = taught(tmp_path, "B", 6, mistakes=0.4)
    repeated = 0
    for line, row in zip(lines, about, strict=True):
        erred = row["not_learned"]
        replies = [m for m in line["messages"] if m["role"] == "assistant"]
        steps = replies[-len(erred) - sum(reply.get("weight", 0) for reply in replies) :]
        actions = [step["content"].rpartition("Action: ")[2] for step in steps]
        assert 1 not in erred and not any(steps[number - 1]["weight"] for number in erred)
        for before, number in pairwise(erred):
            if number == before + 1:
                assert actions[number - 1] == actions[before - 1]
                repeated += 1
        assert not any({n, n + 1, n + 2, n + 3} <= {*erred} for n in erred)
    assert repeated > 2
    assert [row["not_learned"] for row in taught(tmp_path, "B", 1)[1]] == [[]]


@pytest.mark.engine
def test_the_answer_to_a_veto_is_learned_and_the_vetoed_reply_is_not(tmp_path: Path) -> None:
    how: dict[str, Any] = {"mistakes": 0.4, "per": "decision"}
    lines, _ = taught(tmp_path, "", 10, "guarded:condition=D,guard=verify", **how)
    after_veto = [line["messages"] for line in lines if VETO in line["messages"][-2]["content"]]
    assert len(after_veto) > 5
    for *_, vetoed, veto, answer in after_veto:
        assert (vetoed["weight"], veto["role"], answer["weight"]) == (0, "user", 1)
        action = vetoed["content"].rpartition("Action: ")[2]
        assert veto["content"].startswith(f"'{action}' was not carried out [")
        assert answer["content"].rpartition("Action: ")[2] != action
    # A whole episode has no vetoes, as later prompts show none, and their answers are not learned.
    lines, about = taught(tmp_path, "", 10, "guarded:condition=D,guard=verify", mistakes=0.4)
    assert VETO not in str(lines)
    assert sum(len(row["not_learned"]) for row in about) >= len(after_veto)


def test_a_mistake_can_be_a_number_after_the_last_of_its_kind() -> None:
    world = get_environment("alfworld")
    goal = world.parse_goal("put a pencil in sofa")
    belief = world.first_belief(goal["sentence"])
    belief["places"] = ["drawer 1", "drawer 2", "sofa 1"]
    made = mistakes(world, goal, belief)
    assert {decision["proposal"] for decision in made} == {"go to drawer 1"}
    assert 3 < Counter(decision["played"] for decision in made)["go to drawer 3"] < 25


@pytest.mark.engine
def test_memory_is_followed_where_it_is_shown(tmp_path: Path) -> None:
    lines, about = taught(tmp_path, "SCD", 12)
    followed = {"S": 0, "C": 0, "D": 0}
    for line, row in zip(lines, about, strict=True):
        assert "[Current State]" in "".join(m["content"] for m in line["messages"])
        replies = [m["content"] for m in line["messages"] if m.get("weight")]
        followed[row["condition"]] += "was found in such places before" in "".join(replies)
        for text in replies:
            reply = read_action(text, "alfworld", load_manual("alfworld"))
            assert text == f"Thought: {reply.thought}\nAction: {reply.action}"
    assert followed["S"] == 0 < min(followed["C"], followed["D"])


@pytest.mark.engine
def test_the_same_seed_gives_the_same_lessons_on_any_number_of_processes(tmp_path: Path) -> None:
    def lessons(workers: int, seed: int) -> tuple[Rows, Rows]:
        settings = RunContext(seed=seed)
        return taught(tmp_path, "AB", 4, workers=workers, mistakes=0.3, settings=settings)

    assert lessons(2, 7) == lessons(0, 7) != lessons(0, 8)


@pytest.mark.engine
def test_decisions_are_taught_with_the_turns_that_are_shown(tmp_path: Path) -> None:
    settings = RunContext(history=2)
    lines, _ = taught(tmp_path, "D", 1, settings=settings, per="decision")
    replies = [[m for m in line["messages"] if m["role"] == "assistant"] for line in lines]
    example = len(replies[0]) - 1
    assert [len(each) - example for each in replies] == [min(n, 2) + 1 for n in range(len(lines))]
    with pytest.raises(RpmsError, match="history of all turns; give --per decision"):
        taught(tmp_path, "A", 1, "mine:condition=D,history=0")


@pytest.mark.engine
def test_the_expert_plays_an_ordinary_arm(tmp_path: Path) -> None:
    arm = Variant(RunContext.for_condition("B"), graph="rpms.evals.running.expert:graph")
    here = ExecutionOptions(workers=0)
    report = evaluate({"expert": arm}, out=tmp_path, limit=2, execution=here, show=False)
    assert [episode.success for episode in report.run.judged("expert")] == [True, True]


@pytest.mark.engine
def test_a_veto_of_somebodys_own_choice_is_answered_too(tmp_path: Path) -> None:
    arms = {"V": Variant(RunContext.for_condition("D+verify", model="random", max_steps=4))}
    here = ExecutionOptions(workers=0)
    run = evaluate(arms, out=tmp_path, split=SPLIT, limit=1, execution=here, show=False).run
    export_chat(run, tmp_path / "x.jsonl", corrected=True)
    rows = [json.loads(row)["messages"] for row in (tmp_path / "x.jsonl").read_text().splitlines()]
    vetoed = [row for row in rows if VETO in row[-2]["content"]]
    assert len(rows) > len(vetoed) > 0
    assert not any(row[-1]["content"].endswith("Action: look") for row in vetoed)


@pytest.mark.engine
def test_what_somebody_played_is_corrected_as_the_expert_would_have_played_it(
    tmp_path: Path,
) -> None:
    """Its own play is what it would have said; of a loop each situation is told once."""
    own = "rpms.evals.running.expert:graph"
    arms = {
        "C": Variant(RunContext.for_condition("C", temperature=0.4), graph=own),
        "A": Variant(RunContext.for_condition("A", max_steps=12)),
    }
    here = ExecutionOptions(workers=0)
    run = evaluate(arms, out=tmp_path, split=SPLIT, limit=4, execution=here, show=False).run
    own, others = tmp_path / "own.jsonl", tmp_path / "others.jsonl"
    done = [
        export_chat(run, file, [name], corrected=True) for file, name in ((own, "C"), (others, "A"))
    ]
    assert [part.episodes - part.lost for part in done] == [4, 4]  # the lost ones teach, too
    assert not all(episode.success for episode in run.judged("A"))
    rows = [json.loads(row) for row in (tmp_path / "own.meta.jsonl").read_text().splitlines()]
    replies = [json.loads(row)["messages"][-1] for row in own.read_text().splitlines()]
    logs = {episode.task: read_log(run.log_file(episode)) for episode in run.judged("C")}
    erred = 0
    for row, reply in zip(rows, replies, strict=True):
        step = (logs[row["task"]] or {})["steps"][row["step"] - 1]
        if step["decisions"]:
            erred += step["reply"] != reply["content"]
        else:
            assert reply == {"role": "assistant", "content": step["reply"], "weight": 1}
    assert erred > 2
    prompts = [str(json.loads(row)["messages"][:-1]) for row in others.read_text().splitlines()]
    assert len({*prompts}) > 0.9 * len(prompts) > 0
    with pytest.raises(RpmsError, match="give --per decision"):
        export_chat(run, own, ["A"], ChatFormat("episode"), corrected=True)


def test_a_mistake_can_be_a_step_of_the_way_out_of_turn() -> None:
    world, manual = get_environment("scienceworld"), load_manual("scienceworld")
    goal = world.parse_goal(world.task_types()["measure-melting-point-known-substance"])
    belief = world.first_belief(goal["sentence"])
    belief.update(location="kitchen", visible=["stove"])
    actions = Counter(decision["played"] for decision in mistakes(world, goal, belief))
    early = {"pick up thermometer", "focus on thermometer", "focus on chocolate"}
    assert early <= {*actions} and 5 < sum(actions[action] for action in early) < 25
    assert all(check_action(manual, action, belief).verdict == "broken" for action in early)


def test_a_mistake_where_an_answer_is_due_can_be_a_wrong_answer() -> None:
    """Else no memory learned from it holds a critical failure, which the paper's has."""
    world, manual = get_environment("scienceworld"), load_manual("scienceworld")
    goal = world.parse_goal(world.task_types()["find-plant"])
    belief = world.first_belief(goal["sentence"])
    belief.update(location="outside", visible=["air", "baby wolf", "oak plant", "shovel"])
    belief["searched"] = ["outside"]
    made = mistakes(world, goal, belief)
    assert {decision["proposal"] for decision in made} == {"focus on oak plant"}
    answers = Counter(d["played"] for d in made if d["played"].startswith("focus on "))
    assert 3 < answers["focus on baby wolf"] < 25
    assert all(forbidden_by(manual, action, goal) is None for action in answers)


def test_the_way_out_of_a_loop_is_told_from_within_it(tmp_path: Path) -> None:
    arms = {"A": Variant(RunContext.for_condition("A", max_steps=1))}
    here = ExecutionOptions(workers=0)
    run = evaluate(arms, out=tmp_path, split=SPLIT, limit=1, execution=here, show=False).run
    (episode,) = run.judged("A")
    (first,) = (read_log(run.log_file(episode)) or {})["steps"]
    in_vain = {"action": "open fridge 99", "result": "Nothing happens.", "failed": True}
    steps: Any = [{**first, **in_vain, "step": number} for number in range(1, 9)]
    goal = get_environment("alfworld").parse_goal(episode.goal)
    told = [*corrections("alfworld", goal, steps)]
    assert [step["step"] for step, _ in told] == [1, 2, 3, 4]
    assert len({reply for _, reply in told}) == 1 and "open fridge 99" not in told[0][1]


class Broken(MemoryMethod):
    """A memory of an arm that cannot be played."""

    name, learns, needs_file = "broken", False, False

    def recall(self, request: Any) -> Any:
        raise ZeroDivisionError("too much")

    def check(self, env: str, context: RunContext) -> None: ...

    def render(self, recalls: Any, fill: Any) -> str:
        return ""


@pytest.mark.engine
def test_an_episode_that_breaks_off_ends_the_export(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = f"mine:memory_method={__name__}:Broken"
    with pytest.raises(RpmsError, match=r"1 of the 1 episodes .*: ZeroDivisionError: too much"):
        taught(tmp_path, "", 1, own, show=True)
    assert "raise ZeroDivisionError" in capsys.readouterr().err
    assert not (tmp_path / "x.jsonl").exists()


def lesson_plan(env: str, split: str, limit: int, won: int = 0) -> LessonPlan:
    tasks = choose_tasks(env, split, limit)
    return LessonPlan(env, split, tasks, {}, labels=tuple("ABCD"), won=won)


def test_every_goal_type_gets_every_arm() -> None:
    jobs = lesson_plan("alfworld", SPLIT, 24).jobs()
    world = get_environment("alfworld")
    assert len({(world.task_name(job.task), job.condition) for job in jobs}) == len(jobs) == 24


def test_every_task_type_has_its_share_however_few_tasks_it_has() -> None:
    plan = lesson_plan("scienceworld", "train", 0, won=600)
    jobs, world = plan.jobs(), get_environment("scienceworld")
    shares = Counter(world.task_name(job.task) for job in jobs)
    assert sum(shares.values()) == len({job.key for job in jobs}) == 600
    assert len(shares) == 26 and {*shares.values()} == {23, 24}
    few = [job for job in jobs if world.task_name(job.task) == "identify-life-stages-2"]
    assert len({job.task["id"] for job in few}) == 4  # again, but each time another way
    assert len({(job.task["id"], job.condition) for job in few}) == 16
    many = [job for job in jobs if world.task_name(job.task) == "use-thermometer"]
    assert max(int(job.task["id"].rpartition("/")[2]) for job in many) > 200


def test_a_lost_episode_makes_room_for_another_of_its_type_but_not_for_ever() -> None:
    plan = lesson_plan("scienceworld", "train", 0, won=52)
    lost, won = (sample_runs.line("A", 0, success) for success in (False, True))
    places = [[job] for job in plan.jobs()]
    for place in places:
        assert plan.following(place[0], won) is None
        while following := plan.following(place[-1], lost):
            place.append(following)
    episodes = [job for place in places for job in place]
    assert len({job.key for job in episodes}) == len(episodes) == TRIES * 52
    world = get_environment("scienceworld")
    assert all(len({world.task_name(job.task) for job in place}) == 1 for place in places)


@pytest.mark.engine
def test_an_interrupted_export_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "whole").mkdir()
    whole = taught(tmp_path / "whole", "AB", 0, won=6, mistakes=0.3)
    assert len({row["task"].split("-")[0] for row in whole[1]}) == len(whole[1]) == 6
    played: list[Job] = []
    original = RunSession.play

    def interrupted(
        session: RunSession, pool: Any, capacity: int, at_once: int, watch: Any
    ) -> None:
        def look(progress: Any) -> None:
            if progress.done == 4:
                raise KeyboardInterrupt

        played.extend(session.jobs)
        original(session, pool, capacity, at_once, watch if played[6:] else look)

    monkeypatch.setattr(RunSession, "play", interrupted)
    with pytest.raises(KeyboardInterrupt):
        taught(tmp_path, "AB", 0, won=6, mistakes=0.3)
    assert not (tmp_path / "x.jsonl").exists()
    assert taught(tmp_path, "AB", 0, won=6, mistakes=0.3) == whole
    assert len(played) == 6 + 2
    assert not (tmp_path / "x.jsonl.run").exists()


def test_no_split_that_judges_becomes_training_data(tmp_path: Path) -> None:
    """Neither a run of it nor the expert's play of it; the error names the splits to use."""
    for env in ("alfworld", "scienceworld"):
        for split in get_environment(env).judging:
            run = read_run(sample_runs.write_run(
                tmp_path / env / split, {"A": [True]}, env=env, split=split
            ))  # fmt: skip
            out, refused = (
                tmp_path / "x.jsonl",
                f"split '{split}' of {env} is a test split.* use .*train",
            )
            with pytest.raises(RpmsError, match=refused):
                export_chat(run, out)
            with pytest.raises(RpmsError, match=refused):
                export_chat(run, out, corrected=True)
            with pytest.raises(RpmsError, match=refused):
                export_expert(ExpertTasks(env, split, limit=1), out)
            assert not out.exists()
