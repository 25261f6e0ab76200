"""Render the knowledge blocks and load the fixed parts of the prompt."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache, partial
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from jinja2 import ChoiceLoader, FileSystemLoader, PrefixLoader, StrictUndefined
from jinja2 import Environment as Jinja

from rpms.envs import Environment
from rpms.memory_store.controls import filler
from rpms.memory_store.methods.registry import find_method
from rpms.prompts.context_budget import estimate
from rpms.rules import ActiveRules, Manual
from rpms.rules.manual import SITUATION
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.files import is_file, read_text
from rpms.vocabulary.goal import GoalSpec, SubGoal
from rpms.vocabulary.recall import Recall, surviving
from rpms.vocabulary.turn import Choice, Message, Turn, rejected_since

_SHARED = Path(__file__).parent / "templates"
_BLANK = re.compile(r"\{.*?\}")
NO_STEP = SubGoal(name="", target="", progress=0)
RECAP = 400
"""Token budget of the state block when it recaps hidden turns, at four letters a token."""


class Blocks(NamedTuple):
    """Each knowledge block as text; empty if the condition leaves it out.

    ``rules`` is the same at every step of an episode; the others depend on the belief.
    ``last_action`` says why the last action was rejected.
    """

    rules: str
    situation: str
    goal: str
    state: str
    memory: str
    last_action: str


class Knowledge(NamedTuple):
    """The data that the knowledge blocks of one step print."""

    env: Environment
    context: RunContext
    goal: GoalSpec
    sub_goal: SubGoal
    belief: Belief
    rules: ActiveRules
    recalls: Sequence[Recall]
    history: Sequence[Turn]
    ineffective: Sequence[str]


def knowledge_blocks(knowledge: Knowledge) -> Blocks:
    """Return the blocks that RPMS adds to the baseline prompt.

    Goal and state accompany rules and memories: rules are checked against the state, and memories
    were selected by it. Condition S prints them alone; the baseline prints no block.
    """
    env, context, goal = knowledge.env, knowledge.context, knowledge.goal
    if not context.has_blocks:
        return Blocks("", "", "", "", "", "")
    belief, step, paper = knowledge.belief, knowledge.sub_goal, context.prompt_style == "paper"
    # The paper tracks no state that no action needs, as hot (Sec. 3.1).
    shown: Belief = {**belief, "flags": {}} if paper and not env.states_decide else belief
    pointer = f"{step['name']} - {step['target']}" if paper else env.describe_sub_goal(step, belief)
    lines = [*env.describe_belief(shown, goal), *recap(knowledge)]
    return Blocks(
        rules=_fixed_rules(env, knowledge.rules, goal["type"]) if context.rules else "",
        situation=_situation(env, knowledge.rules, step) if context.rules else "",
        goal=render(env.prompts, "goal.j2", goal=goal, sub_goal=step, pointer=pointer),
        state=render(env.prompts, "state.j2", state_lines=lines),
        memory=memory_block(knowledge),
        last_action=_last_action(env, knowledge.rules) if context.rules else "",
    )


def memory_block(knowledge: Knowledge) -> str:
    """Return the block of the surviving memories; empty if there are none."""
    context = knowledge.context
    shown = surviving(knowledge.recalls) if context.memory else []
    fill = partial(render, knowledge.env.prompts, form=context.memory_form)
    memory = find_method(context.memory_method).render(shown, fill) if shown else ""
    return filler(memory, _neutral()) if context.memory_control == "filler" else memory


def recap(knowledge: Knowledge) -> list[str]:
    """Return state lines that recap hidden turns, the most relevant first, within ``RECAP``.

    Rejected actions come first: until the belief changes they would be rejected again.
    """
    env, turns = knowledge.env, knowledge.history
    if not knowledge.context.hidden_turns(len(turns)):
        return []
    rejected = dict[str, dict[str, None]]()  # by the environment's answer, newest first, each once
    for turn in reversed(rejected_since(turns, knowledge.ineffective)):
        answer = turn["observation"].strip().partition("\n")[0].rstrip(".")
        rejected.setdefault(f"Rejected here ({answer})", {})[turn["action"]] = None
    described = env.describe_belief(knowledge.belief, knowledge.goal)
    block = render(env.prompts, "state.j2", state_lines=described)
    letters, lines = 4 * RECAP - len(block), list[str]()
    for label, things in [*rejected.items(), *env.recap(knowledge.belief).items()]:
        ends = accumulate((len(thing) + 2 for thing in things), initial=len(f"\n  {label}"))
        if (count := sum(end <= letters for end in ends) - 1) > 0:
            lines.append(f"{label}: {', '.join([*things][:count])}")
            letters -= len(f"\n  {lines[-1]}")
    return lines


def tokens(texts: Iterable[str]) -> int:
    """Return the tokens of all texts together, by LangChain's estimate."""
    return sum(estimate(Message(role="user", content=text)) for text in texts if text)


