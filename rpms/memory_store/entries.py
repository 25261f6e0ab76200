"""The types of memory: the paper's four with the fields of its appendix, finds, and notes.

An entry keeps the recorded actions and, in ``lifted``, the same actions with roles for names, which
transfer to other scenes. A handwritten entry may leave ``lifted`` out. Other memory methods keep
notes, a text each.

Merging removes duplicates: the same experience twice becomes one entry with a higher count. Two
experiences are the same if they read the same with roles for names: taking two mugs from two desks
is one experience. The first recorded example in order is kept. Merging is associative and
commutative, and ids are computed from the content, so the result of learning does not depend on the
order of the trajectories, on rounds or on parallel workers.

The preconditions and effects of a schema are computed from its uses alone. A literal such as
``at(place)`` is a precondition if it held before every success and explains a rejection. Literals
that explain the most rejections are taken first, until no rejection is left that any can explain.
Effects are the literals that held after every success but not before each of them, and the state
of the hand in any case, because it is easily guessed wrong.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import add, or_
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from rpms.vocabulary.goal import PAPER, Keys


class _StrictEntry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Entry(_StrictEntry):
    id: str = Field(min_length=1)
    retrieval_weight: float = Field(default=1.0, gt=0)


class _Recorded(_Entry):
    """Base of the entries that keep the goal and the state they were recorded in.

    ``manual`` is true if rules helped to make the entry: they explained the rejection, or removed
    detours.
    """

    goal_signature: str = Field(min_length=1)
    state_signature: str = Field(min_length=1)
    manual: bool = False


class Success(_Recorded):
    """A success snippet: the actions from a change of the hand to one reached sub-goal.

    ``won`` is true if the episode was won in the end, ``solves`` if the last action won it.
    """

    type: Literal["success"]
    sub_goal_type: str
    precondition: dict[str, Any] = {}
    actions: list[str] = Field(min_length=1)
    lifted: list[str] = []
    outcome: dict[str, Any] = {}
    won: bool = False
    solves: bool = False
    success_count: int = Field(default=1, ge=1)


class Failure(_Recorded):
    """A failure lesson: a rejected action and the precondition it violated.

    ``violated`` holds the precondition over the parameters of the action; ``corrective_rule`` says
    it in words.
    """

    type: Literal["failure"]
    failed_action: str
    lifted: str = ""
    violated: list[str] = []
    failure_type: str = "precondition_not_met"
    failure_message: str
    corrective_rule: str
    occurrence_count: int = Field(default=1, ge=1)


class Use(_StrictEntry):
    """One use of an action: the literals before it, its success, and the literals after it."""

    before: dict[str, bool]
    worked: bool
    after: list[str] = []
    count: int = Field(default=1, ge=1)


class Schema(_Entry):
    """A verified schema: the preconditions and effects of an action, derived from its uses.

    ``kinds`` counts the kinds of each parameter's values in successful uses. ``words`` counts the
    values themselves, for parameters that name no thing. A handwritten schema may have no uses; its
    preconditions, effects and confidence are then taken as written.
    """

    type: Literal["schema"]
    action_template: str
    action_type: str
    preconditions: list[str] = []
    effects: list[str] = []
    uses: list[Use] = []
    kinds: dict[str, dict[str, int]] = {}
    words: dict[str, dict[str, int]] = {}
    success_count: int = Field(ge=0)
    failure_count: int = Field(ge=0)
    confidence: float = Field(ge=0, le=1)


class CriticalFailure(_Recorded):
    """An action that ended an episode with the worst score; weighs double in retrieval."""

    type: Literal["critical_failure"]
    failed_action: str
    lifted: str = ""
    failure_message: str
    corrective_rule: str
    occurrence_count: int = Field(default=1, ge=1)
    retrieval_weight: float = Field(default=2.0, gt=0)


class Finds(_Entry):
    """The objects found in one kind of place: how many places were searched, and their objects."""

    type: Literal["found"]
    place: str
    looked: int = Field(ge=1)
    objects: dict[str, int] = {}


class Note(_StrictEntry):
    """One text of a memory method.

    Attributes:
        id: unique within the file.
        kind: the method's word for it: insight, workflow, trajectory.
        text: as the prompt prints it.
        goal: the task sentence it was learned from; empty if it is about all tasks.
        goal_type: the type of that task.
        votes: how often it was judged right, if the method counts that.
        actions: the commands it advises; None if they have to be read from its text.
        state_signature: the state it was recorded in, if it is about one.
    """

    id: str = Field(min_length=1)
    kind: str = Field(min_length=1)
    text: str = Field(min_length=1)
    goal: str = ""
    goal_type: str = ""
    votes: int = 0
    actions: list[str] | None = None
    state_signature: str | None = None


Entry = Success | Failure | Schema | CriticalFailure | Finds
ADAPTER: TypeAdapter[Entry] = TypeAdapter(Annotated[Entry, Field(discriminator="type")])
NOTES: TypeAdapter[Note] = TypeAdapter(Note)


def parse_entry(data: object) -> Entry:
    """Validate one entry; raises pydantic's ValidationError."""
    return ADAPTER.validate_python(data)


