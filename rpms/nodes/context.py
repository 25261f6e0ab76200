"""Settings of one run: the paper's toggles, readable as a form in LangGraph Studio.

Plain values only, because Studio reads this class as a JSON schema; a title and a description
stand with every field for whoever fills in the form. A chat model object or a swapped stage is
given to ``build_graph`` instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cache, cached_property
from typing import Annotated, Any, ClassVar, Literal, get_type_hints

from pydantic import BaseModel, Field, ValidationError, create_model

from rpms.memory_store.controls import Control
from rpms.models import default_timeout
from rpms.vocabulary.errors import BadSetting, RpmsError
from rpms.vocabulary.limits import MOST_SEED, MOST_STEPS, MOST_TASKS, MOST_TIMES, MOST_TOKENS
from rpms.vocabulary.spelling import offer

Scf = Literal["off", "occupancy", "preconditions"]
Arbitration = Literal["none", "soft", "hard", "hard+soft"]
Layout = Literal["paper", "cache_friendly"]
Guard = Literal["off", "verify", "offer", "policy"]
Constrain = Literal["off", "grammar"]

OLD_GUARDS = {"reask": "verify", "shortlist": "offer", "constrain": "policy"}
"""What the guard's modes were called before; run folders of that time still say so."""

PATIENCE_S = 300.0
"""Most servers are back within minutes, or not before a person looks."""

CEILING = 1200
"""Tokens that the knowledge blocks may take together, as in the paper."""

# The 2x2 ablation of the paper, and E, which goes past it.
CONDITIONS: dict[str, dict[str, Any]] = {
    "A": {"rules": False, "memory": False, "guard": "off"},
    "B": {"rules": True, "memory": False, "guard": "off"},
    "C": {"rules": False, "memory": True, "guard": "off"},
    "D": {"rules": True, "memory": True, "guard": "off"},
    "E": {"rules": True, "memory": True, "guard": "policy"},
}


def _about(title: str, description: str, **limits: Any) -> Any:
    return Field(title=title, description=description, **limits)


