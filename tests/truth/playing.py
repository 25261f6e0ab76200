"""Episodes played stage by stage, so that what is printed can be held against the simulator.

Three players: one that follows the procedure, one that does anything, and one that makes mistakes
and insists on them. At every step the blocks of the prompt are built by the stages themselves, and
the simulator is asked what is truly so.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from typing import NamedTuple

from langgraph.runtime import Runtime

from rpms.envs import Environment, get_environment
from rpms.envs.base import LiveGame, Task
from rpms.envs.manuals import load_manual
from rpms.guard.procedure import applicable_actions
from rpms.nodes.arbitration import arbitration
from rpms.nodes.belief_update import belief_update
from rpms.nodes.goal_retrieval import goal_retrieval
from rpms.nodes.memory_selection import memory_selection
from rpms.nodes.prompt_build import SHORTLIST
from rpms.nodes.rule_assembly import rule_assembly
from rpms.nodes.scf import scf
from rpms.nodes.state import EpisodeState, decision_point, knowledge_of
from rpms.prompts.blocks import Blocks, knowledge_blocks, offered_actions
from rpms.rules import Manual
from rpms.rules.conditions import DecisionPoint
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.turn import Turn


class Moment(NamedTuple):
    """One step: what the agent would read, and what is truly so.

    Attributes:
        state: the graph's state, as the stages left it.
        blocks: the blocks of the prompt.
        offered: the block of the guard's offers.
        now: what the guard may look at.
        game: the simulator, to be asked for facts.
        manual: the rules of this run.
        env: the world.
        context: the settings.
    """

    state: EpisodeState
    blocks: Blocks
    offered: str
    now: DecisionPoint
    game: LiveGame
    manual: Manual
    env: Environment
    context: RunContext

    @property
    def where(self) -> str:
        """For messages: the task, the step, and the settings."""
        step = len(self.state["history"]) + 1
        return f"{self.state['spec']['id']} step {step} {self.context.condition}"

    def lines(self) -> Iterator[tuple[str, str]]:
        """Every line of every block but bare headings, with the name of its block."""
        blocks = {**self.blocks._asdict(), "offered": self.offered}
        for name, text in blocks.items():
            for line in text.splitlines():
                if line.strip() and not HEADING.fullmatch(line):
                    yield name, line


HEADING = re.compile(r"\[[^\]]*\]|===.*")
Player = Callable[[Moment, random.Random], str]
# Words that tools take and no answer shows, and some that none takes.
ODD = ["2g_only", "0.5", "3", "nobody"]


def procedure(moment: Moment, rng: random.Random) -> str:
    """The best action of the procedure, or what never harms."""
    choices = applicable_actions(moment.now)
    return choices[0]["action"] if choices else moment.manual.domain.idle


def anything(moment: Moment, rng: random.Random) -> str:
    """Any action with any names that are known, possible or not.

    Where things have ids, chance alone would hardly ever learn one: now and then the procedure.
    """
    belief, goal = moment.state["belief"], moment.state["goal"]
    if not moment.env.embodied and not belief["last_seen"] and rng.random() < 0.5:
        return procedure(moment, rng)
    names = [*belief["places"], *belief["last_seen"], *belief["holding"], *belief["visible"],
             *belief["flags"], goal["object"], f"{goal['object']} 1"]  # fmt: skip
    names += [] if moment.env.embodied else ODD
    rule = rng.choice([r for r in moment.manual.actions if r.id not in moment.manual.without])
    return rule.syntax.format(**{p: rng.choice(names) for p in rule.parameters})


def mistaken(moment: Moment, rng: random.Random) -> str:
    """Mostly the procedure; now and then anything, and what was rejected once more."""
    history = moment.state["history"]
    if history and history[-1]["failed"] and rng.random() < 0.5:
        return history[-1]["action"]
    return anything(moment, rng) if rng.random() < 0.3 else procedure(moment, rng)


PLAYERS: dict[str, Player] = {
    "procedure": procedure, "anything": anything, "mistaken": mistaken,
}  # fmt: skip


def play(
    env_name: str,
    task: Task,
    context: RunContext,
    player: str,
    steps: int,
    seed: int = 0,
    running: LiveGame | None = None,
) -> Iterator[Moment]:
    """The moments of one episode, before each action; in a game of its own, or in a running one."""
    env, rng = get_environment(env_name), random.Random(f"{seed}|{task['id']}|{player}")
    manual = load_manual(env_name, context.rules_dir, context.without_rules)
    with nullcontext(running) if running is not None else closing(env.open_game()) as game:
        observation = game.reset(task)
        state = EpisodeState(
            env=env_name, spec=task, goal=env.parse_goal(task["goal"]), observation=observation,
            first_observation=observation, history=[], decisions=[], recalls=[], carried={},
            steps=0, played_in={}, ineffective=[], rules={}, settings=context.plain,
        )  # fmt: skip
        for step in range(1, steps + 1):
            state |= belief_update(state)
            if context.rules:
                state |= rule_assembly(state)
            if context.memory:
                state |= goal_retrieval(state, Runtime())
                if context.scf != "off":
                    state |= scf(state)
                if context.rules and (context.arbitration != "none" or context.arbitration_extras):
                    state |= arbitration(state)
                state |= memory_selection(state)
            now, blocks = decision_point(state), knowledge_blocks(knowledge_of(state))
            choices = applicable_actions(now)[:SHORTLIST] if context.guard == "procedure" else []
            moment = Moment(
                state, blocks, offered_actions(env, choices), now, game, manual, env, context,
            )  # fmt: skip
            yield moment
            action = PLAYERS[player](moment, rng)
            outcome = game.step(action)
            turn = Turn(step=step, thought="", action=action, observation=outcome.observation,
                        failed=env.failed(outcome.observation), reply=action)  # fmt: skip
            state["history"] = [*state["history"], turn]
            state["observation"], state["steps"] = outcome.observation, step
            if outcome.done:
                return
