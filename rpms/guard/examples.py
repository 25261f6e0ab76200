"""Runs the examples of a manual's rules and reports those that do not come out as written."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import Any, cast

from langchain_core.messages import HumanMessage, ToolMessage

from rpms.guard.conversation import ConversationState, ConversationTracker
from rpms.rules import Manual
from rpms.rules.calls import bind
from rpms.rules.check import Problem
from rpms.rules.effects import apply_effects
from rpms.rules.predicates import Predicate, evaluate, is_effect, parse_predicate
from rpms.rules.schema import ActionRule, Example, Forbidden, PolicyRule
from rpms.rules.terms import CONTEXT, all_terms, parse_term
from rpms.vocabulary.belief import copy_belief
from rpms.vocabulary.calls import Call
from rpms.vocabulary.goal import GoalSpec
from rpms.vocabulary.spelling import ALIKE, nearest, offer

RuleWithExamples = ActionRule | PolicyRule | Forbidden


def example_problems(tracker: ConversationTracker) -> Iterator[Problem]:
    """Every example that does not come out as written.

    An example is judged by its own rule alone, so that a new rule does not break older examples.
    """
    enforced = _enforced(tracker.manual)
    for rule in enforced:
        others = {other.id for other in enforced} - {rule.id}
        for kind, examples in (("allowed", rule.allowed), ("refused", rule.refused)):
            for number, example in enumerate(examples, start=1):
                if problem := _run(tracker, rule, example, others, kind == "refused"):
                    yield "environment", rule.id, f"example {number} of '{kind}': {problem}"


def _enforced(manual: Manual) -> list[RuleWithExamples]:
    return [*manual.actions, *manual.environment.policy, *manual.forbidden]


def unexercised(tracker: ConversationTracker) -> Iterator[Problem]:
    """What no example shows of a rule: a call that it allows or refuses, a condition both ways."""
    for rule in _enforced(tracker.manual):
        needs, when = _conditions(rule)
        if not needs and not when:
            continue
        for kind, examples in (("allowed", rule.allowed), ("refused", rule.refused)):
            if not examples:
                yield "environment", rule.id, f"no example under '{kind}'"
        truths: dict[str, set[bool]] = {str(each): set() for each in (*needs, *when)}
        for example in (*rule.allowed, *rule.refused):
            if (example.tool or _tools(rule)[0]) not in _tools(rule):
                continue
            timed, state, _, bindings = _prepared(tracker, rule, example)
            for each in (*needs, *when):
                truth = evaluate(each, state["belief"], timed.manual.facts, bindings)
                truths[str(each)].add(truth is True)
        for text, seen in truths.items() if rule.allowed and rule.refused else ():
            for truth in {True, False} - seen:
                words = "true" if truth else "false"
                yield "environment", rule.id, f"no example makes '{text}' {words}"


def unsourced(manual: Manual) -> Iterator[Problem]:
    """Tools whose answers may become evidence although nothing beside them says so."""
    if records := manual.environment.records:
        fields = ", ".join(each if isinstance(each, str) else "+".join(each) for each in records)
        for rule in manual.actions:
            if rule.records is None and not (rule.shows or rule.answers):
                problem = f"any object with {fields} in its answer counts as evidence"
                advice = "say 'records', 'records: []', 'shows' or 'answers: outside' beside it"
                yield "environment", rule.id, f"{problem}; {advice}"


def _conditions(rule: RuleWithExamples) -> tuple[list[Predicate], list[Predicate]]:
    """What a rule needs, and when it applies."""
    if isinstance(rule, ActionRule):
        return rule.needs, []
    if isinstance(rule, PolicyRule):
        return rule.demands, rule.conditions
    return [], [parse_predicate(text) for text in rule.when]


def field_problems(manual: Manual) -> Iterator[Problem]:
    """Fields in conditions that resemble a field of the examples: probably misspelt."""
    environment = manual.environment
    rules = [*manual.actions, *environment.policy, *manual.forbidden]
    examples = [example for rule in rules for example in (*rule.allowed, *rule.refused)]
    fields = {*_keys([past.answer for example in examples for past in example.after])}
    fields |= {*_keys([[example.arguments, example.context] for example in examples])}
    effects = [each for rule in manual.actions for each in rule.outcomes]
    effects += [parse_predicate(text) for example in examples for text in example.facts]
    terms = [parse_term(text) for each in effects for text in each.arguments[:1]]
    fields |= {field for term in terms for field in term.path}
    listed = [environment.records, *(rule.records or [] for rule in manual.actions)]
    identities = [[one] if isinstance(one, str) else one for one in chain(*listed)]
    for field in dict.fromkeys(chain(*identities)):
        if near := _suggestion(field, fields):
            yield "environment", "records", f"no example answer has the field '{field}'; {near}"
    for demand in environment.policy:
        for condition in (*demand.conditions, *demand.demands):
            for term in map(parse_term, condition.arguments):
                for field in (part for each in all_terms(term) for part in each.path):
                    if near := _suggestion(field, fields):
                        problem = f"no example answer has the field '{field}' of '{condition}'"
                        yield "environment", demand.id, f"{problem}; {near}"


def _keys(data: Any) -> Iterator[str]:
    if isinstance(data, Mapping):
        yield from map(str, data)
        data = [*data.values()]
    for part in data if isinstance(data, list) else ():
        yield from _keys(part)


def _suggestion(field: str, fields: Collection[str]) -> str:
    near = nearest(field, fields, ALIKE) if field not in fields else []
    return f"did you mean '{near[0]}'?" if near else ""


def _run(
    tracker: ConversationTracker,
    rule: RuleWithExamples,
    example: Example,
    others: set[str],
    refused: bool,
) -> str:
    """Return what is wrong with an example; empty if nothing is."""
    tools = _tools(rule)
    if not example.tool and len(tools) > 1:
        return f"it names no tool; choose from {', '.join(tools)}"
    call = Call(example.tool or tools[0], example.arguments)
    if call.tool not in tools:
        return f"'{call.tool}' is no tool of this rule; {offer(call.tool, tools)}"
    calls = [call, *(Call(past.tool, past.arguments) for past in example.after)]
    if problem := next(filter(None, (_unknown(tracker.manual, each) for each in calls)), ""):
        return problem
    tracker, state, call, bindings = _prepared(tracker, rule, example)
    for fact in (_as_effect(parse_predicate(text)) for text in example.facts):
        held = is_effect(fact.name) or evaluate(
            fact, state["belief"], tracker.manual.facts, bindings
        )
        if not held:
            advice = "write an effect, such as 'becomes(order.total, 50)'"
            return f"the fact '{fact}' cannot be made true; {advice}"
    judgement = tracker.judge(state, call, (), others)
    if refused and judgement.verdict == "allow":
        return f"{call} is not against this rule"
    if not refused and judgement.verdict != "allow":
        return f"{call} is against this rule: {judgement.reason}"
    return ""


def _prepared(
    tracker: ConversationTracker, rule: RuleWithExamples, example: Example
) -> tuple[ConversationTracker, ConversationState, Call, Mapping[str, Any]]:
    """The tracker at the time of an example, the state before it, its call and the values."""
    call = Call(example.tool or _tools(rule)[0], example.arguments)
    tracker = _at_time(tracker, example.now)
    conversation = _state_before(tracker, rule, example)
    belief = copy_belief(conversation["belief"])
    bindings = bind(tracker.manual.by_name[call.tool], call, belief)
    facts = [_as_effect(parse_predicate(text)) for text in example.facts]
    apply_effects(tracker.manual, facts, bindings, belief)
    state = {**conversation, "belief": belief, "context": example.context}
    bindings = {**bindings, CONTEXT: example.context}
    return tracker, cast(ConversationState, state), call, bindings


def _tools(rule: RuleWithExamples) -> list[str]:
    if isinstance(rule, ActionRule):
        return [rule.name]
    return rule.action if isinstance(rule, PolicyRule) else [rule.action]


def _unknown(manual: Manual, call: Call) -> str:
    """Name a tool or an argument that the manual does not have; empty if it has all."""
    rule = manual.by_name.get(call.tool)
    if rule is None:
        return f"the rules have no tool '{call.tool}'; {offer(call.tool, [*manual.by_name])}"
    for name in call.arguments:
        if name not in rule.called:
            near = offer(name, [*rule.called]) if rule.called else "it takes none"
            return f"the rules have no argument '{name}' of '{call.tool}'; {near}"
    return ""


def _at_time(tracker: ConversationTracker, time: str) -> ConversationTracker:
    """The same tracker with the clock set to ``time``."""
    if not time:
        return tracker
    manual = tracker.manual
    tier = manual.environment.model_copy(update={"now": time})
    return tracker._replace(
        manual=Manual(manual.universal, manual.domain, tier, manual.extra, manual.without)
    )


def _state_before(
    tracker: ConversationTracker, rule: RuleWithExamples, example: Example
) -> ConversationState:
    """The state when the call is made, from the goal and the earlier answers."""
    conversation = tracker.begin()
    if example.goal:
        conversation = tracker.read(conversation, [HumanMessage(example.goal)])
    else:
        types = [*tracker.manual.domain.procedures]
        if isinstance(rule, Forbidden) and "all" not in rule.goal_types:
            types = rule.goal_types
        goal = GoalSpec(sentence="", type=types[0], object="", state=None, count=1,
                        destination="", signature="")  # fmt: skip
        conversation = {**conversation, "goal": goal}
    for past in example.after:
        text = past.answer if isinstance(past.answer, str) else json.dumps(past.answer, default=str)
        answer = ToolMessage(text, tool_call_id="")
        call = Call(past.tool, past.arguments)
        conversation = tracker.take_at(conversation, call, answer, past.at)
    return conversation


def _as_effect(fact: Predicate) -> Predicate:
    return fact._replace(name="state") if fact.name == "seen" else fact
