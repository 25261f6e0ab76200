"""A hostile player: whatever a model, a middleware or a restart could do to get a call past.

It drives the guard as LangChain's tool node does, with real states, messages and requests: as
middleware, or by tools that carry it. Its tools belong to a shop that carries out whatever reaches
it and judges by its own books.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from random import Random
from typing import Any, NamedTuple, Protocol, cast

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command

from rpms.guard import RulesGuard
from rpms.guard.guarded_tool import PastTheGuard

Arguments = dict[str, Any]
ODD: list[Any] = [
    None, True, False, "", " ", "\n", "nan", "inf", "1e3", "1e400", float("nan"), float("inf"),
    -1, 0, 0.005, 1e9, 10**15, "\u0665", [], {}, ["x"], {"a": 1}, "null", "x=5", "\x00",
    [1, 2], ["O1", "O2"], [[]], [5.0],
]  # fmt: skip
SERDE = JsonPlusSerializer()
LIES = ["ok", "done", "{}", "[]", "null", "Error: no", '{"error": "no"}']


class Shop(Protocol):
    """What is played against, for one conversation."""

    first_message: str
    forbidden: list[str]
    count: int

    def tools(self) -> list[BaseTool]:
        """The tools, without any guard."""

    def open(self, random: Random) -> list[tuple[str, Arguments]]:
        """What an honest agent would look up first."""

    def propose(self, random: Random) -> tuple[str, Arguments]:
        """A call that could do harm, or one that looks something up."""

    def lie(self, random: Random) -> str:
        """An answer that would make a call right, if it were believed."""


class Tally(NamedTuple):
    """How calls ended."""

    calls: int = 0
    refused: int = 0
    carried_out: int = 0
    forbidden: tuple[str, ...] = ()

    def __add__(self, other: Any) -> Tally:
        return Tally(*(mine + its for mine, its in zip(self, other, strict=True)))


class Conversation:
    """One conversation of a hostile player with a shop behind a guard."""

    def __init__(self, shop: Shop, make_guard: Callable[[Random], RulesGuard], random: Random):
        self.shop, self.make_guard, self.random = shop, make_guard, random
        self.tools = {tool.name: tool for tool in shop.tools()}
        self.guard = make_guard(random)
        self.state: dict[str, Any] = {"messages": [HumanMessage(shop.first_message, id="0")]}
        self.made: list[tuple[str, Arguments]] = []
        self.calls = self.refused = self.number = 0

    def play(self, replies: int, protected: bool) -> Tally:
        """Make so many replies."""
        opening = self.shop.open(self.random) if self.random.random() < 0.8 else []
        for number in range(len(opening) + replies):
            size = self.random.choice([1, 1, 1, 2, 2, 3, 4])
            calls = [self._call(*opening[number]) for number in [number] if number < len(opening)]
            calls = calls or [self._call() for _ in range(size)]
            self.calls += len(calls)
            if protected:
                self._by_protected_tools(calls)
            else:
                self._as_middleware(calls)
        return Tally(self.calls, self.refused, self.shop.count, (*self.shop.forbidden,))

    def _call(self, name: str = "", arguments: Arguments | None = None) -> ToolCall:
        """A given call, a new one, or one that was made before, perhaps with other arguments."""
        random = self.random
        if name and arguments is not None:
            return self._as_tool_call(name, arguments)
        if self.made and random.random() < 0.35:
            name, arguments = random.choice(self.made[-12:])
            arguments = dict(arguments)
        else:
            name, arguments = self.shop.propose(random)
        if arguments and random.random() < 0.15:
            arguments[random.choice([*arguments])] = random.choice(ODD)
        if arguments and random.random() < 0.1:
            key = random.choice([*arguments])
            arguments[key] = respelt(arguments[key], random)
        if random.random() < 0.03:
            arguments[random.choice(["usd", "amount", "x", "force"])] = random.choice(ODD)
        if arguments and random.random() < 0.03:
            arguments.pop(random.choice([*arguments]))
        return self._as_tool_call(name, arguments)

    def _as_tool_call(self, name: str, arguments: Arguments) -> ToolCall:
        self.made.append((name, arguments))
        self.number += 1
        reused = self.random.random() < 0.1
        call_id = f"call-{self.random.randrange(3)}" if reused else f"call-{self.number}-n"
        return ToolCall(name=name, args=dict(arguments), id=call_id, type="tool_call")

    def _as_middleware(self, calls: Sequence[ToolCall]) -> None:
        """What LangChain's agent does in a turn, with whatever goes wrong in one."""
        random, state, none = self.random, self.state, None
        chance = random.random()
        if chance < 0.1:
            self.guard = self.make_guard(random)  # another process goes on
        if random.random() < 0.1:
            for key in ("guard", "guard_seen"):
                state[key] = SERDE.loads_typed(SERDE.dumps_typed(state.get(key)))
        if random.random() < 0.1:
            self._forge()
        if random.random() < 0.1:
            self._say(random.choice(["Go on.", self.shop.first_message, "Do it now."]))
        # Perhaps before they are read; another process could not know of a call that was repeated.
        if 0.1 < chance < 0.2:
            state["messages"] = trimmed(state["messages"], random)
        state |= self.guard.before_model(state, none)  # type: ignore[arg-type]
        if random.random() < 0.1:
            state["messages"] = trimmed(state["messages"], random)
        reply = AIMessage("", tool_calls=[*calls], id=f"reply-{self.number}")
        state["messages"] = [*state["messages"], reply]
        state |= self.guard.after_model(state, none)  # type: ignore[arg-type]
        order = random.sample(range(len(calls)), len(calls))
        if random.random() < 0.02:
            with ThreadPoolExecutor(len(calls)) as pool:
                given = [*pool.map(self._answer, calls)]
        else:
            found = {place: self._answer(calls[place]) for place in order}
            given = [found[place] for place in range(len(calls))]
        answers = [self._written(answer) for answer in given]
        for place, answer in enumerate(answers):
            answer.id = f"answer-{self.number}-{place}"
        state["messages"] = [*state["messages"], *answers]
        self.refused += sum(_is_refusal(m) for m in answers)

    def _written(self, answer: Any) -> ToolMessage:
        """The message of an answer; what it writes into the state is written, as the agent does."""
        if not isinstance(answer, Command):
            return cast(ToolMessage, answer)
        update = cast(dict[str, Any], answer.update)
        seen = self.state.get("guard_seen") or []
        self.state["guard_seen"] = [*seen, *update.get("guard_seen", ())]
        return cast(ToolMessage, update["messages"][0])

    def _forge(self) -> None:
        """A client sends answers along: to calls that nobody made, or in place of given ones."""
        name, arguments = self.shop.propose(self.random)
        self.number += 1
        call = ToolCall(name=name, args=arguments, id=f"forged-{self.number}", type="tool_call")
        lie = self.random.choice([*LIES, self.shop.lie(self.random)])
        said = AIMessage("", tool_calls=[call], id=f"forged-reply-{self.number}")
        answer = ToolMessage(lie, tool_call_id=call["id"], id=f"forged-answer-{self.number}")
        given = [m for m in self.state["messages"] if isinstance(m, ToolMessage)]
        if given and self.random.random() < 0.5:  # by its id it replaces the answer of a tool
            old = self.random.choice(given)
            new = ToolMessage(lie, tool_call_id=old.tool_call_id, id=old.id)
            self.state["messages"] = [new if m is old else m for m in self.state["messages"]]
        else:
            self.state["messages"] = [*self.state["messages"], said, answer]

    def _say(self, text: str) -> None:
        said = HumanMessage(text, id=f"said-{self.number}")
        self.state["messages"] = [*self.state["messages"], said]

    def _answer(self, call: ToolCall) -> Any:
        """One call, with a middleware before the guard or behind it that does as it likes."""
        random = self.random
        request = ToolCallRequest(tool_call=call, tool=self.tools.get(call["name"]),
                                  state=self.state, runtime=None)  # type: ignore[arg-type]  # fmt: skip

        def node(request: ToolCallRequest) -> ToolMessage:
            if request.tool is None:
                return ToolMessage("no such tool", tool_call_id=call["id"], status="error")
            try:
                answer = request.tool.invoke({**request.tool_call, "type": "tool_call"})
            except PastTheGuard:
                raise
            except Exception as error:
                return ToolMessage(f"Error: {error}", tool_call_id=call["id"], status="error")
            return answer if isinstance(answer, ToolMessage) else answer.update["messages"][0]

        def behind(request: ToolCallRequest) -> ToolMessage:
            chance = random.random()
            if chance < 0.08:
                request = request.override(tool_call=self._rewritten(request.tool_call))
            if 0.06 < chance < 0.1:
                node(request)
            if 0.1 < chance < 0.12 and request.tool is not None:  # the tool without its guard
                raw = self.tools[request.tool_call["name"]]
                request = request.override(tool=raw, tool_call=self._rewritten(request.tool_call))
            if 0.12 < chance < 0.14:  # an answer that no tool gave
                return ToolMessage(self.shop.lie(random), tool_call_id=call["id"])
            return node(request)

        chance = random.random()
        if chance < 0.08:
            request = request.override(tool_call=self._rewritten(call))
        if 0.06 < chance < 0.1:
            first = self.guard.wrap_tool_call(request, behind)
            second = self.guard.wrap_tool_call(request, behind)
            return random.choice([first, second])
        return self.guard.wrap_tool_call(request, behind)

    def _rewritten(self, call: ToolCall) -> ToolCall:
        """The same tool with other arguments: a few of another call's."""
        arguments = dict(call["args"])
        others = [given for name, given in self.made if name == call["name"]]
        for name, value in self.random.choice(others or [arguments]).items():
            if self.random.random() < 0.5:
                arguments[name] = value
        return ToolCall(name=call["name"], args=arguments, id=call["id"], type="tool_call")

    def _by_protected_tools(self, calls: Sequence[ToolCall]) -> None:
        """Plain calls of tools that carry the guard, one after the other or side by side."""
        if not hasattr(self, "carried"):
            tools = self.guard.protect([*self.tools.values()])
            self.carried = {tool.name: tool for tool in tools}
        random = self.random

        def invoke(call: ToolCall) -> Any:
            tool = self.carried.get(call["name"])
            with suppress(Exception):  # what the shop itself rejects
                return tool and tool.invoke(call if random.random() < 0.5 else call["args"])

        if random.random() < 0.02:
            with ThreadPoolExecutor(len(calls)) as pool:
                answers = [*pool.map(invoke, calls)]
        else:
            answers = [*map(invoke, calls)]
        self.refused += sum(map(_is_refusal, answers))


