"""The settings of a run: the paper's toggles, the prompt and the model call.

Each setting is declared once, as a field of ``RunContext``. The command line's options and their
help, the keys of plans and arms, the form in LangGraph Studio and the table in ``docs/api.md`` are
made from these fields. They hold plain values, because Studio reads the class as a JSON schema; a
chat model object or a custom stage goes to ``build_graph`` instead.

pydantic is imported only when a context is made, because ``rpms --help`` reads the fields too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cache, cached_property
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NamedTuple,
    get_args,
    get_type_hints,
)

from rpms.vocabulary.errors import BadSetting, RpmsError
from rpms.vocabulary.limits import MOST_SEED, MOST_STEPS, MOST_TASKS, MOST_TIMES, MOST_TOKENS

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

RulesScope = Literal["goal", "all"]
Scf = Literal["off", "occupancy", "preconditions"]
Arbitration = Literal["none", "soft", "hard", "hard+soft"]
Layout = Literal["paper", "cache_friendly"]
Guard = Literal["off", "verify", "offer", "procedure"]
Constrain = Literal["off", "grammar"]
MemoryForm = Literal["recorded", "roles", "grounded"]
PromptStyle = Literal["ours", "paper"]
Control = Literal["none", "empty", "shuffled", "irrelevant", "corrupted", "filler", "conflict"]
Group = Literal["run", "knowledge", "memory", "guard", "prompt", "model"]

ALL_TURNS = -1
CONTEXT_TOKENS = 32_768
"""More than a whole episode of a shipped world takes, and no more than most servers read."""
MEMORY_TOKENS = 400
"""Token budget of the memory block."""

# The paper's 2x2 ablation (A to D); S, the state block that B, C and D share; E is our extension.
CONDITIONS: dict[str, dict[str, Any]] = {
    "A": {"rules": False, "memory": False, "state_block": False, "guard": "off"},
    "S": {"rules": False, "memory": False, "state_block": True, "guard": "off"},
    "B": {"rules": True, "memory": False, "state_block": False, "guard": "off"},
    "C": {"rules": False, "memory": True, "state_block": False, "guard": "off"},
    "D": {"rules": True, "memory": True, "state_block": False, "guard": "off"},
    "E": {"rules": True, "memory": True, "state_block": False, "guard": "procedure"},
}
BUILT_IN: dict[str, str] = {
    "sim": "sim (built-in planner, not a language model)",
    "random": "random (uniform choice from the shortlist, not a language model)",
    "first": "first (always the first of the shortlist, not a language model)",
    "last": "last (always the last of the shortlist, not a language model)",
}
"""Models that are not language models, with their labels in tables."""
TITLES = {
    "A": "baseline",
    "S": "state",
    "B": "rules",
    "C": "memory",
    "D": "rules+memory",
    "E": "procedure",
}
ABLATION = ("A", "S", "B", "C", "D")
"""The conditions of an evaluation by default: the paper's four, and the state of three of them."""


@dataclass(frozen=True)
class Setting:
    """The description of a setting; its type and default are those of the field.

    Attributes:
        title: its label in a form.
        group: its group in the help.
        description: one sentence for forms, help texts and docs.
        ge: the smallest value.
        le: the largest value.
        option: its own option; the others are set by ``--set``, and those that are None by the
            condition.
    """

    title: str
    group: Group
    description: str
    ge: int | None = None
    le: int | None = None
    option: str | None = ""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        limits = {"ge": self.ge, "le": self.le, "allow_inf_nan": False if source is float else None}
        return {**handler(source), **{name: at for name, at in limits.items() if at is not None}}

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> Any:
        return {**handler(schema), "title": self.title, "description": self.description}


