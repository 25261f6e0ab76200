"""Prints one episode for people; each step shows only what no earlier step has shown.

A step shows the proposal that the guard vetoed, a memory that supports the action, a dropped memory
with the reason, the action, and the rule that explains a rejection.
"""

from __future__ import annotations

from textwrap import shorten
from time import sleep
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table as Grid

from rpms.envs import get_environment
from rpms.envs.manuals import load_manual
from rpms.rules import check_action, explain_rejection
from rpms.vocabulary.output import quantity

if TYPE_CHECKING:
    from rich.console import Console

    from rpms.graph.run import StepEvent
    from rpms.nodes.state import EpisodeOutput
    from rpms.vocabulary.context import RunContext
    from rpms.vocabulary.recall import Recall
    from rpms.vocabulary.turn import Turn

PACE = 0.25
"""Seconds between two lines on a terminal, where no model makes the reader wait."""
MEASURABLE = 0.05
"""Fewer seconds of a reply are not printed: a planner has none."""
ANSWER = 200
"""The printed characters of an answer: a room of ScienceWorld would fill a screen."""
PLACES = 3
"""The printed places of a memory about where things were."""
# The outcomes that the paper studies; duplicates and token budgets matter less here.
BY_STATE_OR_RULE = {
    "scf": "dropped by the state filter (SCF): ", "arbitration": "dropped by a rule: "
}  # fmt: skip
WARNING = "a warning against: "
WORDS = {"failure": WARNING, "critical_failure": WARNING, "schema": "how to: "}


class Lines:
    """Prints lines that begin with a label."""

    def __init__(self, console: Console, pace: float = PACE) -> None:
        """``pace`` are the seconds between two lines on a terminal."""
        self.console, self.pace = console, pace

    def line(self, label: str, style: str, text: str) -> None:
        """Print a label and its text; wrapped lines keep the indent."""
        grid = Grid.grid(padding=(0, 2, 0, 0))
        grid.add_column(width=13, no_wrap=True)
        grid.add_column(overflow="fold")
        grid.add_row(f"[{style}]{escape(label)}[/]", f"[{style}]{escape(text)}[/]")
        self.console.print(grid)
        if self.console.is_terminal and self.pace:
            sleep(self.pace)

    @staticmethod
    def shorten(answer: str) -> str:
        return shorten(answer, ANSWER, placeholder=" ...")


class Story(Lines):
    """Prints the steps of an episode and remembers what it has shown."""

    def __init__(self, console: Console, env: str, context: RunContext, pace: float = PACE) -> None:
        """Load the manual of the run, which explains rejections if the model reads it, too."""
        super().__init__(console, pace)
        self.env, self.context = get_environment(env), context
        self.manual = load_manual(env, context.rules_dir, context.without_rules)
        self._shown: set[str] = set()

    def print_step(self, event: StepEvent, seconds: float = 0.0) -> None:
        """Print a step, for which the model took so many seconds."""
        turn, belief = event["turn"], event["belief"]
        step = event["sub_goal"]["name"] if self.context.has_blocks else ""
        where = f"{self.env.whereabouts(belief)}{f'sub-goal {step}' if step else ''}"
        times = [f"{seconds:.1f} s"] if seconds >= MEASURABLE else []
        self.line(f"step {turn['step']}", "dim", "; ".join([where.removesuffix("; "), *times]))
        for decision in event["decisions"]:
            if decision["verdict"] != "accepted":
                reason = decision["reason"] + (
                    f"; {decision['repair']}" if decision["repair"] else ""
                )
                self.line("vetoed", "yellow", decision["proposal"])
                self._because("yellow", decision["rule"], reason)
        self._memories(event["recalls"], turn["action"])
        self.line("action", "bold cyan", turn["action"] or "(no action could be read)")
        answer = self.shorten(turn["observation"])
        self.line(
            "rejected" if turn["failed"] else "", "red" if turn["failed"] else "green", answer
        )
        if turn["failed"] and turn["action"] and self.context.rules:
            diagnosis = check_action(self.manual, turn["action"], belief)
            # If the answer already has the reason, only an unmet precondition adds to it.
            if diagnosis.unmet or not self.env.rejection_reason(turn["observation"]):
                reason = explain_rejection(self.manual, turn["action"], belief)
                self._because("magenta", diagnosis.rule, reason)
        self.console.print()

    def end(self, result: EpisodeOutput) -> None:
        """Print the outcome, with the score of an unfinished episode."""
        if result["success"]:
            self.line("won", "bold green", f"after {quantity(result['steps'], 'step')}")
        else:
            score = f"score {result['score']:g} after {quantity(result['steps'], 'step')}"
            self.line("so far", "bold yellow", score)
        self.console.print()

    def stop(self, turn: Turn, times: int) -> None:
        """Print that the episode is stopped because its last action was rejected so often."""
        action = f"'{turn['action']}'" if turn["action"] else "a reply without an action"
        budget = self.context.max_steps or self.env.max_steps
        text = f"{action} was rejected {times} times; the episode could go on to step {budget}"
        self.line("stopped", "bold yellow", text)
        self.console.print()

    def _memories(self, recalls: list[Recall], action: str) -> None:
        """Print the first new memory that supports the action, and one dropped per outcome."""
        for recall in recalls:
            if _supports(recall, action) and self._is_new(recall["entry"]["type"]):
                self.line("memory", "green", f"in the prompt: {_advice(recall)}")
                break
        for outcome, words in BY_STATE_OR_RULE.items():
            for recall in recalls:
                if recall["dropped_by"] == outcome and self._is_new(outcome + recall["rule"]):
                    self.line("memory", "red", words + _advice(recall))
                    self._because("red", recall["rule"], recall["reason"])
                    break

    def _is_new(self, key: str) -> bool:
        is_new = key not in self._shown
        self._shown.add(key)
        return is_new

    def _because(self, style: str, rule: str, reason: str) -> None:
        self.line("  because", style, f"[{rule}] {reason}" if rule else reason)


def _advice(recall: Recall) -> str:
    advice = recall["advice"]
    if advice["places"]:
        return f"where one was found: {'; '.join(advice['places'][:PLACES])}"
    return WORDS.get(recall["entry"]["type"], "a success: ") + " -> ".join(advice["printed"])


def _supports(recall: Recall, action: str) -> bool:
    """True if a memory in the prompt names this action or its destination."""
    advice = recall["advice"]
    if recall["dropped_by"] or "failure" in recall["entry"]["type"]:
        return False
    return action in advice["actions"] or any(
        action.endswith(f" {name}")
        for place in advice["places"]
        for name in place.partition("here: ")[2].rstrip(")").split(", ")
    )
