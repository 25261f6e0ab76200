from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpms.envs import get_environment
from rpms.prompts.reply import read_reply

VERBS = frozenset(get_environment("alfworld").command_verbs())
WORD = st.from_regex(r"[a-z]{1,9}", fullmatch=True).filter(
    lambda word: word not in {"action", "obs", "observation", "then", "thought"}
)
PROSE = st.lists(WORD, min_size=1, max_size=30).map(" ".join)


@pytest.mark.parametrize(
    ("text", "thought", "action"),
    [
        # The two forms that are asked for.
        ("Thought: It is cold.\nAction: go to fridge 1", "It is cold.", "go to fridge 1"),
        ("Action: go to fridge 1", "", "go to fridge 1"),
        ("Thought: one\ntwo\nAction: look", "one two", "look"),
        ("Thought: It is cold. Action: go to fridge 1", "It is cold.", "go to fridge 1"),
        # Labels in other dress.
        ("ACTION: look", "", "look"),
        ("action = look", "", "look"),
        ("Action 1: go to fridge 1", "", "go to fridge 1"),
        ("> Action: look", "", "look"),
        ("- Action: look", "", "look"),
        ("### Action: look", "", "look"),
        ("Think: hm\nAction: look", "hm", "look"),
        ("Reasoning: hm\nAction: look", "hm", "look"),
        # Markdown.
        ("**Thought:** hm\n**Action:** go to fridge 1", "hm", "go to fridge 1"),
        ("**Action**: go to fridge 1", "", "go to fridge 1"),
        ("Action: `go to fridge 1`", "", "go to fridge 1"),
        ("Action: **go to fridge 1**", "", "go to fridge 1"),
        ("```\nThought: hm\nAction: look\n```", "hm", "look"),
        ("Action:\n```text\ngo to fridge 1\n```", "", "go to fridge 1"),
        ("Thought: hm\n```go to fridge 1```", "hm", "go to fridge 1"),
        # The action on a later line.
        ("Action:\ngo to fridge 1", "", "go to fridge 1"),
        ("Action:\n\n  go to fridge 1", "", "go to fridge 1"),
        ("Action:\nAction: look", "Action:", "look"),
        # No label.
        ("go to fridge 1", "", "go to fridge 1"),
        ("Thought: It is cold.\ngo to fridge 1", "It is cold.", "go to fridge 1"),
        ("I need milk.\n> go to fridge 1", "I need milk.", "go to fridge 1"),
        ("Look, the mug is on the desk and that is where I am going now.\ntake mug 1 from desk 1",
         "Look, the mug is on the desk and that is where I am going now.",
         "take mug 1 from desk 1"),
        # Several actions: only the first, whatever the form.
        ("Action: open fridge 1\nAction: look", "", "open fridge 1"),
        ("Action: open fridge 1 Action: look", "", "open fridge 1"),
        ("Action: open fridge 1; look", "", "open fridge 1"),
        ("Action: go to desk 1 -> take cd 1 from desk 1", "", "go to desk 1"),
        ("Action: open fridge 1, then look", "", "open fridge 1"),
        ("Action: open fridge 1 and then look", "", "open fridge 1"),
        ("Action: open fridge 1. Take the mug.", "", "open fridge 1"),
        ("Action: 1. open fridge 1\n2. look", "", "open fridge 1"),
        ("My plan:\n1. open fridge 1\n2. take mug 1 from fridge 1", "My plan:", "open fridge 1"),
        # A model that plays the environment's part as well.
        ("Action: open fridge 1\nObs: You open it.\nAction: look", "", "open fridge 1"),
        ("Action: open fridge 1 Obs: You open it. Action: look", "", "open fridge 1"),
        ("open fridge 1\nObservation: You open it.\nAction: look", "", "open fridge 1"),
        ("Obs: The fridge 1 is closed.\nAction: open fridge 1", "Obs: The fridge 1 is closed.",
         "open fridge 1"),
        # Quotes, brackets, full stops, remarks.
        ('Action: "go to fridge 1"', "", "go to fridge 1"),
        ("Action: 'go to fridge 1'.", "", "go to fridge 1"),
        ("Action: \u201cgo to fridge 1\u201d", "", "go to fridge 1"),
        ("Action: [go to fridge 1]", "", "go to fridge 1"),
        ("Action: <go to fridge 1>", "", "go to fridge 1"),
        ("Action: go to fridge 1.", "", "go to fridge 1"),
        ("Action: go to fridge 1!!", "", "go to fridge 1"),
        ("Action: go to fridge 1 (it may hold milk)", "", "go to fridge 1"),
        ("Action: go to fridge 1  # milk", "", "go to fridge 1"),
        # A JSON object.
        ('{"thought": "It is cold.", "action": "go to fridge 1"}', "It is cold.", "go to fridge 1"),
        ('{"action": "look"}', "", "look"),
        ('  {\n "Thought": "a\\nb",\n "Action": "go to fridge 1."\n}\n', "a b", "go to fridge 1"),
        ('```json\n{"thought": "", "action": "look"}\n```', "", "look"),
        ('{"thought": null, "action": "look"}', "", "look"),
        ('{"thought": {"deep": 1}, "action": "look"}', "", "look"),
        # Nothing: the reply is kept as the thought.
        ("Thought: the fridge\n  may hold milk", "the fridge may hold milk", ""),
    ],
)  # fmt: skip
def test_reads(text: str, thought: str, action: str) -> None:
    assert read_reply(text, VERBS) == (thought, action)


