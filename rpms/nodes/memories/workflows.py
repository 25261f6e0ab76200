"""Agent Workflow Memory: routines that won episodes have in common, with variables for specifics.

Wang, Mao, Fried and Neubig, "Agent Workflow Memory" (2024). A language model extracts them; without
one they are cut out and abstracted by rule, as the paper does in a variant. What differs here:
docs/memories.md.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rpms.envs import get_environment
from rpms.memory_store import Note
from rpms.nodes.manual import load_manual
from rpms.nodes.memories.method import Ask, Learned, Request
from rpms.nodes.memories.noted import NoteMethod, candidate
from rpms.nodes.memories.trajectories import goal_type, told
from rpms.nodes.memories.writing import tidy, writing_prompt
from rpms.rules import Manual, needed_actions
from rpms.rules.roles import lift
from rpms.vocabulary.recall import Recall
from rpms.vocabulary.turn import EpisodeRecord

KIND = "workflow"
EXAMPLES = 8
"""How many won episodes one call is shown."""
VARIANTS = 2
"""Of the routines of one type of task that begin in one state, by rule: the most frequent."""
_TITLE = re.compile(r"^[^\w\n]*workflow\b(?:[ \t]*\d+)?[^\w\n]*:\W*(.*)$", re.I | re.M)


class Routine(NamedTuple):
    """A stretch of a won episode with roles for names, and what COMPAT sees of its beginning."""

    goal_type: str
    compat: str
    steps: tuple[str, ...]


class Workflows(NoteMethod):
    """All workflows, those of this type of task first."""

    name = "awm"
    heading = "Past Experience - Workflows"

    def recall(self, request: Request) -> list[Recall]:
        """What belongs to no type of task fits them all."""
        notes = self.frozen(request.env, request.context)
        wanted = request.now.goal["type"]
        scored = [(1.0 if note.goal_type in ("", wanted) else 0.5, note) for note in notes]
        ordered = sorted(scored, key=lambda one: -one[0])
        return [candidate(note, request, score) for score, note in ordered]

    async def learn(
        self, records: Sequence[EpisodeRecord], ask: Ask | None, manual: Manual | None = None
    ) -> Learned:
        """From won episodes alone, by the model where there is one."""
        won = [record for record in records if record["success"]]
        if ask is None:
            return Learned(by_rule(won, manual))
        shown = one_per_type(won)
        texts: list[str] = []
        unread = 0
        for start in range(0, len(shown), EXAMPLES):
            episodes = [told(record) for record in shown[start : start + EXAMPLES]]
            prompt = writing_prompt("workflows.j2", episodes=episodes, workflows=texts)
            found, left_out = read_workflows(await ask(prompt))
            texts += [text for text in found if text not in texts]
            unread += left_out
        notes = [Note(id=f"{KIND}_{n}", kind=KIND, text=text) for n, text in enumerate(texts, 1)]
        return Learned(notes, unread)


def one_per_type(won: Sequence[EpisodeRecord]) -> list[EpisodeRecord]:
    """The shortest win of each type of task: what the original calls a task template."""
    best: dict[str, EpisodeRecord] = {}
    for record in sorted(won, key=lambda one: (len(one["history"]), one["task"])):
        best.setdefault(goal_type(record), record)
    return [record for _, record in sorted(best.items())]


def read_workflows(reply: str) -> tuple[list[str], int]:
    """Each "Workflow N: title" with at least two steps; shorter ones are counted."""
    _, *parts = _TITLE.split(reply)
    found: list[str] = []
    unread = 0 if parts else 1
    for title, body in zip(parts[::2], parts[1::2], strict=True):
        steps = [line for line in tidy(body).splitlines() if line.strip("`-* \t")]
        if title.strip() and len(steps) > 1:
            found.append(tidy("\n".join([title.strip(), *steps])))
        else:
            unread += 1
    return found, unread


def by_rule(won: Sequence[EpisodeRecord], manual: Manual | None = None) -> list[Note]:
    """Routines without refused steps and detours, equal ones counted, the frequent ones kept."""
    counted: Counter[Routine] = Counter()
    began: dict[Routine, str] = {}
    for record in won:
        for routine, state in routines(record, manual):
            counted[routine] += 1
            began.setdefault(routine, state)
    kept: defaultdict[tuple[str, str], list[tuple[Routine, int]]] = defaultdict(list)
    for routine, count in sorted(counted.items(), key=lambda one: (-one[1], one[0])):
        group = kept[routine.goal_type, routine.compat]
        if len(group) < VARIANTS:
            group.append((routine, count))
    found = [one for _, group in sorted(kept.items()) for one in group]
    return [
        Note(
            id=f"{KIND}_{number}", kind=KIND, text="\n".join(routine.steps), votes=count,
            goal_type=routine.goal_type, state_signature=began[routine],
        )
        for number, (routine, count) in enumerate(found, start=1)
    ]  # fmt: skip


def routines(record: EpisodeRecord, manual: Manual | None = None) -> Iterator[tuple[Routine, str]]:
    """A won episode cut wherever what COMPAT compares changes, and the state each part began in."""
    env, manual = get_environment(record["env"]), manual or load_manual(record["env"])
    goal = env.parse_goal(record["goal"])
    gamma = env.read_signature(goal["signature"])
    belief = env.first_belief(record["first_observation"])
    wanted = set(manual.domain.advances.values())
    began, played = env.print_state(belief), list[str]()
    for number, turn in enumerate(record["history"], start=1):
        belief = env.update_belief(belief, turn["action"], turn["observation"])
        if turn["action"] and not turn["failed"]:
            played.append(turn["action"])
        now = env.print_state(belief)
        if env.compat_key(now) == env.compat_key(began) and number < len(record["history"]):
            continue
        steps = lift(manual, gamma, needed_actions(manual, played, wanted)) or []
        if len(steps) > 1:
            yield Routine(goal["type"], env.compat_key(began), tuple(steps)), began
        began, played = now, []
