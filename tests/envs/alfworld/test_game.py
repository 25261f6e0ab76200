from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from rpms.envs.alfworld.engine import GameEngine
from rpms.vocabulary.errors import EnvironmentFault, RpmsError

pytestmark = pytest.mark.engine


def edited(game: Path, **changes: Any) -> Path:
    data = json.loads(game.read_text())
    data.update(changes)
    game.write_text(json.dumps({key: value for key, value in data.items() if value is not None}))
    return game


def test_walkthrough_comes_from_the_file_only(game: Path, engine: GameEngine) -> None:
    engine.load(edited(game, walkthrough=["look", "help"]))
    assert engine.walkthrough == ["look", "help"]
    engine.load(edited(game, walkthrough=None))
    assert engine.walkthrough is None


def damage(kind: str, game: Path) -> Path:
    data = json.loads(game.read_text())
    problem, grammar = data["pddl_problem"], data["grammar"]
    if kind == "missing file":
        return game.with_name("absent.tw-pddl")
    if kind == "empty":
        game.write_text("")
    elif kind == "half":
        game.write_text(game.read_text()[: game.stat().st_size // 2])
    elif kind == "binary":
        game.write_bytes(bytes(range(256)))
    elif kind == "list":
        game.write_text("[1, 2]")
    elif kind == "nested":
        game.write_text("[" * 100_000)
    else:
        changes: dict[str, dict[str, Any]] = {
            "no grammar": {"grammar": None},
            "no problem": {"pddl_problem": None},
            "domain is a number": {"pddl_domain": 7},
            "cut problem": {"pddl_problem": problem[: len(problem) // 2]},
            "other domain": {"pddl_problem": problem.replace("(:domain alfred)", "(:domain x)")},
            "empty problem": {"pddl_problem": ""},
            "unknown predicate": {"pddl_problem": no_goal(problem, "(and (isNear agent1))")},
            "undeclared object": {"pddl_problem": problem.replace("agent1 - agent", "")},
            "hopeless goal": {"pddl_problem": no_goal(problem, "(and (holds agent1 agent1))")},
            "nul in names": {"pddl_problem": problem.replace("agent1", "agent\0")},
            "accents": {"pddl_problem": problem.replace("agent1", "agént")},
            "not a grammar": {"grammar": "To be, or not to be"},
            "cut grammar": {"grammar": grammar[: len(grammar) // 2]},
            "no intro": {"grammar": grammar.replace('"intro"', '"outro"')},
            "wordless action": {"grammar": grammar.replace("action look", "action stare")},
            "code in a template": {
                "grammar": grammar.replace("{o.name}", "{o.name.__class__.mro()}", 1)
            },
        }
        edited(game, **changes[kind])
    return game


def no_goal(problem: str, goal: str) -> str:
    return problem[: problem.index("(:goal")] + f"(:goal {goal}))"


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("missing file", "cannot read"),
        ("empty", "not JSON"),
        ("half", "not JSON"),
        ("binary", "not JSON"),
        ("list", "no JSON object"),
        ("nested", "not JSON"),
        ("no grammar", "'grammar'"),
        ("no problem", "'pddl_problem'"),
        ("domain is a number", "'pddl_domain'"),
        ("cut problem", "PDDL"),
        ("other domain", "PDDL"),
        ("empty problem", "PDDL"),
        ("unknown predicate", "PDDL"),
        ("undeclared object", ""),
        ("hopeless goal", "goal"),
        ("nul in names", "ASCII"),
        ("accents", "ASCII"),
        ("not a grammar", "grammar"),
        ("cut grammar", "grammar"),
        ("no intro", "intro"),
        ("wordless action", "look"),
        ("code in a template", "read names"),
    ],
)
def test_a_damaged_game_is_refused_by_name(
    kind: str, says: str, game: Path, engine: GameEngine
) -> None:
    good = Path(shutil.copy(game, game.with_name("good.tw-pddl")))
    with pytest.raises(RpmsError) as caught:
        engine.load(damage(kind, game))
    message = str(caught.value)
    assert says in message
    assert "tw-pddl" in message
    assert "\n" not in message
    with pytest.raises(EnvironmentFault):
        engine.reset()
    engine.load(good)
    assert "Your task is to" in engine.reset().feedback
