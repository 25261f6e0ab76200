"""Running episodes, keyed by episode id.

Nodes ask here for the live game of their episode. Where this process does not hold it (a crash,
a restart, another server worker), or holds it at another point, it is brought back: at once from
the state that the checkpoint carries, where a world's state is plain data; otherwise the actions
played so far are played again, and every observation must come back as recorded. A difference is
an error, never a silent continuation.

A world of plain data is played wherever it is called from. Simulators (``max_live``) are not
thread-safe, while LangGraph runs synchronous nodes on whatever thread is free; all their calls
run on one dedicated thread per process.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from rpms.envs.base import Listing, LiveGame, Outcome, Restorable, Task
from rpms.envs.registry import get_environment
from rpms.vocabulary.errors import EnvironmentFault
from rpms.vocabulary.turn import Turn

T = TypeVar("T")
World = Mapping[str, Any] | None

# Games of plain data kept at hand; one that was let go costs a load, and loses nothing.
KEPT = 256

_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="simulator")


class _Live(NamedTuple):
    """A game, its world, and the actions played in it since the episode began."""

    env: str
    game: LiveGame
    played: list[str]


# Whoever uses a game takes it out and puts it back, so that no two threads ever share one.
_open: OrderedDict[str, _Live] = OrderedDict()
_spare: dict[str, list[LiveGame]] = {}
_lock = threading.Lock()


def _plain(env: str | None) -> bool:
    return env is not None and get_environment(env).max_live is None


def _run(env: str | None, work: Callable[[], T]) -> T:
    return work() if _plain(env) else _thread.submit(work).result()


async def _arun(env: str | None, work: Callable[[], T]) -> T:
    """The same on an event loop, which goes on with other episodes while a simulator works."""
    return work() if _plain(env) else await asyncio.wrap_future(_thread.submit(work))


def start(episode_id: str, task: Task) -> str:
    """Begin an episode and return its first observation."""
    return _run(task["env"], lambda: _start(episode_id, task))


async def astart(episode_id: str, task: Task) -> str:
    """``start`` for an event loop."""
    return await _arun(task["env"], lambda: _start(episode_id, task))


def play(
    episode_id: str, task: Task, history: Sequence[Turn], action: str, world: World = None
) -> Outcome:
    """Play one action, bringing the episode back first if needed.

    Args:
        episode_id: the episode.
        task: what it plays.
        history: its turns so far.
        action: what to do now.
        world: what the last outcome said of the world's state, if it said anything.
    """
    return _run(task["env"], lambda: _play(episode_id, task, history, action, world))


async def aplay(
    episode_id: str, task: Task, history: Sequence[Turn], action: str, world: World = None
) -> Outcome:
    """``play`` for an event loop."""
    return await _arun(task["env"], lambda: _play(episode_id, task, history, action, world))


def commands(
    episode_id: str, task: Task, history: Sequence[Turn], world: World = None
) -> list[str]:
    """What the episode's game would accept now, bringing it back first if needed."""
    return _run(task["env"], lambda: _commands(episode_id, task, history, world))


async def acommands(
    episode_id: str, task: Task, history: Sequence[Turn], world: World = None
) -> list[str]:
    """``commands`` for an event loop."""
    return await _arun(task["env"], lambda: _commands(episode_id, task, history, world))


def inspect(episode_id: str, look: Callable[[LiveGame], T]) -> T | None:
    """Read the true state of a live episode, for metrics; None when it is not live here."""
    return _run(_world_of(episode_id), lambda: _inspect(episode_id, look))


async def ainspect(episode_id: str, look: Callable[[LiveGame], T]) -> T | None:
    """``inspect`` for an event loop."""
    return await _arun(_world_of(episode_id), lambda: _inspect(episode_id, look))


def finish(episode_id: str, task: Task) -> None:
    """End an episode and keep its simulator for the next one of the same world."""
    _run(task["env"], lambda: _let_go(_take(episode_id)))


async def afinish(episode_id: str, task: Task) -> None:
    """``finish`` for an event loop."""
    await _arun(task["env"], lambda: _let_go(_take(episode_id)))


