"""Where a lost episode went wrong, from its steps.

An error of the model or the environment, unreadable replies and a last action that ended the task
speak for themselves. An episode that used up its steps went wrong after its last progress: from the
first step at which the goal had come as far as it ever came. Whatever happened first from there on
is the cause:

repeated rejection: an action was rejected and later rejected again, word for word.
belief error: the belief contradicted the true state.
undone: the goal had come further than where it stood at the end.
in circles: most steps repeated an action with nothing new believed since it was last taken.

Where none of these happened, the sub-goal was missed; or, if the last progress came in the last
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
    "wrong", "repeated rejection", "belief error", "undone", "loop", "missed sub-goal",
    "out of steps", "unreadable replies", UNKNOWN, *(mode.replace("_", " ") for mode in ERRORS),
)  # fmt: skip
"""In the order of the tables; a wrong last action is called by its name, as ``wrong focus``."""
LATE = 4
"""One part of so many: progress within the last one counts as getting on until the end."""
ADVICE = {"ignored": ", against what the prompt said", "wrong": ", as the prompt advised"}
"""What stood in the prompt about an action that failed."""


class Cause(NamedTuple):
    """Where an episode went wrong; step 0 where no step is to blame."""

    kind: str
    step: int
    text: str


NOT_RECORDED = Cause(UNKNOWN, 0, "there is no step log that could tell where it went wrong")


def cause_rank(kind: str) -> int:
    """Where a kind of cause stands in a table."""
    return CAUSES.index(kind) if kind in CAUSES else 0


def find_cause(
    mode: FailureMode, error: str, steps: Sequence[Step], kinds: Sequence[str], manual: Manual
) -> Cause:
    """The cause of an episode that ended in ``mode``.

    ``kinds`` says of each step's failure whether knowledge was missing, wrong or ignored; the
    manual names the last action.
    """
    if mode in ERRORS:
        kind = mode.replace("_", " ")
        return Cause(kind, len(steps), " ".join(error.split()) or f"the episode ended in a {kind}")
    if not steps:
        return NOT_RECORDED
    if mode == "format":
        return _unreadable(steps)
    if mode == "wrong_termination":
        return _wrong_end(steps[-1], kinds[-1], manual)
    return _stuck(steps, kinds, manual)


def _unreadable(steps: Sequence[Step]) -> Cause:
    unread = [step["step"] for step in steps if not step["action"]]
    first = unread[0] if unread else 0
    text = f"{len(unread)} of {len(steps)} replies held no readable action, the first at step"
    return Cause("unreadable replies", first, f"{text} {first}")


def _wrong_end(step: Step, kind: str, manual: Manual) -> Cause:
    if not step["action"]:
        return Cause(
            "stopped before the goal", step["step"], f"the agent stopped at step {step['step']}"
        )
    # The number of a choice that was offered stands for what was chosen.
    action = step["belief"].get("asked", {}).get(step["action"], step["action"])
    matched = match_action(manual, action)
    name = matched[0].name.replace("_", " ") if matched else "last action"
    text = f"'{action}' ended the task at step {step['step']}{ADVICE.get(kind, '')}"
    return Cause(f"wrong {name}", step["step"], text)


def _stuck(steps: Sequence[Step], kinds: Sequence[str], manual: Manual) -> Cause:
    """What came first after the last progress; of two at one step, the first of the list."""
    best = max(map(_progress, steps))
    since = next(i for i, step in enumerate(steps) if _progress(step) == best)
    after = steps[since:]
    causes = [
        *_rejections(after, kinds[since:]),
        *_belief_errors(after),
        *_undone(after, best),
        *_loops(after, manual),
    ]
    kind, step, text = min(causes or [_missed(steps, since)], key=lambda cause: cause.step)
    last = steps[-1]["sub_goal"]
    goal = " ".join(filter(None, (last["name"].replace("_", " "), last["target"])))
    return Cause(kind, step, f"{text} (at the end {last['progress']}% done, {goal})")


def _progress(step: Step) -> int:
    return int(step["sub_goal"]["progress"])


def _rejections(after: Sequence[Step], kinds: Sequence[str]) -> Iterator[Cause]:
    often = Counter(step["action"] for step in after if step["failed"] and step["action"])
    for step, kind in zip(after, kinds, strict=True):
        again = often[step["action"]] - 1
        if step["failed"] and again > 0:
            times = "once more" if again == 1 else f"{again} times more"
            text = f"'{step['action']}' was rejected at step {step['step']} and {times}"
            yield Cause("repeated rejection", step["step"], text + ADVICE.get(kind, ""))
            return


def _belief_errors(after: Sequence[Step]) -> Iterator[Cause]:
    for step in after:
        if step["belief_errors"]:
            text = f"the belief was wrong at step {step['step']}: {step['belief_errors'][0]}"
            yield Cause("belief error", step["step"], text)
            return


def _undone(after: Sequence[Step], best: int) -> Iterator[Cause]:
    """Progress is what was believed before an action, so the last best step is the one to blame."""
    if _progress(after[-1]) < best:
        last = [step for step in after if _progress(step) == best][-1]
        text = f"it had come to {best}% before '{last['action']}' at step {last['step']}"
        yield Cause("undone", last["step"], text)


def _loops(after: Sequence[Step], manual: Manual) -> Iterator[Cause]:
    seen: set[tuple[str, str]] = set()
    again: list[Step] = []
    for step in after:
        matched = match_action(manual, step["action"])
        if matched and matched[0].repeatable:  # waiting is no walk in circles
            continue
        now = (step["action"], fingerprint(step["belief"]))
        if now in seen:
            again.append(step)
        seen.add(now)
    if len(again) * 2 > len(after):
        first = again[0]
        text = f"'{first['action']}' again at step {first['step']} with nothing new known; "
        text += f"{len(again)} of the last {len(after)} steps were such repeats"
        yield Cause("loop", first["step"], text)


def _missed(steps: Sequence[Step], since: int) -> Cause:
    number, since_then = steps[since]["step"], len(steps) - since
    if since_then * LATE <= len(steps):
        return Cause("out of steps", number, f"last progress at step {number} of {len(steps)}")
    text = f"no progress in the {since_then} steps from step {number} on"
    return Cause("missed sub-goal", number, text)
