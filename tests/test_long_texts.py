"""Whatever reads text that others wrote takes time in proportion to it.

Each reader gets texts made to be hard for patterns that look again and again; four times the text
may take four times the processor's time, with room for noise, but not sixteen.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from rpms.envs import environment_names, get_environment
from rpms.envs.manuals import load_manual
from rpms.evals.running.runner import kind_of
from rpms.memory_store.actions_in_text import mentioned_actions
from rpms.memory_store.methods.expel import vote
from rpms.memory_store.methods.workflows import read_workflows
from rpms.memory_store.methods.writing import tidy
from rpms.models.constrained import fits
from rpms.prompts.reply import LONGEST_ACTION, read_action, read_reply
from rpms.vocabulary.safe_text import redact, valid, visible

LENGTH = 2000
GROWTH = 10.0
"""Between four and sixteen."""
MEASURABLE_S = 0.02
"""What takes less for the long text is no trouble, and too short to compare."""
MANUALS = {env: load_manual(env) for env in environment_names()}
SYNTAXES = tuple(rule.syntax for rule in MANUALS["alfworld"].actions)

READERS: dict[str, Callable[[str], Any]] = {
    "reply": lambda text: read_reply(text, {"look", "go"}),
    **{
        f"action in {env}": lambda text, env=env: read_action(text, env, MANUALS[env])
        for env in environment_names()
    },
    "mentions": lambda text: mentioned_actions(MANUALS["alfworld"], text, "mug"),
    "grammar": lambda text: fits(text, SYNTAXES),
    "tidy": tidy,
    "expel": lambda text: vote([], text),
    "workflows": read_workflows,
    "error": kind_of,
    "secrets": redact,
    "valid": valid,
    "visible": visible,
}
HEADS = ("", "Action: ", "Thought: ", "Action: put a ", "workflow", "ADD", "memory item", "x - ",
         "http://", "not ", "{", "sk-", "1. ")  # fmt: skip
UNITS = (" ", "a ", "a", "\n", "\t", " \n", "*", "`", "- ", "1", "1. ", "a 1 ", "the a ", "[", "{",
         "to ", " in ", " and then", "take ", "action ", "obs:\n", "may not ", "#", ": ", "://a@",
         "?key=", "\ud83d", "\x1b", "title\n", "put x in ", "\\", '"')  # fmt: skip


def seconds(read: Callable[[str], Any], text: str) -> float:
    """The processor's time for this thread: other programs do not count."""
    began = time.thread_time()
    read(text)
    return time.thread_time() - began


def grows(read: Callable[[str], Any], head: str, unit: str) -> float:
    """How many times longer four times the text takes; the best of several tries."""
    short, long = (head + unit * (size // len(unit)) + "!" for size in (LENGTH, 4 * LENGTH))
    best = float("inf")
    for number in range(5):
        # Another last letter, so that no cache answers.
        mark = chr(ord("p") + number)
        once, more = seconds(read, short + mark), seconds(read, long + mark)
        if more < MEASURABLE_S:
            return 1.0
        best = min(best, more / max(once, 1e-6))
        if best < GROWTH:
            break
    return best


@pytest.mark.parametrize("reader", READERS)
def test_four_times_the_text_takes_about_four_times_as_long(reader: str) -> None:
    read = READERS[reader]
    read("warm")
    for head in HEADS:
        for unit in UNITS:
            assert grows(read, head, unit) < GROWTH, (head, unit)


@pytest.mark.parametrize("env", environment_names())
def test_an_action_of_that_length_is_none(env: str) -> None:
    """Worlds and rules look for names in an action; they never get to see pages of it."""
    thought, action = read_action("Thought: on\nAction: " + "a " * 20_000, env, MANUALS[env])
    assert (thought, action) == ("on", "")
    just = "go to " + "b" * (LONGEST_ACTION - 6)
    assert read_action(f"Action: {just}", env, MANUALS[env]).action == just
    assert get_environment(env).read_action(just) == just
