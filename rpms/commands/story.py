"""Prints one episode for people: ``rpms run``, ``rpms demo`` and its agent behind the guard.

A step shows the model's thought, the proposals that the guard vetoed, the memories, the action, its
answer, and the rule that explains a rejection. A brief story leaves out what most readers of one
demonstration skip: thoughts, counts and the end of a long answer.
"""

from __future__ import annotations

from functools import cached_property
from textwrap import shorten
from typing import TYPE_CHECKING, Any, cast

from rich.markup import escape
from rich.table import Table as Grid

from rpms.envs import get_environment
from rpms.envs.manuals import load_manual
from rpms.rules import Manual, check_action, explain_rejection
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.output import quantity
from rpms.vocabulary.recall import NOTE

if TYPE_CHECKING:
    from rich.console import Console

    from rpms.nodes.env_step import StepEvent
    from rpms.nodes.state import EpisodeOutput, EpisodeState
    from rpms.vocabulary.recall import Recall
    from rpms.vocabulary.turn import Turn

MEASURABLE = 0.05
"""Fewer seconds of a reply are not printed: a planner has none."""
ANSWER = 200
"""The printed characters of an answer in a brief story: a room of ScienceWorld fills a screen."""
PLACES = 3
"""The printed places of a memory about where things were."""
UNREAD = "(no action could be read)"
# The outcomes that the paper studies; duplicates and token budgets matter less here.
BY_STATE_OR_RULE = {
    "scf": "dropped by the state filter (SCF): ", "arbitration": "dropped by a rule: "
}  # fmt: skip
WARNING = "a warning against: "
WORDS = {"failure": WARNING, "critical_failure": WARNING, "schema": "how to: "}