# The fields that identify an experience, by entry type.
_IDENTITY: dict[str, tuple[str, ...]] = {
    "success": ("goal_signature", "sub_goal_type", "lifted"),
    "failure": ("goal_signature", "lifted", "violated", "failure_type"),
    "critical_failure": ("goal_signature", "lifted", "corrective_rule"),
    "schema": ("action_type",),
    "found": ("place",),
}
# The field that replaces ``lifted`` in an entry without it.
_EXAMPLE = {"success": "actions", "failure": "failed_action", "critical_failure": "failed_action"}
_COUNTS = ("success_count", "failure_count", "occurrence_count", "looked")
# Literals of the hand: effects of every successful action, changed or not.
_HAND = ("holding(", "hand_empty")
# Literals of sight: coming into view is not an effect.
_SIGHT = ("here(", "visible(")

Data = dict[str, Any]


def merge_entries(entries: Iterable[Entry], keys: Keys = PAPER) -> list[Entry]:
    """Merge equal experiences into one entry each, counts added up, in a fixed order."""
    merged: dict[str, Data] = {}
    for entry in entries:
        data = entry.model_dump(mode="json")
        key = identity(data, keys)
        merged[key] = _add(merged[key], data) if key in merged else data
    for key, data in merged.items():
        data["id"] = f"{data['type']}_{key}"
        if data["type"] == "schema" and data["uses"]:
            uses = [Use(**use) for use in data["uses"]]
            data["preconditions"] = preconditions(uses)
            data["effects"] = effects(uses)
            data["confidence"] = confidence(uses)
    ordered = sorted(merged.values(), key=lambda data: (data["type"], data["id"]))
    return [parse_entry(data) for data in ordered]


def identity(data: Mapping[str, Any], keys: Keys) -> str:
    """Return a short digest of an entry's content, without its counts and its recorded names."""
    content = {name: data[name] for name in _IDENTITY[data["type"]]}
    if "lifted" in content and not content["lifted"]:
        content["lifted"] = data[_EXAMPLE[data["type"]]]
    if data["type"] == "schema" and not data["uses"]:
        content["told"] = [data["action_template"], data["preconditions"], data["effects"]]
    if "state_signature" in data:
        content["compat"] = keys.compat(data["state_signature"])
    text = json.dumps([data["type"], content], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _add(entry: Data, other: Data) -> Data:
    """Merge two equal experiences: counts add up, and the first example in order is kept."""
    first, second = sorted((entry, other), key=_example)
    total = dict(first)
    for field, joined in _ADDED.items():
        if field in total:
            total[field] = joined(first[field], second[field])
    return total


def _example(data: Data) -> str:
    """Return a sort key made of the recorded example; the order is fixed but has no meaning."""
    left_out = {*_ADDED, "id", "confidence"}
    example = {name: value for name, value in data.items() if name not in left_out}
    return json.dumps(example, sort_keys=True, ensure_ascii=False)


def _uses(uses: list[Data], others: list[Data]) -> list[Data]:
    counted: Counter[str] = Counter()
    for use in [*uses, *others]:
        rest = {name: value for name, value in use.items() if name != "count"}
        counted[json.dumps(rest, sort_keys=True)] += use["count"]
    return [{**json.loads(text), "count": count} for text, count in sorted(counted.items())]


def _kinds(kinds: dict[str, dict[str, int]], others: dict[str, dict[str, int]]) -> Data:
    names = sorted({*kinds, *others})
    return {name: _sum(kinds.get(name, {}), others.get(name, {})) for name in names}


def _sum(counts: Mapping[str, int], others: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted((Counter(counts) + Counter(others)).items()))


_ADDED: dict[str, Callable[[Any, Any], Any]] = {
    **dict.fromkeys(_COUNTS, add), "uses": _uses, "kinds": _kinds, "words": _kinds,
    "objects": _sum, "manual": or_, "solves": or_, "won": or_,
}  # fmt: skip


def preconditions(uses: Sequence[Use]) -> list[str]:
    """Return the fewest literals that held before every success and explain the rejections."""
    worked = [use for use in uses if use.worked]
    if not worked:
        return []
    always = [name for name, held in worked[0].before.items() if held]
    always = sorted(name for name in always if all(use.before.get(name) for use in worked))
    unexplained = [use for use in uses if not use.worked]
    needs: list[str] = []
    while unexplained:
        gains = {
            name: sum(use.count for use in unexplained if use.before.get(name) is False)
            for name in always
        }
        best = max(gains, key=lambda name: (gains[name], name), default="")
        if not best or not gains[best]:
            break
        needs.append(best)
        unexplained = [use for use in unexplained if use.before.get(best) is not False]
    return sorted(needs)


def effects(uses: Sequence[Use]) -> list[str]:
    """Return the literals that held after every success and were changed by one of them."""
    worked = [use for use in uses if use.worked]
    if not worked:
        return []
    after = set(worked[0].after).intersection(*(use.after for use in worked))
    return sorted(
        name
        for name in after
        if not name.startswith(_SIGHT)
        and (name.startswith(_HAND) or any(use.before.get(name) is not True for use in worked))
    )


def confidence(uses: Sequence[Use]) -> float:
    """Return the share of uses that the preconditions predict: success if and only if they held.

    Rejections for which it is unknown whether the preconditions held are not counted.
    """
    needs = preconditions(uses)
    conclusive = [
        use for use in uses if use.worked or not any(use.before.get(n) is None for n in needs)
    ]
    total = sum(use.count for use in conclusive)
    right = sum(
        use.count
        for use in conclusive
        if use.worked == (not any(use.before.get(name) is False for name in needs))
    )
    return round(right / total, 4) if total else 0.0
