"""The graph's state: its input, its output, and the keys that the stages pass along.

The state holds plain data only. Nodes reach the live environment through ``rpms.envs.live``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Protocol, TypeVar, cast

from langchain_core.messages import AnyMessage, MessageLikeRepresentation, convert_to_messages
from langgraph.runtime import Runtime
from langgraph.types import Overwrite
from pydantic import Field
from typing_extensions import TypedDict

from rpms.envs import environment_names, get_environment
from rpms.envs.base import Task
from rpms.envs.manuals import load_commands, load_manual
from rpms.prompts.blocks import Knowledge
from rpms.rules.conditions import DecisionPoint
from rpms.rules.manual import ActiveRules, Manual
from rpms.vocabulary.belief import Belief, empty_belief, fingerprint
from rpms.vocabulary.context import RunContext, merged_settings, settings
from rpms.vocabulary.error_place import ErrorPlace, place_of
from rpms.vocabulary.errors import EnvironmentFault, RpmsError
from rpms.vocabulary.goal import GoalSpec, SubGoal
from rpms.vocabulary.recall import Recall
from rpms.vocabulary.spelling import offer
from rpms.vocabulary.turn import Choice, Decision, FailureMode, Turn, Usage, rejected_since


def _environments(form: dict[str, Any]) -> None:
    """Offer the environments in Studio's form, which asks for them when the schema is read."""
    form["enum"] = environment_names()


def _splits(form: dict[str, Any]) -> None:
    """Offer the splits, and say which environment has which."""
    splits = {env: get_environment(env).splits() for env in environment_names()}
    form["enum"] = list(dict.fromkeys(name for names in splits.values() for name in names))
    lists = "; ".join(f"{env}: {', '.join(names)}" for env, names in splits.items())
    form["description"] = f"A list of tasks of the environment, its first by default. {lists}."


T = TypeVar("T")


def add_new(old: list[T], new: list[T]) -> list[T]:
    """Append the new items; a graph used as a node returns the old ones again with its own."""
    return new if new[: len(old)] == old else [*old, *new]


def as_messages(_: Any, messages: Sequence[MessageLikeRepresentation]) -> list[AnyMessage]:
    """Replace the prompt, given in any form that LangChain accepts."""
    return cast(list[AnyMessage], convert_to_messages(messages))


