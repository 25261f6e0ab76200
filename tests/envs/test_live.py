from __future__ import annotations

import threading
import time

import pytest

from rpms.envs import live
from rpms.envs.base import Outcome, Task
from rpms.vocabulary.errors import EnvironmentFault, RpmsError
from tests.envs.playing import Player, in_threads, turn

pytestmark = pytest.mark.usefixtures("nothing_left_open")


class Echo:
    """A simulator that counts its steps and notes who calls it, and whether two do at once."""

    def __init__(self, world: EchoWorld) -> None:
        self.world, self.steps, self.task, self.closed = world, 0, "", False

    def reset(self, task: Task) -> str:
        self.note()
        self.steps, self.task = 0, task["id"]
        if task["source"] == "broken":
            raise RpmsError("no such game")
        return f"{self.task} begins"

    def step(self, action: str) -> Outcome:
        self.note()
        if action == self.world.fault:
            self.world.fault = ""
            raise EnvironmentFault("the simulator fell over")
        self.steps += 1
        return Outcome(f"{self.task} {self.steps} {action}", False, False, 0.0)

    def facts(self) -> int:
        return self.steps

    def close(self) -> None:
        self.note()
        self.closed = True

    def note(self) -> None:
        assert not self.closed, "used after close()"
        self.world.busy += 1
        self.world.overlaps += self.world.busy > 1
        time.sleep(0.0005)
        self.world.busy -= 1
        self.world.threads.add(threading.get_ident())


class EchoWorld:
    max_live = 8

    def __init__(self) -> None:
        self.opened: list[Echo] = []
        self.threads: set[int] = set()
        self.busy = self.overlaps = 0
        self.fault = ""

    def open_game(self) -> Echo:
        self.opened.append(Echo(self))
        return self.opened[-1]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> EchoWorld:
    found = EchoWorld()
    monkeypatch.setattr(live, "get_environment", lambda name: found)
    return found


def echo_task(name: str = "t", source: str = "") -> Task:
    return Task(env="echo", split="s", index=0, id=name, goal="", source=source)


def test_replies_without_an_action_never_reached_the_simulator(world: EchoWorld) -> None:
    history = [turn(1, "a", "t 1 a"), turn(2, "", "No action"), turn(3, "b", "t 2 b")]
    assert live.play("one", echo_task(), history, "c").observation == "t 3 c"
    history.append(turn(4, "c", "t 3 c"))
    assert live.play("one", echo_task(), [*history, turn(5, "", "No")], "d")[0] == "t 4 d"
    assert len(world.opened) == 1


def test_a_live_episode_is_not_replayed(world: EchoWorld) -> None:
    player = Player("one", echo_task())
    for action in "abc":
        player.play(action)
    assert live.inspect("one", lambda game: game.facts()) == 3
    live.play("one", echo_task(), player.history, "d")
    assert world.opened[0].steps == 4


def test_the_longest_idle_episode_makes_room(world: EchoWorld) -> None:
    players = [Player(f"e{n}", echo_task(f"t{n}")) for n in range(world.max_live)]
    players[0].play("wake")
    Player("new", echo_task("new"))
    alive = [p.name for p in players if live.inspect(p.name, lambda game: True)]
    assert alive == [p.name for p in players if p.name != "e1"]
    assert len(world.opened) == world.max_live  # its simulator serves the new one
    # The one that made room is rebuilt when its turn comes.
    assert players[1].play("a").observation == "t1 1 a"
    assert sum(not game.closed for game in world.opened) == world.max_live


def test_simulators_are_reused(world: EchoWorld) -> None:
    for number in range(5):
        player = Player(f"e{number}", echo_task(f"t{number}"))
        assert player.play("a").observation == f"t{number} 1 a"
        live.finish(player.name, player.task)
    Player("same", echo_task())
    Player("same", echo_task())
    assert len(world.opened) == 1


def test_close_all_closes_open_and_spare_simulators(world: EchoWorld) -> None:
    Player("a", echo_task())
    Player("b", echo_task())
    live.finish("b", echo_task())
    live.close_all()
    assert [game.closed for game in world.opened] == [True, True]


def test_a_simulator_that_cannot_start_is_given_up(world: EchoWorld) -> None:
    with pytest.raises(RpmsError, match="no such game"):
        live.start("one", echo_task(source="broken"))
    assert world.opened[0].closed
    assert live.inspect("one", lambda game: True) is None
    assert live.start("one", echo_task()) == "t begins"


@pytest.mark.parametrize("during_replay", [False, True])
def test_a_simulator_that_fails_is_given_up_and_the_episode_rebuilt(
    world: EchoWorld, during_replay: bool
) -> None:
    player = Player("one", echo_task())
    for action in "ab":
        player.play(action)
    if during_replay:
        live.close_all()
    world.fault = "b" if during_replay else "c"
    with pytest.raises(EnvironmentFault, match="fell over"):
        live.play("one", echo_task(), player.history, "c")
    assert live.inspect("one", lambda game: True) is None
    assert all(game.closed for game in world.opened)
    assert player.play("c").observation == "t 3 c"


def test_calls_from_many_threads_run_on_one(world: EchoWorld) -> None:
    def episode(number: int) -> list[str]:
        player = Player(f"e{number}", echo_task(f"t{number}"))
        return [player.play(action).observation for action in "abcde"]

    told = in_threads(12, episode)  # more than max_live: some are rebuilt on the way
    assert told == [[f"t{n} {i} {a}" for i, a in enumerate("abcde", 1)] for n in range(12)]
    assert world.overlaps == 0
    assert len(world.threads) == 1
    assert threading.get_ident() not in world.threads