@pytest.mark.parametrize(
    "text",
    ["", " \n\t\n", "Action:", "Action:\n", "Action: ...", "Action:\nObs: You open the fridge 1.",
     "Thought: I should open the fridge.", "I'm sorry, but I can't help with that request.",
     "As an AI language model, I do not have hands.", "The mug is in the fridge.", "```\n```",
     "\x00\x07",
     '{"thought": "hm"}', '{"action": ""}', '{"action": 3}', '{"action": ["look"]}', "{}",
     '{"thought": "hm", "action": "lo', "{" * 100_000 + "}" * 100_000],
)  # fmt: skip
def test_finds_no_action(text: str) -> None:
    assert read_reply(text, VERBS).action == ""


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("Action: put mug 1 on desk 1.", "put mug 1 in/on desk 1"),
        ("Action: Put the mug 1 into the desk 1", "put mug 1 in/on desk 1"),
        ("Action: put mug 1 in/on desk 1", "put mug 1 in/on desk 1"),
        ("place mug 1 on desk 1", "put mug 1 in/on desk 1"),
        ("move mug 1 to desk 1", "put mug 1 in/on desk 1"),
        ("ACTION: GO TO DESK 1", "go to desk 1"),
        ("pick up mug 1 from desk 1", "take mug 1 from desk 1"),
        ("**Action:** `toggle desklamp 1`", "use desklamp 1"),
    ],
)
def test_loose_wording_becomes_the_canonical_action(text: str, action: str) -> None:
    assert get_environment("alfworld").read_action(read_reply(text, VERBS).action) == action


@pytest.mark.parametrize(
    "text",
    [
        "word " * 100_000 + "\nAction: look",
        "line\n" * 100_000 + "Action: look",
        "Thought: x\nAction: look\n" * 50_000,
        "Obs: nothing\n" * 100_000 + "Action: look",
        "action" + " " * 1_000_000 + "\nAction: look",
        "\n" * 1_000_000 + "Action: look",
        "*" * 1_000_000 + "\nAction: look",
        "Action" + "1" * 1_000_000 + "\nAction: look",
    ],
)
def test_a_degenerate_reply_is_read_all_the_same(text: str) -> None:
    """Backtracking through any of these would take hours; the limit on every test would end it."""
    assert read_reply(text, VERBS).action == "look"


PIECES = ["Action", "action 1", "Thought", "Obs", ":", "=", "\n", " ", "```", "**", '"', "look"]


@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=25).map("".join)))
def test_never_raises(text: str) -> None:
    thought, action = read_reply(text, VERBS)
    assert "\n" not in thought + action


@given(PROSE, PROSE)
def test_round_trip(thought: str, action: str) -> None:
    assert read_reply(f"Thought: {thought}\nAction: {action}", VERBS) == (thought, action)
    assert read_reply(f"Thought: {thought}. Action: {action}", VERBS) == (f"{thought}.", action)
    assert read_reply(f"Action: {action}", VERBS) == ("", action)
