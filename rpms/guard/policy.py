"""The policy: which action serves the current sub-goal, and what speaks against another.

The manual says what is possible, the policy what to do. The domain tier lists, for every sub-goal,
action patterns that serve it, best first. They are filled in with the names the belief knows and
stay if Tier 3 allows them, no rule forbids them, and they were not tried in vain. Nothing here asks
the environment what is possible.

A pattern says in conditions when it serves. A predicate of Tier 3 can be undecided; a condition is
not: what is unknown does not hold. ``WORDS`` are those that a predicate cannot express, because
they look at the goal, at the sub-goal, at what was just played or at more than one thing. Worlds
bring their own notions as data: affordances (`heater(place)`), categories, and `terms`, which name
a choice of conditions.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import permutations, product
from typing import NamedTuple

from rpms.guard.decision import violations
from rpms.rules.manual import Manual
from rpms.rules.predicates import ARGUMENT, Predicate, around, evaluate, parse_predicate
from rpms.rules.schema import ActionRule, Locality, Service
from rpms.rules.semantics import match_action
from rpms.vocabulary.belief import Belief, copy_belief, in_order, kind_of
from rpms.vocabulary.goal import GoalSpec, SubGoal, Target
from rpms.vocabulary.naming import is_a, refers_to, same_thing
from rpms.vocabulary.turn import Choice

# The principles that the guard acts by itself; where one is not in the manual, it does not.
NO_SUCH_ACTION, IN_VAIN = "O-FAIL-003", "U-FAIL-001"
# In a condition: the goal's own object, and where it belongs.
OBJECT, DESTINATION = "$object", "$destination"


class DecisionPoint(NamedTuple):
    """All that judging an action may look at.

    ``no_effect`` holds the actions played since the belief last changed: they changed nothing, and
    nothing has changed for them since; those of them that the world refused are ``refused``.
    ``repeated_here`` holds those played in this very belief before: whatever they changed, the way
    from there led back here. With ``check_answers`` an irreversible answer is judged too, by the
    procedure's own choice; without it only feasibility is.
    """

    manual: Manual
    goal: GoalSpec
    sub_goal: SubGoal
    belief: Belief
    no_effect: Sequence[str] = ()
    repeated_here: Collection[str] = ()
    refused: Collection[str] = ()
    check_answers: bool = False


class Veto(NamedTuple):
    """What speaks against an action, as a clause about "it"; ``rule`` is the id that says so."""

    rule: str
    reason: str


def with_refusals(now: DecisionPoint) -> DecisionPoint:
    """The same with what refusals have told: a walk that leads nowhere ends at this very spot.

    The belief itself takes nothing from a refusal, as in the paper.
    """
    here = []
    for action in now.no_effect:
        matched = match_action(now.manual, action)
        if matched and matched[0].refused_means_here and now.manual.knows(matched[0]):
            here.append(matched[1][matched[0].refused_means_here])
    if not here:
        return now
    belief = copy_belief(now.belief)
    belief["reachable"] = list(dict.fromkeys([*belief["reachable"], *here]))
    return now._replace(belief=belief)


def veto(now: DecisionPoint, action: str) -> Veto | None:
    """Why an action should not be played now: infeasible, forbidden or tried without effect.

    What led back here once may be tried again, as the rule says: it is the third time that is
    refused. Where answers are checked, an irreversible answer that is not the procedure's own is
    one more reason.
    """
    loops = [played for played, times in Counter(now.repeated_here).items() if times > 1]
    against = _ruled_out(now._replace(repeated_here=loops), action)
    return against or (_unverified(now, action) if now.check_answers else None)


def _ruled_out(now: DecisionPoint, action: str) -> Veto | None:
    """What speaks against an action whatever the procedure has in mind."""
    if action in now.belief["asked"]:
        return None
    matched, principles = match_action(now.manual, action), now.manual.principles
    if matched is None and NO_SUCH_ACTION in principles:
        return Veto(NO_SUCH_ACTION, "it is not one of the available actions")
    if matched is not None:
        for violation in violations(now.manual, *matched, now.belief, now.goal):
            return Veto(violation.rule, violation.reason)
    if IN_VAIN not in principles:
        return None
    if action in now.refused:  # even one that is worth repeating: the world knows no such thing
        return Veto(IN_VAIN, "it was rejected before, and nothing has changed since")
    if matched and matched[0].repeatable:
        return None
    if action in now.no_effect:
        return Veto(IN_VAIN, "it changed nothing before, and nothing has changed since")
    if action in now.repeated_here:
        return Veto(IN_VAIN, "it was played in this very situation twice and led back here")
    return None


def _unverified(now: DecisionPoint, action: str) -> Veto | None:
    """An answer that cannot be undone, and that differs from the procedure's own choice.

    Only the blank that holds the answer is compared: the same box may be filled with `water` or
    with the `cup in inventory` that holds it. A phrase that stands for nothing known may mean it.
    """
    rule, names = match_action(now.manual, action) or (None, {})
    served = now.manual.domain.serves
    if not (rule and rule.verified and now.manual.knows(rule) and served):
        return None
    conditions = map(parse_predicate, rule.verified_when)
    if not all(holds(now, condition, names) for condition in conditions):
        return None
    services = [each for each in served.get(now.sub_goal["name"], []) if each.action == rule.name]
    offered = {
        _plain(matched[1][rule.verified])
        for choice in _offer(now, services)
        if (matched := match_action(now.manual, choice["action"]))
    }
    phrase = _plain(names[rule.verified])
    meant = {name for name in map(_plain, _names(now)) if same_thing(phrase, name)}
    if not meant or {phrase, *meant} & offered:
        return None
    return Veto(rule.id, "it cannot be undone, and it is not what the current objective needs")


def _plain(text: str) -> str:
    """Without articles: a `plane with a tin surface` is also called `plane with tin surface`."""
    return re.sub(r"\b(?:an?|the) ", "", text)


def serving_actions(now: DecisionPoint) -> list[Choice]:
    """Every action that serves the current sub-goal and that nothing speaks against, best first.

    What is urgent comes before any sub-goal: while there is some of it, nothing else is offered.
    Where every action has been round a circle already, they are offered once more: one of them may
    have been left too early.
    """
    if now.belief["asked"]:
        rule = now.manual.environment.asked_back.rule
        return [Choice(action=_meant(now), rule=rule, reason="your last command was ambiguous")]
    now = with_refusals(now)
    return _serving(now) or (_serving(now._replace(repeated_here=())) if now.repeated_here else [])


def _serving(now: DecisionPoint) -> list[Choice]:
    domain = now.manual.domain
    return _offer(now, domain.urgent) or _offer(now, domain.serves.get(now.sub_goal["name"], []))


def _offer(now: DecisionPoint, services: Sequence[Service]) -> list[Choice]:
    choices: dict[str, Choice] = {}
    enough = False
    for service in services:
        if service.last_resort and enough:
            continue
        if not {"all", now.goal["type"]} & set(service.goal_types):
            continue
        rule = next((r for r in now.manual.actions if r.name == service.action), None)
        if rule is None:  # a manual of the user's own may have no such action
            continue
        before, cited = len(choices), rule.id if now.manual.knows(rule) else ""
        for names in _fitting(now, service, rule):
            action = (service.wording or rule.syntax).format(**names)
            if action not in choices and _ruled_out(now, action) is None:
                readings = _compared(now) if "{readings}" in service.because else ""
                usual = _usual(now, service, names) if "{usual}" in service.because else ""
                reason = service.because.format(**names, readings=readings, usual=usual)
                choices[action] = Choice(action=action, rule=cited, reason=reason)
                enough = enough or not service.last_resort
        if service.settles and len(choices) > before:
            break
    return list(choices.values())


def why_nothing(now: DecisionPoint) -> str:
    """What keeps each pattern of the sub-goal from being offered, for whoever writes a manual."""
    services = now.manual.domain.serves.get(now.sub_goal["name"])
    if not services:
        return "nothing is listed under the name that the world's sub_goal() gives"
    obstacles = [f"{service.action}: {_obstacle(now, service)}" for service in services]
    known = ", ".join(_names(now)) or "none"
    return f"{'; '.join(obstacles)} (names in places, holding, visible, last_seen: {known})"


def _obstacle(now: DecisionPoint, service: Service) -> str:
    """What speaks against the first filling that is meant, else the condition that none fulfils."""
    rule = next(rule for rule in now.manual.actions if rule.name == service.action)
    conditions = [parse_predicate(text) for text in service.when]
    fillings = [dict(zip(rule.parameters, values, strict=True))
                for values in permutations(_names(now), len(rule.parameters))]  # fmt: skip
    for names in fillings:
        if all(holds(now, condition, names) for condition in conditions):
            action = rule.syntax.format(**names)
            against = veto(now, action)
            other = "it is meant for other types of goals"
            return f"'{action}' would not do: {against.reason if against else other}"
    for condition in conditions:
        if not any(holds(now, condition, names) for names in fillings):
            return f"'{condition}' is not known to hold of anything"
    return "its conditions hold of nothing together" if fillings else "there is nothing to fill in"


def _fitting(now: DecisionPoint, service: Service, rule: ActionRule) -> list[dict[str, str]]:
    """The fillings of a pattern, best first; only the likely places while any is left."""
    fitting = sorted(_fill(now, service, rule), key=lambda names: [*map(in_order, names.values())])
    if not service.likely:
        return fitting
    localities = _localities(now, _sought(now, service.about))
    places = [place for line in localities for place in (*line.places, *line.inside)]
    ranked = [(_rank(names[service.likely], places), names) for names in fitting]
    likely = [names for rank, names in sorted(ranked, key=lambda r: r[0]) if rank < len(places)]
    return likely or fitting


def _rank(name: str, places: Sequence[str]) -> int:
    """How early a list of places has the kind of this one: a `large cupboard` is a cupboard."""
    kinds = (frozenset({place}) for place in places)
    return next((n for n, kind in enumerate(kinds) if is_a(name, kind)), len(places))


def _sought(now: DecisionPoint, about: str) -> str:
    """What is looked for: a field of the goal, the sub-goal's target, or a category itself."""
    target = now.sub_goal.get("about", Target()).get("object", "") or now.sub_goal["target"]
    goal = {"object": now.goal["object"], "destination": now.goal["destination"]}
    return {**goal, "target": target}.get(about, about)