@dataclass(frozen=True)
class RunContext:
    """The settings of a run; an impossible value is refused when the context is made."""

    # fmt: off
    rules: Annotated[bool, Setting(
        "Rules", "knowledge",
        "Show the rule manual in the prompt.",
        option=None,
    )] = True
    memory: Annotated[bool, Setting(
        "Memory", "memory",
        "Retrieve, filter and arbitrate past experience.",
        option=None,
    )] = True
    state_block: Annotated[bool, Setting(
        "State", "knowledge",
        "Show goal, sub-goal and belief in the prompt, as rules and memory always do.",
        option=None,
    )] = False
    rules_scope: Annotated[RulesScope, Setting(
        "Printed rules", "knowledge",
        "Print the rules and actions that this type of goal needs (goal), or all of them (all, as "
        "the paper does).",
    )] = "goal"
    scf: Annotated[Scf, Setting(
        "State-consistent filtering", "memory",
        "Filter memories by the state: not at all (off), by the paper's compatibility of states "
        "(occupancy), or also by what the rules make of their advice (preconditions).",
    )] = "occupancy"
    arbitration: Annotated[Arbitration, Setting(
        "Rules-first arbitration", "memory",
        "Remove memories that conflict with rules (hard), warn about them (soft), do both, or "
        "neither (none).",
    )] = "hard+soft"
    arbitration_extras: Annotated[bool, Setting(
        "Arbitration extras", "memory",
        "Also remove memories that a printed rule repeats or another memory contradicts; the "
        "paper does not.",
    )] = False
    guard: Annotated[Guard, Setting(
        "Guard", "guard",
        "Check the agent's own actions against the rules: send a vetoed action back to the model "
        "(verify), show it a short list of actions (offer), or act by that list (procedure). The "
        "paper has no guard.",
        option="--guard",
    )] = "off"
    max_retries: Annotated[int, Setting(
        "Retries", "guard",
        "Send an action back to the model at most this often within a step (guard verify).",
        ge=0, le=MOST_TIMES,
    )] = 2
    check_answers: Annotated[bool, Setting(
        "Check answers", "guard",
        "Also send back an irreversible answer that differs from the procedure's own choice "
        "(guard verify).",
    )] = False
    layout: Annotated[Layout, Setting(
        "Prompt layout", "prompt",
        "Order the prompt's blocks as the paper does, or so that the beginning stays the same "
        "from step to step and can be cached (cache_friendly).",
    )] = "paper"
    memory_form: Annotated[MemoryForm, Setting(
        "Memory form", "memory",
        "Print memories as they were stored (recorded, as the paper does), with roles such as "
        "{object} for names (roles), or with the names of the current scene (grounded).",
    )] = "grounded"
    theta: Annotated[float, Setting(
        "Retrieval threshold", "memory",
        "Recall memories whose goal similarity, from 0 to 1, is at least this.",
        ge=0, le=1,
    )] = 0.6
    k: Annotated[int, Setting(
        "Memories per type", "memory",
        "Show at most this many memories of each type.",
        ge=0, le=MOST_TASKS,
    )] = 3
    memory_tokens: Annotated[int, Setting(
        "Memory tokens", "memory",
        "Leave out memories beyond this many tokens of the memory block; 0 leaves out none, as "
        "the paper does.",
        ge=0, le=MOST_TOKENS,
    )] = MEMORY_TOKENS
    max_steps: Annotated[int, Setting(
        "Step budget", "run",
        "End an episode after this many actions; 0 means the environment's own limit.",
        ge=0, le=MOST_STEPS,
        option="--max-steps",
    )] = 0
    model: Annotated[str, Setting(
        "Model", "model",
        "The model that acts: sim, local:smollm2 or PROVIDER:NAME, as 'rpms models list' shows "
        "them.",
        option="--model",
    )] = "sim"
    base_url: Annotated[str, Setting(
        "Server", "model",
        "The address of an OpenAI-compatible server; empty means the provider's own.",
        option="--base-url",
    )] = ""
    temperature: Annotated[float, Setting(
        "Temperature", "model",
        "The sampling temperature; 0 means greedy decoding.",
        ge=0,
    )] = 0.0
    seed: Annotated[int, Setting(
        "Seed", "run",
        "The seed of sampling, and of the built-in planner's choices.",
        ge=-MOST_SEED, le=MOST_SEED,
        option="--seed",
    )] = 0
    max_tokens: Annotated[int, Setting(
        "Reply tokens", "model",
        "Limit a reply to this many tokens; 0 means the environment's own limit.",
        ge=0, le=MOST_TOKENS,
    )] = 0
    context_tokens: Annotated[int, Setting(
        "Context tokens", "model",
        "Keep prompt and reply together within this many tokens, or within what the model states, "
        "if that is less, by leaving out the oldest turns; 0 means what the model states alone.",
        ge=0, le=MOST_TOKENS,
    )] = CONTEXT_TOKENS
    timeout_s: Annotated[float, Setting(
        "Model timeout (s)", "model",
        "Give up a model call after this many seconds; 0 means 60 for a server and 600 for a "
        "local model.",
        ge=0,
    )] = 0.0
    constrain: Annotated[Constrain, Setting(
        "Reply format", "model",
        "Hold replies to the action format by a grammar, where the server can; the paper does "
        "not.",
    )] = "off"
    memory_file: Annotated[str, Setting(
        "Memory file", "memory",
        "The memory snapshot (JSONL); empty means the shipped one.",
        option="--memory",
    )] = ""
    memory_method: Annotated[str, Setting(
        "Memory method", "memory",
        "The memory method: rpms, a published one by name, or MODULE:CLASS.",
    )] = "rpms"
    memory_control: Annotated[Control, Setting(
        "Memory control", "memory",
        "Make the memory useless in one way, as a control; conflict plants wrong entries beside "
        "it.",
    )] = "none"
    rules_dir: Annotated[str, Setting(
        "Rules folder", "knowledge",
        "A folder with rule files of your own, laid over the shipped manual.",
        option="--rules",
    )] = ""
    without_rules: Annotated[str, Setting(
        "Without rules", "knowledge",
        "Leave out these rules and tiers of the manual, by id and name, separated by commas.",
    )] = ""
    examples: Annotated[int, Setting(
        "Examples", "prompt",
        "Show this many solved tasks of the same type, at most 2; the paper shows one.",
        ge=0, le=2,
    )] = 1
    prompt_style: Annotated[PromptStyle, Setting(
        "Prompt style", "prompt",
        "Write the prompt our way, or the paper's: the actions of its system prompt where the "
        "environment has it, no diagnosis of the last action, no state that no action needs (hot, "
        "clean), and no memory of where things were found.",
    )] = "ours"
    history: Annotated[int, Setting(
        "Turns shown", "prompt",
        "Show only the last turns, this many, and sum up the others in the state; -1 shows all, "
        "as the paper does. Condition A has no state block and always shows all.",
        ge=ALL_TURNS, le=MOST_STEPS,
    )] = ALL_TURNS
    # fmt: on

    def __new__(cls, *_: Any, **settings: Any) -> RunContext:
        """Name a misspelt setting before ``__init__`` calls it an unexpected argument."""
        refuse_unknown(settings)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        from pydantic import ValidationError

        try:
            _schema().model_validate(vars(self), strict=True)
        except ValidationError as error:
            raise _in_words(error) from None

    @classmethod
    def for_condition(cls, condition: str, **settings: Any) -> RunContext:
        """Return the settings of a condition: A, S, B, C, D, E, or with a guard ``B+verify``."""
        return cls(**settings).under(condition)

    def under(self, condition: str) -> RunContext:
        """Return the same settings under another condition.

        The guard is the one in the condition's name (``D+verify``), else the condition's own, else
        the one that is set. Upper and lower case are alike.
        """
        letter, plus, guard = condition_name(condition).partition("+")
        if letter not in CONDITIONS:
            raise RpmsError(
                f"unknown condition '{condition}'; choose from {', '.join(CONDITIONS)}, with a "
                "guard as in B+verify"
            )
        toggles = CONDITIONS[letter]
        fixed = toggles["guard"]
        if plus and fixed not in ("off", guard):
            raise RpmsError(f"condition '{condition}': {letter} has guard {fixed} already")
        if not plus:
            guard = fixed if fixed != "off" else self.guard
        try:
            return self.with_(**{**toggles, "guard": guard})
        except BadSetting as error:
            raise RpmsError(f"condition '{condition}': {error}") from None

    @property
    def condition(self) -> str:
        if self.rules and self.memory:
            return "E" if self.guard == "procedure" else "D"
        if self.rules or self.memory:
            return "B" if self.rules else "C"
        return "S" if self.state_block else "A"

    @property
    def name(self) -> str:
        """The letter, with the guard unless the condition implies it: ``D+verify``."""
        letter = self.condition
        return letter if self.guard == CONDITIONS[letter]["guard"] else f"{letter}+{self.guard}"

    @property
    def has_blocks(self) -> bool:
        """True if the prompt has a knowledge block; the baseline has none."""
        return self.rules or self.memory or self.state_block

    @property
    def turns_shown(self) -> int:
        """``history``, but all turns for the baseline.

        The state block sums up the turns that are left out. The baseline has no state block, so
        with fewer turns it would lose to the others for a reason that is not knowledge.
        """
        return self.history if self.has_blocks else ALL_TURNS

    def hidden_turns(self, turns: int) -> int:
        """Return how many of this many turns the prompt leaves out."""
        return 0 if self.turns_shown == ALL_TURNS else max(0, turns - self.turns_shown)

    @cached_property
    def plain(self) -> dict[str, Any]:
        """The settings as plain data, as the state holds them."""
        return asdict(self)

    def with_(self, **changes: Any) -> RunContext:
        """Return a copy with some settings changed."""
        return replace(self, **changes)


