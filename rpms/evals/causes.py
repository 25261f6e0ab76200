"""Where a lost episode went wrong: one cause, one line, one step, computed from its step log.

An error of the model or the world, unreadable replies and a last action that ended the task speak
for themselves. An episode that used up its steps went wrong after its last progress: from the
first step at which the goal had come as far as it ever came. Whatever happened first from there
on is the cause:

repeated refusal: an action was refused and later refused again, word for word.
drift: the belief contradicted the true state.
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

UNTOLD = "not recorded"
KINDS = (
    "wrong", "repeated refusal", "drift", "undone", "in circles", "missed sub-goal", "out of steps",
    "unreadable replies", UNTOLD, *(mode.replace("_", " ") for mode in ERRORS),
)  # fmt: skip
"""In the order of the tables; a wrong last action is called by its name, as ``wrong focus``."""
LATE = 4
"""One part of so many: progress within the last one counts as getting on until the end."""
KNOWN = {
    "ignored": ", against what the prompt said",
    "wrong": ", as the prompt advised",
}
"""What stood in the prompt about an action that failed (``evals/rule_compliance.py``)."""


class Cause(NamedTuple):
    """Where an episode went wrong; step 0 where no step is to blame."""

    kind: str
    step: int
    text: str


NOT_RECORDED = Cause(UNTOLD, 0, "there is no step log that could tell where it went wrong")


def place_of(kind: str) -> int:
    """Where a kind of cause stands in a table."""
    return KINDS.index(kind) if kind in KINDS else 0


def find_cause(mode: FailureMode, error: str, steps: Sequence[Step], manual: Manual) -> Cause:
    """The cause of an episode that ended in ``mode``; the manual names its last action."""
    if mode in ERRORS:
        kind = mode.replace("_", " ")
        return Cause(kind, len(steps), " ".join(error.split()) or f"the episode ended in a {kind}")
    if not steps:
        return NOT_RECORDED
    if mode == "format":
        return _unreadable(steps)
    if mode == "wrong_termination":
        return _wrong_end(steps[-1], manual)
    return _stuck(steps, manual)


def _unreadable(steps: Sequence[Step]) -> Cause:
    found = [step["step"] for step in steps if not step["action"]]
    first = found[0] if found else 0
    told = (
        f"{len(found)} of {len(steps)} replies held no readable action, the first at step {first}"
    )
    return Cause("unreadable replies", first, told)


def _wrong_end(step: Step, manual: Manual) -> Cause:
    # The number of a choice that was offered stands for what was chosen.
    action = step["belief"].get("asked", {}).get(step["action"], step["action"])
    matched = match_action(manual, action)
    name = matched[0].name.replace("_", " ") if matched else "last action"
    told = f"'{action}' ended the task at step {step['step']}{_known(step)}"
    return Cause(f"wrong {name}", step["step"], told)


def _known(step: Step) -> str:
    return KNOWN.get(step.get("lacked", ""), "")


def _stuck(steps: Sequence[Step], manual: Manual) -> Cause:
    """What came first after the last progress; of two at one step, the first of the list."""
    best = max(map(_progress, steps))
    since = next(i for i, step in enumerate(steps) if _progress(step) == best)
    after = steps[since:]
    found = [*_refusals(after), *_drifts(after), *_undone(after, best), *_circles(after, manual)]
    kind, step, told = min(found or [_missed(steps, since)], key=lambda cause: cause.step)
    end = f"at the end {_progress(steps[-1])}% done, {_sub_goal(steps[-1])}"
    return Cause(kind, step, f"{told} ({end})")


def _progress(step: Step) -> int:
    return int(step["sub_goal"]["progress"])


def _sub_goal(step: Step) -> str:
    goal = step["sub_goal"]
    return " ".join(filter(None, (goal["name"].replace("_", " "), goal["target"])))


def _refusals(after: Sequence[Step]) -> Iterator[Cause]:
    often = Counter(step["action"] for step in after if step["failed"] and step["action"])
    for step in after:
        again = often[step["action"]] - 1
        if step["failed"] and again > 0:
            times = "once more" if again == 1 else f"{again} times more"
            told = f"'{step['action']}' was refused at step {step['step']} and {times}"
            yield Cause("repeated refusal", step["step"], told + _known(step))
            return


def _drifts(after: Sequence[Step]) -> Iterator[Cause]:
    for step in after:
        if step["drift"]:
            told = f"the belief was wrong at step {step['step']}: {step['drift'][0]}"
            yield Cause("drift", step["step"], told)
            return


def _undone(after: Sequence[Step], best: int) -> Iterator[Cause]:
    """Progress is what was believed before an action, so the last best step is the one to blame."""
    if _progress(after[-1]) < best:
        last = [step for step in after if _progress(step) == best][-1]
        told = f"it had come to {best}% before '{last['action']}' at step {last['step']}"
        yield Cause("undone", last["step"], told)


def _circles(after: Sequence[Step], manual: Manual) -> Iterator[Cause]:
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
        told = f"'{first['action']}' again at step {first['step']} with nothing new known; "
        told += f"{len(again)} of the last {len(after)} steps were such repeats"
        yield Cause("in circles", first["step"], told)


def _missed(steps: Sequence[Step], since: int) -> Cause:
    number, left = steps[since]["step"], len(steps) - since
    if left * LATE <= len(steps):
        return Cause("out of steps", number, f"last progress at step {number} of {len(steps)}")
    return Cause(
        "missed sub-goal", number, f"no progress in the {left} steps from step {number} on"
    )