def _localities(now: DecisionPoint, sought: str) -> list[Locality]:
    """The lines of this goal's manual that say where a thing is."""
    manual = now.manual
    return [line for _, line in manual.localities(now.goal) if manual.holds_kind(line, sought)]


def _usual(now: DecisionPoint, service: Service, names: Mapping[str, str]) -> str:
    """The line that speaks for a step of a search, or that there is none left."""
    sought, name = _sought(now, service.about), names[service.likely]
    localities = _localities(now, sought)
    for line in localities:
        if _rank(name, [*line.places, *line.inside]) < len(line.places) + len(line.inside):
            return f"{line.what or sought} is {line.how_often} there [{line.id}]"
    return f"{sought} was at none of its usual places" if localities else f"{sought} may be there"


def _may_hold(now: DecisionPoint, name: str) -> bool:
    """A container is worth opening for what the step looks for.

    It is one of those that the manual lists for such things, in a room where they are or that the
    step names. Of what the manual says nothing about, any container may hold it.
    """
    here = now.belief["location"] or ""
    localities = _localities(now, _sought(now, "target"))
    named = now.sub_goal.get("about", Target()).get("place", "")
    if localities and not any(_rank(name, line.inside) < len(line.inside) for line in localities):
        return False
    rooms = [*(place for line in localities for place in line.places)]
    if named in now.manual.world.connected:
        return here == named or here in rooms
    return here in rooms or not rooms


