"""A tool call as the rules read it: the values of a rule's parameters, and the call's effects."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

from rpms.rules.effects import apply_effects
from rpms.rules.manual import Manual
from rpms.rules.scalars import ABSENT, UNKNOWN, plain, typed
from rpms.rules.schema import ActionRule
from rpms.rules.terms import ANSWER
from rpms.vocabulary.belief import Belief, PastCall, copy_belief
from rpms.vocabulary.calls import Call


def readings(rule: ActionRule, call: Call, belief: Belief) -> list[dict[str, Any]]:
    """The values of a rule's parameters, in every reading of the call.

    The first reading takes every text literally. A text that differs from a known name only by
    case, blanks or the form of its letters may mean that name, and many tools accept it: the call
    must be right in that reading as well, so that ``o1 `` for ``O1`` does not bypass a rule.
    """
    values = {
        parameter: typed(call.arguments.get(name, ABSENT), rule.types.get(parameter, ""))
        for name, parameter in rule.called.items()
    }
    texts = {parameter: text for parameter, text in values.items() if isinstance(text, str)}
    names = belief["last_seen"].values(), belief["last_seen"], belief["flags"], belief["records"]
    spellings = _spellings(*map(tuple, names)) if texts else {}
    substitutes: list[tuple[str, str]] = []
    for parameter, text in texts.items():
        substitutes += [
            (parameter, name) for name in spellings.get(plain(text), ()) if name != text
        ]
    return [values, *({**values, parameter: name} for parameter, name in substitutes)]


def bind(rule: ActionRule, call: Call, belief: Belief) -> dict[str, Any]:
    """The first reading of a call."""
    return readings(rule, call, belief)[0]


@lru_cache(maxsize=256)
def _spellings(*names: tuple[str, ...]) -> dict[str, list[str]]:
    """The known names by their normalised spelling."""
    alike: dict[str, dict[str, None]] = {}
    for name in chain(*names):
        alike.setdefault(plain(name), {})[name] = None
    return {key: list(found) for key, found in alike.items()}


def assume(manual: Manual, calls: Sequence[Call], belief: Belief) -> Belief:
    """The belief after these calls, by the rules' effects alone."""
    later = copy_belief(belief)
    for call in calls:
        carry_out(manual, call, later)
    return later


def carry_out(manual: Manual, call: Call, belief: Belief, answer: Any = UNKNOWN) -> None:
    """Apply the effects of a call to a belief, in place; ``answer`` is its answer if there is one.

    Effects may read it: ``becomes(customer.id, answer)``.
    """
    if rule := manual.by_name.get(call.tool):
        if manual.knows(rule) and (rule.changes or answer is not UNKNOWN):
            bindings = {**bind(rule, call, belief), ANSWER: answer}
            apply_effects(manual, rule.outcomes, bindings, belief)
        note_call(call, belief)


def note_call(call: Call, belief: Belief, failed: bool = False) -> None:
    """Record a call in the belief, for rules that count calls."""
    past = PastCall(tool=call.tool, arguments=dict(call.arguments))
    belief["calls"] = [*belief["calls"], {**past, "failed": True} if failed else past]
