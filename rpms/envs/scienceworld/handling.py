"""Which thing a command moved: the one in the inventory, or another of the same name.

"You move the orange to the bowl." does not tell whether the orange was carried. The command does,
or the menu line it was chosen from, or the simulator's own rule: a name that fits several things in
reach is never acted on, it is asked back. Where all of that leaves it open the answer is None, and
the belief says that it is unsure instead of guessing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from rpms.vocabulary.belief import Belief
from rpms.vocabulary.naming import find, same_words

INVENTORY = "inventory"

_MENU = "Ambiguous request:"
_CHOICE = re.compile(r"^(\d+):\s*(.+?)\s*$", re.M)
# A menu line says where a thing is: "orange seed (in seed jar, in inventory, in agent, in hall)".
_PATH = re.compile(r"\(in ([^(),]+)[^()]*\)")
_VERB = re.compile(
    r"^(?:pick up|put down|move|put|pour|eat|drop|take|get|place|drink|consume)\s+(?:the )?"
)
_TARGET = re.compile(r"^(.+) (?:to|into|onto|in/on) .+$")
# "put X in Y" means "move X to Y", while "pick up X in Y" says which X.
_PUT_TARGET = re.compile(r"^(.+) (?:in|on) .+$")
_QUALIFIER = re.compile(r"^(.+) (?:in|on) (?!(?:the )?\w+ stage\b)(?:the )?(.+)$")


def read_menu(observation: str) -> dict[str, str]:
    """The choices of an ambiguous request by number; empty if it is none."""
    return dict(_CHOICE.findall(observation)) if observation.startswith(_MENU) else {}


def played(action: str, asked: Mapping[str, str]) -> str:
    """The command in full: a bare number stands for its line of the menu before."""
    command = " ".join(action.lower().split())
    return asked.get(str(int(command)), command) if command.isdecimal() else command


def carried_out(action: str, belief: Belief, observation: str) -> str:
    """The command as one could have said it at once: ``focus on apple seed in seed jar``."""
    if read_menu(observation.strip()):
        return ""
    command = played(action, belief["asked"])
    # Letters keep their case where the agent wrote the command itself.
    return _PATH.sub(r"in \1", command) if command != " ".join(action.lower().split()) else action


def source_of(command: str) -> str:
    """The container that a command, or the menu line it was chosen from, takes a thing out of."""
    if path := _PATH.search(command):
        return path[1]
    said = _VERB.sub("", command)
    if found := _TARGET.match(said):
        said = found[1]
    found = _QUALIFIER.match(said)
    return found[2] if found else ""


def from_inventory(belief: Belief, command: str, thing: str) -> bool | None:
    """Whether the thing a command moved or used up lay in the inventory itself."""
    held = find(belief["holding"], thing)
    if path := _PATH.search(command):
        return path[1] == INVENTORY
    said = _VERB.sub("", command)
    puts = re.match(r"(?:put|place) (?!down )", command)
    if found := _TARGET.match(said) or (puts and _PUT_TARGET.match(said)):
        said = found[1]
    if found := _QUALIFIER.match(said):
        return found[2] == INVENTORY
    if held is None:
        return False
    others = [name for name in belief["visible"] if same_words(name, thing)]
    if not others and belief["visible"]:
        return True
    # Words that the name lacks may be what told two things apart ("cup containing red paint").
    return True if set(said.split()) <= set(thing.lower().split()) else None
