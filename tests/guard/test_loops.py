"""Loops that people reported, played again by a scripted model in a real agent."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import TodoListMiddleware, ToolCallRequest, wrap_tool_call
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.messages.content import create_text_block
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.errors import GraphRecursionError

import rpms.guard.loops
from rpms.guard.loops import LoopGuard
from tests.guard.desk.playing import Scripted

IDS = map(str, count())
LOGGER = "rpms.guard.loops"
TASK: dict[str, Any] = {"messages": [("user", "Do it.")]}
THREAD: Any = {"configurable": {"thread_id": "1"}}
Call = tuple[str, dict[str, Any]]


def script(*replies: Call | list[Call]) -> Scripted:
    """A reply is a call or a list of calls; the last reply says that it is over."""

    def message(reply: Call | list[Call]) -> AIMessage:
        calls = reply if isinstance(reply, list) else [reply]
        made = [{"name": name, "args": args, "id": next(IDS)} for name, args in calls]
        return AIMessage("", tool_calls=made)

    return Scripted(messages=iter([*map(message, replies), AIMessage("It is over.")]))


class Desk:
    """Tools that note what reaches them and give their answers in turn, the last one for ever."""

    def __init__(self, **answers: Any) -> None:
        self.answers, self.calls = answers, list[Call]()

    def tools(self) -> list[BaseTool]:
        return [self.tool(name) for name in self.answers]

    def tool(self, name: str) -> BaseTool:
        schema = {"title": name, "description": name, "type": "object", "properties": {}}

        def play(**arguments: Any) -> Any:
            made = [call for call, _ in self.calls].count(name)
            self.calls.append((name, arguments))
            answers = self.answers[name]
            return answers[min(made, len(answers) - 1)] if isinstance(answers, tuple) else answers

        described: Callable[..., BaseTool] = tool(name, args_schema=schema, description=name)
        return described(play)


def results(ended: dict[str, Any]) -> list[ToolMessage]:
    return [message for message in ended["messages"] if isinstance(message, ToolMessage)]


def refused(ended: dict[str, Any]) -> list[int]:
    """The places of the refused calls among all calls."""
    return [n for n, m in enumerate(results(ended)) if "was not carried out" in m.text]


def play(desk: Desk, *replies: Call | list[Call], **options: Any) -> dict[str, Any]:
    agent: Any = create_agent(script(*replies), desk.tools(), middleware=[LoopGuard(**options)])
    return agent.invoke(TASK)


LS: Call = ("ls", {"path": "/"})
READ: Call = ("read_file", {"file_path": "/notes.md", "offset": 0, "limit": 100})
GREP: Call = ("grep", {"pattern": "TODO", "path": "/src"})
MEMORY: Call = ("save_memory", {"text": "The user likes tea."})
STATUS: Call = ("set_status", {"status": "open"})
BASH: Call = ("bash", {"command": "python -c 'import audit'"})
HEX: Call = ("hex", {"query": "revenue"})
FLIGHT: Call = ("fetch_flight", {"flight": "LX1"})
JOB: Call = ("check_job", {"job": 7})
TESTS: Call = ("run_tests", {})


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        pytest.param(READ, "1 Buy milk.", id="langchain-ai/deepagents#3583 the same file slice"),
        pytest.param(GREP, "", id="langchain-ai/deepagents#6441 a grep that finds nothing"),
        pytest.param(READ, "Error: not found", id="langchain-ai/deepagents#6441 no such file"),
        pytest.param(MEMORY, "Saved.", id="langchain-ai/langgraph#4231 save_memory"),
        pytest.param(STATUS, "Call set_status again", id="langchain-ai/langgraph#5548 set_status"),
        pytest.param(FLIGHT, "On time.", id="langchain-ai/langchain#26019 flight status"),
        pytest.param(BASH, "ModuleNotFoundError", id="bytedance/deer-flow#1055 the same command"),
    ],
)
def test_the_same_call_with_the_same_answer_is_refused_after_three(call: Call, answer: str) -> None:
    desk = Desk(**{call[0]: answer})
    ended = play(desk, *[call] * 6)
    assert desk.calls == [call] * 3 and refused(ended) == [3, 4, 5]
    assert [m.status for m in results(ended)] == ["success"] * 3 + ["error"] * 3
    assert ended["messages"][-1].text == "It is over."


def test_the_refusal_is_one_line_that_says_what_and_how_often() -> None:
    line = results(play(Desk(grep=""), *[GREP] * 4))[-1].text
    assert line.startswith("grep(pattern='TODO', path='/src') was not carried out: ")
    assert " 3 times" in line
    long = ("write_file", {"text": "one\ntwo\n" * 1000})
    line = results(play(Desk(write_file="Written."), *[long] * 2, limit=1))[-1].text
    assert len(line) < 400 and "\n" not in line and " 1 time." in line


def test_empty_todo_lists() -> None:
    """ai-forever/langchain-gigachat#69: deepagents' write_todos, which answers by a Command."""
    guard: Any = LoopGuard()
    model = script(*[("write_todos", {"todos": []})] * 5)
    agent = create_agent(model, [], middleware=[TodoListMiddleware(), guard])
    ended = agent.invoke(TASK)
    assert refused(ended) == [3, 4] and results(ended)[2].text == "Updated todo list to []"


