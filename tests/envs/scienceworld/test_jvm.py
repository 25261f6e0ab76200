from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rpms.envs.scienceworld.simulator import FLAGS, Jvm, Simulator, _jar
from rpms.vocabulary.errors import EnvironmentFault, RpmsError
from tests.processes import running, wait_until_gone

pytestmark = [pytest.mark.engine, pytest.mark.xdist_group("jvm")]

ROOT = Path(__file__).resolve().parents[3]
PARENT = """
import os, time
from rpms.envs.scienceworld.simulator import Simulator
simulator = Simulator()
child = os.fork()
if child:
    print(simulator.pid, child, flush=True)
time.sleep(300)
"""


def test_the_jvm_goes_when_its_parent_is_killed() -> None:
    """Even while a child that the parent forked lives on with copies of its files."""
    with subprocess.Popen([sys.executable, "-c", PARENT], cwd=ROOT, stdout=-1) as parent:
        assert parent.stdout is not None
        jvm, child = map(int, parent.stdout.readline().split())
        try:
            assert running(jvm)
            parent.send_signal(signal.SIGKILL)
            parent.wait()
            assert running(child)
            wait_until_gone([jvm])
        finally:
            os.kill(child, signal.SIGKILL)


def test_close_ends_the_jvm() -> None:
    jvm = Jvm(_jar())
    assert jvm.alive()
    assert running(jvm.pid)
    jvm.close()
    assert not running(jvm.pid)
    assert not jvm.alive()


def test_a_forgotten_jvm_goes_too() -> None:
    jvm = Jvm(_jar())
    pid = jvm.pid
    del jvm
    wait_until_gone([pid])


def test_a_jvm_that_does_not_start_says_why() -> None:
    with pytest.raises(EnvironmentFault, match=r"did not start: .*NoSuchOption"):
        Jvm(_jar(), flags=["-XX:NoSuchOption=1"])


def test_half_a_py4j_is_said_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rpms.envs.scienceworld.simulator.find_jar_path", lambda: "")
    with pytest.raises(RpmsError, match="the Java half of py4j is missing"):
        Jvm(_jar())


def test_flags_keep_the_order_of_sets_and_cap_the_heap(simulator: Simulator) -> None:
    command = Path(f"/proc/{simulator.pid}/cmdline")
    asked = command.read_text().split("\0") if command.exists() else list(FLAGS)
    assert {"-XX:hashCode=2", "-Xmx512m"} <= set(asked)


def test_a_jvm_that_died_is_a_fault() -> None:
    jvm = Jvm(_jar())
    os.kill(jvm.pid, signal.SIGKILL)
    with pytest.raises(EnvironmentFault, match="the ScienceWorld JVM is gone"):
        jvm.call(lambda: jvm.classes.java.lang.System.nanoTime())


def test_an_interrupted_call_ends_the_jvm() -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    jvm = Jvm(_jar())
    with pytest.raises(KeyboardInterrupt):
        jvm.call(interrupted)
    assert not jvm.alive()


def test_a_jvm_that_hangs_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rpms.envs.scienceworld.simulator.ANSWER_SECONDS", 0.5)
    jvm = Jvm(_jar())
    with pytest.raises(EnvironmentFault, match="the ScienceWorld JVM does not answer"):
        jvm.call(lambda: jvm.classes.java.lang.Thread.sleep(60_000))
    assert not jvm.alive()


def test_another_process_may_not_use_it(
    simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = os.getpid()
    with monkeypatch.context() as patched:
        patched.setattr(os, "getpid", lambda: mine + 1)
        assert not simulator.alive()
        with pytest.raises(EnvironmentFault, match=f"belongs to process {mine}"):
            simulator.description()
    assert simulator.alive()
