"""One wording per command: what a model says loosely is brought to what the manual teaches."""

from __future__ import annotations

import re

_LOOSE = [
    (re.compile(pattern, re.I), command)
    for pattern, command in (
        (r"(?:look|look (?:a)?round(?: (?:the )?(?:room|here))?|observe|survey(?: the)? room)$",
         r"look around"),
        (r"(?:look|check) inside (?:of )?(.+)$", r"look in \1"),
        (r"inspect (.+)$", r"examine \1"),
        (r"(?:go|walk|head|run|travel)(?: (?:in|out|back))?(?: to| into| through)? "
         r"(?:the )?(?:door to )?(?:the )?(.+?)(?: door| room(?<!living room))?$", r"go to \1"),
        (r"(?:enter|leave (?:for|to)) (.+)$", r"go to \1"),
        (r"teleport (?:in|into|to)?(?: the)? ?(.+)$", r"teleport to \1"),
        (r"pick (?!up )(.+) up$", r"pick up \1"),
        (r"(?:take|grab|get|collect|pick(?: up)?) (.+?)(?: up)?$", r"pick up \1"),
        (r"(?:drop|put down) (.+)$", r"put down \1"),
        (r"put (.+) down$", r"put down \1"),
        (r"move (.+) to (.+)$", r"move \1 to \2"),
        (r"(?:put|place|insert|move|set) (.+) (?:in/on|into|onto|inside|to|in|on) (.+)$",
         r"move \1 to \2"),
        (r"(pour|dunk) (?:contents of )?(.+?) into (.+)$", r"\1 \2 into \3"),
        (r"(pour|dunk) (?:contents of )?(.+) (?:onto|in|on|to) (.+)$", r"\1 \2 into \3"),
        (r"(?:turn|switch) on (.+)$", r"activate \1"),
        (r"(?:turn|switch) off (.+)$", r"deactivate \1"),
        (r"(?:turn|switch) (.+) on$", r"activate \1"),
        (r"(?:turn|switch) (.+) off$", r"deactivate \1"),
        (r"focus (?!on )(.+)$", r"focus on \1"),
        (r"mix (?:the )?contents (?:of|in) (.+)$", r"mix \1"),
        (r"(?:check |show |open )?(?:my )?inventory$", r"inventory"),
        (r"wait ?(?:1|one)(?: (?:tick|step|turn|moment))?$", r"wait1"),
        (r"wait(?: ?10| ten|ing)?(?: (?:ticks|steps|turns|moments))?$", r"wait"),
    )
]  # fmt: skip
_ARTICLE = re.compile(r"\b(?:the|a|an) (?=\w)", re.I)


def read_action(text: str) -> str:
    """Bring a loosely worded command to the canonical one; unknown text passes through.

    Letters keep their case: some substances are told apart by one ("unknown substance B").
    """
    action = _ARTICLE.sub("", " ".join(text.split()).rstrip(" .!"))
    for pattern, command in _LOOSE:
        if found := pattern.match(action):
            return " ".join(found.expand(command).split())
    verb, _, rest = action.partition(" ")
    return f"{verb.lower()} {rest}".rstrip()
