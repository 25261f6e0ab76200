"""Plays tau2's reference solutions at a desk behind the guard, and lists every refusal.

    python -m tools.desk_gold airline [--tasks FILE] [TASK ...]

Each call of a solution is judged before it runs. If the guard names a look-up that is missing, the
look-up is made first. A call that is refused all the same is listed with its rule, and runs, so
that the later calls of the task meet the database that they expect. A task whose solution calls a
tool that the desk does not have is left out, and named. ``--tasks`` reads other versions of tau2's
tasks from a file: JSON, perhaps packed by xz.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple, cast

from langchain_core.messages import HumanMessage, ToolMessage

from rpms.envs import get_environment
from rpms.envs.tau2.desk import OpenDesk, ServiceDesk
from rpms.guard import Call
from rpms.guard.conversation import ConversationState, ConversationTracker
from rpms.guard.decision import Judgement
from rpms.guard.look_ups import Blank, has_blanks, look_up_choices
from rpms.rules.calls import bind
from rpms.rules.verdicts import violations

MOST_LOOK_UPS = 60
"""For one call; more would mean that a look-up does not show what it should."""


class GoldCall(NamedTuple):
    """A call of a reference solution with the guard's judgement.

    Attributes:
        task: the id of the task.
        number: which call of the solution it is, from 0.
        call: the tool and its arguments.
        refusals: the judgement of every rule that refuses it.
        look_ups: the look-ups that were made before it because the guard named them.
        answer: the tool's answer.
        seconds: the time of the guard's decision.
    """

    task: str
    number: int
    call: Call
    refusals: tuple[Judgement, ...]
    look_ups: tuple[Call, ...]
    answer: str
    seconds: float


class DeskConversation:
    """A conversation at a desk with its real database; the guard reads every answer."""

    def __init__(
        self,
        desk: ServiceDesk,
        words: str,
        opened: OpenDesk | None = None,
        tracker: ConversationTracker | None = None,
    ) -> None:
        """``opened`` is a desk whose database this conversation finds; by default a fresh one."""
        self.tracker = tracker or ConversationTracker.open(desk)
        self.desk = opened or desk.open()
        state = self.tracker.begin()
        self.state: ConversationState = self.tracker.read(state, [HumanMessage(words, id="0")])

    def run(self, call: Call) -> str:
        """Carry a call out, and read its answer."""
        answer = self.desk.call(call.tool, dict(call.arguments))
        status: Any = "error" if answer.startswith("Error") else "success"
        if status == "success":  # tau2 rejects a call before it changes anything
            message = ToolMessage(answer, tool_call_id="", status=status)
            self.state = self.tracker.take(self.state, call, message)
        return answer

    def judge(self, call: Call) -> Judgement:
        return self.tracker.judge(self.state, call)

    def refusals(self, call: Call) -> list[Judgement]:
        """The judgement of every rule that refuses a call."""
        found: dict[str, Judgement] = {}
        while (judgement := self.tracker.judge(self.state, call, (), found)).verdict == "refuse":
            if judgement.rule in found:
                break
            found[judgement.rule] = judgement
        return [*found.values()]

    def missing(self, call: Call) -> list[Call]:
        """The look-ups that the guard names for a call, those without blanks first."""
        manual, belief = self.tracker.manual, self.state["belief"]
        rule = manual.by_name[call.tool]
        bindings = bind(rule, call, belief)
        found: dict[str, Call] = {}
        for violation in violations(manual, rule, bindings, belief, self.state["goal"]):
            for choices in look_up_choices(manual, bindings, violation.unmet, belief):
                found |= {str(each): each for each in choices if str(each) not in found}
        return sorted(found.values(), key=has_blanks)

    def inform(self, call: Call) -> list[Call]:
        """Make the missing look-ups until the guard names no new one."""
        made: dict[str, Call] = {}
        while len(made) < MOST_LOOK_UPS:
            complete = [full for each in self.missing(call) for full in self._filled(each, call)]
            new = [each for each in complete if str(each) not in made]
            if not new:
                break
            made[str(new[0])] = new[0]
            self.run(new[0])
        return [*made.values()]

    def _filled(self, look_up: Call, call: Call) -> Iterator[Call]:
        """The look-up, with its blanks filled from the database as an agent's search would.

        An agent knows where a flight goes before it books it, and a customer who owns an order
        knows the e-mail address: the rows that the call names, and those that they name, say so.
        """
        blanks = [name for name, value in look_up.arguments.items() if isinstance(value, Blank)]
        if not blanks:
            yield look_up
            return
        rows = self.desk.rows(dict.fromkeys(_texts(call.arguments)))
        for row in (*rows, *self.desk.rows(dict.fromkeys(_texts(rows)))):
            if {*blanks} <= {*row}:
                values = {name: row[name] for name in blanks}
                yield Call(look_up.tool, {**look_up.arguments, **values})


def _texts(value: Any) -> Iterator[str]:
    """All texts in the arguments of a call."""
    if isinstance(value, str):
        yield value
    parts = value.values() if isinstance(value, dict) else value
    for part in parts if isinstance(parts, Iterable) and not isinstance(parts, str) else ():
        yield from _texts(part)


def play(desk: ServiceDesk, task: str) -> Iterator[GoldCall]:
    """Play the reference solution of a task."""
    conversation = DeskConversation(desk, desk.customer(task), desk.open(task))
    for number, call in enumerate(desk.gold(task)):
        made = conversation.inform(call)
        began = perf_counter()
        conversation.judge(call)
        seconds = perf_counter() - began
        refusals = conversation.refusals(call)
        answer = conversation.run(call)
        yield GoldCall(task, number, call, tuple(refusals), tuple(made), answer, seconds)


def main() -> None:
    """Print every refused call of the tasks, and the totals."""
    parser = ArgumentParser(prog="python -m tools.desk_gold", description=__doc__)
    parser.add_argument("desk", nargs="?", default="airline")
    parser.add_argument("task", nargs="*")
    parser.add_argument("--tasks", type=Path, help="a file with tau2's tasks")
    options = parser.parse_args()
    name, desk = options.desk, cast(ServiceDesk, get_environment(options.desk))
    if options.tasks:
        desk = ServiceDesk(name, desk.folder, options.tasks)
    known = ConversationTracker.open(desk).manual.by_name
    played: list[GoldCall] = []
    for task in options.task or desk.task_ids():
        if strange := {call.tool for call in desk.gold(task)} - known.keys():
            print(f"task {task} is left out: the desk has no {', '.join(strange)}")
        else:
            played += play(desk, task)
    for each in played:
        for refusal in each.refusals:
            rejected = "; the tool rejects it" if each.answer.startswith("Error") else ""
            print(f"task {each.task}, call {each.number}: {refusal.words(each.call)}{rejected}")
    refused = [each for each in played if each.refusals]
    print(
        f"{name}: {len({each.task for each in played})} tasks with calls, {len(played)} calls, "
        f"{sum(len(each.look_ups) for each in played)} look-ups added, {len(refused)} refused"
    )
    policy = ConversationTracker.open(desk).manual.policy
    times = [1000 * each.seconds for each in played if each.call.tool in policy]
    print(
        f"one decision about a tool with rules: median {median(times):.2f} ms, longest "
        f"{max(times):.2f} ms, {len(times)} calls"
    )


if __name__ == "__main__":
    main()
