from __future__ import annotations

import pytest

from rpms.envs.scienceworld.simulator import Simulator
from rpms.envs.scienceworld.tasks import simplifications
from rpms.vocabulary.errors import EnvironmentFault, RpmsError

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
    assert boil.step("focus on stove") == ("You focus on the stove.", -100, False)


def test_facts_are_the_true_state(boil: Simulator) -> None:
    boil.step("pick up thermometer")
    facts = boil.facts()
    assert facts.room == "kitchen"
    assert sorted(facts.inventory) == ["orange", "thermometer"]
    assert facts.look.startswith("This room is called the kitchen.")
    assert "a thermometer" in facts.carried
    assert "focus on substance" in facts.progress
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
