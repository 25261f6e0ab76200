"""May this memory be shown? This page answers it: a recalled memory, and the outcomes it may have.

Each stage decides about what the stages before it left, in this order, and drops it by ``drop``:

- *duplicate*, *over top-k* without being listed: ``memory_store.retrieval`` takes the entries of
  similar goals, equal ones as one, and at most a multiple of k; the state counts the others;
- *not groundable*: ``memory_store.grounding.ground`` finds no names for it in this scene;
- *scf*: ``nodes.scf``, its recorded state does not match the belief;
- *arbitration*: ``nodes.arbitration``, it conflicts with a rule;
- *duplicate*, *over top-k*: the memory method's ``select``, called by ``nodes.memory_selection``;
- *over token budget*: ``nodes.memory_selection``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal, get_args
from zlib import crc32

from typing_extensions import TypedDict

from rpms.vocabulary.errors import RpmsError

RecallOutcome = Literal[
    "", "not groundable", "scf", "arbitration", "duplicate", "over top-k", "over token budget",
]  # fmt: skip
RECALL_OUTCOMES: tuple[RecallOutcome, ...] = get_args(RecallOutcome)
"""The outcomes of a candidate in the order of the stages; the empty one means it is shown."""
ConflictKind = Literal[
    "impossible", "forbidden", "foreign to this goal", "against the procedure",
    "cannot reach the goal", "in doubt", "redundant", "contradicted by another memory",
]  # fmt: skip
CONFLICT_KINDS: tuple[ConflictKind, ...] = get_args(ConflictKind)
"""The kinds of conflict that arbitration decides."""
EXTRA_KINDS = CONFLICT_KINDS[-2:]
"""Those that only ``arbitration_extras`` decides."""
BLANK = re.compile(r"\{([^{}]+)\}")
"""A role instead of a scene's own name: ``{object}``."""
NOTE = "note"
"""The type of an entry that is a text of another memory method; ``kind`` is its name there."""


class Advice(TypedDict):
    """An entry grounded in this scene and state.

    Attributes:
        actions: what to do, or for a lesson what not to do: the filter and the arbiter judge these.
        printed: the actions as the prompt prints them; the same as ``actions`` unless they name
            kinds of things.
        done: the steps that are done already: they are not printed.
        solves: the steps won an episode, and would meet the conditions of this goal.
        by_kind: the actions name kinds of things, because they are printed with roles or no thing
            of this scene is known to fill a role: only facts about the whole kind count against
            them.
        needs: conditions, in words.
        then: what follows, in words.
        places: where to look, best first.
    """

    actions: list[str]
    printed: list[str]
    done: list[str]
    solves: bool
    by_kind: bool
    needs: list[str]
    then: list[str]
    places: list[str]


class Recall(TypedDict):
    """One candidate of M_cand with its outcome; the list is passed from stage to stage.

    Entries that a stage drops stay in the list with the reason, so that the state, the log and the
    viewer show why a memory did not reach the prompt.

    Attributes:
        entry: the stored entry, as plain data.
        advice: the entry grounded in this scene and state.
        score: retrieval score, d_gamma times the entry's weight.
        count: how often such an entry was seen.
        dropped_by: its outcome; empty while no stage has dropped it.
        reason: why it was dropped.
        conflict: the kind of conflict that the arbiter found; empty if there is none.
        warning: the arbiter's note for an entry that stays.
        rule: id of the rule behind the removal or the warning.
    """

    entry: dict[str, Any]
    advice: Advice
    score: float
    count: int
    dropped_by: RecallOutcome
    reason: str
    conflict: ConflictKind | Literal[""]
    warning: str
    rule: str


def new_recall(entry: dict[str, Any], score: float, count: int, advice: Advice) -> Recall:
    """A candidate that no stage has judged yet."""
    return Recall(
        entry=entry, advice=advice, score=score, count=count,
        dropped_by="", reason="", conflict="", warning="", rule="",
    )  # fmt: skip


def memory(
    actions: Sequence[str],
    *,
    id: str = "",
    sub_goal: str = "",
    score: float = 1.0,
    count: int = 1,
    solves: bool = False,
) -> Recall:
    """Make a recalled memory for a retrieval of your own: actions that helped in a similar task.

    Args:
        actions: the actions in names of this scene, which the filter and the arbiter judge.
        id: its name in logs; by default made from the actions.
        sub_goal: the sub-goal that they reached.
        score: the similarity of its goal, 0 to 1.
        count: how often this experience was made.
        solves: the actions solved the task.
    """
    text = " -> ".join(actions)
    entry = {
        "type": "success", "id": id or f"memory_{crc32(text.encode()):08x}", "actions": [*actions],
        "sub_goal_type": sub_goal,
    }  # fmt: skip
    return new_recall(entry, score, count, new_advice([*actions], solves=solves))


def drop(recall: Recall, outcome: RecallOutcome, reason: str, rule: str = "") -> Recall:
    """A copy of the candidate with its outcome; one that is dropped already stays as it is."""
    if outcome not in RECALL_OUTCOMES[1:]:
        allowed = ", ".join(f"'{each}'" for each in RECALL_OUTCOMES if each)
        raise RpmsError(f"rpms.drop: unknown stage '{outcome}'; the stage is one of {allowed}")
    if recall["dropped_by"]:
        return recall
    return {**recall, "dropped_by": outcome, "reason": reason, "rule": rule or recall["rule"]}


def new_advice(
    actions: list[str],
    *,
    printed: list[str] | None = None,
    done: list[str] | None = None,
    solves: bool = False,
    by_kind: bool = False,
    needs: list[str] | None = None,
    then: list[str] | None = None,
    places: list[str] | None = None,
) -> Advice:
    """Advice with defaults; by default the judged actions are printed."""
    return Advice(
        actions=actions, printed=actions if printed is None else printed, done=done or [],
        solves=solves, by_kind=by_kind, needs=needs or [], then=then or [], places=places or [],
    )  # fmt: skip


def surviving(recalls: Sequence[Recall]) -> list[Recall]:
    """The candidates that no stage has dropped."""
    return [recall for recall in recalls if not recall["dropped_by"]]
