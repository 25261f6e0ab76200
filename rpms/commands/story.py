"""One episode told for people: of each step only what no earlier step has shown.

The proposal that the guard sent back, the memory that spoke for the action, a memory that was kept
from the prompt and why, the action, and the rule that explains a refusal.
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

PACE = 0.25
"""Seconds between two lines where a person reads them as they come."""
ANSWER = 200
"""How many characters of an answer: a room of ScienceWorld fills a screen."""
PLACES = 3
"""Of a memory of where things were, the best ones will do."""
# The outcomes that the paper is about; that a memory was merged or had no room tells less.
BY_STATE_OR_RULE = {"scf": "SCF dropped", "arbitration": "rules dropped"}
WORDS = {"failure": "failed: ", "critical_failure": "fatal: ", "schema": "how to: "}


class Lines:
    """Prints lines that begin with a label."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def line(self, label: str, style: str, text: str) -> None:
        """A label and its text, which keeps its indent where it is wrapped."""
        grid = Grid.grid(padding=(0, 2, 0, 0))
        grid.add_column(width=13, no_wrap=True)
        grid.add_column(overflow="fold")
        grid.add_row(f"[{style}]{escape(label)}[/]", f"[{style}]{escape(text)}[/]")
        self.console.print(grid)
        if self.console.is_terminal:
            sleep(PACE)

    @staticmethod
    def shorten(answer: str) -> str:
        """The beginning of a long answer."""
        return shorten(answer, ANSWER, placeholder=" ...")


class Story(Lines):
    """Prints the steps of an episode, and remembers what it has shown."""

    def __init__(self, console: Console, env: str, context: RunContext) -> None:
        """Refusals are explained by the manual that this run shows."""
        super().__init__(console)
        self.env = get_environment(env)
        self.manual = load_manual(env, context.rules_dir, context.without_rules)
        self._shown: set[str] = set()

    def print_step(self, event: StepEvent) -> None:
        """One step."""
        turn, belief = event["turn"], event["belief"]
        step = event["sub_goal"]["name"]
        where = f"{self.env.whereabouts(belief)}{f'sub-goal {step}' if step else ''}"
        self.line(f"step {turn['step']}", "dim", where.removesuffix("; "))
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
        if turn["failed"] and turn["action"]:
            diagnosis = check_action(self.manual, turn["action"], belief)
            # The answer stands above already; where it says why, only an unmet need adds to it.
            if diagnosis.violated or not self.env.rejection_reason(turn["observation"]):
                reason = explain_rejection(self.manual, turn["action"], belief)
                self._because("magenta", diagnosis.rule, reason)
        self.console.print()

    def end(self, result: EpisodeOutput) -> None:
        """How it went: won, or as far as a graded world says."""
        if result["success"]:
            self.line("won", "bold green", f"after {quantity(result['steps'], 'step')}")
        else:
            score = f"score {result['score']:g} after {quantity(result['steps'], 'step')}"
            self.line("so far", "bold yellow", score)
        self.console.print()

    def _memories(self, recalls: list[Recall], action: str) -> None:
        """The first new memory that supports the action, and the first new one of each outcome."""
        for recall in recalls:
            if _speaks_for(recall, action) and self._is_new(recall["entry"]["type"]):
                self.line("recalled", "green", _advice(recall))
                break
        for outcome, label in BY_STATE_OR_RULE.items():
            for recall in recalls:
                if recall["dropped_by"] == outcome and self._is_new(outcome + recall["rule"]):
                    self.line(label, "red", _advice(recall))
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
    return WORDS.get(recall["entry"]["type"], "did: ") + " -> ".join(advice["printed"])


def _speaks_for(recall: Recall, action: str) -> bool:
    """Whether a memory that is in the prompt names this action or the place it leads to."""
    advice = recall["advice"]
    if recall["dropped_by"] or "failure" in recall["entry"]["type"]:
        return False
    return action in advice["actions"] or any(
        action.endswith(f" {name}")
        for place in advice["places"]
        for name in place.partition("here: ")[2].rstrip(")").split(", ")
    )
