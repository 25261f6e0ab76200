"""Other people's memories: how each reads its model's replies, what it learns, recalls, carries."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rpms import RunContext
from rpms.memory_store.methods import after_trial, find_method
from rpms.memory_store.methods.expel import FULL, Insight, comparisons, vote
from rpms.memory_store.methods.note_method import with_names
from rpms.memory_store.methods.reflexion import read_plan
from rpms.memory_store.methods.workflows import by_rule, read_workflows
from rpms.prompts.blocks import render
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.recall import surviving
from tests.memory_store.methods.samples import (
    ENV,
    TURNS,
    context,
    frozen,
    played,
    prompts_of,
    prompts_sent,
    record,
    request,
    writer,
)
from tests.openai_server import OpenAIServer

AWM, EXPEL, REFLEXION = map(find_method, ("awm", "expel", "reflexion"))
TRAJECTORIES = find_method("trajectories")

WORKFLOWS = """Sure.
Workflow 1: find it
go to {place}
take {object} from {place}

## Workflow 2: too short
look
"""


# Reading what a model wrote.


def read_votes(reply: str) -> tuple[list[str], int]:
    after, unread = vote([Insight("a", 2), Insight("b", 1)], reply)
    assert all(insight.votes > 0 for insight in after) and len(after) <= FULL
    assert after == sorted(after, key=lambda insight: -insight.votes)
    return [insight.text for insight in after], unread


LINES = ["1. x", "2) z", "## Workflow 2", "Workflow 1: go", "look", "ADD: new", "EDIT 1: ",
         "AGREE 99: b", "add#3: c", "REMOVE 2: b", "Plan:", "", " \n"]  # fmt: skip


@pytest.mark.parametrize(
    "read",
    [read_workflows, read_votes, lambda r: ([read_plan(r)], 0)],
    ids=["awm", "expel", "reflexion"],
)
@settings(max_examples=40)
@given(lines=st.lists(st.one_of(st.sampled_from(LINES), st.text(max_size=30))), rest=st.text())
def test_no_reply_breaks_the_reading(
    read: Callable[[str], tuple[list[str], int]], lines: list[str], rest: str
) -> None:
    texts, unread = read("\n".join([*lines, rest]))
    assert unread >= 0
    for text in texts:
        assert all(line.strip() for line in text.splitlines()) and len(text) <= 2000


def test_workflows_have_two_steps_and_more() -> None:
    assert read_workflows(WORKFLOWS) == (["find it\ngo to {place}\ntake {object} from {place}"], 1)
    assert read_workflows("none") == ([], 1)


@pytest.mark.parametrize(
    ("before", "reply", "after", "unread"),
    [
        ([Insight("a", 2), Insight("b", 1), Insight("c", 2)],
         "AGREE 1: a\nDISAGREE 2: b\nEDIT 3: c, better\nADD: d\n- ADD 9: e\n",
         [Insight("a", 3), Insight("c, better", 3), Insight("d", 2), Insight("e", 2)], 0),
        ([Insight("a", 2)], "I agree with everything.", [Insight("a", 2)], 1),
        ([Insight("a", 2)], "AGREE 7: x\nEDIT 1:\nADD: a\nADD:", [Insight("a", 2)], 4),
        # In a full list disagreeing weighs more.
        ([Insight(f"{n}", 3) for n in range(FULL)], "REMOVE 1: 0",
         [Insight(f"{n}", 3) for n in range(1, FULL)], 0),
    ],
)  # fmt: skip
def test_votes_of_expel(
    before: list[Insight], reply: str, after: list[Insight], unread: int
) -> None:
    assert vote(before, reply) == (after, unread)


def test_expel_compares_a_loss_with_a_win_of_its_own_task_first() -> None:
    lost = record(success=False, task="one")
    own, other = record("put a pen in desk.", task="one"), record(task="two")
    near = record("put a hot mug in cabinet.", success=False, task="three")
    pairs = list(comparisons([lost, other, own, near]))
    assert pairs == [([own], lost), ([other], near), ([own, other], None)]


# Learning and recalling.


async def test_without_a_model_it_says_so() -> None:
    with pytest.raises(RpmsError, match="'expel' needs a language model"):
        await EXPEL.learn([record()], None)


async def test_the_shortest_win_of_each_task_is_kept_without_what_was_refused() -> None:
    longer = record(turns=[("look", "You see nothing."), *TURNS])
    learned = await TRAJECTORIES.learn(
        [longer, record(), record(success=False, task="two")], None
    )  # fmt: skip
    (note,) = learned.entries
    assert note.text.startswith("Task: put a hot mug in cabinet.\n> go to desk 1\n")
    assert "fridge" not in note.text and "take mug 1 from fridge 1" not in note.actions
    assert note.actions[-1] == "put mug 1 in/on cabinet 1" and learned.unread == 0


async def test_the_k_most_similar_trajectories_with_the_things_of_this_task(tmp_path: Path) -> None:
    goals = ["put a hot egg in cabinet.", "put a pen in desk.", "put a hot mug in cabinet."]
    records = [record(goal, task=goal) for goal in goals]
    file = frozen(TRAJECTORIES, await TRAJECTORIES.learn(records, None), tmp_path)
    recalls = TRAJECTORIES.recall(request(memory_file=file, k=2))
    assert [recall["entry"]["text"].split("\n")[0] for recall in recalls] == [
        "Task: put a hot mug in cabinet.", "Task: put a hot egg in cabinet."
    ]  # fmt: skip
    assert recalls[0]["score"] == 1.0 > recalls[1]["score"] > 0
    assert TRAJECTORIES.recall(request(memory_file=file, k=0)) == []
    file = frozen(TRAJECTORIES, await TRAJECTORIES.learn([record()], None), tmp_path)
    (recall,) = TRAJECTORIES.recall(request("put a hot egg in fridge.", memory_file=file))
    assert recall["advice"]["actions"][-1] == "put egg 1 in/on fridge 1"
    assert "mug 1" in recall["entry"]["text"]


def test_workflows_by_rule_begin_where_the_hand_changes() -> None:
    first, second = by_rule([record(), record(task="again")])
    assert first.text == "go to {object's place}\ntake {object} from {object's place}"
    assert second.text.splitlines()[:2] == [
        "go to {a microwave}", "heat {object} with {a microwave}"
    ]  # fmt: skip
    assert first.state_signature == "holding=none" and first.votes == second.votes == 2
    assert second.state_signature and "mug 1" in second.state_signature
    assert first.actions == ["go to desk 1", "take mug 1 from desk 1"]


@pytest.mark.parametrize(
    ("form", "seen", "steps"),
    [
        ("roles", {}, ["go to {object's place}", "take {object} from {object's place}"]),
        ("recorded", {}, ["go to desk 1", "take mug 1 from desk 1"]),
        ("grounded", {}, ["go to the egg's place", "take the egg from the egg's place"]),
        ("grounded", {"egg 2": "fridge 1"}, ["go to fridge 1", "take egg 2 from fridge 1"]),
    ],
)
async def test_a_workflow_is_said_once_in_the_form_asked_for(
    tmp_path: Path, form: str, seen: dict[str, str], steps: list[str]
) -> None:
    goals = ["put a hot mug in cabinet.", "put a clean mug in cabinet.", "put a mug in cabinet."]
    learned = await AWM.learn([record(goal, task=goal) for goal in goals], None)
    file = frozen(AWM, learned, tmp_path)
    query = request("put a clean egg in shelf.", memory_file=file, memory_form=form)
    query.moment.belief["last_seen"].update(seen)
    recalls = AWM.recall(query)
    empty = [r for r in surviving(recalls) if r["entry"]["state_signature"] == "holding=none"]
    assert {r["reason"] for r in recalls if r["dropped_by"] == "duplicate"} >= {
        f"says the same as {empty[0]['entry']['id']}"
    }
    assert [recall["entry"]["text"].splitlines() for recall in empty] == [steps]
    assert (empty[0]["count"], empty[0]["score"]) == (3, 1.0)
    # One of other tasks alone says so.
    fill = partial(render, ENV.prompts)
    assert f"WORKFLOW: {steps[0]}\n    {steps[1]}" in AWM.render(empty, fill)
    query.moment.goal["type"] = "look_at_obj_in_light"
    types = ", ".join(sorted(ENV.parse_goal(goal)["type"] for goal in goals))
    assert f"WORKFLOW for {types}: {steps[0]}\n" in AWM.render(surviving(AWM.recall(query)), fill)
    judged = {"roles": "take egg from object's place", "recorded": "take egg 1 from desk 1"}
    assert empty[0]["advice"]["actions"][1] == judged.get(form, steps[1].replace("the ", ""))


def test_what_nobody_plays_is_said_in_words() -> None:
    text = (
        "{object} {the object} {destination} {destination's place} {a toaster} {place} {a fridge}"
    )
    now = request("put a hot mug in cabinet.").moment
    words = "the mug mug cabinet 1 the cabinet's place a toaster the place fridge 1"
    assert with_names(text, now) == words
    assert with_names("Put the {object} in a {destination}.", now) == "Put the mug in cabinet 1."
    now.goal["object"] = ""
    now.role_names.clear()
    assert with_names("{the object} {object's place}", now) == "the object the object's place"


async def test_workflows_by_a_model_are_shown_one_win_of_each_type(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.plays(WORKFLOWS)
    records = [record(), record(task="two"), record("put a pen in desk.", task="three"),
               record("put a cool egg in desk.", task="four", success=False)]  # fmt: skip
    learned = await AWM.learn(records, writer(openai_server, "awm"))
    (prompt,) = prompts_sent(openai_server)
    assert prompt.count("put a hot mug in cabinet") == 1 == prompt.count("put a pen in desk")
    assert "cool egg" not in prompt and "{object} or {place}" in prompt
    assert [note.text.splitlines()[0] for note in learned.entries] == ["find it"]
    assert learned.unread == 1
    (recall,) = AWM.recall(request(memory_file=frozen(AWM, learned, tmp_path)))
    assert recall["advice"]["actions"] == ["go to place", "take mug from place"]


@pytest.mark.engine
async def test_expel_learns_from_real_episodes(tmp_path: Path, openai_server: OpenAIServer) -> None:
    openai_server.plays("ADD: Search closed places before open ones.", "AGREE 1: yes", "Well.")
    learned = await EXPEL.learn(played(), writer(openai_server, "expel"))
    lost = sum(not record["success"] for record in played())
    assert len(openai_server.requests) == lost + 1 and lost > 0
    assert "not completed" in prompts_sent(openai_server)[0]
    assert "Search closed places" in prompts_sent(openai_server)[1]
    insights = [(note.text, note.votes) for note in learned.entries if note.kind == "insight"]
    assert insights == [("Search closed places before open ones.", 3)]
    assert learned.unread == lost - 1
    recalls = EXPEL.recall(request(memory_file=frozen(EXPEL, learned, tmp_path), k=1))
    assert [recall["entry"]["kind"] for recall in recalls] == ["insight", "trajectory"]


@pytest.mark.engine
@pytest.mark.parametrize(
    ("method", "reply", "line"),
    [
        (TRAJECTORIES, "", "Solved Tasks"),
        (AWM, "", "WORKFLOW: go to "),
        (EXPEL, "ADD: Search first.", "INSIGHT: Search first."),
    ],
)
async def test_real_episodes_teach_a_real_episode(
    tmp_path: Path, openai_server: OpenAIServer, method: Any, reply: str, line: str
) -> None:
    openai_server.plays(reply)
    ask = writer(openai_server, method.name) if reply else None
    file = frozen(method, await method.learn(played(), ask), tmp_path)
    # Routines for the empty hand are shown at first, those for the full one dropped by the filter.
    run = RunContext(
        memory_method=method.name, memory_file=file, max_steps=2, k=1, memory_tokens=9000
    )  # fmt: skip
    prompts = prompts_of(0, run)
    assert len(prompts) == 2 and all(line in text for text, _ in prompts)
    outcomes = {recall["dropped_by"] for _, recalls in prompts for recall in recalls}
    assert outcomes - {"duplicate"} == ({"", "scf"} if method is AWM else {""})
    assert prompts_of(0, run.with_(memory_tokens=0)) == prompts
    for text, recalls in prompts_of(0, run.with_(memory_tokens=1)):
        reasons = {
            recall["reason"] for recall in recalls if recall["dropped_by"] == "over token budget"
        }
        assert line not in text and reasons == {"memory may take 1 tokens"}


# From trial to trial.


async def test_a_lost_trial_gives_one_reflection_and_a_won_one_none(
    openai_server: OpenAIServer,
) -> None:
    openai_server.plays("Let me think.\nPlan: First go to desk 1.\n\nThen take mug 1 from desk 1.")
    run = context(openai_server, memory_method="reflexion")
    first = await after_trial("alfworld", run, {}, record(success=False))
    assert first["reflections"] == ["First go to desk 1.\nThen take mug 1 from desk 1."]
    assert first["method"] == "reflexion" and first["spent"]["model_calls"] == 1
    assert "take mug 1 from fridge 1" in prompts_sent(openai_server)[0]
    again = await after_trial("alfworld", run, first, record())
    assert again == first and len(openai_server.requests) == 1
    openai_server.plays("Plan:   \n")  # without a word
    silent = await after_trial("alfworld", run, {}, record(success=False))
    assert silent["reflections"] == [] and silent["unread"] == 1


async def test_the_last_three_reflections_are_shown_to_the_writer_and_to_the_agent(
    openai_server: OpenAIServer,
) -> None:
    run = context(openai_server, memory_method="reflexion")
    cross_trial_memory: dict[str, Any] = {}
    openai_server.plays(*(f"Plan: try way {number}" for number in range(1, 6)))
    for _ in range(5):
        cross_trial_memory = await after_trial(
            "alfworld", run, cross_trial_memory, record(success=False)
        )
    last = prompts_sent(openai_server)[4]
    assert "try way 2" in last and "try way 1" not in last
    recalls = REFLEXION.recall(request(cross_trial_memory=cross_trial_memory))
    assert [recall["entry"]["text"] for recall in recalls] == [f"try way {n}" for n in (5, 4, 3)]
    assert all(recall["entry"]["here"] for recall in recalls)


@pytest.mark.engine
@pytest.mark.parametrize(
    ("cross_trial_memory", "line"),
    [
        ({"method": "reflexion", "reflections": ["look up"]}, "REFLECTION: look up"),
        ({"method": "reflexion"}, ""),
    ],
)  # fmt: skip
def test_the_next_trial_reads_what_was_carried(
    cross_trial_memory: dict[str, Any], line: str
) -> None:
    run = RunContext(memory_method=cross_trial_memory["method"], max_steps=2)
    texts = [text for text, _ in prompts_of(0, run, cross_trial_memory)]
    assert len(texts) == 2 and all((line or "Past Experience") in text for text in texts) is (
        bool(line)
    )
    with pytest.raises(
        RpmsError, match=f"comes from the memory method '{cross_trial_memory['method']}'"
    ):
        prompts_of(0, RunContext(max_steps=2), cross_trial_memory)


async def test_reflexion_learns_nothing_beforehand_and_reads_no_file() -> None:
    with pytest.raises(RpmsError, match="earlier trials of the same task"):
        await REFLEXION.learn([record()], None)
    with pytest.raises(RpmsError, match="leave the memory file out"):
        REFLEXION.check("alfworld", request(memory_file="m.jsonl").context)
