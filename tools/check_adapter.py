"""Check a converted model: ``python -m tools.check_adapter REPLIES.jsonl --model local:NAME``.

Each line of the file is ``{"messages": [...], "reply": "..."}``: a prompt, and the greedy reply of
the tuned model before it was converted, of at most ``--tokens`` tokens. The same prompts are sent
to the converted model. The command prints how many replies agree, and both texts where they differ.
A tie between two words may fall differently, since the two programs round differently.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from rpms.models import open_model
from rpms.models.opening import default_timeout
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import parse_json, read_text
from rpms.vocabulary.output import print_safe

TOKENS = 96


class Expected(NamedTuple):
    """A prompt and the reply to it."""

    messages: list[dict[str, str]]
    reply: str


class Difference(NamedTuple):
    """A line of the file whose reply was another one."""

    line: int
    expected: str
    reply: str


def read_lines(file: Path) -> list[Expected]:
    """Read prompts and replies."""
    lines: list[Expected] = []
    for number, text in enumerate(read_text(file).splitlines(), 1):
        entry = parse_json(text, f"{file}:{number}")
        try:
            lines.append(Expected(entry["messages"], entry["reply"].strip()))
        except (KeyError, TypeError, AttributeError) as error:
            raise RpmsError(f"{file}:{number}: a line needs 'messages' and 'reply'") from error
    if not lines:
        raise RpmsError(f"{file} has no lines")
    return lines


def differences(model: Any, lines: list[Expected]) -> Iterator[Difference]:
    """Send every prompt to a chat model and yield the replies that differ."""
    for number, (messages, expected) in enumerate(lines, 1):
        reply = model.invoke(messages).text.strip()
        if number % 10 == 0:
            print_safe(f"{number} of {len(lines)} prompts", file=sys.stderr)
        if reply != expected:
            yield Difference(number, expected, reply)


def main() -> int:
    """Compare; the exit code is 1 if a reply differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, help="prompts and the replies to them, as JSON lines")
    parser.add_argument("--model", required=True, help="the converted model: local:NAME")
    parser.add_argument("--tokens", type=int, default=TOKENS, help=f"of a reply ({TOKENS})")
    options = parser.parse_args()
    try:
        lines = read_lines(options.file)
        timeout = default_timeout(options.model)
        model = open_model(options.model, max_tokens=options.tokens, timeout_s=timeout)
        different = 0
        for line, expected, reply in differences(model, lines):
            different += 1
            print_safe(f"line {line}\n  expected: {expected!r}\n  reply:    {reply!r}")
    except RpmsError as error:
        print_safe(f"error: {error}", file=sys.stderr)
        return 2
    print_safe(f"{len(lines) - different} of {len(lines)} replies agree with {options.model}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
