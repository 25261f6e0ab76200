"""From chat lines to tokens: which of them are learned, and which are trained on together.

Nothing here needs torch, so that it can be read and tested anywhere.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

IGNORED = -100
"""The label of a token that is read and not learned; torch's losses pass it over."""
Messages = Sequence[Mapping[str, Any]]


class Example(NamedTuple):
    """One line as tokens; labels are the tokens themselves where they are to be learned."""

    ids: list[int]
    labels: list[int]


def read_lines(file: Path) -> Iterator[list[dict[str, Any]]]:
    """The messages of each line of ``rpms export --format chat``."""
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)["messages"]


def render(tokenizer: Any, messages: Messages, ask: bool) -> str:
    """The conversation as the model reads it; ``ask`` ends it where a reply begins."""
    plain = [{key: message[key] for key in ("role", "content")} for message in messages]
    text: str = tokenizer.apply_chat_template(plain, tokenize=False, add_generation_prompt=ask)
    return text


def encode(tokenizer: Any, text: str) -> list[int]:
    """Tokens of a rendered text; the template has put in the special ones."""
    ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    return ids


def to_example(tokenizer: Any, messages: Messages) -> Example:
    """Tokens and labels of one line.

    A reply is encoded apart from what stands before it: a server, too, encodes a prompt that ends
    where the reply begins.
    """
    example = Example([], [])
    so_far = ""
    for number, message in enumerate(messages):
        # Replies are learned unless their weight says otherwise, as OpenAI's fine-tuning has it.
        if message["role"] != "assistant" or not message.get("weight", 1):
            continue
        before = render(tokenizer, messages[:number], ask=True)
        after = render(tokenizer, messages[: number + 1], ask=False).rstrip("\n")
        if not (before.startswith(so_far) and after.startswith(before)):
            raise SystemExit("tune: this chat template rewrites earlier turns; use --per decision")
        read = encode(tokenizer, before[len(so_far) :])
        reply = encode(tokenizer, after[len(before) :])
        example.ids.extend(read + reply)
        example.labels.extend([IGNORED] * len(read) + reply)
        so_far = after
    return example


def batches(lengths: Sequence[int], tokens: int, seed: int) -> list[list[int]]:
    """Numbers of examples that go together: of like length, in a random order.

    ``tokens`` bounds a batch with its padding; an example longer than that goes alone. Of whole
    episodes' prompts 2 to 3 % is padding: rows of several examples would win no more than that.
    """
    rng = random.Random(seed)
    order = sorted(range(len(lengths)), key=lambda i: (lengths[i] // 200, rng.random()))
    groups: list[list[int]] = []
    longest = 0
    for number in order:
        longest = max(longest, lengths[number])
        if not groups or (len(groups[-1]) + 1) * longest > tokens:
            groups.append([])
            longest = lengths[number]
        groups[-1].append(number)
    rng.shuffle(groups)
    return groups
