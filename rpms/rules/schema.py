"""The shape of the three YAML tiers.

The models refuse unknown keys, so a typo in a rule file is an error at load time and not a rule
that silently never applies.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from datetime import date
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    StringConstraints,
    field_validator,
    model_validator,
)

from rpms.rules.predicates import Predicate, Wording, parse_predicate
from rpms.rules.values import as_moment
from rpms.vocabulary.spelling import Strict


def _check_id(text: str) -> str:
    if not re.fullmatch(r"[A-Z][A-Z0-9]*(-[A-Z0-9]+)+", text):
        raise ValueError(f"'{text}' is no id; write capitals with a hyphen, such as P-TOTAL")
    return text


RuleId = Annotated[str, AfterValidator(_check_id)]
Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]

Condition = Annotated[str, AfterValidator(lambda text: parse_predicate(text) and text)]
"""A statement about the belief, in the words of the predicates."""

# Predicates that only hold of a place, as their first argument.
OF_PLACES = {"at", "place", "accessible", "can_contain", "adjacent"}

# What the manual can fill into a situation's text.
SITUATION_BLANKS = ("held", "place", "action", "outcome", "reason")
# A name that an earlier version had, and the one it has now.
RENAMED_BLANKS = {"violated": "reason"}


class _Strict(Strict, BaseModel):
    pass


def _check_blanks(text: str, known: Collection[str]) -> str:
    """A blank that nothing fills would only be noticed in the middle of an episode."""
    for name in re.findall(r"\{([^{}]*)\}", text):
        if name not in known:
            renamed = RENAMED_BLANKS.get(name, "")
            advice = f"; it is called '{{{renamed}}}' now" if renamed in known else ""
            raise ValueError(f"nothing fills the blank '{{{name}}}' in '{text}'{advice}")
    return text


class Named(_Strict):
    """What has an id.

    Where it comes from, how sure that is (0 to 1) and how many observations speak for it are
    written down for people: no stage reads them.
    """

    id: RuleId
    source: str = ""
    confidence: float | None = Field(default=None, ge=0, le=1)
    support: int | None = Field(default=None, ge=0)


Feature = Literal["places", "containers", "numbered names", "one hand", "instruments"]
"""What only some worlds have: places to search, things to open, one hand, tools to carry along."""


class Rule(Named):
    """A sentence of the manual. ``for`` and ``about`` restrict it to goals it is useful for.

    ``requires`` names features that a world must have for the sentence to hold there; a world
    lists its own under ``features`` in Tier 3. A sentence that the actions' lines say already has
    ``scope: all``: it is printed with the whole manual only. ``said`` and ``unless_said`` are words
    of a task's sentence: a sentence of the manual is for tasks that have one of the first and none
    of the second.
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


class Locality(Named):
    """Where a category of objects is found, likeliest first, and how often it is there.

    The printed line and the search are both made from it. ``about`` names categories, affordances
    or kinds. It is printed for goals whose object or destination is one of them, and for those
    whose sentence says a word of ``said``, but not where it says one of ``unless_said``: the task
    itself then tells where to look. ``inside`` names the closed containers that may hold it, and
    ``what`` is how the line calls it, where that is not the goal's own word.
    """

    about: list[str]
    places: list[str] = Field(min_length=1)
    inside: list[str] = []
    what: str = ""
    said: list[str] = []
    unless_said: list[str] = []
    how_often: str = "usually"


HERE_BLANKS = ("object", "destination", "places")


class Here(Named):
    """A sentence that names the places of this very home: its tools, its destinations.

    ``kind`` is the kind of place that ``{places}`` stands for, or ``$destination``; where the home
    has none of it the sentence is left out.
    """

    text: Annotated[Text, AfterValidator(lambda text: _check_blanks(text, HERE_BLANKS))]
    goal_types: list[str] = Field(default=["all"], alias="for")
    kind: str = ""


OnViolation = Literal["refuse", "ask", "warn"]


class ExampleCall(_Strict):
    """A call of a tool in an example; what is no other key is an argument of the tool."""

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
    """A call that was carried out, and its answer: text, or data that stands for JSON."""

    tool: Text
    answer: Any = ""


def _as_moment_text(value: object) -> object:
    """A time as it is written, or as YAML has read it."""
    text = value.isoformat() if isinstance(value, date) else value
    if text and as_moment(text) is None:
        raise ValueError(f"'{text}' is no time such as 2025-02-25 or 2025-02-25T15:00:00")
    return text