def condition_title(label: str) -> str:
    """Return ``B rules`` for ``B``; any other label, such as ``B+verify``, stays as it is."""
    return f"{label} {TITLES[label]}" if label in TITLES else label


def condition_name(typed: str) -> str:
    """Return a condition in its usual spelling: ``B+verify`` for ``b+Verify``."""
    letter, plus, guard = typed.partition("+")
    return f"{letter.strip().upper()}{plus}{guard.strip().lower()}"


def settings(context: Any) -> RunContext:
    """Return a context as a RunContext; it may also be a dictionary or None.

    The context of an outer graph may hold our settings in a field ``rpms``.
    """
    if isinstance(context, RunContext):
        return context
    foreign = not isinstance(context, Mapping | None)
    if ours := getattr(context, "rpms", None) if foreign else (context or {}).get("rpms"):
        return settings(ours)
    if foreign:
        raise RpmsError(
            "the context must be a RunContext or a dictionary of its settings, not a "
            f"{type(context).__name__}"
        )
    refuse_unknown(context or {})
    return RunContext(**(context or {}))


def merged_settings(base: RunContext, context: Any) -> RunContext:
    """Return the settings of a run: a RunContext is complete, a dictionary changes ``base``."""
    if context is None:
        return base
    if not isinstance(context, Mapping):
        return settings(context)
    changes = context.get("rpms", context)
    if not isinstance(changes, Mapping):
        return settings(changes)
    refuse_unknown(changes)
    return base.with_(**changes) if changes else base