@dataclass(frozen=True)
class RunContext:
    """What is on, and how the model is called; a value that is not possible is refused at once."""

    named: ClassVar[frozenset[str]] = frozenset()
    """What the caller named, be it with its default: a server makes a context of what is left."""

    rules: Annotated[bool, _about("Rules", "Inject the rule manual.")] = True
    memory: Annotated[bool, _about("Memory", "Retrieve, filter and arbitrate past experience.")] = (
        True
    )
    scf: Annotated[
        Scf, _about("State-consistent filtering", "Which memories fit the state; occupancy is the "
                    "paper's.")
    ] = "occupancy"  # fmt: skip
    arbitration: Annotated[
        Arbitration,
        _about("Rules-first arbitration", "What happens to memories that conflict with rules."),
    ] = "hard+soft"
    guard: Annotated[
        Guard,
        _about("Guard", "Let the rules judge the agent's own actions too; the paper does not."),
    ] = "off"
    reasks: Annotated[
        int,
        _about(
            "Re-asks",
            "How often guard verify may ask the model again within a step.",
            ge=0,
            le=MOST_TIMES,
        ),
    ] = 2
    fall_back: Annotated[
        bool, _about("Fall back", "Whether guard verify, when asking again did not help, may play "
                     "another action than the model's last; else that one is played.")
    ] = True  # fmt: skip
    layout: Annotated[
        Layout, _about("Prompt layout", "Order of the prompt blocks; cache_friendly keeps the "
                       "beginning the same from step to step.")
    ] = "paper"  # fmt: skip
    theta: Annotated[
        float,
        _about("Retrieval threshold", "Least goal similarity of a memory, 0 to 1.", ge=0, le=1),
    ] = 0.6
    k: Annotated[
        int,
        _about(
            "Memories per type",
            "How many memories of each type may be recalled.",
            ge=0,
            le=MOST_TASKS,
        ),
    ] = 3
    ceiling: Annotated[
        int,
        _about("Knowledge tokens", "What rules, state and memory may take together; memories are "
               "left out beyond that. The paper has 1200.", ge=0, le=MOST_TOKENS),
    ] = CEILING  # fmt: skip
    max_steps: Annotated[
        int,
        _about(
            "Step budget",
            "Actions per episode; 0 means the environment's own.",
            ge=0,
            le=MOST_STEPS,
        ),
    ] = 0
    model: Annotated[str, _about("Model", "sim, or provider:name, e.g. openai:gpt-4o-mini.")] = (
        "sim"
    )
    base_url: Annotated[
        str,
        _about("Server", "Address of an OpenAI-compatible server; empty for the provider's own."),
    ] = ""
    temperature: Annotated[
        float, _about("Temperature", "0 is greedy decoding.", ge=0, allow_inf_nan=False)
    ] = 0.0
    seed: Annotated[
        int,
        _about(
            "Seed",
            "Varies sampling, and the whims of the built-in planner.",
            ge=-MOST_SEED,
            le=MOST_SEED,
        ),
    ] = 0
    max_tokens: Annotated[
        int,
        _about(
            "Reply tokens", "Reply length; 0 means the environment's own.", ge=0, le=MOST_TOKENS
        ),
    ] = 0
    context_tokens: Annotated[
        int, _about("Context tokens", "Prompt and reply together; older turns are left out beyond "
                    "that. 0 means the model's own limit where it is known.", ge=0, le=MOST_TOKENS)
    ] = 0  # fmt: skip
    timeout_s: Annotated[
        float, _about("Model timeout (s)", "How long one model call may take; 0 means the model's "
                      "own: 60 s for a server, 10 minutes for a local model, which reads its "
                      "first prompt slowly.", ge=0, allow_inf_nan=False)
    ] = 0.0  # fmt: skip
    patience_s: Annotated[
        float, _about("Patience (s)", "How long a model call that fails is made again, with "
                      "growing pauses; at least four tries are made.", ge=0, allow_inf_nan=False)
    ] = PATIENCE_S  # fmt: skip
    constrain: Annotated[
        Constrain, _about("Reply format", "grammar holds replies to the action format where the "
                          "server can; the paper does not.")
    ] = "off"  # fmt: skip
    memory_file: Annotated[
        str,
        _about("Memory file", "JSONL snapshot of episodic memory; empty for the one shipped."),
    ] = ""
    memory_method: Annotated[
        str,
        _about("Memory method", "rpms, one of the others by name, or the import path of a class."),
    ] = "rpms"
    memory_control: Annotated[
        Control,
        _about("Memory control", "The same memory made useless in one way, to see what helps."),
    ] = "none"
    rules_dir: Annotated[
        str,
        _about("Rules folder", "Rule files of your own, laid over the manual that is shipped."),
    ] = ""
    without_rules: Annotated[
        str, _about("Without rules", "Ids of rules and names of tiers to leave out, by comma.")
    ] = ""
    examples: Annotated[
        int, _about("Examples", "Solved tasks of the same type in the prompt; the paper has one.",
                    ge=0, le=2)
    ] = 1  # fmt: skip
    action_list: Annotated[
        bool, _about("Action list", "Print what the world would accept beside each observation, "
                     "as some published runs do; the paper does not.")
    ] = False  # fmt: skip

    def __new__(cls, *values: Any, **named: Any) -> RunContext:
        """Note which settings the caller named; a server gives the others their defaults."""
        refuse_unknown(named)
        made = super().__new__(cls)
        placed = (field.name for field in fields(cls)[: len(values)])
        object.__setattr__(made, "named", frozenset((*placed, *named)))
        return made

    def __post_init__(self) -> None:
        """Refuse what the annotations rule out, in one line that names the setting."""
        try:
            _schema().model_validate(vars(self), strict=True)
        except ValidationError as error:
            raise _in_words(error) from None

    @classmethod
    def for_condition(cls, condition: str, **settings: Any) -> RunContext:
        """A, B, C or D of the 2x2 ablation, or E, or ``B+verify``; other settings as given."""
        return cls(**settings).under(condition)

    def under(self, condition: str) -> RunContext:
        """The same settings under another condition; a guard of one's own stays.

        A guard in the condition's name is the one that counts: ``D+verify``. Small letters do.
        """
        letter, plus, named = condition_name(condition).partition("+")
        if letter not in CONDITIONS:
            raise RpmsError(
                f"unknown condition '{condition}'; choose from {', '.join(CONDITIONS)}, with a "
                "guard as in B+verify"
            )
        toggles = CONDITIONS[letter]
        own = toggles["guard"]
        if plus and own not in ("off", named):
            raise RpmsError(f"condition '{condition}': {letter} has guard {own} already")
        guard = named if plus else own if own != "off" else self.guard
        try:
            return self.with_(rules=toggles["rules"], memory=toggles["memory"], guard=guard)
        except BadSetting as error:
            raise RpmsError(f"condition '{condition}': {error}") from None

    @property
    def condition(self) -> str:
        """The letter of the condition this context belongs to."""
        if self.rules and self.memory and self.guard == "policy":
            return "E"
        letters = {(True, True): "D", (True, False): "B", (False, True): "C", (False, False): "A"}
        return letters[self.rules, self.memory]

    @property
    def name(self) -> str:
        """The letter, with the guard where it is not the letter's own: ``D+verify``."""
        letter = self.condition
        return letter if self.guard == CONDITIONS[letter]["guard"] else f"{letter}+{self.guard}"

    @property
    def call_s(self) -> float:
        """How long one model call may take, as asked for or by the kind of model."""
        return self.timeout_s or default_timeout(self.model)

    @cached_property
    def plain(self) -> dict[str, Any]:
        """The settings as the state carries them."""
        return asdict(self)

    def with_(self, **changes: Any) -> RunContext:
        """A copy with some settings changed."""
        changed = replace(self, **changes)
        object.__setattr__(changed, "named", self.named | changes.keys())
        return changed

    def over(self, begun: Mapping[str, Any] | None) -> RunContext:
        """What an episode that began so goes on with: what nobody names stays as it was."""
        if not begun or begun is self.plain or begun == self.plain:
            return self
        return settings({**begun, **{name: getattr(self, name) for name in self.named}})


