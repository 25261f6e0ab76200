"""What published protocols show differently: how many examples, and whether a list of actions.

The paper has one example and no list, and that is the default; the prompt is then the same, byte
for byte, as if this file were not there.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rpms.envs import Environment, environment_names, get_environment
from rpms.nodes.blocks import load_example, render
from rpms.nodes.context import RunContext
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.turn import Message

NEW_TASK = "=== The example is complete. A new task begins. ==="
ANOTHER = "=== The example is complete. Another example begins. ==="


def check_shown(env: str, context: RunContext) -> None:
    """Refuse, before anything is played, what a world cannot show."""
    world = get_environment(env)
    if context.action_list and not world.lists_actions:
        able = [name for name in environment_names() if get_environment(name).lists_actions]
        raise RpmsError(
            f"{env} has no list of actions to show; leave action_list off, or play one of: "
            f"{', '.join(able)}"
        )
    for number in range(2, context.examples + 1):
        for goal_type in world.goal_types():
            file = world.prompts / "examples" / f"{goal_type}.{number}.json"
            if not file.is_file():
                raise RpmsError(
                    f"{env} has no {number} examples of '{goal_type}': {file} is missing; play "
                    f"with examples={number - 1}"
                )


def load_examples(prompts: Path, goal_type: str, count: int) -> list[Message]:
    """That many examples of a goal type as one conversation, which ends with an observation."""
    messages: list[Message] = []
    for number in range(1, count + 1):
        name = goal_type if number == 1 else f"{goal_type}.{number}"
        first, *rest = load_example(prompts, name)
        if messages:
            parts = [messages.pop()["content"], ANOTHER, first["content"]]
            first = Message(role=first["role"], content="\n\n".join(parts))
        messages += [first, *rest]
    return messages


def listed_actions(env: Environment, commands: Sequence[str]) -> str:
    """What the world would accept, as a block of its own beside the newest observation."""
    return render(env.prompts, "commands.j2", commands=commands) if commands else ""