def _play(
    episode_id: str, task: Task, history: Sequence[Turn], action: str, world: World
) -> Outcome:
    live = _where_it_was(episode_id, task, history, world)
    outcome = _step(live, action)
    _put(episode_id, live)
    return outcome


def _commands(episode_id: str, task: Task, history: Sequence[Turn], world: World) -> list[str]:
    live = _where_it_was(episode_id, task, history, world)
    _put(episode_id, live)
    return live.game.commands() if isinstance(live.game, Listing) else []


def _where_it_was(episode_id: str, task: Task, history: Sequence[Turn], world: World) -> _Live:
    """The episode's game where its record ends."""
    live = _take(episode_id)
    # The state may lie behind the game: a checkpoint taken up again, an answer lost.
    if live is None or live.played != _actions(history):
        _let_go(live)
        live = _bring_back(episode_id, task, history, world)
    return live


def _inspect(episode_id: str, look: Callable[[LiveGame], T]) -> T | None:
    live = _take(episode_id)
    if live is None:
        return None
    try:
        return look(live.game)
    finally:
        _put(episode_id, live)


def _start(episode_id: str, task: Task) -> str:
    _let_go(_take(episode_id))
    game = _a_game(task["env"])
    try:
        observation = game.reset(task)
    except BaseException:
        game.close()
        raise
    _put(episode_id, _Live(task["env"], game, []))
    return observation


def _world_of(episode_id: str) -> str | None:
    """The world of an episode at hand; a simulator that is just being used is not."""
    live = _open.get(episode_id)
    return live.env if live else None


def _take(episode_id: str) -> _Live | None:
    with _lock:
        return _open.pop(episode_id, None)


def _put(episode_id: str, live: _Live) -> None:
    with _lock:
        _open[episode_id] = live


def _let_go(live: _Live | None) -> None:
    if live is None:
        return
    if _plain(live.env):
        live.game.close()
        return
    with _lock:
        _spare.setdefault(live.env, []).append(live.game)


def _a_game(env: str) -> LiveGame:
    """A game to play in: a spare one, a new one, or that of the longest idle episode.

    A server may leave episodes unfinished; one that goes on after all is brought back.
    """
    world = get_environment(env)
    with _lock:
        mine = [name for name, live in _open.items() if live.env == env]
        excess = len(mine) + 1 - (world.max_live or KEPT)
        for name in mine[: max(0, excess)]:
            _spare.setdefault(env, []).append(_open.pop(name).game)
        if _spare.get(env):
            return _spare[env].pop()
    return world.open_game()


def _step(live: _Live, action: str) -> Outcome:
    """A simulator that fails is given up, so that nothing continues from half a step."""
    try:
        outcome = live.game.step(action)
    except BaseException:
        live.game.close()
        raise
    live.played.append(action)
    return outcome


def _actions(history: Sequence[Turn]) -> list[str]:
    """What reached the simulator; a reply without an action did not."""
    return [turn["action"] for turn in history if turn["action"]]


def _bring_back(episode_id: str, task: Task, history: Sequence[Turn], world: World) -> _Live:
    """The episode's game where its record ends, from its state or else by playing it again."""
    live = _Live(task["env"], _a_game(task["env"]), [])
    played = [turn for turn in history if turn["action"]]
    try:
        if world and played and isinstance(live.game, Restorable):
            live.game.restore(task, world, played[-1]["observation"])
            live.played.extend(_actions(history))
            return live
        live.game.reset(task)
    except BaseException:
        live.game.close()
        raise
    for turn in played:
        outcome = _step(live, turn["action"])
        if outcome.observation != turn["observation"]:
            live.game.close()
            raise EnvironmentFault(
                f"replay of episode {episode_id} ({task['id']}) parted from its record at step "
                f"{turn['step']}: after '{turn['action']}' the record says "
                f"{turn['observation']!r}, the environment says {outcome.observation!r}"
            )
    return live


def close_all() -> None:
    """Close every game of this process."""

    def work() -> None:
        with _lock:
            games = [live.game for live in _open.values()]
            games += [game for spare in _spare.values() for game in spare]
            _open.clear()
            _spare.clear()
        for game in games:
            game.close()

    _thread.submit(work).result()


@atexit.register
def _shut_down() -> None:
    _thread.shutdown(wait=False, cancel_futures=True)
