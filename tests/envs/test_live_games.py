"""Real games that are kept at hand, lost, and brought back where their record ends."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from rpms.envs import live
from rpms.envs.alfworld.adapter import AlfworldGame
from rpms.envs.alfworld.tasks import ensure_games
from rpms.envs.base import Task
from rpms.vocabulary.errors import EnvironmentFault
from tests.envs.playing import Player, plan_of, task_of

REPOSITORY = Path(__file__).resolve().parents[2]
Solved = list[tuple[Task, list[str]]]

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("nothing_left_open")]


@pytest.fixture(scope="module")
def solved() -> Solved:
    """One game of each type, with a plan that wins it, in the agent's wording."""
    return [(task_of(file), plan_of(file)) for file in ensure_games("generated_seen", 6)]


def begun(task: Task, actions: Sequence[str]) -> Player:
    """An episode in the middle."""
    player = Player("one", task)
    for action in actions:
        player.play(action)
    return player


def test_an_episode_from_start_to_win(solved: Solved) -> None:
    for task, plan in solved:
        player = Player("one", task)
        assert player.first.startswith("You are in the middle of a room.")
        outcomes = [player.play(action) for action in plan]
        assert [o.won for o in outcomes] == [False] * (len(plan) - 1) + [True]
        assert outcomes[-1].done and outcomes[-1].score == 1.0
        live.finish("one", task)
        assert live.inspect("one", lambda game: game.facts()) is None


def test_a_lost_episode_is_rebuilt_and_goes_on_as_if_never_lost(
    solved: Solved,
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


def test_a_state_of_plain_data_comes_back_without_replay(
    solved: Solved, monkeypatch: pytest.MonkeyPatch
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
    # Without a state the record is enough.
    live.close_all()
    player.world = None
    player.play("look")
    assert played == [*plan, *plan, "look"]


def test_a_state_that_belongs_elsewhere_is_refused(solved: Solved) -> None:
    (task, plan), (other, _) = solved[0], solved[1]
    player = begun(task, plan[:2])
    live.close_all()
    with pytest.raises(EnvironmentFault, match="of another game"):
        live.play("one", other, player.history, plan[2], player.world)
    with pytest.raises(EnvironmentFault, match="does not belong to the last recorded observation"):
        live.play("one", task, player.history[:1], plan[2], player.world)


def test_more_episodes_than_are_kept_at_hand(
    solved: Solved, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "MOST_OPEN", 2)
    players = [(Player(f"e{n}", task), plan) for n, (task, plan) in enumerate(solved)]
    for at in range(max(len(plan) for _, plan in players)):
        for player, plan in players:
            if at < len(plan):
                assert player.play(plan[at]).won == (at == len(plan) - 1)


def test_another_process_takes_an_episode_up(solved: Solved, tmp_path: Path) -> None:
    task, plan = solved[0]
    player = begun(task, plan[:-1])
    record = tmp_path / "record.json"
    record.write_text(json.dumps([task, player.history, plan[-1], player.world]))
    program = (
        "import json, sys; from pathlib import Path; from rpms.envs import live;"
        "task, history, action, world = json.loads(Path(sys.argv[1]).read_text());"
        "print(live.play('one', task, history, action, world).won)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(record)],
        cwd=REPOSITORY, capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout.strip() == "True", done.stderr


def test_a_replay_that_differs_from_its_record_is_refused(
    solved: Solved,
) -> None:
    task, plan = solved[3]
    player = begun(task, plan[:3])
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


def test_an_older_state_of_an_episode_continues_from_its_own_point(
    solved: Solved,
) -> None:
    task, plan = solved[5]
    player = begun(task, plan[:2])
    earlier, world = list(player.history), player.world
    first = player.play(plan[2])
    player.play(plan[3])
    assert first.observation != "Nothing happens."
    assert live.play("one", task, earlier, plan[2]) == first
    assert live.play("one", task, earlier, plan[2], world) == first
