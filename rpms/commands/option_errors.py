"""Names the command-line option that caused an error.

Values are checked far from the command line, by code that Python users call too and that knows
settings, files and names, but no options. So the printed error looks up the option of the value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rpms.vocabulary.context import declarations
from rpms.vocabulary.errors import BadSetting


def in_typed_words(error: Exception, words: Sequence[str]) -> str:
    """The message, with the typed option that caused it, if one is found."""
    message, options = str(error), list(typed(words))
    if isinstance(error, BadSetting):
        option = declarations()[error.setting].setting.option
        if any(name == option for name, _ in options):
            return f"{option} {error.value} {error.why}"
        if any(name == "--set" and each.startswith(f"{error.setting}=") for name, each in options):
            return f"--set {error.setting}={error.value} {error.why}"
    if any(re.search(rf"{name}(?![\w-])", message) for name, _ in options):
        return message
    # A quoted value is the cause; a value that is only mentioned may be part of the advice.
    for quoted in (True, False):
        causes = {name for name, value in options if _mentions(message, value, quoted)}
        if len(causes) == 1:
            return f"{causes.pop()}: {message}"
        if causes:
            break
    return message


def advice_on_setting(option: str, words: Sequence[str]) -> str:
    """How to set a setting whose name was typed as an option; empty if it is none."""
    name = option.lstrip("-").replace("-", "_")
    declared = declarations()
    setting = next((each for each in (name, f"{name}_s", f"{name}s") if each in declared), "")
    if not setting or declared[setting].setting.option is None:
        return ""
    value = dict(typed(words)).get(option, "")
    if declared[setting].kind is bool:
        value = "on"
    return f"{option} is a setting: --set {setting}={value or 'VALUE'} ('rpms settings' lists them)"


def typed(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Every option with the word after it; for a flag, that word is harmless."""
    for word, after in zip(words, [*words[1:], ""], strict=True):
        name, equals, value = word.partition("=")
        if name.startswith("--"):
            yield name, value if equals else after


def _mentions(message: str, value: str, quoted: bool) -> bool:
    of_setting = value.partition("=")[2]
    candidates = {value, value.lstrip("@"), *value.split(","), of_setting, *of_setting.split(",")}
    parts = [part for part in candidates if part.strip()]
    if quoted:
        return any(f"'{part.strip()}'" in message for part in parts)
    return any(
        re.search(rf"(?<!\w){re.escape(part)}(?!\w)", message) for part in parts if len(part) > 1
    )
