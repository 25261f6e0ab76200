"""The worked examples of a prompt: by default one, as in the paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path

from rpms.envs import Environment, get_environment
from rpms.rules import Manual, match_action, read_manual
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import is_file, parse_json, read_text
from rpms.vocabulary.naming import bare_name
from rpms.vocabulary.turn import Message, Turn

NEW_TASK = "=== The example is complete. A new task begins. ==="
LEFT_OUT = "\t..."
ANOTHER = "=== The example is complete. Another example begins. ==="


def check_prompts(env: str, context: RunContext) -> None:
    """Raise an error before the run if the environment lacks an example."""
    world = get_environment(env)
    for file, advice in missing_prompts(world, context.examples):
        raise RpmsError(f"{env}: {file} is missing; {advice}")


def missing_prompts(world: Environment, examples: int = 1) -> Iterator[tuple[Path, str]]:
    """Yield each prompt file that is missing, and what to write into it."""
    if not is_file(system := world.prompts / "system.md"):
        yield system, "write the system prompt into it: the agent's task and its actions"
    for number in range(1, examples + 1):
        for goal_type in world.goal_types():
            if not is_file(file := example_file(world.prompts, goal_type, number)):
                what = "a solved task" if number == 1 else "another solved task"
                yield file, f"write {what} of '{goal_type}', or set examples={number - 1}"


def example_file(prompts: Path, goal_type: str, number: int = 1) -> Path:
    return prompts / "examples" / f"{goal_type}{f'.{number}' if number > 1 else ''}.json"


@cache
def load_example(prompts: Path, goal_type: str, number: int = 1) -> tuple[Message, ...]:
    """Load an example of a goal type, as turns that end with an observation."""
    file = example_file(prompts, goal_type, number)
    data = parse_json(read_text(file, f"the example for '{goal_type}'"), str(file))
    try:
        turns = [Message(role=m["role"], content=m["content"]) for m in data["messages"]]
    except (KeyError, TypeError):
        turns = []
    if [turn["role"] for turn in turns] != ["user", "assistant"] * (len(turns) // 2) + ["user"]:
        form = '{"messages": [{"role": "user", "content": ...}, ...]}'
        raise RpmsError(f"{file}:1: should be {form}, user and assistant in turn, user last")
    return tuple(turns)


@cache
def load_examples(prompts: Path, goal_type: str, count: int) -> list[Message]:
    """Load examples of a goal type as one conversation, which ends with an observation."""
    messages: list[Message] = []
    for number in range(1, count + 1):
        first, *rest = load_example(prompts, goal_type, number)
        if messages:
            parts = [messages.pop()["content"], ANOTHER, first["content"]]
            first = Message(role=first["role"], content="\n\n".join(parts))
        messages += [first, *rest]
    return messages


@cache
def short_examples(prompts: Path, goal_type: str, count: int, rules: Path) -> list[Message]:
    """Load the examples as excerpts; the environment's manual parses their actions."""
    return excerpt(load_examples(prompts, goal_type, count), read_manual(rules))


def excerpt(messages: Sequence[Message], manual: Manual) -> list[Message]:
    """Shorten an example: a listing keeps only things that actions before the next listing use.

    Of several uses of one action in a row (opening doors, for example) the first is kept.
    """
    short, names = list[Message](), set[str]()
    for message in reversed(_once_in_a_row(messages, manual)):
        lines = message["content"].split("\n")
        if message["role"] == "assistant":
            action = action_in(message)
            _, blanks = match_action(manual, action) or ("", {"number": f"{action}:"})
            names |= {*map(bare_name, blanks.values())}
        elif "\t" in message["content"]:  # a thing a line, indented or behind its number
            lines = [
                line if "\t" not in line or any(n in line.lower() for n in names) else LEFT_OUT
                for line in lines
            ]
            names = set()
        text = "\n".join(line for line, _ in groupby(lines))
        short.insert(0, Message(role=message["role"], content=text))
    return short


def _once_in_a_row(messages: Sequence[Message], manual: Manual) -> list[Message]:
    # The first message is the task; without an example there is none.
    shown, turns, before = [*messages[:1]], messages[1:], None
    for reply, answer in zip(turns[::2], turns[1::2], strict=True):
        rule, _ = match_action(manual, action_in(reply)) or (None, {})
        # Every step of a walk from place to place is needed.
        if not rule or rule != before or rule.places or "\n" in answer["content"]:
            shown += [reply, answer]
        before = rule
    return shown


def action_in(reply: Message) -> str:
    return reply["content"].rpartition("Action: ")[2]


def list_once(turns: Sequence[Turn], recapped: bool) -> list[Turn]:
    """Shorten the turns: a room that is listed again later is only named.

    If the state block recaps what was seen (``recapped``), only the newest turn keeps its listing.
    """
    short, headings = list[Turn](), set[str]()
    for turn in reversed(turns):
        heading, _, items = turn["observation"].partition("\n")
        again = "\t" in items and (heading in headings or (recapped and bool(short)))
        text = f"{heading}\n{LEFT_OUT}" if again else turn["observation"]
        headings.add(heading)
        short.insert(0, turn | {"observation": text})
    return short


def without_list(opening: str) -> str:
    """Return the first observation without its listings, which leaves the task."""
    parts = opening.split("\n\n")
    return "\n\n".join(part for part in parts if "\t" not in part) or opening