def _fill(now: DecisionPoint, service: Service, rule: ActionRule) -> Iterator[dict[str, str]]:
    """The bindings of a pattern's parameters under which its conditions hold.

    What concerns none or one of the parameters is settled before they are combined.
    """
    conditions = [parse_predicate(text) for text in service.when]
    needs = rule.needs if now.manual.knows(rule) else []

    def about(predicate: Predicate) -> list[str]:
        return [name for name in predicate.arguments if name in rule.parameters]

    def possible(predicate: Predicate, names: Mapping[str, str]) -> bool:
        return evaluate(predicate, now.belief, now.manual.world, names) is not False

    if not all(holds(now, condition, {}) for condition in conditions if not about(condition)):
        return
    known, pools = _names(now), []
    for parameter in rule.parameters:
        alone = [condition for condition in conditions if about(condition) == [parameter]]
        needed = [need for need in needs if about(need) == [parameter]]
        names_of = [name for name in known if all(holds(now, p, {parameter: name}) for p in alone)]
        pools.append([n for n in names_of if all(possible(p, {parameter: n}) for p in needed)])
    for values in product(*pools):
        names = dict(zip(rule.parameters, values, strict=True))
        if len(set(values)) == len(values) and all(holds(now, p, names) for p in conditions):
            yield names


