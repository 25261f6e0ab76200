"""A manual of neutral words, as long as the real one: is it the rules that matter, or the length?

The block keeps its ids and its length. In this folder, ``rpms eval --plan manual_parts.yaml``.
"""

from __future__ import annotations

from itertools import cycle

from rpms.graph import RpmsGraph, build_graph
from rpms.nodes.rule_assembly import rule_assembly
from rpms.nodes.state import EpisodeState
from rpms.rules import ActiveRules

WORDS = (
    "The weather over the hills stayed mild for most of the week, and the river ran slowly past "
    "the old mill. In the evening people walked along the bank and talked about the harvest."
)


def neutral_rules(state: EpisodeState) -> EpisodeState:
    """Replace the text of every line; the ids, and so the look of the block, stay."""
    words = cycle(WORDS.split())
    filled: ActiveRules = {}
    for tier, lines in rule_assembly(state)["rules"].items():
        filled[tier] = []
        for line in lines:
            text = ""
            while len(text) < len(line["text"]):
                text = f"{text} {next(words)}".strip()
            filled[tier].append({**line, "text": text[: len(line["text"])]})
    return EpisodeState(rules=filled)


def neutral() -> RpmsGraph:
    """Return the agent with this manual."""
    return build_graph({"rule_assembly": neutral_rules})
