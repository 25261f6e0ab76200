"""A player that needs no model: the guard's policy plays, and its reasons are the thoughts.

The expert plays what the manual's procedure has for the sub-goal, the best first, as the control
``first`` does under the policy guard; while it searches with memory on, it goes where memory says
such things were found. It is a stage like any other: an arm with
``nodes=rpms.evals.running.expert:STAGES`` is played by it, and ``temperature`` is how often it does
something else than the best, to recover from that. Its decisions are lessons for a model of one's
own. Only tasks of splits that do not judge become lessons (``evals/running/learning_splits.py``).
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from rpms.envs import get_environment
from rpms.envs.manuals import load_manual
from rpms.evals.records.schema import Step
from rpms.guard.policy import applicable_actions, veto
from rpms.nodes.state import EpisodeState, decision_point, settings_of
from rpms.prompts.reply import read_reply
from rpms.rules.conditions import DecisionPoint
from rpms.rules.predicates import evaluate, parse_predicate
from rpms.rules.semantics import check_action, forbidden_by, match_action
from rpms.vocabulary.belief import Belief, copy_belief, fingerprint, in_order, kind_of
from rpms.vocabulary.goal import GoalSpec
from rpms.vocabulary.recall import Recall, surviving
from rpms.vocabulary.turn import Decision, Turn, Usage, Verdict, rejected_since

NOTHING = Usage(prompt_tokens=0, cached_tokens=0, output_tokens=0, replayed=False)
TRIES = 20
DEEP = 3
"""After so many actions in vain the next one finds the same situation, prompt and all."""
WRONG = 0.4
"""How many of the mistakes made where an answer is due are wrong answers."""
LOST = "nothing else is left to try"
MISTAKE = "a mistake made on purpose"


def llm_call(state: EpisodeState) -> EpisodeState:
    """The stage of that name: the best action with its reason, and now and then another.

    How often another, the setting ``temperature`` says, as it would for a model.
    What is not to be learned, a mistake or a guess, is noted as a decision. The same episode gets
    the same replies, in whatever order it is played.
    """
    context = settings_of(state)
    here, step = fingerprint(state["belief"]), state["steps"] + 1
    played_here = state["played_in"].get(here, [])
    vetoed = [
        decision["proposal"]
        for decision in state["decisions"]
        if decision["step"] == step and decision["verdict"] == "retried"
    ]
    now = decision_point(state)._replace(repeated_here=(*played_here, *vetoed))
    best, reason = _choose(now, state["recalls"], context.rules)
    rng = random.Random(f"{context.seed}|{state['split']}|{state['task']}|{step}")
    action = best
    if _may_err(state) and rng.random() < context.temperature:
        action = _mistake(state["env"], now, best, rng) or best
    elif rng.random() < 0.5:
        action = _overridden(state) or best
    reply = _reply(reason, action, context.rules)
    thought, _ = read_reply(reply, ())
    update = EpisodeState(reply=reply, thought=thought, action=action, usage=NOTHING)
    if action != best:
        update["decisions"] = [_decision(step, best, "replaced", MISTAKE, action)]
    elif reason == LOST:
        update["decisions"] = [_decision(step, best, "overridden", LOST, action)]
    if context.guard == "off":  # else the guard notes what it lets through
        update["played_in"] = {**state["played_in"], here: [*played_here, action]}
    return update


STAGES = {"llm_call": llm_call}


def corrections(env: str, goal: GoalSpec, steps: Iterable[Step]) -> Iterator[tuple[Step, str]]:
    """What the expert would have said at each step of somebody's episode, from its log alone.

    A player that learns from right play alone never learns the way back from its own mistakes. What
    was said of the same situation before, or is a guess, is left out; but the way out of a loop is
    said as deep in it as a prompt of the last few turns can show.
    """
    world, manual = get_environment(env), load_manual(env)
    history: list[Turn] = []
    played: defaultdict[str, list[str]] = defaultdict(list)
    no_effect: list[str] = []
    before, known = "", set[tuple[str, str, int]]()
    for step in steps:
        belief = copy_belief(cast(Belief, step["belief"]))
        here = fingerprint(belief)
        no_effect = [*no_effect, history[-1]["action"]] if here == before else []
        sub_goal = world.sub_goal(goal, belief, history)
        refused = {turn["action"] for turn in rejected_since(history, no_effect)}
        now = DecisionPoint(manual, goal, sub_goal, belief, no_effect, tuple(played[here]), refused)
        # A log of an old version has memories without what they advise here.
        recalls = [recall for recall in step.get("recalls", []) if "advice" in recall]
        printed = any(step.get("rules", {}).values())
        best, reason = _choose(now, cast(list[Recall], recalls), printed)
        said = (here, best, min(len(no_effect), DEEP))
        if reason != LOST and said not in known:
            yield step, _reply(reason, best, printed)
        known.add(said)
        played[here].append(step["action"])
        before = here
        history.append(
            Turn(step=step["step"], thought=step["thought"], action=step["action"],
                 observation=step["result"], failed=step["failed"], reply="")
        )  # fmt: skip


_CITED = re.compile(r" \[[A-Z][A-Z0-9]*(?:-[A-Z0-9]+)+\]")


def _reply(reason: str, action: str, rules: bool) -> str:
    """A thought cites a rule by its id only where the prompt prints the rules."""
    reason = reason if rules else _CITED.sub("", reason)
    return f"Thought: {reason[0].upper()}{reason[1:]}.\nAction: {action}"


def _decision(step: int, proposal: str, verdict: Verdict, reason: str, played: str) -> Decision:
    return Decision(
        step=step, proposal=proposal, verdict=verdict, rule="", reason=reason, repair="",
        played=played,
    )  # fmt: skip


def _choose(now: DecisionPoint, recalls: Sequence[Recall], rules: bool) -> tuple[str, str]:
    choices = applicable_actions(now)
    if not choices:
        return now.manual.domain.idle or "look around", LOST
    best = choices[0]
    if there := _as_remembered(now, best["action"], recalls, rules):
        return there, f"{now.sub_goal['target']} was found in such places before"
    return best["action"], best["reason"]


def _may_err(state: EpisodeState) -> bool:
    """Never at the start, and not after a mistake: it is repeated or followed by recovery."""
    last = [d["reason"] for d in state["decisions"] if d["step"] >= state["steps"]]
    return bool(state["history"]) and not {MISTAKE, LOST} & {*last}


def _overridden(state: EpisodeState) -> str:
    """The mistake just made, if it was refused: that is what players repeat, up to a point."""
    mistakes = [d for d in state["decisions"] if d["reason"] == MISTAKE]
    turns = state["history"][-DEEP:]
    if not mistakes or mistakes[-1]["step"] != state["steps"] or not turns[-1]["failed"]:
        return ""
    action, played = mistakes[-1]["played"], [turn["action"] for turn in turns]
    # A mistake that a guard sent back was not played, and what was refused is another action.
    return action if played[-1] == action and played != [action] * DEEP else ""


def _mistake(env: str, now: DecisionPoint, right: str, rng: random.Random) -> str:
    """A step of the goal's own way out of turn, or else any action with names that are known.

    Where an answer is due, it is now and then a wrong one. It ends the episode, and memory learns
    from it. What a rule forbids is never tried: the rule says all there is to learn. Where things
    have ids, nobody takes a bill for a customer: names are of the sort that is asked for.
    """
    belief = now.belief
    if (wrong := _wrong_answers(now, right)) and rng.random() < WRONG:
        return rng.choice(wrong)
    if (early := _out_of_turn(env, now)) and rng.random() < 0.5:
        return rng.choice(early)
    known = [*belief["places"], *belief["last_seen"], *belief["holding"], *belief["visible"]]
    embodied = get_environment(env).embodied
    for _ in range(TRIES if known else 0):
        rule = rng.choice(now.manual.actions)
        pools = [known if embodied else _of_sort(env, now, name) for name in rule.parameters]
        if not all(pools) or not (embodied or rule.effects):
            continue
        names = dict(zip(rule.parameters, map(rng.choice, pools), strict=True))
        action = rule.syntax.format(**names)
        if action != right and forbidden_by(now.manual, action, now.goal) is None:
            return action
    return ""


def _of_sort(env: str, now: DecisionPoint, parameter: str) -> list[str]:
    """What a parameter may stand for: things noted as such, who plays that part, and words for it.

    A ``line`` is what the belief notes as a line, or plays the part of the ticket's line; for a
    ``mode`` the manual has a category of ``modes``.
    """
    belief = now.belief
    noted = [name for name, facts in belief["flags"].items()
             if f"a {parameter}" in facts.split(", ")]  # fmt: skip
    parts = [name for role, name in get_environment(env).role_names(belief).items()
             if parameter in role.split()]  # fmt: skip
    words = now.manual.domain.categories.get(f"{parameter}s", [])
    return list(dict.fromkeys([*noted, *parts, *words]))


def _wrong_answers(now: DecisionPoint, right: str) -> list[str]:
    """The answer that cannot be undone with every other thing in view; none if none is due."""
    rule, names = match_action(now.manual, right) or (None, {})
    if rule is None or not rule.verified:
        return []
    wrong = []
    for thing in dict.fromkeys(now.belief["visible"]):
        other = {**names, rule.verified: thing}
        conditions = map(parse_predicate, rule.verified_when)
        is_answer = all(evaluate(c, now.belief, now.manual.facts, other) for c in conditions)
        action = rule.syntax.format(**other)
        if action != right and is_answer and forbidden_by(now.manual, action, now.goal) is None:
            wrong.append(action)
    return wrong


def _out_of_turn(env: str, now: DecisionPoint) -> list[str]:
    """Steps that have to fail now: of a player who has learned their order and does not look."""
    rules = {rule.name: rule for rule in now.manual.actions}
    actions = dict[str, None]()
    for step, _ in get_environment(env).plan(now.goal):
        rule = rules.get(now.manual.demanded(step["name"]))
        named = step["target"].lower() in now.goal["sentence"].lower()
        if rule and named and len(rule.parameters) == 1:
            actions[rule.syntax.format(**{rule.parameters[0]: step["target"]})] = None
    return [a for a in actions if check_action(now.manual, a, now.belief).verdict == "fails"]


def _as_remembered(now: DecisionPoint, action: str, recalls: Sequence[Recall], rules: bool) -> str:
    """The same step, but to the place where memory has found the thing; empty where it has none.

    A step that is about one place, not searched so far, is a step of a search. Where the manual is
    printed, its own line on where such things are comes first, and what memory found elsewhere
    second.
    """
    rule, names = match_action(now.manual, action) or (None, {})
    unsearched = {*now.belief["places"]} - {*now.belief["searched"]}
    if rule is None or len(names) != 1 or not {*names.values()} <= unsearched:
        return ""
    usual = now.manual.likely_places(now.sub_goal["target"]) if rules else []
    if {kind_of(name) for name in names.values()} & {*usual}:
        return ""
    for recall in surviving(recalls):
        if recall["entry"].get("object") != now.sub_goal["target"]:
            continue
        for advice in recall["advice"]["places"]:  # "shelf (3 of 4 searched; here: shelf 1)"
            kind = advice.partition(" (")[0]
            for place in sorted(unsearched, key=in_order):
                there = rule.syntax.format(**dict.fromkeys(names, place))
                if kind_of(place) == kind and veto(now, there) is None:
                    return there
    return ""
