from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from rpms.envs import get_environment, live
from rpms.envs.alfworld.adapter import AlfworldGame
from rpms.envs.alfworld.homes import ensure_games
from rpms.envs.base import Outcome, Task
from rpms.vocabulary.errors import EnvironmentFault, RpmsError
from rpms.vocabulary.turn import Turn

REPOSITORY = Path(__file__).resolve().parents[2]


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


@pytest.fixture(autouse=True)
def nothing_left_open() -> Iterator[None]:
    live.close_all()
    yield
    live.close_all()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> EchoWorld:
    found = EchoWorld()
    monkeypatch.setattr(live, "get_environment", lambda name: found)
    return found


def echo_task(name: str = "t", source: str = "") -> Task:
    return Task(env="echo", split="s", index=0, id=name, goal="", source=source)


def turn(step: int, action: str, observation: str) -> Turn:
    return Turn(
        step=step, thought="", action=action, observation=observation, failed=False, reply=""
    )


class Player:
    """Plays an episode as the graph does: history and state grow by what came back."""

    def __init__(self, name: str, task: Task) -> None:
        self.name, self.task = name, task
        self.history: list[Turn] = []
        self.world: dict[str, Any] | None = None
        self.first = live.start(name, task)

    def play(self, action: str) -> Outcome:
        outcome = live.play(self.name, self.task, self.history, action, self.world)
        self.world = outcome.world
        self.history.append(turn(len(self.history) + 1, action, outcome.observation))
        return outcome


@pytest.fixture(scope="module")
def solved() -> list[tuple[Task, list[str]]]:
    """One game of each type, with a plan that wins it, in the agent's wording."""
    world = get_environment("alfworld")
    tasks = [
        Task(env="alfworld", split="g", index=i, id=f.parent.name, goal="", source=str(f))
        for i, f in enumerate(ensure_games("generated_seen", 6))
    ]
    plans = [json.loads(Path(task["source"]).read_text())["walkthrough"] for task in tasks]
    return [
        (task, [world.read_action(a) for a in plan])
        for task, plan in zip(tasks, plans, strict=True)
    ]


@pytest.mark.engine
def test_an_episode_from_start_to_win(solved: list[tuple[Task, list[str]]]) -> None:
    for task, plan in solved:
        player = Player("one", task)
        assert player.first.startswith("You are in the middle of a room.")
        outcomes = [player.play(action) for action in plan]
        assert [o.won for o in outcomes] == [False] * (len(plan) - 1) + [True]
        assert outcomes[-1].done and outcomes[-1].score == 1.0
        live.finish("one", task)
        assert live.inspect("one", lambda game: game.facts()) is None


