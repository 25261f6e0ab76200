"""One Java process with a line to it, which cannot outlive the Python process that started it.

The JVM watches its standard input and ends when that closes, and the kernel closes it however
the parent ends, SIGKILL included. A child that the parent forks would hold a copy of that pipe
and so keep the JVM alive; every forked child therefore drops its copies at once.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from py4j.java_gateway import GatewayClient, GatewayParameters, JavaGateway, find_jar_path
from py4j.protocol import Py4JError, Py4JJavaError

from rpms.envs.scienceworld.java import find_java
from rpms.vocabulary.errors import EnvironmentFault, RpmsError

T = TypeVar("T")

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
START_SECONDS = 120.0
# The longest single answer is a gold path, well under a minute on a busy machine.
ANSWER_SECONDS = 300.0

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
        java = find_java()
        classpath = os.pathsep.join([_py4j_jar(), str(jar)])
        self._owner = os.getpid()
        self._said: deque[bytes] = deque(maxlen=8)
        self._line: _Line | None = None
        self._process = subprocess.Popen(
            [
                *(java, *flags, "-classpath", classpath, "py4j.GatewayServer"),
                *("--die-on-broken-pipe", "--enable-auth", "0"),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
            cwd=jar.parent,
            # Ctrl-C is for Python alone: it decides when the JVM goes.
            start_new_session=True,
        )
        _running.add(self)
        self._end = weakref.finalize(self, _end, self._process)
        try:
            port, token = self._greeting()
        except BaseException:
            self.close()
            raise
        settings = GatewayParameters(
            port=port,
            auth_token=token,
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
            raise EnvironmentFault(f"ScienceWorld failed: {_told(error)}") from error
        except Py4JError as error:
            reason = self._silence()
            self.close()
            raise EnvironmentFault(f"{reason} ({_told(error)})") from error
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
            if self._line is not None:
                self._line.close()

    def _greeting(self) -> tuple[int, str]:
        """The port and the password that the JVM prints when it is ready."""
        stdout = self._process.stdout
        assert stdout is not None
        too_late = threading.Timer(START_SECONDS, self._process.kill)
        too_late.start()
        try:
            line = b"start"
            while line and not line.strip().isdigit():
                # Java may say something first, such as which options it picked up.
                line = stdout.readline()
                self._said.append(line)
            token = stdout.readline().decode().strip()
        finally:
            too_late.cancel()
        if not token:
            stdout.close()
            raise EnvironmentFault(f"the JVM for ScienceWorld did not start: {self._last_words()}")
        threading.Thread(target=_drain, args=(stdout, self._said), daemon=True).start()
        return int(line), token

    def _silence(self) -> str:
        """Why there was no answer; a JVM that has just been killed takes a moment to be gone."""
        try:
            code = self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            return "the ScienceWorld JVM does not answer"
        return f"the ScienceWorld JVM is gone with exit code {code}: {self._last_words()}"

    def _last_words(self) -> str:
        words = b"".join(self._said).decode(errors="replace").split()
        return " ".join(words)[-300:] or "it said nothing"


def _py4j_jar() -> str:
    """The Java half of py4j.

    The simulator's jar holds an old copy of these classes, which asks for no password and lives
    on when its parent is gone; it must not be taken for want of the right one.
    """
    found: str = find_jar_path()
    if not found:
        raise RpmsError("the Java half of py4j is missing; install the py4j package again")
    return os.path.abspath(found)


def _told(error: Py4JError) -> str:
    """What the error says; to ask an exception from Java is one more call, and may fail too."""
    try:
        words = str(error).split()
    except Exception:
        return type(error).__name__
    return " ".join(words)[:500]


def _drain(stdout: Any, said: deque[bytes]) -> None:
    """The simulator prints a lot; unread, it would fill the pipe and stop."""
    with stdout, contextlib.suppress(OSError):
        while chunk := stdout.read(1 << 16):
            said.append(chunk)


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