def changed_settings(old: dict[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Change the settings that ``new`` names; the others of the episode stay."""
    return merged_settings(settings(old), new).plain


def changed_belief(old: Belief, new: Belief) -> Belief:
    """Change the fields that ``new`` names: a stage gives all, a person who edits may give one."""
    names = Belief.__annotations__
    if not isinstance(new, Mapping):
        raise RpmsError(f"a belief is an object with fields such as holding, and not {new!r}")
    if unknown := sorted(new.keys() - names.keys()):
        raise RpmsError(f"the belief has no field '{unknown[0]}'; {offer(unknown[0], names)}")
    for name, value in new.items():
        kind = str if name == "location" else type(NOTHING_KNOWN[name])  # type: ignore[literal-required]
        if not isinstance(value, kind) and (name, value) != ("location", None):
            raise RpmsError(f"the belief's {name} is a {kind.__name__}, and {value!r} is not")
    return {**old, **new}


NOTHING_KNOWN = empty_belief()

# Lists that grow during an episode: a stage returns only new items, and LangGraph appends them.
History = Annotated[list[Turn], add_new]
Decisions = Annotated[list[Decision], add_new]


def replace_list(value: list[T]) -> list[T]:
    """Replace a growing list instead of appending to it."""
    return cast(list[T], Overwrite(value))


class EpisodeInput(TypedDict, total=False):
    """The episode to run: an environment, a split, and a task by its id or its index.

    ``cross_trial_memory`` holds a memory method's notes on earlier trials of the same task; a first
    trial has none.
    """

    env: Annotated[
        str,
        Field(
            description="The environment; the first one by default.",
            json_schema_extra=_environments,
        ),
    ]
    split: Annotated[str, Field(json_schema_extra=_splits)]
    task: str | int
    cross_trial_memory: dict[str, Any]


class EpisodeOutput(TypedDict, total=False):
    """The result of an episode.

    Attributes:
        task_id: the id of the task.
        condition: the paper's letter for the knowledge that was on.
        success: True if the environment reports the task as won. It is False after an error of the
            model or the environment, too: a mean leaves such results out (``failure_mode``).
        score: the environment's final score.
        steps: actions taken, including rejected ones and unreadable replies.
        invalid_actions: steps that the environment rejected, or that had no action.
        format_errors: replies from which no action could be read.
        failure_mode: why the episode was lost; None on success.
        error: the message of a model or infrastructure error.
        error_place: the line of your own code that raised it, if one did.
        prompt_tokens: as reported by the model, else estimated.
        output_tokens: as reported by the model, else estimated.
        cached_tokens: prompt tokens that the provider read from its own cache.
        model_calls: replies from a model; retries of one call count once.
        cache_hits: replies from LangChain's cache.
        capped_replies: replies cut off because they were longer than their token limit allows.
        decisions: the guard's decision on each proposed action; empty while the guard is off.
        goal: the parsed goal of the task.
        first_observation: o_0, which states the task and is part of every prompt.
        history: every turn.
    """

    task_id: str
    condition: str
    success: bool
    score: float
    steps: int
    invalid_actions: int
    format_errors: int
    failure_mode: FailureMode | None
    error: str
    error_place: ErrorPlace | None
    prompt_tokens: int
    output_tokens: int
    cached_tokens: int
    model_calls: int
    cache_hits: int
    capped_replies: int
    decisions: Decisions
    goal: GoalSpec
    first_observation: str
    history: History


class ServerOutput(EpisodeOutput, total=False):
    """The output of the graph on a server, which streams only updates of output keys.

    Attributes:
        belief: b_t.
        sub_goal: the step of the goal that the agent works on.
        rules: R_active, while rules are on.
        recalls: the memory candidates with their outcomes, while memory is on.
        thought: the reasoning in the model's reply.
        action: a_t, the action to execute: the reply's, until the guard, a node or a person
            chooses another. Empty if the reply had none.
    """

    belief: Annotated[Belief, changed_belief]
    sub_goal: SubGoal
    rules: ActiveRules
    recalls: list[Recall]
    thought: str
    action: str


class EpisodeState(EpisodeInput, ServerOutput, total=False):
    """Everything the stages read and write.

    Attributes:
        settings: the ``RunContext`` of this episode as plain data, written by ``reset_env``. Every
            stage and every edge reads it here (``settings_of``), so a resumed episode keeps its
            settings.
        episode_id: key of the live environment.
        spec: the resolved task.
        observation: o_t.
        simulator_state: the simulator's state, if it is plain data; the agent never sees it.
        truncated: the number of candidates that ``recalls`` leaves out, by outcome.
        prompt: p_t, exactly as sent, as LangChain's messages. Our stages return them as plain
            data, so that ``stream_mode="messages"`` streams the replies and not the prompts.
        knowledge_tokens: estimated tokens of the knowledge blocks in this prompt.
        dropped_turns: earlier turns left out of this prompt to fit the model's context.
        reply: the model's reply.
        usage: the tokens of that reply.
        ineffective: actions executed since the belief last changed.
        played_in: the actions the guard let through, by the fingerprint of the belief.
        shortlist: the applicable actions of the sub-goal, when the guard offers them.
        retries: how often the guard asked the model again in this step.
        done: the episode has ended.
    """

    settings: Annotated[dict[str, Any], changed_settings]
    episode_id: str
    spec: Task
    observation: str
    simulator_state: dict[str, Any] | None
    truncated: dict[str, int]
    prompt: Annotated[list[AnyMessage], as_messages]
    knowledge_tokens: int
    dropped_turns: int
    reply: str
    usage: Usage
    ineffective: list[str]
    played_in: dict[str, list[str]]
    shortlist: list[Choice]
    retries: int
    done: bool


class RuntimeStage(Protocol):
    """A stage that reads the runtime; without one it takes that of the running graph."""

    def __call__(
        self, state: EpisodeState, runtime: Runtime[RunContext] | None = None
    ) -> EpisodeState: ...


STATE_KEYS = frozenset(EpisodeState.__annotations__)
REDUCERS: dict[str, Callable[[Any, Any], Any]] = {
    "history": add_new,
    "decisions": add_new,
    "settings": changed_settings,
    "belief": changed_belief,
}


def no_rules() -> ActiveRules:
    return ActiveRules(universal=[], domain=[], environment=[], situation=[])


def settings_of(state: Mapping[str, Any]) -> RunContext:
    """Return the settings of an episode; the defaults for a state without any."""
    plain = state.get("settings") or {}
    try:
        return _context(tuple(plain.items()))
    except TypeError:  # an edited value that cannot be cached: the check names it
        return settings(plain)


def manual_of(state: EpisodeState) -> Manual:
    """Return the manual of the run; the guard judges by it also in conditions without rules.

    An episode keeps the manual that it began with. Retrieval and grounding do not read it: what
    they need is data of the environment (``commands_of``) and memory.
    """
    context = settings_of(state)
    chosen = state["env"], context.rules_dir, context.without_rules
    return _manual(state["episode_id"], *chosen) if "episode_id" in state else load_manual(*chosen)


def commands_of(state: EpisodeState) -> Manual:
    """Return what every condition knows of the commands: their syntax and what they result in."""
    env = state["env"]
    return _commands(state["episode_id"], env) if "episode_id" in state else load_commands(env)


def knowledge_of(state: EpisodeState) -> Knowledge:
    """Return the part of the state that the knowledge blocks print."""
    return Knowledge(
        get_environment(state["env"]), settings_of(state), state["goal"], state["sub_goal"],
        state["belief"], state["rules"], state["recalls"], state["history"], state["ineffective"],
    )  # fmt: skip


def decision_point(state: EpisodeState) -> DecisionPoint:
    """Return the part of the state by which the rules judge an action.

    The guard and the expert use the procedure under every condition.
    """
    context = settings_of(state)
    rejected = rejected_since(state.get("history", []), state["ineffective"])
    return DecisionPoint(
        manual=manual_of(state),
        goal=state["goal"],
        sub_goal=state["sub_goal"],
        belief=state["belief"],
        no_effect=state["ineffective"],
        rejected={turn["action"] for turn in rejected},
        repeated_here=state["played_in"].get(fingerprint(state["belief"]), ()),
        # Guard procedure always follows the procedure, so it checks answers as well.
        check_answers=context.check_answers or context.guard == "procedure",
    )


def environment_failed(fault: EnvironmentFault, stage: str) -> EpisodeState:
    """End an episode whose simulator failed."""
    return EpisodeState(
        failure_mode="infrastructure_error",
        error=str(fault),
        error_place=place_of(fault, stage),
        done=True,
    )


@lru_cache(maxsize=256)
def _manual(episode_id: str, env: str, rules_dir: str, without: str) -> Manual:
    return load_manual(env, rules_dir, without)


@lru_cache(maxsize=256)
def _commands(episode_id: str, env: str) -> Manual:
    return load_commands(env)


@lru_cache(maxsize=256)
def _context(items: tuple[tuple[str, Any], ...]) -> RunContext:
    return settings(dict(items))


def apply_update(state: dict[str, Any], update: Mapping[str, Any]) -> None:
    """Apply a stage's update to ``state`` as LangGraph does, for readers of a stream."""
    for key, value in update.items():
        if isinstance(value, Overwrite):
            state[key] = value.value
        elif key in REDUCERS and key in state:
            state[key] = REDUCERS[key](state[key], value)
        else:
            state[key] = value