class Story:
    """Prints an episode in lines that begin with a label, and remembers what it has shown."""

    def __init__(
        self, console: Console, env: str, context: RunContext | None = None, *,
        brief: bool = True, memories: bool = False,
    ) -> None:  # fmt: skip
        """Prepare to print.

        Args:
            console: where to print.
            env: the environment.
            context: the settings of the episode.
            brief: leave out thoughts, counts, and the end of long answers.
            memories: print every memory with its outcome, not just the first of each kind.
        """
        self.console, self.env, self.context = (
            console,
            get_environment(env),
            context or RunContext(),
        )
        self.brief, self.memories = brief, memories
        self._shown: set[str] = set()

    @cached_property
    def manual(self) -> Manual:
        return load_manual(self.env.name, self.context.rules_dir, self.context.without_rules)

    def line(self, label: str, style: str, text: str) -> None:
        """Print a label and its text; wrapped lines keep the indent."""
        grid = Grid.grid(padding=(0, 2, 0, 0))
        grid.add_column(width=13, no_wrap=True)
        grid.add_column(overflow="fold")
        grid.add_row(escape(label), escape(text), style=style)
        self.console.print(grid)

    def head(self, goal: str, caption: str) -> None:
        """Print the goal, and what runs."""
        self.console.print(goal, style="bold", markup=False)
        self.console.print(caption, style="dim", markup=False)

    def print_step(self, event: StepEvent, seconds: float = 0.0) -> None:
        """Print a step, for which the model took so many seconds."""
        turn = event["turn"]
        self.line(f"step {turn['step']}", "dim", "; ".join(self._situation(event, seconds)))
        if turn["thought"] and not self.brief:
            self.line("thought", "italic", turn["thought"])
        for decision in event["decisions"]:
            if decision["verdict"] != "accepted":
                repair = f"; {decision['repair']}" if decision["repair"] else ""
                proposal = f"{decision['proposal'] or UNREAD} ({decision['verdict']})"
                self.vetoed(proposal, decision["rule"], f"{decision['reason']}{repair}")
        if self.memories:
            self._every_memory(event)
        else:
            self._first_memories(event["recalls"], turn["action"])
        self.acted(turn["action"] or UNREAD, turn["observation"], turn["failed"])
        if turn["failed"] and turn["action"] and self.context.rules:
            diagnosis = check_action(self.manual, turn["action"], event["belief"])
            # If the answer already has the reason, only an unmet precondition adds to it.
            if diagnosis.unmet or not self.env.rejection_reason(turn["observation"]):
                reason = explain_rejection(self.manual, turn["action"], event["belief"])
                self._because("magenta", diagnosis.rule, reason)
        self.console.print()

    def _situation(self, event: StepEvent, seconds: float) -> list[str]:
        """Where the agent is, its sub-goal, what its prompt has, and how long the model took."""
        parts, step = [self.env.whereabouts(event["belief"]).removesuffix("; ")], event["sub_goal"]
        if step["name"] and self.context.has_blocks:
            progress = "" if self.brief else f" {step['progress']}%"
            parts.append(f"sub-goal {step['name']}{progress}")
        if not self.brief:
            dropped = f" ({event['dropped']} dropped)" if event["dropped"] else ""
            memories = quantity(event["memories"], "memory")
            parts.append(f"{quantity(event['rules'], 'rule')}, {memories}{dropped}")
        if seconds >= MEASURABLE:
            parts.append(f"{seconds:.1f} s")
        return [part for part in parts if part]

    def vetoed(self, proposal: str, rule: str, reason: str, source: str = "") -> None:
        """Print a proposal that the guard vetoed, with the policy's sentence if it has one."""
        self.line("vetoed", "yellow", proposal)
        self._because("yellow", rule, reason)
        if source:
            self.line("  policy", "yellow", source)

    def acted(self, action: str, answer: str, failed: bool = False) -> None:
        """Print an action and the environment's answer."""
        self.line("action", "bold cyan", action)
        answer = shorten(answer, ANSWER, placeholder=" ...") if self.brief else answer
        self.line("rejected" if failed else "", "red" if failed else "green", answer)

    def end(self, result: EpisodeOutput) -> None:
        """Print the outcome."""
        label, style, end = "success", "bold green", ""
        if not result["success"]:
            label, style, end = "failed", "bold red", f"{result['failure_mode']} "
        counts = f"{result['invalid_actions']} rejected, {result['prompt_tokens']} prompt tokens"
        steps, error = quantity(result["steps"], "step"), result["error"]
        text = f"{end}after {steps}, score {result['score']:g}, {counts}"
        self.line(label, style, f"{text}; {error}" if error else text)

    def stop(self, turn: Turn, times: int) -> None:
        """Print that the episode is stopped because its last action was rejected so often."""
        action = f"'{turn['action']}'" if turn["action"] else "a reply without an action"
        budget = self.context.max_steps or self.env.max_steps
        text = f"{action} was rejected {times} times; the episode could go on to step {budget}"
        self.line("stopped", "bold yellow", text)

    def print_prompt(self, state: EpisodeState) -> None:
        """A node that the graph runs after ``prompt_build``."""
        from langchain_core.messages import convert_to_openai_messages

        for message in cast(Any, convert_to_openai_messages(state["prompt"])):
            self.console.print(f"--- {message['role']}", style="dim")
            self.console.print(message["content"], markup=False)

    def _first_memories(self, recalls: list[Recall], action: str) -> None:
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

    def _every_memory(self, event: StepEvent) -> None:
        """Print every candidate with its score, its outcome and the reason."""
        for recall in event["recalls"]:
            kind, advises = recall["entry"]["type"], recall["advice"]
            advice = " -> ".join(advises["printed"]) or "; ".join(advises["places"])
            if kind == NOTE:
                kind, advice = recall["entry"]["kind"], recall["entry"]["text"].partition("\n")[0]
            self.line("memory", "", f"{kind} {recall['score']:.2f} {advice}")
            rule = f" by {recall['rule']}" if recall["rule"] else ""
            if recall["dropped_by"]:
                self.line("", "red", f"{recall['dropped_by']}{rule}: {recall['reason']}")
            elif recall["warning"]:
                self.line("", "yellow", f"warned{rule}: {recall['warning']}")
            else:
                self.line("", "green", "shown")
        if truncated := event["truncated"]:
            counts = ", ".join(f"{count} {outcome}" for outcome, count in truncated.items())
            self.line("memory", "dim", f"and {sum(truncated.values())} more: {counts}")

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
