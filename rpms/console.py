"""Rich's console for texts that others wrote: the colours are ours, the rest is text."""

from __future__ import annotations

from typing import Any

from rich import console
from rich.text import Text

from rpms.vocabulary.safe_text import visible


class Console(console.Console):
    """Shows control characters instead of sending them, see ``rpms/showing.py``."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Every string that is printed comes through here, those in tables too."""
        return super().render_str(visible(text), **options)