class Example(ExampleCall):
    """A call that a rule allows or refuses, whatever other rules say, and what happened before it.

    ``tool`` can be left out where the rule is about one tool. ``after`` has earlier calls with
    their answers, ``facts`` effects that have come about besides, ``goal`` what the user said, and
    ``now`` the time.
    """

    after: list[PastAnswer] = []
    facts: list[Condition] = []
    goal: str = ""
    now: Annotated[str, BeforeValidator(_as_moment_text)] = ""


class Enforced(Named):
    """A rule that a guard of tool calls holds them to.

    ``on_violation`` is what it does with a call against the rule: refuse it, ask a person, or let
    it pass with a warning. Calls under ``allowed`` and ``refused`` are examples: ``rpms rules
    check`` runs them.
    """

    on_violation: OnViolation = "refuse"
    allowed: list[Example] = []
    refused: list[Example] = []


# An argument of a tool in a syntax: ``line_id={line}``.
_NAMED = re.compile(r"(\w+)=\{(\w+)\}")


class ActionRule(Enforced):
    """One action: its syntax, what must hold before it and what holds after it.

    For a tool, ``arguments`` can be given in the place of ``syntax``: their names, or for each the
    name that it has in the rules. ``shows`` names the parameter that the tool's answer is about,
    where the answer itself does not say so.

    ``if_refused`` explains a refusal although every precondition seemed to hold: what the
    belief cannot know by itself but the manual does. An action that is not ``printed`` is left to
    the system prompt's list of actions, which says all there is to it. A ``repeatable`` one is
    worth playing again although the last time changed nothing that is known: time passes.
    ``rejected_means_here`` names the parameter that a refusal shows to be at this very spot.
    ``verified``, where the action gives an answer that cannot be undone, names the parameter that
    holds the answer, and ``verified_when`` says when it is one: a guard that checks answers
    compares it with the procedure's own choice.
    ``critical_in`` names the sentence of Tier 2 that says ``critical``, too: it is said once.
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
    shows: str = ""

    @model_validator(mode="before")
    @classmethod
    def _of_a_tool(cls, data: Any) -> Any:
        """``arguments`` as a table, and a syntax made from it where none is given."""
        if not isinstance(data, dict) or "arguments" not in data:
            return data
        listed = data["arguments"]
        table = {name: name for name in listed} if isinstance(listed, list) else listed
        if not isinstance(table, dict) or "syntax" in data:
            return {**data, "arguments": table}
        blanks = [f"{name}={{{parameter}}}" for name, parameter in table.items()]
        return {**data, "arguments": table, "syntax": " ".join([str(data.get("name")), *blanks])}

    @model_validator(mode="after")
    def _fillable(self) -> ActionRule:
        _check_blanks(self.if_refused, self.parameters)
        for field in ("rejected_means_here", "verified", "shows"):
            if (name := getattr(self, field)) not in ("", *self.parameters):
                raise ValueError(f"{field}: no parameter '{name}'")
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
    def places(self) -> frozenset[str]:
        """The parameters that stand for somewhere to be, not for something to handle."""
        predicates = (*self.needs, *self.outcomes)
        inside = {p.arguments[1] for p in predicates if p.name == "in"}
        return frozenset(inside | {p.arguments[0] for p in predicates if p.name in OF_PLACES})

    @cached_property
    def parameters(self) -> list[str]:
        """Parameter names in the order of the syntax."""
        return re.findall(r"\{(\w+)\}", self.syntax)

    @cached_property
    def called(self) -> dict[str, str]:
        """The parameters by the names that the tool's arguments have."""
        named = dict(_NAMED.findall(self.syntax))
        others = {blank: blank for blank in self.parameters if blank not in named.values()}
        return self.arguments or {**named, **others}

    def speaks_of(self, argument: str) -> bool:
        """Whether a predicate may: of a parameter, or of a thing by a name that is no misspelt one.

        That is a name of the syntax itself (``fill kettle``), or one with a number.
        """
        numbered = argument.rpartition(" ")[2].isdigit()
        return argument in self.parameters or numbered or f" {argument} " in f"{self.syntax} "

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Reads an action text of this syntax back into its parameters."""
        escaped = re.escape(self.syntax).replace(r"\{", "{").replace(r"\}", "}")
        return re.compile("^" + re.sub(r"\{(\w+)\}", r"(?P<\1>.+?)", escaped) + "$")


class Forbidden(Enforced):
    """An action the engine would allow and a rule forbids while pursuing certain goals.

    ``where`` ties parameters to kinds; ``$object`` stands for the goal's object, ``!$object`` for
    anything else, ``$destination`` for where it belongs, and the name of an affordance for all its
    kinds. The pattern does not apply where a kind it names is the goal's own destination, nor to
    the kinds under ``unless``, nor, if ``about`` names categories, to goals whose object is in none
    of them. Conditions under ``when`` must hold, too: the order of two steps is such a rule.
    """

    goal_types: list[str] = Field(alias="for")
    action: str
    where: dict[str, str]
    when: list[Condition] = []
    unless: list[str] = []
    about: list[str] = []


class PolicyRule(Enforced):
    """What a policy demands of calls of a tool, or of several, beyond what the tools need.

    Where every condition under ``when`` holds, or may hold, all ``needs`` have to. ``source`` is
    the policy's own sentence and ``text`` how a prompt says it.
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
    """An action pattern that serves a sub-goal.

    ``when`` says under which conditions it does, beyond the action's own preconditions, and ``for``
    in which types of goals: sub-goals of one name can be different work. ``likely`` names the
    parameter that is ranked by where ``about`` is usually found: the goal's object or destination,
    the sub-goal's own ``target``, or a category by its name. A ``last_resort`` is offered only
    while nothing else is. Where one that ``settles`` can be done, nothing below it is offered: what
    is at hand goes before walking on.
    ``wording`` stands in for the action's syntax where a thing must be told apart from its like.
    ``because`` may name ``readings``, the numbers on record that a choice rests on, and ``usual``,
    the line of the manual that says where such things are.
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


class SituationLine(Named):
    """A task-specific line, active only while its condition holds in the belief."""

    when: list[Condition]
    text: Annotated[Text, AfterValidator(lambda text: _check_blanks(text, SITUATION_BLANKS))]


class UniversalTier(_Strict):
    """Tier 1."""

    tier: Literal["universal"] = "universal"
    rules: list[Rule] = []


class DomainTier(_Strict):
    """Tier 2.

    ``urgent`` is what comes before any sub-goal. A term of ``terms`` can be used like a condition:
    it holds if all of one of its choices holds. It may have an argument, which its choices call
    ``thing``. A list within a list of ``applicable`` stands for its items, so lists can be shared.
    ``stands_for`` is how a task says which thing is the answer in case of a finding.
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
    here: list[Here] = []
    rules: list[Rule] = []

    @property
    def patterns(self) -> dict[str, list[ApplicableAction]]:
        """Every list of patterns, by the sub-goal it serves."""
        return {"urgent": self.urgent, **self.applicable}

    @field_validator("applicable", mode="before")
    @classmethod
    def _flat(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        return {step: list(_items(services)) for step, services in value.items()}


class Disambiguation(_Strict):
    """For worlds that answer an ambiguous request with a numbered list of what may be meant.

    ``rule`` says how to answer it, ``line`` is how a line of it says where a thing is, and
    ``carried`` is the list's word for where carried things are.
    """

    rule: str = ""
    line: str = ""
    carried: str = ""


class EnvironmentTier(_Strict):
    """Tier 3.

    ``predicates`` are the world's own: each holds if all of one of its choices holds, and may have
    one argument, which its choices call ``thing``.

    ``understood`` names predicates that a rule states once for all actions: they are checked like
    any other, but not printed again with every action. ``renamed`` has names that do not tell what
    state a thing is in, each with one that would.

    ``things`` are those that any action may speak of, and ``alternatives`` facts that exclude each
    other: of a thing that has one, the others of that list are known not to hold. In an ``unmoved``
    world nothing changes its place: what is known to be ``in`` one, as a line on an account, is in
    no other.

    ``features`` are what this world has that others have not: sentences of Tier 1 that require
    others are not printed. ``unprinted`` has ids of rules, of any tier, that a prompt goes without,
    and why.

    ``policy`` has what a policy demands of tools. ``records`` names the fields by which answers in
    JSON tell what they are about, the most telling first: an object with ``order_id`` is what is
    known of that order. ``now`` fixes the time that conditions compare with. ``not_checkable`` has
    sentences of the policy that no rule can hold a call to, each with the reason.

    A table says what it lists and denies the rest. One that was learned lists what it denies, too,
    under ``ruled_out`` or ``cannot_contain``: of any other kind nothing is known.
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
    records: list[str] = []
    now: Annotated[str, BeforeValidator(_as_moment_text)] = ""
    not_checkable: dict[str, Text] = {}
    situations: list[SituationLine] = []


class ExtraTier(_Strict):
    """A tier of the user's own: sentences, printed after the others."""

    tier: Annotated[str, StringConstraints(pattern=r"^[a-z][\w -]*$")]
    rules: list[Rule]