def _names(now: DecisionPoint) -> list[str]:
    """Everything that can be named: places, and things that are carried, in view or known.

    A place that the task names, or that the manual says something is at, can be gone to before it
    was ever seen.
    """
    belief = now.belief
    named = [place for place in now.manual.world.connected if _told(now, place)]
    things = [*belief["holding"], *belief["visible"], *belief["last_seen"]]
    return list(dict.fromkeys([*belief["places"], *named, *things]))


def _told(now: DecisionPoint, place: str) -> bool:
    lines = now.manual.localities(now.goal)
    return mentioned(now, place) or any(place in line.places for _, line in lines)


def _meant(now: DecisionPoint) -> str:
    """The number of the line that agrees best with what the belief says is where.

    The first of equals: where all are alike, the same one should be meant each time.
    """
    belief, asked_back = now.belief, now.manual.environment.asked_back
    places = {**belief["last_seen"], **dict.fromkeys(belief["holding"], asked_back.carried)}
    facts = [asked_back.line.format(name=name, place=place) for name, place in places.items()]
    lines = belief["asked"]
    return max(lines, key=lambda number: sum(fact in lines[number] for fact in facts))


def holds(now: DecisionPoint, predicate: Predicate, names: Mapping[str, str]) -> bool:
    """Whether a condition is known to hold; what is unknown does not."""
    bound = {OBJECT: now.goal["object"], DESTINATION: now.goal["destination"], **names}
    # A parameter or `$object` becomes a name; `$object` may also stand within an argument.
    arguments = [bound.get(a, a.replace(OBJECT, bound[OBJECT])) for a in predicate.arguments]
    if predicate.name in now.manual.domain.terms:
        inner = {ARGUMENT: arguments[0]} if arguments else {}
        choices = now.manual.domain.terms[predicate.name]
        met = any(all(holds(now, parse_predicate(t), inner) for t in choice) for choice in choices)
        return met == predicate.positive
    if predicate.name in WORDS:
        return WORDS[predicate.name][1](now, *arguments) == predicate.positive
    return evaluate(predicate, now.belief, now.manual.world, bound) is True


def _targeted(now: DecisionPoint, name: str) -> bool:
    """The sub-goal names it, or the kind of thing it is."""
    about = now.sub_goal.get("about") or Target(object=now.sub_goal["target"])
    named = [about.get("object", ""), about.get("place", ""), about.get("which", "")]
    named += about.get("limits", {})
    return any(_within(word, text) for word in {name, kind_of(name)} for text in named)


def _within(name: str, text: str) -> bool:
    """Whether a text has all words of a name in a row; `mug 1` is not the kind `mug`."""
    run, words = name.lower().split(), [*text.lower().split(), ""]
    return any(
        words[at : at + len(run)] == run and not words[at + len(run)].isdigit()
        for at in range(len(words) - len(run))
    )


def _is_object(now: DecisionPoint, name: str) -> bool:
    """The goal's object, whatever state it is in: `liquid tin`, or `ice` where it is water.

    A goal may name it by a state that it had: `solid unknown substance B` melts.
    """
    thing = now.goal["object"]
    first, _, lasting = thing.partition(" ")
    if lasting and first in now.manual.world.wording.anything and refers_to(name, lasting):
        return True
    return refers_to(name, thing) or _has_category(now, name, thing)


def mentioned(now: DecisionPoint, words: str) -> bool:
    """The task's own sentence says it."""
    return f" {words} " in re.sub(r"[.,'()]", " ", f" {now.goal['sentence']} ")


def _stands_for(now: DecisionPoint, name: str, finding: str) -> bool:
    """The task has it focused on in case of this finding."""
    return f" {finding}, focus on the {name}." in now.goal["sentence"]


