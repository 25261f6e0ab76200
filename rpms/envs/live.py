"""Running episodes, keyed by episode id.

Nodes get the live game of their episode from here. If this process does not have it (a crash, a
restart, another server worker), or has it at another step, it is restored: from the state in the
checkpoint if the world's state is plain data, otherwise by a replay of the recorded actions. In a
replay every observation must equal the recorded one: a difference is an error, never a silent
continuation.

Games of plain data run on the calling thread. Simulators (``max_live``) are not thread-safe, while
LangGraph runs synchronous nodes on any free thread; all calls of simulators run on one dedicated
thread per process.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import wraps
from typing import Any, NamedTuple, ParamSpec, TypeVar

from rpms.envs.base import LiveGame, Outcome, Task
from rpms.envs.registry import get_environment
from rpms.vocabulary.errors import EnvironmentFault
from rpms.vocabulary.turn import Turn

P = ParamSpec("P")
T = TypeVar("T")
SimulatorState = Mapping[str, Any] | None

# Games of plain data kept open; a released one can be restored at the cost of a load.
MOST_OPEN = 256

_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="simulator")


class _Live(NamedTuple):
    """A game, its environment, and the actions of the episode so far."""

    env: str
    game: LiveGame
    played: list[str]


# A caller takes a game out and puts it back, so that no two threads share one.
_open: OrderedDict[str, _Live] = OrderedDict()
_spare: dict[str, list[LiveGame]] = {}
_lock = threading.Lock()


def _is_plain_data(env: str | None) -> bool:
    return env is not None and get_environment(env).max_live is None


def _runs_in_place(episode_id: Any, task: Any, *_: Any) -> bool:
    live = _open.get(episode_id)  # a simulator in use is not open
    return _is_plain_data(task["env"] if isinstance(task, dict) else live.env if live else None)


def _operation(work: Callable[P, T]) -> Callable[P, T]:
    """Run an operation on an episode in place, or on the thread of the simulators."""

    @wraps(work)
    def on_its_thread(*args: P.args, **kwargs: P.kwargs) -> T:
        if _runs_in_place(*args):
            return work(*args, **kwargs)
        return _thread.submit(work, *args, **kwargs).result()

    return on_its_thread


async def awaited(operation: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run an operation from an event loop, which continues with other episodes meanwhile."""
    if _runs_in_place(*args):
        return operation(*args, **kwargs)
    return await asyncio.to_thread(operation, *args, **kwargs)


@_operation
def start(episode_id: str, task: Task) -> str:
    """Start an episode and return its first observation."""
    _release(_take(episode_id))
    game = _free_game(task["env"])
    with _closed_on_failure(game):
        observation = game.reset(task)
    _put(episode_id, _Live(task["env"], game, []))
    return observation


@_operation
def play(
    episode_id: str, task: Task, history: Sequence[Turn], action: str, state: SimulatorState = None
) -> Outcome:
    """Execute one action; restore the episode first if needed."""
    live = _take(episode_id)
    # The history may be behind the game: a resumed checkpoint, a lost answer.
    if live is None or live.played != _actions(history):
        _release(live)
        live = _restore(episode_id, task, history, state)
    with _closed_on_failure(live.game):
        outcome = live.game.step(action)
    live.played.append(action)
    _put(episode_id, live)
    return outcome


@_operation
def finish(episode_id: str, task: Task) -> None:
    """End an episode and keep its simulator for the next one of the same environment."""
    _release(_take(episode_id))


@_operation
def inspect(episode_id: str, read: Callable[[LiveGame], T]) -> T | None:
    """Read the true state of a live episode, for metrics; None if this process does not have it."""
    live = _take(episode_id)
    if live is None:
        return None
    try:
        return read(live.game)
    finally:
        _put(episode_id, live)


def _take(episode_id: str) -> _Live | None:
    with _lock:
        return _open.pop(episode_id, None)


def _put(episode_id: str, live: _Live) -> None:
    with _lock:
        _open[episode_id] = live


def _release(live: _Live | None) -> None:
    if live is None:
        return
    if _is_plain_data(live.env):
        live.game.close()
        return
    with _lock:
        _spare.setdefault(live.env, []).append(live.game)


def _free_game(env: str) -> LiveGame:
    """A free game: a spare one, a new one, or that of the episode idle for longest.

    A server may leave episodes unfinished; one that continues later is restored.
    """
    environment = get_environment(env)
    with _lock:
        episode_ids = [episode_id for episode_id, live in _open.items() if live.env == env]
        excess = len(episode_ids) + 1 - (environment.max_live or MOST_OPEN)
        for episode_id in episode_ids[: max(0, excess)]:
            _spare.setdefault(env, []).append(_open.pop(episode_id).game)
        if _spare.get(env):
            return _spare[env].pop()
    return environment.open_game()


@contextmanager
def _closed_on_failure(game: LiveGame) -> Iterator[None]:
    """Close a simulator that fails, so that nothing continues from half a step."""
    try:
        yield
    except BaseException:
        game.close()
        raise


def _actions(history: Sequence[Turn]) -> list[str]:
    """The actions that reached the simulator; a reply without an action did not."""
    return [turn["action"] for turn in history if turn["action"]]


def _restore(episode_id: str, task: Task, history: Sequence[Turn], state: SimulatorState) -> _Live:
    """Restore the episode's game at the end of its history, from its state or by a replay."""
    live = _Live(task["env"], _free_game(task["env"]), _actions(history))
    turns = [turn for turn in history if turn["action"]]
    with _closed_on_failure(live.game):
        if state and turns:
            live.game.restore(task, state, turns[-1]["observation"])
            return live
        live.game.reset(task)
        for turn in turns:
            observation = live.game.step(turn["action"]).observation
            if observation != turn["observation"]:
                raise EnvironmentFault(
                    f"replay of episode {episode_id} ({task['id']}) differs from its record at "
                    f"step {turn['step']}: after '{turn['action']}' the record says "
                    f"{turn['observation']!r}, the environment says {observation!r}"
                )
    return live


def close_all() -> None:

    def work() -> None:
        with _lock:
            games = [live.game for live in _open.values()]
            games += [game for spare in _spare.values() for game in spare]
            _open.clear()
            _spare.clear()
        for game in games:
            game.close()

    _thread.submit(work).result()


atexit.register(_thread.shutdown, wait=False, cancel_futures=True)
