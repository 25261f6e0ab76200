"""The ScienceWorld simulator: one JVM, one task at a time.

The Python wrapper of the scienceworld package lists every valid action at each step, which makes
it many times slower, and starts Java in its own way. Only the jar it ships is used here.
"""

from __future__ import annotations

import importlib.util
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rpms.envs.scienceworld.jvm import Jvm
from rpms.vocabulary.errors import EnvironmentFault, RpmsError

JAR = "scienceworld.jar"


class Answer(NamedTuple):
    """What the simulator says to one command; the score is in percent, -100 after a failure."""

    observation: str
    score: int
    completed: bool


class Facts(NamedTuple):
    """The true state of the world, which the agent never sees.

    Attributes:
        room: where the agent is.
        inventory: names of what it carries, without what those things contain.
        look: what ``look around`` would say.
        carried: what ``inventory`` would say.
        progress: the simulator's own list of sub-goals and which of them are met.
        tree: every object of the world with its properties, each inside its container.
    """

    room: str
    inventory: list[str]
    look: str
    carried: str
    progress: str
    tree: dict[str, Any]


class Simulator:
    """One JVM that plays any number of tasks after each other.

    It keeps global state inside (random numbers, object ids), so two tasks at the same time need
    two simulators.
    """

    def __init__(self) -> None:
        """Start the JVM, which takes two to four seconds."""
        self._jvm = Jvm(_jar())
        call = self._jvm.call
        try:
            packages = self._jvm.classes
            self._server = call(lambda: packages.scienceworld.runtime.pythonapi.PythonInterface())
        except BaseException:
            self._jvm.close()
            raise
        # The parts of the running task: where errors are noted, and where a menu may be open.
        self._world: Any = None
        self._parser: Any = None

    @property
    def pid(self) -> int:
        """The process id of the JVM."""
        return self._jvm.pid

    def alive(self) -> bool:
        """Whether this simulator can be asked anything at all."""
        return self._jvm.alive()

    def load(
        self, task: str, variation: int, simplifications: Sequence[str], gold: bool = False
    ) -> None:
        """Build the task's world; with ``gold``, solve it first, for ``gold_actions``.

        Solving leaves traces in the JVM: do it in a simulator that plays nothing afterwards.
        """
        call = self._jvm.call
        for part in (self._world, self._parser):
            if part is not None:
                self._jvm.forget(part)
        self._world = self._parser = None
        wrong = call(self._server.load, task, variation, ",".join(simplifications), gold)
        if wrong:
            raise EnvironmentFault(f"ScienceWorld cannot load {task}/{variation}: {wrong}")
        option = call(self._server.agentInterface)
        self._world = call(option.get)
        self._parser = call(self._world.inputParser)
        self._jvm.forget(option)

    def step(self, command: str) -> Answer:
        """Play one command."""
        call = self._jvm.call
        observation = call(self._server.step, command)
        # A crash inside the simulator is only noted there: the step looks normal, and every later
        # one answers with the crash as its text and a score of -100.
        crash = call(self._world.getErrorStateMessage)
        if not crash and ("java." in observation or observation.startswith("ERROR:")):
            crash = observation
        if crash:
            raise EnvironmentFault(f"ScienceWorld failed at '{command}': {crash[:500]}")
        score = round(100 * call(self._server.getScore))
        return Answer(observation, score, call(self._server.getCompleted))

    def close_menu(self) -> None:
        """Cancel an open "Ambiguous request" menu, if there is one.

        A blank command would do as well, but it lets one tick of time pass.
        """
        self._jvm.call(self._parser.clearAmbiguousState)

    def description(self) -> str:
        """The task in the simulator's words."""
        return str(self._jvm.call(self._server.getTaskDescription))

    def facts(self) -> Facts:
        """The true state of the world."""
        call = self._jvm.call
        with tempfile.TemporaryDirectory() as folder:
            wrong = call(self._server.getObjectTree, folder)
            if wrong:
                raise EnvironmentFault(f"ScienceWorld cannot list its objects: {wrong}")
            text = Path(folder, "objectTree.json").read_text(encoding="utf-8")
        tree: dict[str, Any] = json.loads(text)
        room, agent = _find_agent(tree)
        return Facts(
            room=room,
            inventory=_carried(agent),
            look=call(self._server.freeActionLook),
            carried=call(self._server.freeActionInventory),
            progress=call(self._server.getGoalProgressStr),
            tree=tree,
        )

    def gold_actions(self) -> list[str]:
        """A solution of the loaded task; empty unless it was loaded with ``gold``."""
        return self._strings(self._server.getGoldActionSequence)

    def commands(self) -> list[str]:
        """The simulator's command templates under the loaded simplifications."""
        return self._strings(self._server.getPossibleActions)

    def variations(self, split: str) -> list[int]:
        """The variations of the loaded task that belong to train, dev or test."""
        method = getattr(self._server, f"getVariations{split.capitalize()}")
        return [int(number) for number in self._strings(method)]

    def simplifications(self) -> list[str]:
        """The simplifications in force, as the simulator reports them."""
        return str(self._jvm.call(self._server.getSimplificationsUsed)).split(", ")

    def close(self) -> None:
        """End the JVM."""
        self._jvm.close()

    def _strings(self, method: Any) -> list[str]:
        """A Java list, fetched whole and let go."""
        items = self._jvm.call(method)
        found = self._jvm.call(lambda: [str(item) for item in items])
        self._jvm.forget(items)
        return found


def _jar() -> Path:
    """Found without importing the package, whose modules do more than we need."""
    spec = importlib.util.find_spec("scienceworld")
    if spec is None or spec.origin is None:
        raise RpmsError("the scienceworld package is not installed; run 'make setup'")
    return Path(spec.origin).with_name(JAR)


def _find_agent(tree: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The room the agent stands in, and the agent."""
    for room in tree["contents"].values():
        for thing in room["contents"].values():
            if thing["name"] == "agent":
                return room["name"], thing
    raise EnvironmentFault("ScienceWorld's object tree has no agent in any room")


def _carried(agent: dict[str, Any]) -> list[str]:
    """What is in the agent's inventory; electrical terminals are parts of things, not things."""
    bags = [thing for thing in agent["contents"].values() if thing["name"] == "inventory"]
    things = [thing for bag in bags for thing in bag["contents"].values()]
    return [thing["name"] for thing in things if not thing["name"].startswith("terminal ")]