def _shared_spot(now: DecisionPoint) -> bool:
    """Another place was found at this spot, and what else is here has not been looked at."""
    here = now.belief["location"]
    return bool(now.belief["reachable"]) and here not in now.belief["spots"]


def _has_category(now: DecisionPoint, name: str, category: str) -> bool:
    """One of the kinds listed under this name: a category, or a property of Tier 3."""
    listed = now.manual.domain.categories.get(category, ())
    kinds = now.manual.world.affordances.get(category) or frozenset(listed)
    return is_a(name, kinds) is True


def _is(now: DecisionPoint, name: str, condition: str) -> bool:
    """Whether a condition of one argument holds of a thing."""
    return holds(now, Predicate(True, condition, (ARGUMENT,)), {ARGUMENT: name})


def _some(now: DecisionPoint, condition: str) -> bool:
    """Some thing that is carried or was seen is so."""
    known = {*now.belief["holding"], *now.belief["visible"], *now.belief["last_seen"]}
    return any(_is(now, name, condition) for name in known)


def _inside(now: DecisionPoint, name: str, condition: str) -> bool:
    """What it is in or on is so: `inside(thing, heater)`."""
    return any(_is(now, place, condition) for place in around(now.belief, name))


def _contains(now: DecisionPoint, name: str, condition: str) -> bool:
    """Something that was seen in it, or in something in it, is so."""
    inner = (thing for thing in now.belief["last_seen"] if name in around(now.belief, thing))
    return any(_is(now, thing, condition) for thing in inner)


def _shows(now: DecisionPoint, place: str, condition: str) -> bool:
    """Something that was seen at this place is so."""
    return any(_is(now, thing, condition) for thing in now.belief["spots"].get(place, []))


def _foremost(now: DecisionPoint, name: str, category: str) -> bool:
    """Of the kinds in view that a category lists in order, the first: the oldest, the smallest."""
    kinds = now.manual.domain.categories.get(category, [])
    ranks = {
        seen: next((n for n, kind in enumerate(kinds) if refers_to(seen, kind)), len(kinds))
        for seen in now.belief["visible"]
    }
    return ranks.get(name, len(kinds)) < len(kinds) and ranks[name] == min(ranks.values())


def _record(now: DecisionPoint, name: str) -> str:
    """What the belief has on record of a thing; empty if there is nothing.

    A plane with a water surface is no water: a name says at its end what a thing is.
    """
    flags = now.belief["flags"]
    if name in flags:
        return flags[name]
    return next((flags[k] for k in flags if same_thing(k, name) or same_thing(name, k)), "")


def _noted(now: DecisionPoint, name: str, what: str) -> bool:
    """The belief has this state of a thing on record.

    The end of an entry is enough (`bottom of the plane`), and `*` asks for any.
    """
    text = _record(now, name)
    return bool(text) if what == "*" else any(_ends(state, what) for state in text.split(", "))


def _ends(text: str, what: str) -> bool:
    return f" {text}".endswith(f" {what}")


def _event(now: DecisionPoint, kind: str, what: str) -> bool:
    """It happened: the thing was chosen, the ingredient was named."""
    return any(e["kind"] == kind and _ends(e["thing"], what) for e in now.belief["events"])


def _event_of_kind(now: DecisionPoint, kind: str, name: str) -> bool:
    """It happened to the kind of thing that this is: the recipe says apple, this is a red apple."""
    things = frozenset(e["thing"] for e in now.belief["events"] if e["kind"] == kind)
    return is_a(name, things) is True


def _called_for(now: DecisionPoint, name: str) -> bool:
    """Of the choices that the sub-goal gives a limit each, what was read calls for this one.

    The unit says which number on record of the goal's object is to be compared.
    """
    limit = now.sub_goal.get("about", Target()).get("limits", {}).get(name.lower())
    if limit is None:
        return False
    side, number, unit = limit
    read = _reading(now, unit)
    return read is not None and _side(read, number) == side


def _side(read: float, number: float) -> str:
    """On which side of a limit a reading is; at the limit itself on neither."""
    return "above" if read > number else "below" if read < number else "exactly"


def _at_named(now: DecisionPoint) -> bool:
    """The agent is at the place that the sub-goal names, or it names none."""
    named = now.sub_goal.get("about", Target()).get("place", "")
    return named in ("", now.belief["location"])