def refuse_unknown(names: Iterable[str], others: Iterable[str] = ()) -> None:
    """Raise an error that names the first unknown setting and the nearest known one.

    ``others`` are names that the caller accepts besides settings.
    """
    choices = sorted({*declarations(), *others})
    if unknown := sorted({*map(str, names)} - {*declarations()}):
        from rpms.vocabulary.spelling import offer

        raise RpmsError(f"unknown setting '{unknown[0]}'; {offer(unknown[0], choices)}")


class Declaration(NamedTuple):
    """A setting with the name, type and default of its field."""

    name: str
    kind: Any
    default: Any
    setting: Setting

    @property
    def choices(self) -> tuple[str, ...]:
        """The possible values, if there is a list of them."""
        return get_args(self.kind)


@cache
def declarations() -> dict[str, Declaration]:
    hints = get_type_hints(RunContext, include_extras=True)
    declared = {}
    for field in fields(RunContext):
        kind, setting = get_args(hints[field.name])
        declared[field.name] = Declaration(field.name, kind, field.default, setting)
    return declared


@cache
def _schema() -> type[BaseModel]:
    from pydantic import create_model

    hints = get_type_hints(RunContext, include_extras=True)
    shape: dict[str, Any] = {name: (hints[name], ...) for name in declarations()}
    return create_model("Settings", **shape)


def _in_words(error: ValidationError) -> BadSetting:
    first = error.errors()[0]
    name, value = str(first["loc"][0]), first["input"]
    why = f"is not possible: {first['msg'].lower()}"
    if first["type"] == "literal_error":
        why = f"is not possible; choose from {', '.join(declarations()[name].choices)}"
    return BadSetting(name, value, why)