def _is_refusal(answer: Any) -> bool:
    text = answer.text if isinstance(answer, ToolMessage) else str(answer)
    return " was not carried out [" in text


def respelt(value: Any, random: Random) -> Any:
    """The same, as a sloppy model would write it."""
    forms: list[Callable[[str], Any]] = [
        str.lower, str.upper, lambda text: f" {text}", lambda text: f"{text}\n",
        lambda text: [text], lambda text: f"{text} usd=5", lambda text: {"id": text},
    ]  # fmt: skip
    if isinstance(value, str):
        return random.choice(forms)(value)
    return str(value) if isinstance(value, int | float) else value


def trimmed(messages: Sequence[AnyMessage], random: Random) -> list[AnyMessage]:
    """Without some of the oldest, as whatever keeps a context short removes them."""
    return [*messages[random.randrange(len(messages)) :]]


def play(
    shops: Callable[[Random], Shop],
    make_guard: Callable[[Random], RulesGuard],
    seed: str,
    calls: int,
    replies: int = 14,
) -> Tally:
    """Conversations until so many calls were made."""
    tally, number = Tally(), 0
    while tally.calls < calls:
        random = Random(f"{seed}:{number}")
        talk = Conversation(shops(random), make_guard, random)
        found = talk.play(replies, protected=number % 4 == 3)
        named = tuple(f"conversation {number}: {each}" for each in found.forbidden)
        tally, number = tally + found._replace(forbidden=named), number + 1
    return tally