def _undecided(now: DecisionPoint) -> bool:
    """The sub-goal's choices have limits, and no reading on record is on either side of them."""
    limits = now.sub_goal.get("about", Target()).get("limits", {})
    return bool(limits) and not any(_called_for(now, name) for name in limits)


def _reading(now: DecisionPoint, unit: str) -> float | None:
    """The number in this unit that is on record of the goal's object."""
    read = re.search(rf"(-?[\d.]+) {re.escape(unit)}", _record(now, now.goal["object"]))
    return float(read[1]) if read else None


def _compared(now: DecisionPoint) -> str:
    """In words, what a choice by numbers rests on: a reading and its limit, or several readings."""
    for _, number, unit in now.sub_goal.get("about", Target()).get("limits", {}).values():
        if (read := _reading(now, unit)) is not None:
            return f"{read:g} is {_side(read, number)} {number:g} {unit}"
    return ", ".join(f"{number} on {name}" for name, number in _readings(now).items())


def _readings(now: DecisionPoint) -> dict[str, int]:
    """The numbers on record of things like the goal's object."""
    return {
        key: int(number[0])
        for key, text in now.belief["flags"].items()
        if refers_to(key, now.goal["object"]) and (number := re.search(r"\d+", text))
    }


def _reads(now: DecisionPoint, name: str, pick: Callable[[list[int]], int]) -> bool:
    """Of two or more readings, all unlike, its is the one."""
    readings = _readings(now)
    numbers = list(readings.values())
    unlike = len(set(numbers)) == len(numbers) > 1
    return unlike and name in readings and readings[name] == pick(numbers)


def _single(now: DecisionPoint, name: str) -> bool:
    """No other thing at hand goes by the same name, so the name can be used."""
    return [*now.belief["visible"], *now.belief["holding"]].count(name) < 2


# The words whose last argument is another condition.
ABOUT_CONDITIONS = {"some", "inside", "contains", "shows"}

# name -> (number of arguments, evaluation, how it reads).
WORDS: dict[str, tuple[int, Callable[..., bool], str]] = {
    "targeted": (1, _targeted, "the step is about {0}"),
    "goal_object": (1, _is_object, "{0} is what the task is about"),
    "mentioned": (1, mentioned, "the task says {0}"),
    "stands_for": (2, _stands_for, "the task has {0} focused on if {1}"),
    "unsearched": (1, lambda now, name: name not in now.belief["searched"], "{0} is unsearched"),
    "in_view": (1, lambda now, name: name in now.belief["visible"], "{0} is in view"),
    "shared_spot": (0, _shared_spot, "another place is at this spot"),
    "single": (1, _single, "nothing else has the name of {0}"),
    "called": (2, lambda now, name, word: word in name.lower().split(), "{0} is called {1}"),
    "empty": (1, lambda now, name: name not in now.belief["last_seen"].values(), "{0} is empty"),
    "noted": (2, _noted, "{0} is known as {1}"),
    "event": (2, _event, "{1} is on record: {0}"),
    "event_of_kind": (2, _event_of_kind, "such as {1} is on record: {0}"),
    "called_for": (1, _called_for, "the reading calls for {0}"),
    "at_named": (0, _at_named, "this is the place that the step names"),
    "undecided": (0, _undecided, "no reading decides"),
    "may_hold": (1, _may_hold, "{0} may hold what is looked for"),
    "reads_lowest": (1, lambda now, name: _reads(now, name, min), "{0} has the lowest number"),
    "reads_highest": (1, lambda now, name: _reads(now, name, max), "{0} has the highest number"),
    "of_category": (2, _has_category, "{0} is one of the {1}"),
    "foremost": (2, _foremost, "{0} is the first in view of the {1}"),
    # What was just played changed nothing: time to do the other of two things.
    "after": (
        1, lambda now, verb: bool(now.no_effect) and now.no_effect[-1].startswith(verb),
        "the last action was {0}",
    ),
    # These ask whether another condition holds of some thing.
    "some": (1, _some, "there is something, and {0}"),
    "inside": (2, _inside, "{0} is in something, and {1}"),
    "contains": (2, _contains, "{0} holds something, and {1}"),
    "shows": (2, _shows, "something was seen in {0}, and {1}"),
}  # fmt: skip