def test_a_tool_that_does_not_exist() -> None:
    """langchain-ai/langchain#37961: a model looks for the tool 'hex', at 26 dollars a turn."""
    ended = play(Desk(ls="notes.md"), *[HEX] * 5)
    assert refused(ended) == [3, 4] and "hex is not a valid tool" in results(ended)[2].text


def test_two_calls_in_turn() -> None:
    """langchain-ai/langchain#37961: an agent that oscillates between a few calls."""
    desk = Desk(ls="notes.md", read_file="1 Buy milk.")
    ended = play(desk, *[LS, READ] * 6)
    assert len(desk.calls) == 7 and refused(ended) == [*range(7, 12)]


def test_a_loop_of_edits() -> None:
    """langchain-ai/langchain#37961: a file is edited to and fro, and the tests fail as before."""
    there, back = (("edit_file", {"old": a, "new": b}) for a, b in ["xy", "yx"])
    desk = Desk(edit_file="Edited.", run_tests="1 failed")
    ended = play(desk, *[there, TESTS, back, TESTS] * 4)
    assert refused(ended) == [9, 11, 13, 14, 15] and desk.calls.count(TESTS) == 4


def test_equal_calls_of_one_reply_count_one_after_the_other() -> None:
    """langchain-ai/langchain#38708: duplicates in one message, also with keys in another order."""
    turned = (GREP[0], dict(reversed(GREP[1].items())))
    desk = Desk(grep="")
    ended = play(desk, [GREP, turned, GREP, turned, GREP], GREP)
    assert len(desk.calls) == 3 and refused(ended) == [3, 4, 5]
    assert "carried out: this reply already asks for it 3 times. Use" in results(ended)[3].text
    ended = play(Desk(grep=""), GREP, GREP, [LS, GREP, GREP])
    assert refused(ended) == [] and len(results(ended)) == 5  # LS is new and may change something
    ended = play(Desk(grep="", ls=""), GREP, LS, GREP, GREP, [LS, GREP, GREP])
    assert refused(ended) == [6]
    both = "it got the same answer 2 times and this reply already asks for it 1 time."
    assert both in results(ended)[6].text


def test_equal_calls_of_one_reply_with_other_answers_may_be_made_again() -> None:
    desk = Desk(roll=("1", "2", "3", "4"))
    ended = play(desk, [("roll", {})] * 4, ("roll", {}))
    assert refused(ended) == [3] and results(ended)[-1].text == "4"


def test_polling_is_exempt_by_name() -> None:
    """StartupHakk/OpenMonoAgent.ai#47: a status that is asked for until the job is done."""
    answers = (*["running"] * 6, "done")
    for exempt in [["check_job"], "check_job"]:
        desk = Desk(check_job=answers)
        ended = play(desk, *[JOB] * 7, exempt=exempt)
        assert refused(ended) == [] and results(ended)[-1].text == "done"
    assert refused(play(Desk(check_job=answers), *[JOB] * 7)) == [3, 4, 5, 6]


def test_polling_with_progress_needs_no_exemption() -> None:
    """macanderson/stella#359: the output differs at every poll."""
    desk = Desk(check_job=tuple(f"{n}0%" for n in range(9)))
    assert refused(play(desk, *[JOB] * 9)) == [] and len(desk.calls) == 9


def test_another_answer_begins_the_count_anew() -> None:
    desk = Desk(check_job=("off", "off", "on", "on", "off", "off", "off"))
    assert refused(play(desk, *[JOB] * 9)) == [7, 8] and len(desk.calls) == 7


