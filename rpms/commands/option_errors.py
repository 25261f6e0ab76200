"""Which option of the command line an error is about, in the words that were typed.

What is wrong with a value is found far from the command line, by code that Python users call too
and that knows settings, files and names but no options. So the line that is printed at the end
looks up which option brought the value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rpms.vocabulary.context import REMOVED, RENAMED, declarations
from rpms.vocabulary.errors import BadSetting


def in_typed_words(error: Exception, words: Sequence[str]) -> str:
    """The message, with the option that it is about where that is one of those typed."""
    message, options = str(error), list(typed(words))
    if isinstance(error, BadSetting):
        option = declarations()[error.setting].option
        if any(name == option for name, _ in options):
            return f"{option} {error.value} {error.why}"
    if any(re.search(rf"{name}(?![\w-])", message) for name, _ in options):
        return message
    # A value in quotes is what a message is about; one that is only mentioned may be a hint.
    for sure in (True, False):
        meant = {name for name, value in options if _mentions(message, value, sure)}
        if len(meant) == 1:
            return f"{meant.pop()}: {message}"
        if meant:
            break
    return message


def replaced_option(words: Sequence[str]) -> str:
    """What to type instead of an option that is gone; empty if all of them are there."""
    former = {f"--{old.replace('_', '-')}": new for old, new in RENAMED.items()}
    gone = {f"--{old.replace('_', '-').removesuffix('-s')}": old for old in REMOVED}
    for name, value in typed(words):
        if name in former:
            return f"{name} is called {declarations()[former[name]].option} now"
        if (removed := name.replace("--no-", "--")) in gone:
            return f"{name} is gone: {REMOVED[gone[removed]].advice}"
        if name in ("--preset", "--protocol"):
            from rpms.evals.running.plan_file import shipped_plans

            plan = "ablation" if value == "2x2" else value
            plan = plan if plan in shipped_plans() else "FILE.yaml"
            return f"{name} is gone: give --plan {plan} instead; 'rpms plans' lists the plans"
    return ""


REMOVED_WORDS = {
    ("compare",): "'rpms report A B' puts runs side by side.",
    ("export", "--format"): "'rpms export' writes chat messages alone: leave it out.",
    ("export", "--prompts"): "Each line has its whole prompt: leave it out.",
}
"""Commands and options of earlier versions, and what to type instead."""


def removed_word(words: Sequence[str]) -> str:
    """For a command or an option that is gone, what to type instead."""
    given = {*words, *(name for name, _ in typed(words))}
    return next(
        (f" {hint}" for names, hint in REMOVED_WORDS.items() if given.issuperset(names)), ""
    )


def typed(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Every option with the value after it; a switch has the next word, which does no harm."""
    for word, after in zip(words, [*words[1:], ""], strict=True):
        name, equals, value = word.partition("=")
        if name.startswith("--"):
            yield name, value if equals else after


def _mentions(message: str, value: str, quoted: bool) -> bool:
    parts = [part for part in {value, value.lstrip("@"), *value.split(",")} if part.strip()]
    if quoted:
        return any(f"'{part.strip()}'" in message for part in parts)
    return any(
        re.search(rf"(?<!\w){re.escape(part)}(?!\w)", message) for part in parts if len(part) > 1
    )
