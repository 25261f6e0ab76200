"""Text that can be written down and shown: no half characters, nothing that steers a terminal."""

from __future__ import annotations

import re

# C0 and C1 controls but tab and line end, what turns the reading direction, and halves of
# characters.
_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def valid(text: str) -> str:
    """The text with every character whole: two halves are joined, a single one is marked.

    Servers send half a surrogate pair when a reply ends in the middle of an emoji; no file takes
    that.
    """
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def visible(text: str) -> str:
    """The text with its control characters written out, so that a terminal only shows them.

    Written as JSON writes them, so that JSON stays what it is.
    """
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