def offered_actions(env: Environment, choices: Sequence[Choice]) -> str:
    """Print the guard's shortlist as a block; the paper has no such block."""
    return render(env.prompts, "actions.j2", choices=choices) if choices else ""


def render_rules(env: Environment, rules: ActiveRules, goal: GoalSpec) -> str:
    """Print R_active as in the prompt, for people who want to read it on its own."""
    parts = [_fixed_rules(env, rules, goal["type"])]
    parts += [_situation(env, rules, NO_STEP), _last_action(env, rules)]
    return "\n\n".join(part for part in parts if part)


def _fixed_rules(env: Environment, rules: ActiveRules, goal_type: str) -> str:
    """Print the tiers, which are the same at every step of an episode."""
    tiers = {name: lines for name, lines in rules.items() if name != SITUATION}
    if not any(tiers.values()):
        return ""
    return render(env.prompts, "rules.j2", rules=tiers, goal_type=goal_type)


def _situation(env: Environment, rules: ActiveRules, sub_goal: SubGoal) -> str:
    """Print the rule lines about the current situation, and the next step if it is in words."""
    lines = [line for line in rules[SITUATION] if not line.get("last_action")]
    if not lines and not sub_goal.get("words"):
        return ""
    return render(env.prompts, "situation.j2", lines=lines, sub_goal=sub_goal)


def _last_action(env: Environment, rules: ActiveRules) -> str:
    """Print the rule line about the last action."""
    lines = [line for line in rules[SITUATION] if line.get("last_action")]
    return render(env.prompts, "last_action.j2", lines=lines) if lines else ""


def render(prompts: Path, template: str, **values: object) -> str:
    return _templates(prompts).get_template(template).render(values).rstrip("\n")


@cache
def _templates(prompts: Path) -> Jinja:
    """Load the block templates of an environment, and the shared ones that it does not replace.

    A template can extend the one it replaces: ``{% extends "shared/memory.j2" %}``.
    """
    shared = FileSystemLoader(_SHARED)
    return Jinja(
        loader=ChoiceLoader(
            [FileSystemLoader(prompts / "templates"), shared, PrefixLoader({"shared": shared})]
        ),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        autoescape=False,  # prompts are plain text
        auto_reload=False,  # templates do not change while a program runs
    )


@cache
def _neutral() -> str:
    """Return the neutral text of the memory control ``filler``."""
    return (_SHARED / "filler.txt").read_text(encoding="utf-8")


@cache
def load_system(prompts: Path, version: str = "ours") -> str:
    """Load SysInst of an environment, the same for all conditions; by default our version."""
    variant = prompts / f"system.{version}.md"
    file = variant if is_file(variant) else prompts / "system.md"
    return read_text(file, "the system prompt").rstrip("\n")


@cache
def unlisted_actions(prompts: Path, manual: Manual) -> frozenset[str]:
    """Return the ids of the actions that the paper's system prompt of an environment lacks."""
    if not is_file(prompts / "system.paper.md"):
        return frozenset()
    listed = re.findall(r"^\d+\. (.+?)\s*$", load_system(prompts, "paper"), re.M)
    forms = {_BLANK.sub("", action) for action in listed}
    return frozenset(rule.id for rule in manual.actions if _BLANK.sub("", rule.syntax) not in forms)
