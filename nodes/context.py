"""Settings of one run: the paper's toggles, readable as a form in LangGraph Studio.

Plain values only, because Studio reads this class as a JSON schema. A chat model object or a
swapped stage is given to ``build_graph`` instead.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args, get_type_hints

from rpms.memory_store.controls import Control
from rpms.models import default_timeout
from rpms.vocabulary.errors import RpmsError

Scf = Literal["off", "occupancy", "preconditions"]
Arbitration = Literal["none", "soft", "hard", "hard+soft"]
Layout = Literal["paper", "cache_friendly"]
Guard = Literal["off", "reask", "shortlist", "constrain"]
Constrain = Literal["off", "grammar"]

# The 2x2 ablation of the paper, and E, which goes past it.
CONDITIONS: dict[str, dict[str, Any]] = {
    "A": {"rules": False, "memory": False, "guard": "off"},
    "B": {"rules": True, "memory": False, "guard": "off"},
    "C": {"rules": False, "memory": True, "guard": "off"},
    "D": {"rules": True, "memory": True, "guard": "off"},
    "E": {"rules": True, "memory": True, "guard": "constrain"},
}


@dataclass(frozen=True)
class RunContext:
    """What is on, and how the model is called.

    Attributes:
        rules: inject the rule manual.
        memory: retrieve, filter and arbitrate past experience.
        scf: state-consistent filtering; ``occupancy`` is the paper's.
        arbitration: what happens to memories that conflict with rules.
        guard: rules-first arbitration of the agent's own actions; the paper has none.
        layout: order of the prompt blocks.
        theta: retrieval threshold on the goal-signature score.
        k: how many memories of each type may be recalled.
        max_steps: step budget; 0 means the environment's own (50 for ALFWorld).
        model: ``sim`` or ``provider:name``.
        base_url: address of an OpenAI-compatible server; empty for the provider's own.
        temperature: 0 is greedy decoding.
        seed: varies sampling, and the whims of the built-in planner.
        max_tokens: reply length; 0 means the environment's own.
        context_tokens: prompt and reply together; older turns are left out beyond that. 0 means
            the model's own limit where it is known.
        timeout_s: how long one model call may take; 0 means the model's own (60 s for a server,
            10 minutes for a local model, which reads its first prompt slowly).
        constrain: ``grammar`` holds replies to the action format where the server can; the paper
            does not do this.
        memory_file: JSONL snapshot of episodic memory; empty for the one shipped with us.
        memory_control: the same memory made useless in one way, to see what of it helps.
    """

    rules: bool = True
    memory: bool = True
    scf: Scf = "occupancy"
    arbitration: Arbitration = "hard+soft"
    guard: Guard = "off"
    layout: Layout = "paper"
    theta: float = 0.6
    k: int = 3
    max_steps: int = 0
    model: str = "sim"
    base_url: str = ""
    temperature: float = 0.0
    seed: int = 0
    max_tokens: int = 0
    context_tokens: int = 0
    timeout_s: float = 0.0
    constrain: Constrain = "off"
    memory_file: str = ""
    memory_control: Control = "none"

    @classmethod
    def for_condition(cls, condition: str, **settings: Any) -> RunContext:
        """A, B, C or D of the 2x2 ablation, or E, with other settings as given."""
        return cls(**settings).under(condition)

    def under(self, condition: str) -> RunContext:
        """The same settings under another condition; a guard of one's own stays."""
        if condition not in CONDITIONS:
            raise RpmsError(f"unknown condition '{condition}'; known: {', '.join(CONDITIONS)}")
        toggles = CONDITIONS[condition]
        guard = toggles["guard"] if toggles["guard"] != "off" else self.guard
        return self.with_(rules=toggles["rules"], memory=toggles["memory"], guard=guard)

    @property
    def condition(self) -> str:
        """The letter of the condition this context belongs to."""
        if self.rules and self.memory and self.guard == "constrain":
            return "E"
        letters = {(True, True): "D", (True, False): "B", (False, True): "C", (False, False): "A"}
        return letters[self.rules, self.memory]

    @property
    def patience_s(self) -> float:
        """How long one model call may take, as asked for or by the kind of model."""
        return self.timeout_s or default_timeout(self.model)

    def checked(self) -> RunContext:
        """Refuse values a dataclass would let through, with the allowed ones named."""
        hints = get_type_hints(RunContext)
        for field in fields(self):
            allowed = get_args(hints[field.name])
            value = getattr(self, field.name)
            if allowed and value not in allowed:
                raise RpmsError(
                    f"{field.name}='{value}' is not possible; choose from {', '.join(allowed)}"
                )
        if min(self.max_steps, self.k, self.max_tokens, self.temperature) < 0:
            raise RpmsError("max_steps, k, max_tokens and temperature must not be negative")
        if self.context_tokens < 0:
            raise RpmsError("context_tokens must not be negative")
        if not 0 <= self.theta <= 1 or not self.timeout_s >= 0:
            raise RpmsError("theta must lie in 0..1, and timeout_s must not be negative")
        return self

    def with_(self, **changes: Any) -> RunContext:
        """A copy with some settings changed, checked."""
        return replace(self, **changes).checked()


def settings(context: RunContext | dict[str, Any] | None) -> RunContext:
    """The context as a RunContext: a server may hand it over as a dictionary, or not at all."""
    if context is None:
        return RunContext()
    if isinstance(context, RunContext):
        return context
    known = {field.name for field in fields(RunContext)}
    unknown = sorted(set(context) - known)
    if unknown:
        raise RpmsError(f"unknown setting {', '.join(unknown)}; known: {', '.join(sorted(known))}")
    return RunContext(**context).checked()
