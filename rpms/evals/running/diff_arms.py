"""How often two arms print different prompts at the same states.

A player that errs on purpose plays tasks under the first arm. Every other arm executes the same
actions in its own graph, so that its own nodes build its prompts. A comparison whose arms print the
same prompts at every state can show no difference, whatever a model makes of them.

The graph of an arm stops before ``llm_call``, and the player's action is written into the thread as
the update of ``llm_call``. No model is called.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import unified_diff
from functools import partial
from typing import Any, cast
from uuid import uuid4

from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from rpms.envs import get_environment
from rpms.evals.running.arms import Arm, as_variant
from rpms.evals.running.expert import known_names, llm_call
from rpms.evals.running.plan import choose_tasks
from rpms.graph.build import make_builder
from rpms.graph.compiled import open_graph
from rpms.nodes.reset_env import listed_task
from rpms.nodes.state import EpisodeInput, EpisodeState, decision_point
from rpms.rules import can_work
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.turn import ERRORS

RATE = 0.3
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


def diff_arms(
    arms: Mapping[str, Arm],
    env: str,
    split: str = "",
    limit: int = 10,
    max_steps: int = 0,
    seed: int = 0,
    *,
    ids: Sequence[str] = (),
    types: Sequence[str] = (),
) -> list[Difference]:
    """Compare each later arm with the first, at each state of an expert that errs.

    The split is by default the one that is learned from.
    """
    first, *others = (_ArmGraph(label, arm, max_steps) for label, arm in arms.items())
    found = [Difference(first.label, other.label) for other in others]
    for start in _starts(env, split, limit, ids, types):
        decisions: list[EpisodeState] = []

        def decide(state: EpisodeState, made: list[EpisodeState] = decisions) -> EpisodeState:
            made.append(_stray(state, seed))
            return made[-1]

        def repeat(state: EpisodeState, made: list[EpisodeState] = decisions) -> EpisodeState:
            return made[state["steps"]]

        states = [*first.states(start, decide)]
        for difference, other in zip(found, others, strict=True):
            for same, state in zip(other.states(start, repeat), states, strict=False):
                _compare(difference, state, same)
    return found


def played_states(
    arm: Arm,
    env: str,
    split: str = "",
    limit: int = 10,
    max_steps: int = 0,
    seed: int = 0,
) -> Iterator[EpisodeState]:
    """Yield the state before each decision of an expert that errs on a share of its steps."""
    graph = _ArmGraph("", arm, max_steps)
    for start in _starts(env, split, limit, (), ()):
        yield from graph.states(start, partial(_stray, seed=seed))


def _starts(
    env: str, split: str, limit: int, ids: Sequence[str], types: Sequence[str]
) -> Iterator[EpisodeInput]:
    split = split or get_environment(env).learning_split
    for task in choose_tasks(env, split, limit, spread=True, ids=ids, types=types):
        listed_task.set(task)  # no episode lists the split again
        yield EpisodeInput(env=env, split=split, task=task["id"])


class _ArmGraph:
    """The graph of an arm, which stops before each decision and takes it from somebody else."""

    def __init__(self, label: str, arm: Arm, max_steps: int) -> None:
        variant = as_variant(arm)
        self.label = label
        self.thread = RunnableConfig()
        self.context = variant.settings().with_(max_steps=max_steps)
        self.is_guarded = self.context.guard != "off"
        graph = open_graph(variant.graph) if variant.graph else None
        builder = graph.builder if graph else make_builder(context=self.context)
        self.app = builder.compile(
            checkpointer=InMemorySaver(), store=graph.store if graph else None,
            interrupt_before=["llm_call"],
            interrupt_after=["env_step"] if self.is_guarded else [],
        )  # fmt: skip

    def states(
        self, start: EpisodeInput, act: Callable[[EpisodeState], EpisodeState]
    ) -> Iterator[EpisodeState]:
        """Yield the state before each decision of an episode; ``act`` makes the decision.

        The actions that a guard offers belong to the prompt, its vetoes do not: it is off while a
        decision is executed.
        """
        self.thread = {"configurable": {"thread_id": uuid4().hex}}
        state = self._continue(start)
        while not state["done"]:
            yield state
            steps = state["steps"]
            state = self._continue({**act(state), "settings": {"guard": "off"}}, "llm_call")
            if state["steps"] == steps:
                raise RpmsError(f"arm '{self.label}': its graph does not execute every decision")
            if self.is_guarded and not state["done"]:
                state = self._continue({"settings": {"guard": self.context.guard}}, "env_step")

    def _continue(self, update: Mapping[str, Any], stage: str = "") -> EpisodeState:
        """Run up to the next stop: a new episode, or on from the update of a stage."""
        begin: Any = None if stage else update
        try:
            if stage:
                self.app.update_state(self.thread, update, as_node=stage)
            self.app.invoke(begin, self.thread, context=self.context, durability="exit")
        except RpmsError:
            raise
        except Exception as error:  # code of the user
            raise RpmsError(f"arm '{self.label}': {type(error).__name__}: {error}") from error
        snapshot = self.app.get_state(self.thread)
        state = cast(EpisodeState, snapshot.values)
        if state["done"] and state["failure_mode"] in ERRORS:
            raise RpmsError(f"arm '{self.label}': {state['error']}")
        is_between = self.is_guarded and stage == "llm_call"
        if not state["done"] and not is_between and snapshot.next != ("llm_call",):
            raise RpmsError(f"arm '{self.label}': its graph stops at {', '.join(snapshot.next)}")
        return state


def _stray(state: EpisodeState, seed: int) -> EpisodeState:
    """The expert's decision, or on half of the errors some other action that can work."""
    erring = {"temperature": RATE / 2, "seed": seed, "guard": "off"}
    state = cast(EpisodeState, {**state, "settings": {**state["settings"], **erring}})
    update, point = llm_call(state), decision_point(state)
    rng = random.Random(f"{seed}|{state['task_id']}|{state['steps']}")
    if rng.random() >= RATE / 2:
        return update
    belief, names = point.belief, known_names(point.belief)
    rules = [rule for rule in point.manual.actions if not rule.verified]
    for _ in range(TRIES if names else 0):
        rule = rng.choice(rules)
        action = rule.syntax.format(**{name: rng.choice(names) for name in rule.parameters})
        if rule.effects and can_work(point.manual, action, belief):
            return EpisodeState(**{**update, "action": action, "reply": f"Action: {action}"})
    return update


def _compare(difference: Difference, state: EpisodeState, other: EpisodeState) -> None:
    """Count a state of both arms."""
    actions, same = ([turn["action"] for turn in each["history"]] for each in (state, other))
    if actions != same:
        raise RpmsError(
            f"arm '{difference.second}' does not execute the actions of arm '{difference.first}', "
            "so the two share no states: compare their results instead"
        )
    changed = changed_lines(state["prompt"], other["prompt"])
    difference.states += 1
    difference.differing += bool(changed)
    if changed and not difference.where:
        difference.where = f"{state['task_id']}, step {state['steps'] + 1}"
        difference.example = changed


def changed_lines(first: Sequence[AnyMessage], second: Sequence[AnyMessage]) -> list[str]:
    """Return the lines that only one of two prompts has, marked with - and +."""
    before, after = (
        [line for message in prompt for line in message.text.splitlines()]
        for prompt in (first, second)
    )
    diff = unified_diff(before, after, n=0, lineterm="")
    return [line for line in diff if line[:2] not in ("--", "++", "@@")]
