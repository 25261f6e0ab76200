"""Everything that led to each decision of one episode, for the viewer and for later questions.

Collected from the graph's stream of updates, so that no stage knows of it. A prompt repeats
nearly all of the one before; each distinct text is therefore kept once, in a table.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from rpms.envs import Environment
from rpms.evals.obedience import judge, judging_manual, obedience_counts, prediction_counts
from rpms.evals.refusals import failure_counts, mark_failures
from rpms.evals.transfer import source_counts
from rpms.nodes.state import EpisodeState
from rpms.rules import ActiveRules
from rpms.rules.manual import SITUATION
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.goal import GoalSpec
from rpms.vocabulary.recall import Recall
from rpms.vocabulary.turn import Decision

LEVEL = 5
UNANSWERED: dict[str, Any] = {
    "reply": "", "thought": "", "action": "", "result": "", "failed": False, "replayed": False,
    "usage": {"prompt_tokens": 0, "cached_tokens": 0, "output_tokens": 0}, "seconds": 0.0,
    "cost_usd": None, "proposal": "", "judged": [], "lacked": "",
}  # fmt: skip
"""How a step reads when the episode broke off in it."""
UNREADABLE = "no action read"
"""Stands for the rule where there was nothing that a rule could speak of."""


class StepLog:
    """Takes the state after each stage; gives the file's bytes at the end."""

    def __init__(self, condition: str, task: str, env: Environment) -> None:
        """An empty log of one episode."""
        self._head = {"condition": condition, "task": task}
        self._env = env
        self._messages: dict[str, int] = {}
        self.steps: list[dict[str, Any]] = []

    def believed(self, state: EpisodeState) -> dict[str, Any]:
        """A new step begins with what is believed; the truth may be added to it."""
        step: dict[str, Any] = {
            "step": state["steps"] + 1,
            "observation": state["observation"],
            "belief": state["belief"],
            "sub_goal": state["sub_goal"],
            "truth": {},
            "drift": [],
            **UNANSWERED,
        }
        self.steps.append(step)
        return step

    def asked(self, state: EpisodeState) -> None:
        """The prompt stands: note what went into it."""
        self.steps[-1].update(
            rules=_rule_ids(state["rules"]),
            recalls=state["recalls"],
            prompt=[[m["role"], self._place(m["content"])] for m in state["prompt"]],
            knowledge_tokens=state["knowledge_tokens"],
            dropped_turns=state["dropped_turns"],
            shortlist=state["shortlist"],
        )

    def answered(self, state: EpisodeState, seconds: float, cost_usd: float | None) -> None:
        """The reply has come; the cost is None when no price is known."""
        usage = state["usage"]
        counts = ("prompt_tokens", "cached_tokens", "output_tokens")
        self.steps[-1].update(
            reply=state["reply"],
            usage={name: usage[name] for name in counts},  # type: ignore[literal-required]
            replayed=usage["replayed"],
            seconds=round(seconds, 4),
            cost_usd=cost_usd,
        )

    def played(self, state: EpisodeState) -> None:
        """The environment has answered."""
        turn, step = state["history"][-1], self.steps[-1]
        decisions = [d for d in state["decisions"] if d["step"] == turn["step"]]
        # What the model said of its own accord, before a guard asked again or played another.
        proposal = decisions[0]["proposal"] if decisions else turn["action"]
        manual = judging_manual(state["env"], state["settings"])
        step.update(
            decisions=decisions,
            proposal=proposal,
            judged=judge(manual, proposal, step["belief"], state["goal"]),
            thought=turn["thought"],
            action=turn["action"],
            result=turn["observation"],
            failed=turn["failed"],
        )

    def analysed(self, state: EpisodeState, goal: GoalSpec) -> dict[str, Any]:
        """The counts for the line: rules kept, why actions failed, where memories came from."""
        settings, mode = state.get("settings", {}), state.get("failure_mode")
        if self.steps:
            manual = judging_manual(state["env"], settings)
            mark_failures(self.steps, manual, goal, settings, mode)
        return {
            **obedience_counts(self.steps),
            **prediction_counts(self.steps),
            **failure_counts(self.steps, mode),
            **source_counts(self.steps, settings, self._goal_type),
        }

    def _goal_type(self, printed: str) -> str:
        return self._env.read_signature(printed).type

    def pack(self, state: EpisodeState) -> bytes:
        """The whole log as the file's bytes."""
        goal = state.get("goal")
        for step in self.steps:
            lines = self._env.describe_belief(step["belief"], goal) if goal else []
            step["state_lines"] = lines
        log = {**self._head, "messages": list(self._messages), "steps": self.steps}
        text = json.dumps(log, ensure_ascii=False, separators=(",", ":"))
        # No time stamp: the same episode gives the same bytes.
        return gzip.compress(text.encode(), compresslevel=LEVEL, mtime=0)

    def _place(self, text: str) -> int:
        return self._messages.setdefault(text, len(self._messages))


def look_at_truth(env: Environment, belief: Belief, game: Any) -> tuple[dict[str, str], list[str]]:
    """The true state, and what of the belief contradicts it. A metric, never a hint."""
    facts = game.facts()
    return env.true_state(facts), env.drift(belief, facts)


def _rule_ids(rules: ActiveRules) -> dict[str, Any]:
    """By tier, in the order they were printed; what a situation says stands nowhere else."""
    ids = {name: [rule["id"] for rule in tier] for name, tier in rules.items()}
    return {**ids, SITUATION: [dict(rule) for rule in rules[SITUATION]]}


def memory_counts(steps: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """What became of recalled memories, summed over the steps."""
    recalls: list[Recall] = [recall for step in steps for recall in step.get("recalls", [])]
    return {
        "recalled": len(recalls),
        "dropped_scf": sum(recall["dropped_by"] == "scf" for recall in recalls),
        "dropped_arbitration": sum(recall["dropped_by"] == "arbitration" for recall in recalls),
        "dropped_budget": sum(recall["dropped_by"] == "budget" for recall in recalls),
        "warned": sum(bool(recall["warning"]) for recall in recalls),
    }


def decision_counts(decisions: Sequence[Decision]) -> dict[str, Any]:
    """What the guard made of the proposals, and which rules spoke against them."""
    verdicts = Counter(decision["verdict"] for decision in decisions)
    rules = Counter(decision["rule"] or "procedure" for decision in decisions if decision["reason"])
    return {
        "proposals": len(decisions),
        "asked_again": verdicts["asked_again"],
        "replaced": verdicts["replaced"],
        "fell_back": verdicts["fell_back"],
        "insisted": verdicts["insisted"],
        "vetoes": dict(sorted(rules.items())),
        "after_veto": after_veto(decisions),
    }


def after_veto(decisions: Sequence[Decision]) -> dict[str, list[int]]:
    """Of the vetoes that the model was told: ``[told, next passed, next the same]`` by rule."""
    found: dict[str, list[int]] = {}
    for before, after in pairwise(decisions):
        if before["verdict"] == "asked_again":
            row = found.setdefault(before["rule"] or UNREADABLE, [0, 0, 0])
            row[0] += 1
            row[1] += after["verdict"] == "accepted"
            row[2] += after["proposal"] == before["proposal"]
    return dict(sorted(found.items()))


def drift_counts(steps: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How many steps were compared with the truth, and in how many the belief was wrong."""
    return {
        "drift_steps": sum(bool(step["drift"]) for step in steps),
        "checked_steps": sum(bool(step["truth"]) for step in steps),
    }
