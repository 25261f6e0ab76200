"""Conditions that a language model proposes, and what the answers of the world make of them.

A model is asked once per action. Its word counts for nothing: a proposal that would have rejected
one accepted use is dropped, and so is one that explains no refusal that was open before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from rpms.rule_learning.hypotheses import Hypotheses
from rpms.rule_learning.induction import Hypothesis, add_condition, add_ways
from rpms.rule_learning.templates import Literal, Template
from rpms.rule_learning.transitions import Evidence, Use
from rpms.rules.audit import text_of
from rpms.rules.predicates import parse_predicate

MOST = 5
"""Proposals per action that are looked at."""
_PROMPTS = Environment(  # plain text for a model, no page
    loader=FileSystemLoader(Path(__file__).parent / "prompts"),
    undefined=StrictUndefined, trim_blocks=True, autoescape=False,
)  # fmt: skip

Ask = Callable[[str], str]


@dataclass
class Proposed:
    """What became of the proposals for one action: those kept, and why others were dropped."""

    kept: list[str] = field(default_factory=list)
    dropped: dict[str, str] = field(default_factory=dict)


def take_proposals(rules: Hypotheses, ask: Ask) -> dict[str, Proposed]:
    """Ask about every action that has worked, and add to its rule what stands the test."""
    found: dict[str, Proposed] = {}
    for syntax, rule in rules.rules.items():
        if not rule.template.parameters:
            continue
        found[syntax] = one = Proposed()
        evidence = rules.experience.evidence[syntax]
        for text in _lines(ask(question(rule))):
            why = _take(rule, evidence, text)
            if why:
                one.dropped[text] = why
            else:
                one.kept.append(text)
    return found


def question(rule: Hypothesis) -> str:
    """The prompt about one action."""
    template = rule.template
    atoms = (Literal(number, True) for number in range(len(template.atoms)))
    return _PROMPTS.get_template("propose.j2").render(
        syntax=template.syntax, accepted=rule.accepted, refused=rule.refused,
        unexplained=rule.unexplained, most=MOST,
        needs=[text_of(template.predicate(one)) for one in rule.kept],
        statements=[text_of(template.predicate(one)) for one in atoms if template.is_general(one)],
    )  # fmt: skip


def _lines(reply: str) -> list[str]:
    """The proposals of a reply, list marks taken off; a repeated one counts once."""
    lines = (re.sub(r"^\s*(?:[-*]|\d+[.)])\s+", "", line).strip() for line in reply.splitlines())
    return list(dict.fromkeys(line for line in lines if line))[:MOST]


def _take(rule: Hypothesis, evidence: Evidence, text: str) -> str:
    """Add a proposal to the rule; else say what is wrong with it."""
    choices = list(_read(rule.template, text))
    if None in choices:
        return "it is no statement of the list"
    ways = [one for one in choices if one is not None]
    if any(_denied(use, ways) for use in evidence.accepted):
        return "it rejects a use that was accepted"
    if not any(_denied(use, ways) and rule.allows(use) is not False for use in evidence.refused):
        return "it explains no refusal"
    if len(ways) == 1:
        add_condition(rule, evidence, ways[0])
        return ""
    return "" if add_ways(rule, evidence, ways) else "a rule takes one choice, about one thing"


def _read(template: Template, text: str) -> Iterator[Literal | None]:
    for part in text.split(" or "):
        try:
            predicate = parse_predicate(part.strip())
        except ValueError:
            yield None
            continue
        number = template.number(predicate)
        literal = Literal(number, predicate.positive) if number is not None else None
        yield literal if literal and template.is_general(literal) else None


def _denied(use: Use, ways: list[Literal]) -> bool:
    return all(use.denies(one) for one in ways)
