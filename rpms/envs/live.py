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
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import wraps
from typing import Any, NamedTuple, ParamSpec, TypeVar

from rpms.envs.base import Listing, LiveGame, Outcome, Restorable, Task
from rpms.envs.registry import get_environment
from rpms.vocabulary.errors import EnvironmentFault
from rpms.vocabulary.turn import Turn

P = ParamSpec("P")
T = TypeVar("T")
SimulatorState = Mapping[str, Any] | None

# Games of plain data kept at hand; one that was let go costs a load, and loses nothing.
MOST_OPEN = 256

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


def _faces(work: Callable[P, T]) -> tuple[Callable[P, T], Callable[P, Awaitable[T]]]:
    """What can be done with an episode: for a plain call, and for an event loop.

    Of a world of plain data both are done in place. A simulator's own thread does the others,
    while the event loop goes on with other episodes.
    """

    def plain(*args: P.args, **kwargs: P.kwargs) -> bool:
        task, live = args[1], _open.get(str(args[0]))  # a simulator just being used is not open
        return _plain(task["env"] if isinstance(task, dict) else live.env if live else None)

    @wraps(work)
    def face(*args: P.args, **kwargs: P.kwargs) -> T:
        if plain(*args, **kwargs):
            return work(*args, **kwargs)
        return _thread.submit(work, *args, **kwargs).result()

    @wraps(work)
    async def on_event_loop(*args: P.args, **kwargs: P.kwargs) -> T:
        if plain(*args, **kwargs):
            return work(*args, **kwargs)
        return await asyncio.wrap_future(_thread.submit(work, *args, **kwargs))

    return face, on_event_loop


def _start(episode_id: str, task: Task) -> str:
    """Begin an episode and return its first observation."""
    _let_go(_take(episode_id))
    game = _a_game(task["env"])
    with _closed_on_failure(game):
        observation = game.reset(task)
    _put(episode_id, _Live(task["env"], game, []))
    return observation


def _play(
    episode_id: str, task: Task, history: Sequence[Turn], action: str, state: SimulatorState = None
) -> Outcome:
    """Play one action, bringing the episode back first if needed."""
    live = _where_it_was(episode_id, task, history, state)
    with _closed_on_failure(live.game):
        outcome = live.game.step(action)
    live.played.append(action)
    _put(episode_id, live)
    return outcome


def _commands(
    episode_id: str, task: Task, history: Sequence[Turn], state: SimulatorState = None
) -> list[str]:
    """What the episode's game would accept now, bringing it back first if needed."""
    live = _where_it_was(episode_id, task, history, state)
    _put(episode_id, live)
    return live.game.commands() if isinstance(live.game, Listing) else []


def _finish(episode_id: str, task: Task) -> None:
    """End an episode and keep its simulator for the next one of the same world."""
    _let_go(_take(episode_id))


def _inspect(episode_id: str, look: Callable[[LiveGame], T]) -> T | None:
    """Read the true state of a live episode, for metrics; None when it is not live here."""
    live = _take(episode_id)
    if live is None:
        return None
    try:
        return look(live.game)
    finally:
        _put(episode_id, live)


start, astart = _faces(_start)
play, aplay = _faces(_play)
commands, acommands = _faces(_commands)
finish, afinish = _faces(_finish)
inspect, ainspect = _faces(_inspect)


def _where_it_was(
    episode_id: str, task: Task, history: Sequence[Turn], state: SimulatorState
) -> _Live:
    """The episode's game where its record ends."""
    live = _take(episode_id)
    # The state may lie behind the game: a checkpoint taken up again, an answer lost.
    if live is None or live.played != _actions(history):
        _let_go(live)
        live = _bring_back(episode_id, task, history, state)
    return live


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
        excess = len(mine) + 1 - (world.max_live or MOST_OPEN)
        for name in mine[: max(0, excess)]:
            _spare.setdefault(env, []).append(_open.pop(name).game)
        if _spare.get(env):
            return _spare[env].pop()
    return world.open_game()


@contextmanager
def _closed_on_failure(game: LiveGame) -> Iterator[None]:
    """A simulator that fails is given up, so that nothing continues from half a step."""
    try:
        yield
    except BaseException:
        game.close()
        raise


def _actions(history: Sequence[Turn]) -> list[str]:
    """What reached the simulator; a reply without an action did not."""
    return [turn["action"] for turn in history if turn["action"]]


def _bring_back(
    episode_id: str, task: Task, history: Sequence[Turn], state: SimulatorState
) -> _Live:
    """The episode's game where its record ends, from its state or else by playing it again."""
    live = _Live(task["env"], _a_game(task["env"]), _actions(history))
    turns = [turn for turn in history if turn["action"]]
    with _closed_on_failure(live.game):
        if state and turns and isinstance(live.game, Restorable):
            live.game.restore(task, state, turns[-1]["observation"])
            return live
        live.game.reset(task)
        for turn in turns:
            observation = live.game.step(turn["action"]).observation
            if observation != turn["observation"]:
                raise EnvironmentFault(
                    f"replay of episode {episode_id} ({task['id']}) parted from its record at step "
                    f"{turn['step']}: after '{turn['action']}' the record says "
                    f"{turn['observation']!r}, the environment says {observation!r}"
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
