"""Running episodes, keyed by episode id, with rebuild by replay.

A simulator cannot be put into a checkpoint. What can be is the task and the actions played so
far, and a deterministic world reaches the same point again when they are played again. So
nodes ask here for the live game of their episode; if this process does not hold it (a crash,
a restart, another server worker), it is rebuilt from the recorded turns, and every observation
must come back as recorded: a difference is an error, never a silent continuation.

Simulators are not thread-safe, while LangGraph runs synchronous nodes on whatever thread is
free. All simulator calls therefore run on one dedicated thread per process.
"""

from __future__ import annotations

import asyncio
import atexit
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

from rpms.envs.base import LiveGame, Outcome, Task
from rpms.envs.registry import get_environment
from rpms.vocabulary.errors import EnvironmentFault
from rpms.vocabulary.turn import Turn

T = TypeVar("T")

_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="simulator")


class _Live(NamedTuple):
    """A simulator, its world, and the actions played in it since the episode began."""

    env: str
    game: LiveGame
    played: list[str]


_open: OrderedDict[str, _Live] = OrderedDict()
_spare: dict[str, list[LiveGame]] = {}


def _run(work: Callable[[], T]) -> T:
    return _thread.submit(work).result()


async def _arun(work: Callable[[], T]) -> T:
    """The same on an event loop, which goes on with other episodes meanwhile."""
    return await asyncio.wrap_future(_thread.submit(work))


def start(episode_id: str, task: Task) -> str:
    """Begin an episode and return its first observation."""
    return _run(lambda: _start(episode_id, task))


async def astart(episode_id: str, task: Task) -> str:
    """``start`` for an event loop."""
    return await _arun(lambda: _start(episode_id, task))


def play(episode_id: str, task: Task, history: Sequence[Turn], action: str) -> Outcome:
    """Play one action, rebuilding the episode from its history first if needed."""
    return _run(lambda: _play(episode_id, task, history, action))


async def aplay(episode_id: str, task: Task, history: Sequence[Turn], action: str) -> Outcome:
    """``play`` for an event loop."""
    return await _arun(lambda: _play(episode_id, task, history, action))


def inspect(episode_id: str, look: Callable[[LiveGame], T]) -> T | None:
    """Read the true state of a live episode, for metrics; None when it is not live here."""
    return _run(lambda: _inspect(episode_id, look))


async def ainspect(episode_id: str, look: Callable[[LiveGame], T]) -> T | None:
    """``inspect`` for an event loop."""
    return await _arun(lambda: _inspect(episode_id, look))


def finish(episode_id: str, task: Task) -> None:
    """End an episode and keep its simulator for the next one of the same world."""
    _run(lambda: _finish(episode_id, task))


async def afinish(episode_id: str, task: Task) -> None:
    """``finish`` for an event loop."""
    await _arun(lambda: _finish(episode_id, task))


def _play(episode_id: str, task: Task, history: Sequence[Turn], action: str) -> Outcome:
    live = _open.get(episode_id)
    # The state may lie behind the simulator: a checkpoint taken up again, an answer lost.
    if live is None or live.played != _actions(history):
        _replay(episode_id, task, history)
    _open.move_to_end(episode_id)
    return _step(episode_id, action)


def _inspect(episode_id: str, look: Callable[[LiveGame], T]) -> T | None:
    live = _open.get(episode_id)
    return None if live is None else look(live.game)


def _finish(episode_id: str, task: Task) -> None:
    live = _open.pop(episode_id, None)
    if live is not None:
        _spare.setdefault(task["env"], []).append(live.game)


def _start(episode_id: str, task: Task) -> str:
    stale = _open.pop(episode_id, None)
    if stale is not None:
        _spare.setdefault(task["env"], []).append(stale.game)
    world = get_environment(task["env"])
    _make_room(task["env"])
    spare = _spare.get(task["env"])
    game = spare.pop() if spare else world.open_game()
    try:
        observation = game.reset(task)
    except BaseException:
        game.close()
        raise
    _open[episode_id] = _Live(task["env"], game, [])
    return observation


def _make_room(env: str) -> None:
    """Take the simulator of the longest idle episode once a world holds as many as it may.

    A server may leave episodes unfinished; one that goes on after all is rebuilt by replay.
    """
    mine = [name for name, live in _open.items() if live.env == env]
    excess = len(mine) + 1 - get_environment(env).max_live
    for name in mine[: max(0, excess)]:
        _spare.setdefault(env, []).append(_open.pop(name).game)


def _step(episode_id: str, action: str) -> Outcome:
    """A simulator that fails is given up, so that nothing continues from half a step."""
    live = _open[episode_id]
    try:
        outcome = live.game.step(action)
    except BaseException:
        _open.pop(episode_id).game.close()
        raise
    live.played.append(action)
    return outcome


def _actions(history: Sequence[Turn]) -> list[str]:
    """What reached the simulator; a reply without an action did not."""
    return [turn["action"] for turn in history if turn["action"]]


def _replay(episode_id: str, task: Task, history: Sequence[Turn]) -> None:
    _start(episode_id, task)
    for turn in history:
        if not turn["action"]:
            continue
        outcome = _step(episode_id, turn["action"])
        if outcome.observation != turn["observation"]:
            _open.pop(episode_id).game.close()
            raise EnvironmentFault(
                f"replay of episode {episode_id} ({task['id']}) parted from its record at step "
                f"{turn['step']}: after '{turn['action']}' the record says "
                f"{turn['observation']!r}, the environment says {outcome.observation!r}"
            )


def close_all() -> None:
    """Close every simulator of this process."""

    def work() -> None:
        games = [live.game for live in _open.values()]
        games += [game for spare in _spare.values() for game in spare]
        _open.clear()
        _spare.clear()
        for game in games:
            game.close()

    _run(work)


@atexit.register
def _shut_down() -> None:
    _thread.shutdown(wait=False, cancel_futures=True)
