"""The cause of a lost episode, from its steps.

An error of the model or the environment, unreadable replies, and a last action that ended the task
are causes themselves. An episode that used all its steps failed after its last progress, which is
the first step with the highest progress of the episode. The first of these events from there on is
the cause:

repeated rejection: an action was rejected, and the same action was rejected again later.
belief error: the belief contradicted the true state.
undone: the progress at the end was lower than the highest.
loop: most steps repeated an action in the same belief.

If none of these happened, the cause is a missed sub-goal; or, if the last progress was in the last
quarter of the episode, the steps ran out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rpms.rules import Manual, match_action
from rpms.vocabulary.belief import fingerprint
from rpms.vocabulary.turn import ERRORS, FailureMode

Step = Mapping[str, Any]

UNKNOWN = "not recorded"
CAUSES = (
    "wrong", "stopped before the goal", "repeated rejection", "belief error", "undone", "loop",
    "missed sub-goal", "out of steps", "unreadable replies", UNKNOWN,
    *(mode.replace("_", " ") for mode in ERRORS),
)  # fmt: skip
"""In the order of the tables; a wrong last action is named by the action, as ``wrong focus``."""
LATE = 4
"""Progress in the last 1/LATE of the steps counts as progress until the end."""


class Cause(NamedTuple):
    """The kind of cause, its step (0 for none) and an explanation."""

    kind: str
    step: int
    text: str


NOT_RECORDED = Cause(UNKNOWN, 0, "the step log is missing or damaged")


def cause_rank(kind: str) -> int:
    """The position of a kind of cause in tables."""
    return CAUSES.index(kind) if kind in CAUSES else 0


def find_cause(mode: FailureMode, error: str, steps: Sequence[Step], manual: Manual) -> Cause:
    """The cause of an episode that ended in ``mode``; the manual names the last action."""
    if mode in ERRORS:
        kind = mode.replace("_", " ")
        return Cause(kind, len(steps), " ".join(error.split()) or f"the episode ended in a {kind}")
    if not steps:
        return NOT_RECORDED
    if mode == "format":
        return _unreadable(steps)
    if mode == "wrong_termination":
        return _final_action(steps[-1], manual)
    return _stuck(steps, manual)


def _unreadable(steps: Sequence[Step]) -> Cause:
    unread = [step["step"] for step in steps if not step["action"]]
    first = unread[0] if unread else 0
    text = f"{len(unread)} of {len(steps)} replies had no readable action, the first at step"
    return Cause("unreadable replies", first, f"{text} {first}")


def _final_action(step: Step, manual: Manual) -> Cause:
    if not step["action"]:
        return Cause(
            "stopped before the goal", step["step"], f"the agent stopped at step {step['step']}"
        )
    # A number answers a disambiguation: it stands for the chosen action.
    action = step["belief"].get("disambiguation", {}).get(step["action"], step["action"])
    matched = match_action(manual, action)
    name = matched[0].name.replace("_", " ") if matched else "last action"
    text = f"'{action}' ended the task at step {step['step']}"
    return Cause(f"wrong {name}", step["step"], text)


def _stuck(steps: Sequence[Step], manual: Manual) -> Cause:
    """The first event after the last progress; of two at one step, the first of the list."""
    best = max(map(_progress, steps))
    start = next(i for i, step in enumerate(steps) if _progress(step) == best)
    after = steps[start:]
    causes = [
        *_rejections(after),
        *_belief_errors(after),
        *_undone(after, best),
        *_loops(after, manual),
    ]
    kind, step, text = min(causes or [_missed(steps, start)], key=lambda cause: cause.step)
    last = steps[-1]["sub_goal"]
    goal = " ".join(filter(None, (last["name"].replace("_", " "), last["target"])))
    return Cause(kind, step, f"{text} (at the end {last['progress']}% done, {goal})")


def _progress(step: Step) -> int:
    return int(step["sub_goal"]["progress"])


def _rejections(after: Sequence[Step]) -> Iterator[Cause]:
    counts = Counter(step["action"] for step in after if step["failed"] and step["action"])
    for step in after:
        repeats = counts[step["action"]] - 1
        if step["failed"] and repeats > 0:
            times = "once more" if repeats == 1 else f"{repeats} times more"
            text = f"'{step['action']}' was rejected at step {step['step']} and {times}"
            yield Cause("repeated rejection", step["step"], text)
            return


def _belief_errors(after: Sequence[Step]) -> Iterator[Cause]:
    for step in after:
        if step["belief_errors"]:
            text = f"the belief was wrong at step {step['step']}: {step['belief_errors'][0]}"
            yield Cause("belief error", step["step"], text)
            return


def _undone(after: Sequence[Step], best: int) -> Iterator[Cause]:
    """A step records the progress before its action, so the last step at the best is the cause."""
    if _progress(after[-1]) < best:
        last = [step for step in after if _progress(step) == best][-1]
        text = f"progress fell from {best}% with '{last['action']}' at step {last['step']}"
        yield Cause("undone", last["step"], text)


def _loops(after: Sequence[Step], manual: Manual) -> Iterator[Cause]:
    visited: set[tuple[str, str]] = set()
    repeats: list[Step] = []
    for step in after:
        matched = match_action(manual, step["action"])
        if matched and matched[0].repeatable:  # waiting is no loop
            continue
        point = (step["action"], fingerprint(step["belief"]))
        if point in visited:
            repeats.append(step)
        visited.add(point)
    if len(repeats) * 2 > len(after):
        first = repeats[0]
        text = f"'{first['action']}' again at step {first['step']} in the same belief; "
        text += f"{len(repeats)} of the last {len(after)} steps were such repeats"
        yield Cause("loop", first["step"], text)


def _missed(steps: Sequence[Step], start: int) -> Cause:
    number, remaining = steps[start]["step"], len(steps) - start
    if remaining * LATE <= len(steps):
        return Cause("out of steps", number, f"last progress at step {number} of {len(steps)}")
    text = f"no progress in the {remaining} steps from step {number} on"
    return Cause("missed sub-goal", number, text)
