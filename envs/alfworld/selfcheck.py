"""``python -m envs.alfworld.selfcheck``: does the game engine work on this machine?

The engine is native code that some compilers build so that it crashes in its first game. The
set-up therefore runs this in a process of its own: a crash shows as a signal, anything else that
is wrong as exit code 1 with one line that says what.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

# Games looked through for a small one; any room and goal type will do.
_CANDIDATES = 12
_SHORTEST_PLAN = 6


def play() -> str:
    """Generate a small home, play its plan to the end and say how it went.

    Raises:
        RuntimeError: the engine ran but did not do what the game's rules say.
    """
    # Imported here so that a broken installation is reported like any other failure.
    from rpms.envs.alfworld.engine import GameEngine
    from rpms.envs.alfworld.homes import sample_home, write_game

    games = [sample_home("generated_seen", index) for index in range(_CANDIDATES)]
    games = [game for game in games if len(game.walkthrough) >= _SHORTEST_PLAN]
    game = min(games, key=lambda one: len(one.game_file))
    with tempfile.TemporaryDirectory() as folder:
        # Nothing cached: the translator and the library both have to prove themselves.
        engine = GameEngine(cache=False)
        engine.load(write_game(game, Path(folder)))
        state = engine.reset()
        if state.won:
            raise RuntimeError(f"'{game.goal}' counts as done before the first step")
        for command in game.walkthrough:
            if state.won or command not in state.admissible_commands:
                raise RuntimeError(f"'{command}' should be possible and is not")
            state = engine.step(command)
        engine.close()
    if not state.won:
        raise RuntimeError(f"'{game.goal}' does not count as done after its plan")
    return f"ALFWorld engine works: '{game.goal}' done in {len(game.walkthrough)} steps"


def main() -> int:
    """Run the check; the exit code."""
    try:
        line = play()
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        print(f"ALFWorld engine check failed: {reason}", file=sys.stderr)
        return 1
    print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
