"""Agent Workflow Memory: routines that won episodes have in common, with variables for specifics.

Wang, Mao, Fried and Neubig, "Agent Workflow Memory" (2024). A language model extracts the routines;
without one they are extracted by rule, as in a variant of the paper. The differences are in
docs/archive/memory-methods.md.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rpms.envs import get_environment
from rpms.envs.manuals import load_manual
from rpms.memory_store import Note
from rpms.memory_store.methods.method import Ask, Learned, RecallRequest
from rpms.memory_store.methods.note_method import (
    NoteMethod,
    candidate,
    goal_type,
    transcript,
)
from rpms.memory_store.methods.writing import tidy, writing_prompt
from rpms.memory_store.roles import to_roles, useful_actions
from rpms.rules import Manual, needed_actions
from rpms.rules.answers import belief_after
from rpms.vocabulary.goal import Keys
from rpms.vocabulary.recall import Recall, drop
from rpms.vocabulary.turn import EpisodeRecord

KIND = "workflow"
EXAMPLES = 8
"""The number of won episodes in one call."""
VARIANTS = 2
"""By rule: the number of routines kept for one task type and one start state."""
_TITLE = re.compile(r"^[^\w\n]*workflow\b(?:[ \t]*\d+)?[^\w\n]*:\W*(.*)$", re.I | re.M)


class Routine(NamedTuple):
    """A part of a won episode with roles for names, and the COMPAT key of its start state."""

    goal_type: str
    compat: str
    steps: tuple[str, ...]


class Recording(NamedTuple):
    """The first recording of a routine: its task, its start state and its actions."""

    goal: str
    state: str
    actions: list[str]


class Workflows(NoteMethod):
    """All workflows, those of this type of task first."""

    name = "awm"
    title = "AWM's workflows"
    heading = "Past Experience - Workflows"

    def recall(self, request: RecallRequest) -> list[Recall]:
        """Return all workflows; those for other task types name the types they are for."""
        notes = self.frozen(request.env, request.context)
        fitting = ("", request.moment.goal["type"])
        recalls = []
        for note in sorted(notes, key=lambda note: note.goal_type not in fitting):
            recall = candidate(note, request, 1.0 if note.goal_type in fitting else 0.5)
            recall["entry"]["types"] = [] if note.goal_type in fitting else [note.goal_type]
            recalls.append(recall)
        merged_recalls = merged(recalls, request.moment.env.keys)
        return sorted(merged_recalls, key=lambda recall: (-recall["score"], -recall["count"]))

    async def learn(
        self, records: Sequence[EpisodeRecord], ask: Ask | None, manual: Manual | None = None
    ) -> Learned:
        """Extract workflows from won episodes, with the model if it can write texts."""
        won = [record for record in records if record["success"]]
        if ask is None:
            return Learned(by_rule(won, manual))
        shown = one_per_type(won)
        texts: list[str] = []
        unread = 0
        for start in range(0, len(shown), EXAMPLES):
            episodes = [transcript(record) for record in shown[start : start + EXAMPLES]]
            prompt = writing_prompt("workflows.j2", episodes=episodes, workflows=texts)
            workflows, too_short = read_workflows(await ask(prompt))
            texts += [text for text in workflows if text not in texts]
            unread += too_short
        notes = [Note(id=f"{KIND}_{n}", kind=KIND, text=text) for n, text in enumerate(texts, 1)]
        return Learned(notes, unread)


def merged(recalls: Iterable[Recall], keys: Keys) -> list[Recall]:
    """Drop workflows with the same text and the same COMPAT state as an earlier one.

    Tasks of several types share routines; a prompt need not repeat them for each type.
    """
    distinct: dict[tuple[str, str], Recall] = {}
    others: list[Recall] = []
    for recall in recalls:
        entry = recall["entry"]
        state = keys.compat(entry["state_signature"]) if "state_signature" in entry else ""
        kept = distinct.setdefault((entry["text"], state), recall)
        if kept is recall:
            continue
        others.append(drop(recall, "duplicate", f"says the same as {kept['entry']['id']}"))
        kept["count"] += recall["count"]
        if types := kept["entry"]["types"]:  # else it is for tasks like this one
            kept["entry"]["types"] = list(dict.fromkeys([*types, *entry["types"]]))
    return [*distinct.values(), *others]


def one_per_type(won: Sequence[EpisodeRecord]) -> list[EpisodeRecord]:
    """Return the shortest win of each task type: the original's task templates."""
    best: dict[str, EpisodeRecord] = {}
    for record in sorted(won, key=lambda record: (len(record["history"]), record["task"])):
        best.setdefault(goal_type(record), record)
    return [record for _, record in sorted(best.items())]


def read_workflows(reply: str) -> tuple[list[str], int]:
    """Return each "Workflow N: title" with at least two steps, and the number of shorter ones."""
    _, *sections = _TITLE.split(reply)
    workflows: list[str] = []
    unread = 0 if sections else 1
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        steps = [line for line in tidy(body).splitlines() if line.strip("`-* \t")]
        if title.strip() and len(steps) > 1:
            workflows.append(tidy("\n".join([title.strip(), *steps])))
        else:
            unread += 1
    return workflows, unread


def by_rule(won: Sequence[EpisodeRecord], manual: Manual | None = None) -> list[Note]:
    """Extract routines without rejected steps and detours; keep the most frequent."""
    counted: Counter[Routine] = Counter()
    first: dict[Routine, Recording] = {}
    for record in won:
        for routine, recording in routines(record, manual):
            counted[routine] += 1
            first.setdefault(routine, recording)
    groups: defaultdict[tuple[str, str], list[tuple[Routine, int]]] = defaultdict(list)
    for routine, count in sorted(counted.items(), key=lambda item: (-item[1], item[0])):
        group = groups[routine.goal_type, routine.compat]
        if len(group) < VARIANTS:
            group.append((routine, count))
    frequent = [item for _, group in sorted(groups.items()) for item in group]
    return [
        Note(
            id=f"{KIND}_{number}", kind=KIND, text="\n".join(routine.steps), votes=count,
            goal=first[routine].goal, goal_type=routine.goal_type,
            actions=first[routine].actions, state_signature=first[routine].state,
        )
        for number, (routine, count) in enumerate(frequent, start=1)
    ]  # fmt: skip


def routines(
    record: EpisodeRecord, manual: Manual | None = None
) -> Iterator[tuple[Routine, Recording]]:
    """Split a won episode where the state that COMPAT compares changes."""
    env, manual = get_environment(record["env"]), manual or load_manual(record["env"])
    goal = env.parse_goal(record["goal"])
    gamma = env.read_signature(goal["signature"])
    belief = env.first_belief(record["first_observation"])
    start, played, role_of = env.print_state(belief), list[str](), dict[str, str]()
    for number, turn in enumerate(record["history"], start=1):
        role_of |= {name: role for role, name in env.role_names(belief).items()}
        belief = belief_after(env, manual, belief, turn)
        if turn["action"] and not turn["failed"]:
            played.append(turn["action"])
        state = env.print_state(belief)
        if env.compat_key(state) == env.compat_key(start) and number < len(record["history"]):
            continue
        needed = needed_actions(manual, played, useful_actions(manual, env))
        steps = to_roles(manual, gamma, needed, role_of, env.individual) or []
        if len(steps) > 1:
            routine = Routine(goal["type"], env.compat_key(start), tuple(steps))
            yield routine, Recording(record["goal"], start, needed)
        start, played = state, []
