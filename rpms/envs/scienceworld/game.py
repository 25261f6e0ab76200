"""One running ScienceWorld as the graph sees it."""

from __future__ import annotations

from rpms.envs.base import Outcome, Task
from rpms.envs.scienceworld.simulator import Answer, Facts, Simulator
from rpms.envs.scienceworld.tasks import read_source, simplifications
from rpms.vocabulary.errors import EnvironmentFault

UNKNOWN_COMMAND = "No known action matches that input."
WON = 100
# What the simulator's own parser leaves out of a command before reading it.
_STOP_WORDS = {"a", "an", "the"}


class ScienceWorldGame:
    """A JVM that is started by the first episode and plays all that follow."""

    def __init__(self) -> None:
        """Nothing is started yet: an environment may be asked for its rules only."""
        self._simulator: Simulator | None = None
        self._last = Answer("", 0, False)

    def reset(self, task: Task) -> str:
        """Build the task's world; the opening is the first look, then the task sentence."""
        name, variation = read_source(task["source"])
        if self._simulator is None or not self._simulator.alive():
            self.close()
            self._simulator = Simulator()
        simulator = self._simulator
        simulator.load(name, variation, simplifications())
        sentence = simulator.description()
        if task["goal"] not in ("", sentence):
            raise EnvironmentFault(
                f"the task list says of {task['id']}: {task['goal']!r}, but the installed "
                f"simulator says: {sentence!r}"
            )
        # Looking takes no time, and only a step makes the simulator forget the score of the
        # episode before.
        self._last = simulator.step("look around")
        return f"{self._last.observation}\n\n{sentence}"

    def step(self, action: str) -> Outcome:
        """Play one action.

        After an ambiguous command the simulator shows a menu and takes whatever comes next for
        the answer. A number is an answer; anything else is a new command and must not be lost, so
        the menu goes first.
        """
        if _resets(action):
            # It would take back a wrong focus, the one mistake the benchmark does not forgive.
            return _outcome(self._last._replace(observation=UNKNOWN_COMMAND))
        simulator = self._running()
        command = action.strip()
        if not (command.isascii() and command.isdecimal()):
            simulator.close_menu()
        self._last = simulator.step(command)
        return _outcome(self._last)

    def facts(self) -> Facts:
        """The true room, inventory and object tree, for tests and metrics."""
        return self._running().facts()

    def close(self) -> None:
        """End the JVM."""
        if self._simulator is not None:
            self._simulator.close()
            self._simulator = None

    def _running(self) -> Simulator:
        if self._simulator is None:
            raise EnvironmentFault("no ScienceWorld task is running; call reset first")
        return self._simulator


def _resets(action: str) -> bool:
    words = [word for word in action.lower().split() if word not in _STOP_WORDS]
    return words == ["reset", "task"]


def _outcome(answer: Answer) -> Outcome:
    """A failed task (-100) is over although the simulator does not call it completed."""
    return Outcome(
        observation=answer.observation,
        done=answer.completed or answer.score < 0,
        won=answer.completed and answer.score >= WON,
        score=float(answer.score),
    )