def test_the_same_check_after_each_new_call_is_no_loop() -> None:
    """bytedance/deer-flow#2116: edits are verified by the same call, which fails alike."""
    edits: list[Call] = [("edit_file", {"line": line}) for line in range(6)]
    desk = Desk(edit_file="Edited.", run_tests="1 failed")
    ended = play(desk, *[call for edit in edits for call in (edit, TESTS)])
    assert refused(ended) == [] and desk.calls.count(TESTS) == 6
    desk = Desk(edit_file="Edited.", run_tests="1 failed")
    ended = play(desk, *[TESTS] * 4, edits[0], TESTS, TESTS, TESTS, TESTS)
    assert refused(ended) == [3, 8]  # three test runs since the edit


def test_the_same_check_is_no_loop_while_another_call_gets_on() -> None:
    """bytedance/deer-flow#2517: equal calls whose answers show progress."""
    desk = Desk(next_page=tuple(f"page {n}" for n in range(6)), find_errors="none")
    ended = play(desk, *[("next_page", {}), ("find_errors", {})] * 6)
    assert refused(ended) == [] and len(desk.calls) == 12


def test_a_user_may_ask_the_same_again() -> None:
    desk, guard = Desk(fetch_flight="On time."), LoopGuard()
    model, saver = script(*[FLIGHT] * 4), InMemorySaver()
    agent: Any = create_agent(model, desk.tools(), middleware=[guard], checkpointer=saver)
    assert refused(agent.invoke(TASK, THREAD)) == [3]
    model.messages = script(*[FLIGHT] * 4).messages
    assert refused(agent.invoke(TASK, THREAD)) == [3, 7] and len(desk.calls) == 6


def test_it_holds_after_a_resume_in_another_process(tmp_path: Path) -> None:
    def resume(calls: list[Call], task: dict[str, Any] | None) -> tuple[Desk, dict[str, Any]]:
        desk = Desk(grep="")
        with SqliteSaver.from_conn_string(f"{tmp_path}/threads.sqlite") as saver:
            agent: Any = create_agent(
                script(*calls),
                desk.tools(),
                middleware=[LoopGuard()],
                checkpointer=saver,
                interrupt_after=["tools"],
            )
            return desk, agent.invoke(task, THREAD)

    for n in range(6):
        desk, ended = resume([GREP], None if n else TASK)
        assert len(desk.calls) == (n < 3)
    assert refused(ended) == [3, 4, 5]


async def test_under_ainvoke_stream_and_astream() -> None:
    def agent(desk: Desk) -> Any:
        model = script(*[GREP] * 4, [GREP, LS, GREP])
        return create_agent(model, desk.tools(), middleware=[LoopGuard()])

    desks = [Desk(grep="", ls="") for _ in range(3)]
    ended = [await agent(desks[0]).ainvoke(TASK)]
    ended += [[*agent(desks[1]).stream(TASK, stream_mode="values")][-1]]
    ended += [[part async for part in agent(desks[2]).astream(TASK, stream_mode="values")][-1]]
    for desk, end in zip(desks, ended, strict=True):
        assert refused(end) == [3, 4] and desk.calls.count(GREP) == 4


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, "1"), (1, True), (1, 1.0), (0, False), (None, "None"), ("", None), ([], {}), ([1], 1),
        ("a", "A"), (nan, "nan"), (inf, nan), (["a, b"], ["a", "b"]), ({"a": 1}, {"a": "1"}),
        ({"a": {"b": [1]}}, {"a": {"b": [True]}}), ([1, 2], [2, 1]),
        ({"id": "lc_1"}, {"id": "lc_2"}),
    ],
)  # fmt: skip
def test_other_arguments_are_another_call(one: Any, other: Any) -> None:
    desk = Desk(find="none")
    replies = [("find", {"value": value}) for value in [one, other] * 3]
    assert refused(play(desk, *replies)) == [] and len(desk.calls) == 6


@pytest.mark.parametrize(
    ("one", "same"),
    [
        (nan, float("nan")),
        ([nan, {"a": nan}], [float("nan"), {"a": float("nan")}]),
        ({"a": 1, "b": [2, {"c": 3, "d": 4}]}, {"b": [2, {"d": 4, "c": 3}], "a": 1}),
        ("é\n\udc80", "é\n\udc80"),
    ],
)
def test_equal_arguments_are_the_same_call(one: Any, same: Any) -> None:
    desk = Desk(find="none")
    replies = [("find", {"value": value}) for value in [one, same] * 3]
    assert refused(play(desk, *replies)) == [3, 4, 5] and len(desk.calls) == 3


def test_answers_are_compared_by_what_they_say() -> None:
    """Content blocks get a new id each time; an image is told from another."""
    desk = Desk(look=tuple([create_text_block("A wall.")] for _ in range(5)))
    ended = play(desk, *[("look", {})] * 5)
    first, second = (result.content[0] for result in results(ended)[:2])
    assert first != second and refused(ended) == [3, 4]
    images = [{"type": "image", "base64": f"AAA{n}", "mime_type": "image/png"} for n in range(5)]
    assert refused(play(Desk(look=tuple([image] for image in images)), *[("look", {})] * 5)) == []


