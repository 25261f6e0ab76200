"""How often two arms print different prompts at the same states.

A player that errs on purpose plays tasks under the first arm. At each of its decisions the stages
build the prompt of every arm, from the same history and belief. A comparison whose arms print the
same prompts at every state can show no difference, whatever a model makes of them.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from difflib import unified_diff
from typing import Any, cast

from langgraph.runtime import Runtime

import rpms.nodes as stages
from rpms.envs import get_environment
from rpms.evals.running.expert import known_names, llm_call
from rpms.evals.running.plan import choose_tasks
from rpms.graph.build import build_graph, next_stage
from rpms.nodes.state import (
    EpisodeInput,
    EpisodeState,
    apply_update,
    decision_point,
    settings_of,
)
from rpms.rules import can_work
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.turn import Message

ERRORS = 0.3
"""The share of steps on which the player errs: one half cannot work, the other half leads away."""
TRIES = 200


@dataclass
class Difference:
    """Two arms over the same states.

    Attributes:
        first: the label of the arm that the states are played under.
        second: the label of the other arm.
        states: the states compared.
        differing: those at which the prompts differ.
        example: the lines in which the prompts of the first differing state differ.
        where: the task and the step of that state.
    """

    first: str
    second: str
    states: int = 0
    differing: int = 0
    example: list[str] = field(default_factory=list)
    where: str = ""

    @property
    def share(self) -> float:
        return self.differing / self.states if self.states else 0.0


def diff_arms(arms: Mapping[str, RunContext], states: Iterable[EpisodeState]) -> list[Difference]:
    """Compare each later arm with the first, at each of the states."""
    (first, context), *others = arms.items()
    found = [Difference(first, label) for label, _ in others]
    for state in states:
        prompt = prompt_of(state, context)
        for difference, (_, other) in zip(found, others, strict=True):
            changed = changed_lines(prompt, prompt_of(state, other))
            difference.states += 1
            difference.differing += bool(changed)
            if changed and not difference.where:
                difference.where = f"{state['task_id']}, step {state['steps'] + 1}"
                difference.example = changed
    return found


def played_states(
    context: RunContext,
    env: str,
    split: str = "",
    limit: int = 10,
    max_steps: int = 0,
    seed: int = 0,
    *,
    ids: Sequence[str] = (),
    types: Sequence[str] = (),
) -> Iterator[EpisodeState]:
    """Yield the state before each decision of an expert that errs on a share of its steps.

    The split is by default the one that is learned from.
    """
    split = split or get_environment(env).learning_split
    erring = context.with_(temperature=ERRORS / 2, seed=seed, guard="off", max_steps=max_steps)
    app = build_graph({"llm_call": _stray}, context=erring)
    for task in choose_tasks(env, split, limit, spread=True, ids=ids, types=types):
        state: dict[str, Any] = {"task": task["id"], "split": split}
        start = EpisodeInput(env=env, split=split, task=task["id"])
        for part in app.stream(start, context=erring, stream_mode="updates"):
            for stage, update in part.items():
                apply_update(state, update)
                if stage == "prompt_build":
                    yield cast(EpisodeState, deepcopy(state))


def _stray(state: EpisodeState) -> EpisodeState:
    """The expert's decision, or on half of the errors some other action that can work."""
    update, point = llm_call(state), decision_point(state)
    rng = random.Random(f"{settings_of(state).seed}|{state['task_id']}|{state['steps']}")
    if rng.random() >= ERRORS / 2:
        return update
    belief, names = point.belief, known_names(point.belief)
    rules = [rule for rule in point.manual.actions if not rule.verified]
    for _ in range(TRIES if names else 0):
        rule = rng.choice(rules)
        action = rule.syntax.format(**{name: rng.choice(names) for name in rule.parameters})
        if rule.effects and can_work(point.manual, action, belief):
            return EpisodeState(**{**update, "action": action, "reply": f"Action: {action}"})
    return update


def under_arm(state: EpisodeState, context: RunContext) -> EpisodeState:
    """Run an arm's stages up to its prompt, at a state that another arm may have reached."""
    empty: dict[str, list[Any]] = {tier: [] for tier in state["rules"]}
    view = {**state, "settings": context.plain, "rules": empty, "recalls": [], "truncated": {}}
    stage, runtime = "belief_update", Runtime(context=context)
    while (stage := next_stage(stage, cast(Any, view))) != "llm_call":
        run = getattr(stages, stage)
        update = run(view, runtime) if stage == "goal_retrieval" else run(view)
        apply_update(view, update)
    return cast(EpisodeState, view)


def prompt_of(state: EpisodeState, context: RunContext) -> Sequence[Message]:
    """The prompt of an arm at a state that another arm may have reached."""
    return cast(Sequence[Message], under_arm(state, context)["prompt"])


def changed_lines(first: Sequence[Message], second: Sequence[Message]) -> list[str]:
    """Return the lines that only one of two prompts has, marked with - and +."""
    before, after = (
        [line for message in prompt for line in message["content"].splitlines()]
        for prompt in (first, second)
    )
    diff = unified_diff(before, after, n=0, lineterm="")
    return [line for line in diff if line[:2] not in ("--", "++", "@@")]
