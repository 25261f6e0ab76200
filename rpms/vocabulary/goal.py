"""What the task asks for, as read from its sentence, and where the agent is within it."""

from __future__ import annotations

from typing_extensions import TypedDict


class GoalSpec(TypedDict):
    """A parsed goal g.

    Attributes:
        sentence: the task as the environment states it.
        type: the goal type or family; indexes the domain rules.
        object: the kind of object the goal is about.
        state: the state the object must be brought to, or None.
        count: how many objects.
        destination: where it must end up (for look tasks, the lamp).
        signature: the printed goal signature, in a form that its world can read back.
    """

    sentence: str
    type: str
    object: str
    state: str | None
    count: int
    destination: str
    signature: str


class SubGoal(TypedDict):
    """The current sub-goal pointer and how far the whole goal has come, in percent."""

    name: str
    target: str
    progress: int