def condition_name(typed: str) -> str:
    """A condition as we write it, however it was typed: ``b+Verify`` is ``B+verify``."""
    letter, plus, guard = typed.partition("+")
    return f"{letter.strip().upper()}{plus}{guard.strip().lower()}"


def settings(context: RunContext | Mapping[str, Any] | None) -> RunContext:
    """The context as a RunContext: it may come as a dictionary, or not at all."""
    if isinstance(context, RunContext):
        return context
    if not isinstance(context, Mapping | None):
        raise RpmsError(
            "the context must be a RunContext or a dictionary of its settings, not a "
            f"{type(context).__name__}; within another graph, call this one with its own context="
        )
    refuse_unknown(context or {})
    return RunContext(**(context or {}))


def refuse_unknown(names: Mapping[str, Any]) -> None:
    """Name the settings that are not there; a misspelt one would otherwise do nothing."""
    known = sorted(field.name for field in fields(RunContext))
    if unknown := sorted({*map(str, names)} - {*known}):
        raise RpmsError(f"unknown setting '{unknown[0]}'; {offer(unknown[0], known)}")


@cache
def _schema() -> type[BaseModel]:
    """The annotations as a validator of plain values."""
    hints = get_type_hints(RunContext, include_extras=True)
    shape: dict[str, Any] = {field.name: (hints[field.name], ...) for field in fields(RunContext)}
    return create_model("Settings", **shape)


def _in_words(error: ValidationError) -> BadSetting:
    first = error.errors()[0]
    name, value = str(first["loc"][0]), first["input"]
    why = f"is not possible: {first['msg'].lower()}"
    if name == "guard" and value in OLD_GUARDS:
        why = f"is called '{OLD_GUARDS[value]}' now"
    elif first["type"] == "literal_error":
        why = f"is not possible; choose from {', '.join(_choices(name))}"
    return BadSetting(name, value, why)


def _choices(name: str) -> tuple[str, ...]:
    choices: tuple[str, ...] = get_type_hints(RunContext)[name].__args__
    return choices
