"""The schema of the three YAML tiers.

Unknown keys are rejected, so a typo in a rule file is an error at load time and not a rule that
silently never applies.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from datetime import date
from functools import cached_property
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    StringConstraints,
    field_validator,
    model_validator,
)

from rpms.rules.predicates import Predicate, Wording, is_effect, parse_predicate
from rpms.rules.scalars import as_moment
from rpms.rules.terms import ANSWER, all_terms, parse_term
from rpms.vocabulary.spelling import Strict


def _check_id(text: str) -> str:
    if not re.fullmatch(r"[A-Z][A-Z0-9]*(-[A-Z0-9]+)+", text):
        raise ValueError(f"'{text}' is no id; write capitals with a hyphen, such as P-TOTAL")
    return text


def _as_moment_text(value: object) -> object:
    """A time as text, also if YAML has parsed it."""
    text = value.isoformat() if isinstance(value, date) else value
    if text and as_moment(text) is None:
        raise ValueError(f"'{text}' is no time such as 2025-02-25 or 2025-02-25T15:00:00")
    return text


Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
Condition = Annotated[str, AfterValidator(lambda text: parse_predicate(text) and text)]
"""A predicate, as text."""
TermText = Annotated[str, AfterValidator(lambda text: parse_term(text) and text)]
MomentText = Annotated[str, BeforeValidator(_as_moment_text)]
RuleId = Annotated[str, AfterValidator(_check_id)]

# Predicates whose first argument is a place.
OF_PLACES = {"at", "place", "accessible", "can_contain", "adjacent"}

# Blanks that the manual fills into a situation's text.
SITUATION_BLANKS = ("held", "place", "action", "outcome", "reason")


class _Strict(Strict, BaseModel):
    pass


def _check_blanks(text: str, blanks: Collection[str]) -> str:
    """Reject a blank that nothing fills, before an episode meets it."""
    for name in re.findall(r"\{([^{}]*)\}", text):
        if name not in blanks:
            raise ValueError(f"nothing fills the blank '{{{name}}}' in '{text}'")
    return text


class ManualEntry(_Strict):
    """An entry of a manual with an id.

    ``source``, ``confidence`` (0 to 1) and ``support`` (the number of observations) are for people;
    no stage reads them.
    """

    id: RuleId
    source: str = ""
    confidence: float | None = Field(default=None, ge=0, le=1)
    support: int | None = Field(default=None, ge=0)


Feature = Literal["places", "containers", "numbered names", "one hand", "instruments"]
"""Features that only some worlds have."""


class Rule(ManualEntry):
    """A sentence of the manual. ``for`` and ``about`` restrict it to goals it is useful for.

    ``requires`` names features that a world must have for the sentence to hold there; a world
    lists its features in Tier 3. A sentence that repeats an action's line has ``scope: all``: it is
    printed with the whole manual only. ``said`` and ``unless_said`` are words of a task sentence:
    the rule applies to tasks that have one of the first and none of the second.
    """

    text: Text
    group: str = ""
    critical: bool = False
    requires: list[Feature] = []
    scope: Literal["goal", "all"] = "goal"
    said: list[str] = []
    unless_said: list[str] = []
    goal_types: list[str] = Field(default=["all"], alias="for")
    about: list[str] = []


class Locality(ManualEntry):
    """The places where a category of objects is found, likeliest first, and how often.

    Both the printed line and the search use it. ``about`` names categories, affordances or kinds.
    It is printed for goals whose object or destination is one of them, and for those whose sentence
    has a word of ``said``, but not if it has one of ``unless_said``: the task itself then says
    where to look. ``inside`` names the closed containers that may hold the object, and ``what`` is
    its name in the line, if that is not the goal's own word.
    """

    about: list[str]
    places: list[str] = Field(min_length=1)
    inside: list[str] = []
    what: str = ""
    said: list[str] = []
    unless_said: list[str] = []
    how_often: str = "usually"


HERE_BLANKS = ("object", "destination", "places")


class SceneLine(ManualEntry):
    """A sentence that names places of the current scene: its tools, its destinations.

    ``kind`` is the kind of place that ``{places}`` stands for, or ``$destination``; if the scene
    has none of that kind, the sentence is left out.
    """

    text: Annotated[Text, AfterValidator(lambda text: _check_blanks(text, HERE_BLANKS))]
    goal_types: list[str] = Field(default=["all"], alias="for")
    kind: str = ""


ArgumentType = Literal["text", "number", "boolean", "date", "list", "object"]
OnViolation = Literal["refuse", "ask", "warn"]


class ExampleCall(_Strict):
    """A tool call in an example; every key that is no field is an argument of the tool."""

    tool: str = ""
    arguments: dict[str, Any] = {}

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, data: Any) -> Any:
        """``{tool: refund, usd: 5}`` for ``{tool: refund, arguments: {usd: 5}}``."""
        if not isinstance(data, dict) or "arguments" in data:
            return data
        return {
            **{name: value for name, value in data.items() if name in cls.model_fields},
            "arguments": {k: v for k, v in data.items() if k not in cls.model_fields},
        }


class PastAnswer(ExampleCall):
    """A call that was carried out, and its answer: text, or data that becomes JSON."""

    tool: Text
    answer: Any = ""
    at: MomentText = ""


class Example(ExampleCall):
    """A call that a rule allows or refuses, whatever other rules say, and what happened before it.

    ``tool`` can be omitted if the rule is about one tool. ``after`` has earlier calls with their
    answers, ``facts`` further effects that hold, ``goal`` the words of the user, and ``now`` the
    time. ``context`` is the runtime context, such as the user's role.
    """

    after: list[PastAnswer] = []
    facts: list[Condition] = []
    goal: str = ""
    now: MomentText = ""
    context: dict[str, Any] = {}


class EnforcedRule(ManualEntry):
    """A rule that the guard checks tool calls against.

    ``on_violation`` says what the guard does with a call that violates the rule: refuse it, ask a
    person, or let it pass with a warning. Calls under ``allowed`` and ``refused`` are examples:
    ``rpms rules check`` runs them.
    """

    on_violation: OnViolation = "refuse"
    allowed: list[Example] = []
    refused: list[Example] = []


# An argument of a tool in a syntax: ``line_id={line}``.
_NAMED = re.compile(r"(\w+)=\{(\w+)\}")


def _rule_name(name: str, argument: Any) -> Any:
    """The name of an argument in the rules: ``order``, or ``{as: order, type: text}``."""
    if not isinstance(argument, dict):
        return argument
    if unknown := argument.keys() - {"as", "type"}:
        raise ValueError(f"arguments: '{name}' has the unknown key '{min(unknown)}'; as, type")
    return argument.get("as", name)


class ActionRule(EnforcedRule):
    """One action: its syntax, what must hold before it and what holds after it.

    For a tool, ``arguments`` can replace ``syntax``: a list of names, or a table with the name of
    each in the rules, or with ``{as: NAME, type: TYPE}``; a value of another type meets no need.
    ``shows`` names the parameter that the tool's answer is about, if the answer itself does not say
    so, and ``records`` the fields that identify things in it, if they are not those of the whole
    manual. ``gives`` names fields that its answer shows of other things, so that a refusal can name
    this look-up. The ``answers`` of a search, a mailbox or a browser come from ``outside``: they
    are no evidence, whatever they say.

    ``if_refused`` explains a rejection although every precondition seemed to hold: something that
    the manual knows and the belief cannot. An action that is not ``printed`` is described fully by
    the system prompt's list of actions. A ``repeatable`` action may be repeated although it had no
    effect before: time passes. ``rejected_means_here`` names the parameter that a rejection shows
    to be at this spot. ``verified`` names the parameter that holds an answer that cannot be undone,
    and ``verified_when`` says when it is one: a guard that checks answers compares it with the
    procedure's choice. ``critical_in`` names the sentence of Tier 2 that also says ``critical``, so
    that it is printed once.
    """

    name: str
    syntax: Text
    preconditions: list[Condition] = []
    effects: list[Condition] = []
    text: str = ""
    critical: str = ""
    critical_in: str = ""
    if_refused: str = ""
    printed: bool = True
    repeatable: bool = False
    rejected_means_here: str = ""
    verified: str = ""
    verified_when: list[Condition] = []
    arguments: dict[str, str] = {}
    types: dict[str, ArgumentType] = {}
    shows: str = ""
    gives: list[str] = []
    records: list[str | Annotated[list[str], Field(min_length=2)]] | None = None
    answers: Literal["", "outside"] = ""

    @model_validator(mode="before")
    @classmethod
    def _of_a_tool(cls, data: Any) -> Any:
        """Turn ``arguments`` into a table, and make a syntax from it if there is none."""
        if not isinstance(data, dict) or "arguments" not in data:
            return data
        listed = data["arguments"]
        table = {name: name for name in listed} if isinstance(listed, list) else listed
        if isinstance(table, dict):
            tables = {name: each for name, each in table.items() if isinstance(each, dict)}
            table = {name: _rule_name(name, each) for name, each in table.items()}
            types = {table[name]: each["type"] for name, each in tables.items() if "type" in each}
            data = {**data, "types": {**types, **data.get("types", {})}} if types else data
        if not isinstance(table, dict) or "syntax" in data:
            return {**data, "arguments": table}
        blanks = [f"{name}={{{parameter}}}" for name, parameter in table.items()]
        return {**data, "arguments": table, "syntax": " ".join([str(data.get("name")), *blanks])}

    @model_validator(mode="after")
    def _fillable(self) -> ActionRule:
        _check_blanks(self.if_refused, self.parameters)
        for name in self.types:
            if name not in self.parameters:
                raise ValueError(f"types: no parameter '{name}'")
        for field in ("rejected_means_here", "verified", "shows"):
            if (name := getattr(self, field)) not in ("", *self.parameters):
                raise ValueError(f"{field}: no parameter '{name}'")
        terms = [parse_term(text) for each in self.outcomes for text in each.arguments]
        reads = any(each.head == ANSWER for term in terms for each in all_terms(term))
        if self.answers == "outside" and (self.shows or self.records or self.gives or reads):
            advice = "leave out 'shows', 'records', 'gives' and effects that read the answer"
            raise ValueError(f"answers from outside are no evidence: {advice}")
        return self

    @cached_property
    def needs(self) -> list[Predicate]:
        """The preconditions as predicates."""
        return [parse_predicate(text) for text in self.preconditions]

    @cached_property
    def outcomes(self) -> list[Predicate]:
        """The effects as predicates."""
        return [parse_predicate(text) for text in self.effects]

    @cached_property
    def changes(self) -> bool:
        """True if it changes the world; false if its effects only record the tool's answer."""
        values = [each.arguments[-1] for each in self.outcomes if is_effect(each.name, "field")]
        read = [value for value in values if parse_term(value).head == ANSWER]
        return len(read) < len(self.outcomes)

    @cached_property
    def places(self) -> frozenset[str]:
        """The parameters that stand for places, not for things to handle."""
        predicates = (*self.needs, *self.outcomes)
        inside = {p.arguments[1] for p in predicates if p.name == "in"}
        return frozenset(inside | {p.arguments[0] for p in predicates if p.name in OF_PLACES})

    @cached_property
    def parameters(self) -> list[str]:
        """Parameter names in the order of the syntax."""
        return re.findall(r"\{(\w+)\}", self.syntax)

    @cached_property
    def called(self) -> dict[str, str]:
        """The parameter of each argument of the tool."""
        renamed = dict(_NAMED.findall(self.syntax))
        others = {blank: blank for blank in self.parameters if blank not in renamed.values()}
        return self.arguments or {**renamed, **others}

    def speaks_of(self, argument: str) -> bool:
        """Return whether a predicate of this rule may use the argument.

        It may be a parameter, a name in the syntax (``fill kettle``), or a name with a number.
        """
        numbered = argument.rpartition(" ")[2].isdigit()
        return argument in self.parameters or numbered or f" {argument} " in f"{self.syntax} "

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The regular expression that parses an action text of this syntax."""
        escaped = re.escape(self.syntax).replace(r"\{", "{").replace(r"\}", "}")
        return re.compile("^" + re.sub(r"\{(\w+)\}", r"(?P<\1>.+?)", escaped) + "$")


class Forbidden(EnforcedRule):
    """An action that the environment would allow and a rule forbids for certain goals.

    ``where`` restricts parameters to kinds; ``$object`` stands for the goal's object, ``!$object``
    for anything else, ``$destination`` for the destination, and the name of an affordance for all
    its kinds. The pattern does not apply if a kind it names is the goal's destination, nor to the
    kinds under ``unless``, nor, if ``about`` names categories, to goals whose object is in none of
    them. Conditions under ``when`` must hold as well, for example for the order of two steps.
    """

    goal_types: list[str] = Field(alias="for")
    action: str
    where: dict[str, str]
    when: list[Condition] = []
    unless: list[str] = []
    about: list[str] = []


class PolicyRule(EnforcedRule):
    """A demand of a policy on calls of one or more tools, beyond the tools' preconditions.

    If every condition under ``when`` holds, or may hold, all ``needs`` must hold. ``source`` is the
    policy's sentence and ``text`` its wording in a prompt.
    """

    action: list[str] = Field(min_length=1)
    text: str = ""
    when: list[Condition] = []
    needs: list[Condition] = Field(min_length=1)

    @field_validator("action", mode="before")
    @classmethod
    def _several(cls, value: object) -> object:
        return [value] if isinstance(value, str) else value

    @cached_property
    def demands(self) -> list[Predicate]:
        """The needs as predicates."""
        return [parse_predicate(text) for text in self.needs]

    @cached_property
    def conditions(self) -> list[Predicate]:
        """The conditions as predicates."""
        return [parse_predicate(text) for text in self.when]


class ApplicableAction(_Strict):
    """An action pattern that applies to a sub-goal.

    ``when`` has its conditions, beyond the action's preconditions, and ``for`` the goal types: a
    sub-goal of the same name can be different work. ``likely`` names the parameter that is ranked
    by where ``about`` is usually found: the goal's object or destination, the sub-goal's
    ``target``, or a category by its name. A ``last_resort`` is offered only if nothing else is. If
    a pattern that ``settles`` is possible, nothing after it is offered: act on what is near before
    moving on. ``wording`` replaces the action's syntax where a thing must be distinguished from
    others of its kind. ``because`` may name ``readings``, the recorded numbers behind a choice, and
    ``usual``, the line of the manual that says where such things are.
    """

    action: str
    wording: str = ""
    goal_types: list[str] = Field(default=["all"], alias="for")
    when: list[Condition] = []
    likely: str = ""
    about: str = "object"
    because: Text
    last_resort: bool = False
    settles: bool = False


def _items(value: object) -> Iterator[object]:
    """The items of a list, and of lists within it."""
    if isinstance(value, list):
        for item in value:
            yield from _items(item)
    else:
        yield value


class SituationLine(ManualEntry):
    """A line that is printed only while its conditions hold in the belief."""

    when: list[Condition]
    text: Annotated[Text, AfterValidator(lambda text: _check_blanks(text, SITUATION_BLANKS))]


class UniversalTier(_Strict):
    """Tier 1."""

    tier: Literal["universal"] = "universal"
    rules: list[Rule] = []


class DomainTier(_Strict):
    """Tier 2.

    ``urgent`` patterns come before any sub-goal. A term of ``terms`` can be used like a condition:
    it holds if all conditions of one of its choices hold. It may have an argument, named ``thing``
    in its choices. A list within a list of ``applicable`` stands for its items, so lists can be
    shared. ``stands_for`` is the phrase by which a task names the answer for a finding.
    """

    tier: Literal["domain"] = "domain"
    procedures: dict[str, list[str]]
    advances: dict[str, str] = {}
    terms: dict[str, list[list[Condition]]] = {}
    urgent: list[ApplicableAction] = []
    applicable: dict[str, list[ApplicableAction]] = {}
    stands_for: str = ""
    idle: str = ""
    categories: dict[str, list[str]] = {}
    likely_places: list[Locality] = []
    here: list[SceneLine] = []
    rules: list[Rule] = []

    @property
    def patterns(self) -> dict[str, list[ApplicableAction]]:
        """The patterns of each sub-goal, and the urgent ones."""
        return {"urgent": self.urgent, **self.applicable}

    @field_validator("applicable", mode="before")
    @classmethod
    def _flat(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        return {step: list(_items(patterns)) for step, patterns in value.items()}


class Disambiguation(_Strict):
    """For worlds that answer an ambiguous request with a numbered list of choices.

    ``rule`` says how to answer it, ``line`` is the form in which a choice names a thing's place,
    and ``carried`` is the list's word for the place of carried things.
    """

    rule: str = ""
    line: str = ""
    carried: str = ""


def _check_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(f"'{name}' is no time zone such as UTC or Europe/Berlin") from error
    return name


class EnvironmentTier(_Strict):
    """Tier 3.

    ``predicates`` are composed ones: each holds if all parts of one of its choices hold, and may
    have one argument, named ``thing`` in its choices.

    ``understood`` names predicates that a rule states once for all actions: they are checked like
    any other, but not printed again with every action. ``renamed`` maps names that do not show the
    state of a thing to names that do.

    ``things`` may be used in the rules of any action. ``alternatives`` are facts that exclude each
    other: if one holds of a thing, the others of that list do not. In an ``unmoved`` world nothing
    changes its place: what is ``in`` one place, such as a line on an account, is in no other.

    ``features`` are what this world has and others may not have: sentences of Tier 1 that require
    other features are not printed. ``unprinted`` has ids of rules, of any tier, that a prompt
    omits, and why.

    ``policy`` has a policy's demands on tools. ``records`` names the fields that identify the
    objects of JSON answers, the most specific first: an object with ``order_id`` is the record of
    that order, and a list of fields identifies a thing together. ``list`` names fields that are
    lists, so that a rule about them has to say of which items. ``tables`` has constants of the
    policy, such as fees by membership, and ``definitions`` has names for terms. ``now`` fixes the
    time that conditions compare with, and ``timezone`` says whose clocks ``hour`` and ``weekday``
    read. ``not_checkable`` has sentences of the policy that no rule can check, each with the
    reason.

    A table affirms what it lists and denies the rest. A learned table also lists what it denies,
    under ``ruled_out`` or ``cannot_contain``: any other kind is undecided.
    """

    tier: Literal["environment"] = "environment"
    features: list[Feature] = []
    affordances: dict[str, list[str]] = {}
    ruled_out: dict[str, list[str]] = {}
    contains: dict[str, list[str]] = {}
    cannot_contain: dict[str, list[str]] = {}
    predicates: dict[str, list[list[Condition]]] = {}
    things: list[str] = []
    alternatives: list[list[str]] = []
    unmoved: bool = False
    wording: Wording = Wording()
    built_together: list[list[str]] = []
    connected: dict[str, list[str]] = {}
    renamed: dict[str, str] = {}
    actions: list[ActionRule]
    understood: list[str] = []
    disambiguation: Disambiguation = Disambiguation()
    rules: list[Rule] = []
    unprinted: dict[str, str] = {}
    not_taught: dict[str, str] = {}
    forbidden: list[Forbidden] = []
    policy: list[PolicyRule] = []
    records: list[str | Annotated[list[str], Field(min_length=2)]] = []
    listed: list[str] = Field(default=[], alias="list")
    tables: dict[str, Any] = {}
    definitions: dict[str, TermText] = {}
    now: MomentText = ""
    timezone: Annotated[str, AfterValidator(_check_zone)] = "UTC"
    not_checkable: dict[str, Text] = {}
    situations: list[SituationLine] = []


class ExtraTier(_Strict):
    """A custom tier: sentences, printed after the others."""

    tier: Annotated[str, StringConstraints(pattern=r"^[a-z][\w -]*$")]
    rules: list[Rule]


TIERS: dict[str, type[BaseModel]] = {
    "universal": UniversalTier, "domain": DomainTier, "environment": EnvironmentTier,
}  # fmt: skip


def json_schema(tier: str) -> dict[str, Any]:
    """The JSON Schema of a file as people write it, with the short forms that are read as well."""
    schema = TIERS[tier].model_json_schema()
    parts, several = schema.get("$defs", {}), {"type": "array", "items": {"type": "string"}}
    if action := parts.get("ActionRule"):
        one = {"anyOf": [{"type": "string"}, {"type": "object"}]}
        action["properties"]["arguments"] = {
            "anyOf": [several, {"type": "object", "additionalProperties": one}]
        }
        action["required"] = ["id", "name"]
    if policy := parts.get("PolicyRule"):
        policy["properties"]["action"] = {"anyOf": [{"type": "string"}, several]}
    for name in ("Example", "PastAnswer", "ExampleCall"):  # a call's arguments stand among its keys
        if name in parts:
            parts[name]["additionalProperties"] = True
            for key in ("now", "at"):  # YAML may read a time as one
                parts[name]["properties"].pop(key, None)
    schema["properties"].pop("now", None)
    schema["properties"]["now"] = {"description": "The time that conditions compare with."}
    if applicable := schema["properties"].get("applicable"):
        applicable["additionalProperties"] = {"type": "array"}
    schema["properties"]["replaces"] = {"type": "boolean"}
    schema["required"] = []  # an overlay has the changes alone
    return schema