@pytest.mark.engine
def test_a_lost_episode_is_rebuilt_and_goes_on_as_if_never_lost(
    solved: list[tuple[Task, list[str]]],
) -> None:
    for task, plan in solved:
        whole = Player("whole", task)
        for action in plan:
            whole.play(action)
        torn = Player("torn", task)
        for index, action in enumerate(plan):
            if index in (1, len(plan) // 2, len(plan) - 1):
                live.close_all()
            outcome = torn.play(action)
        assert torn.history == whole.history
        assert outcome.won


@pytest.mark.engine
def test_a_state_of_plain_data_comes_back_without_replay(
    solved: list[tuple[Task, list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the action itself is played; the record before it is not played again."""
    played: list[str] = []
    step = AlfworldGame.step
    monkeypatch.setattr(
        AlfworldGame, "step", lambda self, action: played.append(action) or step(self, action)
    )
    task, plan = solved[2]
    player = Player("one", task)
    for action in plan:
        live.close_all()
        outcome = player.play(action)
    assert outcome.won
    assert played == plan
    # Without a state the record is enough, as in checkpoints of older versions.
    live.close_all()
    player.world = None
    player.play("look")
    assert played == [*plan, *plan, "look"]


@pytest.mark.engine
def test_a_state_that_belongs_elsewhere_is_refused(solved: list[tuple[Task, list[str]]]) -> None:
    (task, plan), (other, _) = solved[0], solved[1]
    player = Player("one", task)
    for action in plan[:2]:
        player.play(action)
    live.close_all()
    with pytest.raises(EnvironmentFault, match="not the game"):
        live.play("one", other, player.history, plan[2], player.world)
    with pytest.raises(EnvironmentFault, match="where its record ends"):
        live.play("one", task, player.history[:1], plan[2], player.world)
    assert live.play("one", task, player.history, plan[2], player.world).observation


@pytest.mark.engine
def test_more_episodes_than_are_kept_at_hand(
    solved: list[tuple[Task, list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "KEPT", 2)
    players = [(Player(f"e{n}", task), plan) for n, (task, plan) in enumerate(solved)]
    for at in range(max(len(plan) for _, plan in players)):
        for player, plan in players:
            if at < len(plan):
                assert player.play(plan[at]).won == (at == len(plan) - 1)


@pytest.mark.engine
def test_another_process_takes_an_episode_up(
    solved: list[tuple[Task, list[str]]], tmp_path: Path
) -> None:
    task, plan = solved[0]
    player = Player("one", task)
    for action in plan[:-1]:
        player.play(action)
    record = tmp_path / "record.json"
    record.write_text(json.dumps([task, player.history, plan[-1], player.world]))
    program = (
        "import json, sys; from pathlib import Path; from rpms.envs import live;"
        "task, history, action, world = json.loads(Path(sys.argv[1]).read_text());"
        "print(live.play('one', task, history, action, world).won)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(record)],
        cwd=REPOSITORY, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.stdout.strip() == "True", done.stderr


@pytest.mark.engine
def test_a_replay_that_differs_from_its_record_is_refused(
    solved: list[tuple[Task, list[str]]],
) -> None:
    task, plan = solved[3]
    player = Player("one", task)
    for action in plan[:3]:
        player.play(action)
    truth = player.history[1]["observation"]
    forged = [dict(entry) for entry in player.history]
    forged[1]["observation"] = "On the moon 1, you see nothing."
    live.close_all()
    with pytest.raises(EnvironmentFault) as caught:
        live.play("one", task, forged, plan[3])  # type: ignore[arg-type]
    message = str(caught.value)
    assert "step 2" in message and f"'{plan[1]}'" in message
    assert "'On the moon 1, you see nothing.'" in message and repr(truth) in message
    assert "one" in message and task["id"] in message
    # The half-played game is gone, and the true record still leads on.
    assert live.inspect("one", lambda game: True) is None
    assert player.play(plan[3]).observation != "Nothing happens."


@pytest.mark.engine
def test_an_older_state_of_an_episode_continues_from_its_own_point(
    solved: list[tuple[Task, list[str]]],
) -> None:
    task, plan = solved[5]
    player = Player("one", task)
    for action in plan[:2]:
        player.play(action)
    earlier, world = list(player.history), player.world
    first = player.play(plan[2])
    player.play(plan[3])
    assert first.observation != "Nothing happens."
    assert live.play("one", task, earlier, plan[2]) == first
    assert live.play("one", task, earlier, plan[2], world) == first


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


def test_finishing_what_is_not_open_does_nothing(world: EchoWorld) -> None:
    live.finish("never started", echo_task())
    assert world.opened == []
    assert live.inspect("never started", lambda game: True) is None


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


def in_threads(count: int, work: Callable[[int], Any]) -> list[Any]:
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, range(count)))


def test_calls_from_many_threads_run_on_one(world: EchoWorld) -> None:
    def episode(number: int) -> list[str]:
        player = Player(f"e{number}", echo_task(f"t{number}"))
        return [player.play(action).observation for action in "abcde"]

    told = in_threads(12, episode)  # more than max_live: some are rebuilt on the way
    assert told == [[f"t{n} {i} {a}" for i, a in enumerate("abcde", 1)] for n in range(12)]
    assert world.overlaps == 0
    assert len(world.threads) == 1
    assert threading.get_ident() not in world.threads


@pytest.mark.engine
def test_threads_playing_real_games_all_win(solved: list[tuple[Task, list[str]]]) -> None:
    def episode(number: int) -> bool:
        task, plan = solved[number]
        player = Player(f"e{number}", task)
        return [player.play(action).won for action in plan][-1]

    assert in_threads(len(solved), episode) == [True] * 6


async def test_an_event_loop_plays_the_same_episode(world: EchoWorld) -> None:
    task = echo_task()
    assert await live.astart("e", task) == "t begins"
    first = await live.aplay("e", task, [], "look")
    assert first.observation == "t 1 look"
    history = [turn(1, "look", first.observation)]
    second, seen = await asyncio.gather(
        live.aplay("e", task, history, "wait"), live.ainspect("e", lambda game: game.facts())
    )
    assert (second.observation, seen) == ("t 2 wait", 2)
    await live.afinish("e", task)
    assert await live.ainspect("e", lambda game: game.facts()) is None
    assert len(world.threads) == 1 and len(world.opened) == 1