def test_call_ids_that_come_again_with_every_reply() -> None:
    made = [{"name": "grep", "args": GREP[1], "id": "1"}]
    said = [AIMessage("", tool_calls=made) for _ in range(5)]
    desk, model = Desk(grep=""), Scripted(messages=iter([*said, AIMessage("It is over.")]))
    guard: Any = LoopGuard()
    ended = create_agent(model, desk.tools(), middleware=[guard]).invoke(TASK)
    assert len(desk.calls) == 3 and refused(ended) == [3, 4]


def test_a_call_is_counted_as_the_model_made_it() -> None:
    """A middleware around the guard that stamps every call does not hide the loop."""
    stamps = count()

    @wrap_tool_call
    def stamp(request: ToolCallRequest, handler: Callable[..., Any]) -> Any:
        call: Any = {**request.tool_call, "args": {"stamp": next(stamps)}}
        return handler(request.override(tool_call=call))

    desk = Desk(grep="")
    middleware: list[Any] = [stamp, LoopGuard()]
    ended = create_agent(script(*[GREP] * 5), desk.tools(), middleware=middleware).invoke(TASK)
    assert len(desk.calls) == 3 and refused(ended) == [3, 4]


def test_a_model_that_goes_on_asking_ends_at_the_recursion_limit() -> None:
    desk = Desk(grep="")
    agent: Any = create_agent(script(*[GREP] * 50), desk.tools(), middleware=[LoopGuard()])
    with pytest.raises(GraphRecursionError):
        agent.invoke(TASK, {"recursion_limit": 25})
    assert len(desk.calls) == 3


@pytest.mark.parametrize("guarded", [True, False])
def test_without_the_guard_the_same_script_calls_on(guarded: bool) -> None:
    desk = Desk(grep="")
    middleware: list[Any] = [LoopGuard()] * guarded
    create_agent(script(*[GREP] * 6), desk.tools(), middleware=middleware).invoke(TASK)
    assert len(desk.calls) == (3 if guarded else 6)


def test_a_guard_that_fails_lets_the_call_through_and_logs_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    circle: list[Any] = []
    circle.append(circle)
    desk = Desk(grep="")
    ended = play(desk, *[("grep", {"pattern": circle})] * 5)
    assert len(desk.calls) == 5 and refused(ended) == []
    logged = [r for r in caplog.records if r.levelname == "ERROR" and r.name == LOGGER]
    assert len(logged) == 5 and "lets the call of grep through" in logged[0].getMessage()
    assert "RecursionError" in caplog.text


def test_an_error_of_the_tool_stays_the_tools() -> None:
    class Broken(Desk):
        def tool(self, name: str) -> BaseTool:
            def fail() -> str:
                raise RuntimeError("the disk is full")

            return tool(name, description=name)(fail)

    with pytest.raises(RuntimeError, match="the disk is full"):
        play(Broken(grep=""), ("grep", {}))


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_that_refuses_everything_is_an_error(limit: int) -> None:
    with pytest.raises(ValueError, match=f"limit is {limit}; it must be 1 or more"):
        LoopGuard(limit=limit)


class _Asked(Desk):
    """Always gives the same answer."""

    def __init__(self) -> None:
        super().__init__(look="nothing")


@pytest.mark.parametrize("how", ["continue", "end", "error"])
def test_what_a_loop_ends_in(how: Any) -> None:
    desk, guard = _Asked(), LoopGuard(limit=2, exit_behavior=how)
    model = script(*[("look", {})] * 4)
    agent: Any = create_agent(model, desk.tools(), middleware=[guard])
    if how == "error":
        with pytest.raises(rpms.guard.loops.LoopError, match="look"):
            agent.invoke(TASK)
    else:
        last = agent.invoke(TASK)["messages"][-1].text
        assert last == "It is over." if how == "continue" else last.startswith("Ended: look()")
    assert len(desk.calls) == 2


def test_settings_that_mean_nothing_are_errors() -> None:
    with pytest.raises(ValueError, match="choose from continue, error, end"):
        LoopGuard(exit_behavior="ends")  # type: ignore[arg-type]
    agent: Any = create_agent(script(("look", {})), _Asked().tools(),
                              middleware=[LoopGuard(exempt="lok")])  # fmt: skip
    with pytest.raises(ValueError, match="no tool 'lok'; it has look"):
        agent.invoke(TASK)
