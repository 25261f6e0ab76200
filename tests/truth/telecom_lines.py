"""Telecom: every kind of line that its prompts print, and tau2's own databases."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from rpms.envs.manuals import load_manual
from rpms.envs.telecom import belief as beliefs
from rpms.envs.telecom.adapter import HAND_OVER, TYPES, all_tasks
from rpms.guard.procedure import find_violation
from rpms.guard.repair import find_repair
from rpms.rules import already_done, match_action
from rpms.rules.predicates import Predicate, evaluate, parse_predicate
from rpms.rules.schema import ActionRule
from rpms.rules.things import UNSHOWN
from rpms.rules.wording import need, statement
from rpms.vocabulary.belief import Belief, empty_belief
from tests.truth.playing import Moment
from tests.truth.reading import REJECTED, Kind, is_so, kind, rejection_faults, true_always

# The whole manual judges what memory has learned, also where a run has no rules.
MANUAL = load_manual("telecom")
SENTENCES: dict[str, str] = beliefs.read_table("facts")


# The last moment asked about and its facts: every line of a prompt asks for the same.
_asked: list[tuple[Moment, dict[str, list[str]]]] = []


def facts(moment: Moment) -> dict[str, list[str]]:
    """What is truly so, in the belief's words; the ticket says the rest itself."""
    if not (_asked and _asked[0][0] is moment):
        _asked[:] = [(moment, _facts(moment))]
    return _asked[0][1]


def _facts(moment: Moment) -> dict[str, list[str]]:
    ticket = all_tasks("telecom")[moment.state["spec"]["source"]].ticket
    place = "abroad" if "location: abroad" in ticket else "at home"
    allowed = "payment allowed" if "permission to pay" in ticket else "payment not allowed"
    return {**moment.game.facts(), "ticket": [place, allowed]}


def own_line(moment: Moment) -> str:
    return next(name for name, known in facts(moment).items() if "of the ticket" in known)


def customer(moment: Moment) -> str:
    env = moment.game.env  # type: ignore[attr-defined]
    number = env.user_tools.surroundings.phone_number
    return str(env.tools.get_customer_by_phone(number).customer_id)


def truth_of(moment: Moment) -> Belief:
    """The belief of somebody who knows everything."""
    truth, owner = empty_belief(), customer(moment)
    for thing, known in facts(moment).items():
        truth["flags"][thing] = ", ".join(known)
        if known[0] in ("a line", "a bill"):
            truth["last_seen"][thing] = owner
    truth["visible"] = [*moment.state["belief"]["visible"]]
    return truth


def listed(text: str) -> list[str]:
    return re.findall(r"\b[A-Z]\d+\b", text)


def clauses(known: Iterable[str]) -> set[str]:
    """Facts as the state block says them of a thing."""
    sentences = (SENTENCES.get(fact, fact) for fact in known)
    return {text.removeprefix("{0} is ").replace(" of {0}", "") for text in sentences}


# The state block.


@kind("state", r"(Ticket|Phone|Account|The ticket's line|Bill \w+): (.+)")
def sentences(moment: Moment, match: re.Match[str]) -> Iterator[str]:
    truly, said = facts(moment), match[2].split("; ")
    thing = match[1].lower().removeprefix("bill ").upper() if "Bill" in match[1] else match[1]
    if thing == "The ticket's line":
        thing = said.pop(0)
        yield from is_so(thing == own_line(moment), f"the ticket's line is {own_line(moment)}")
    thing = {"Ticket": "ticket", "Phone": "phone", "Account": "account"}.get(thing, thing)
    yield from is_so(thing in truly, f"there is no {thing}")
    known = clauses(truly.get(thing, ()))
    yield from (f"'{clause}' is not so" for clause in said if clause not in known)


@kind("state", r"Customer: (?:not identified yet|(\w+))")
def customer_line(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    if match[1]:
        return is_so(match[1] == customer(moment), f"the customer is {customer(moment)}")
    return is_so(not looked_up(moment, customer(moment)), "an answer has named the customer")


@kind("state", r"(?:Lines|Bills) not looked up yet: (.+)")
def unread(moment: Moment, match: re.Match[str]) -> Iterator[str]:
    truly = facts(moment)
    for name in listed(match[1]):
        yield from is_so(name in truly, f"there is no {name}")
        yield from is_so(not looked_up(moment, name), f"{name} was shown")


def looked_up(moment: Moment, name: str) -> bool:
    """Whether an answer was about it: a record that has it as its own id."""
    ids = rf'"(?:customer|line|bill)_id": "{name}"'
    return any(re.search(ids, turn["observation"]) for turn in moment.state["history"])


@kind("state", r"Rejected here \((.+)\): (.+)")
def recap(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    failed = {turn["action"] for turn in moment.state["history"] if turn["failed"]}
    return [f"'{a}' was not rejected" for a in match[2].split(", ") if a not in failed]


# The goal and the sub-goal.


@kind("goal", r"Goal: resolve the ticket|Type: (.+)")
def goal(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    name = str(moment.state["spec"]["source"])
    return is_so(not match[1] or name.startswith(f"[{match[1].replace(' ', '_')}]"), "another type")


def truly_done(moment: Moment, step: str) -> bool:
    """Whether a step of the procedure is done by what is true of the account and the phone."""
    away = moment.state["goal"]["destination"] == "abroad"
    wanted = beliefs.read_table("abroad" if away else "done")[step]
    truly = facts(moment)
    known = {*truly["phone"], *truly["account"], *truly[own_line(moment)]}
    return {*wanted} - {"identified", "of the ticket"} <= known


@kind("situation", r"\[Current Sub-Goal\] (\w+) - (.+)")
def sub_goal(moment: Moment, match: re.Match[str]) -> Iterator[str]:
    steps = MANUAL.domain.procedures[moment.state["goal"]["type"]]
    yield from is_so(match[2] == beliefs.read_table("steps")[match[1]], "another step's words")
    for step in steps[: steps.index(match[1])]:
        yield from is_so(truly_done(moment, step), f"{step} is not done")


@kind("goal", r"Progress: (\d+)%")
def progress(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    steps = MANUAL.domain.procedures[moment.state["goal"]["type"]]
    done = sum(truly_done(moment, step) for step in steps)
    return is_so(int(match[1]) <= 100 * done // len(steps), f"{done} of {len(steps)} are done")


# Rules.


@kind("rules", r"\[(?:[UOP]-[\w-]+|T-OWN)\] .+")
def principle(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    return true_always(moment, match)


@kind("rules", r"\[(T-[\w-]+)\] (.+?)(?: \| needs (.+?))?(?: \| ([^|]+))?")
def action_line(moment: Moment, match: re.Match[str]) -> Iterator[str]:
    """Held against tau2 by what became of the last action (``effects_hold``)."""
    rule = next((rule for rule in MANUAL.actions if rule.id == match[1]), None)
    if rule is None:
        yield "no such action"
        return
    blanks = {name: f"<{name}>" for name in rule.parameters}
    needs = {need(p, blanks, MANUAL.facts) for p in rule.needs}
    yield from is_so(match[2] == rule.syntax.format(**blanks), "another form")
    said = match[3].split("; ") if match[3] else []
    yield from (f"'{words}' is no need of it" for words in said if words not in needs)


# The last action, and what a veto says.


@kind("last_action", REJECTED.pattern)
def rejected(moment: Moment, match: re.Match[str]) -> Iterator[str]:
    history = moment.state["history"]
    if not (history[-1]["failed"] and history[-1]["action"] == match["action"]):
        yield "it was not the last action, or it was carried out"
    turns = history[len(history) - len(moment.state["ineffective"]) :]
    # What a rejection itself told has changed the belief: before that nothing is counted.
    times = max(1, sum(turn["failed"] and turn["action"] == match["action"] for turn in turns))
    printed = {None: 1, " twice": 2}.get(match["times"]) or int(
        re.findall(r"\d+", match["times"])[0]
    )
    yield from is_so(times == printed, f"it was rejected {times} times")
    yield from reason_faults(moment, match["action"], match["reason"])


def reason_faults(moment: Moment, action: str, reason: str) -> Iterator[str]:
    """What is false in the reason for a rejection, or for a veto.

    Where only the policy asks for evidence, the need may be met, and nobody has seen it.
    """
    rule, names = match_action(MANUAL, action) or (None, {})
    stated = list[str]()
    for part in re.split(r"; (?=it needs )", reason):
        wanted = re.fullmatch(rf"it needs (.+), and {UNSHOWN}", part)
        if not wanted:
            stated.append(part)
            continue
        unmet = [p for p in (rule.needs if rule else ())
                 if need(p, names, MANUAL.facts) == wanted[1]]  # fmt: skip
        yield from is_so(bool(unmet), f"'{wanted[1]}' is no need of it")
        for predicate in unmet:
            shown = evaluate(predicate, moment.state["belief"], MANUAL.facts, names)
            yield from is_so(not shown, f"'{wanted[1]}' has been shown")
    if stated:
        truth = truth_of(moment)

        def holds(predicate: Predicate, about: Mapping[str, str]) -> bool | None:
            return evaluate(predicate, truth, moment.manual.facts, about)

        def fault(now: Moment, fact: str) -> str:
            given = re.fullmatch(r"(\w+) is (.+)", fact)
            true = given and names.get(given[1]) == given[2]
            return "" if true else fact_fault(now, fact)

        yield from rejection_faults(moment, action, "; ".join(stated), holds, fault, {
            r"it (?:was rejected|changed nothing) before, and nothing has changed since|"
            r"it was played in this very situation twice and led back here": true_always,
        })  # fmt: skip


def fact_fault(moment: Moment, fact: str) -> str:
    """What is false about a fact; empty if nothing is."""
    truly = facts(moment)
    if match := re.fullmatch(r"(\w+) is on the account of (\w+)", fact):
        own = match[1] in truly and match[2] == customer(moment)
        return "" if own else "it is not on that account"
    for clause in fact.split(" and "):
        said = {
            (SENTENCES[known]).format(thing)
            for thing, all_known in truly.items()
            for known in all_known
            if known in SENTENCES
        }
        if clause not in said:
            return f"'{clause}' is not so"
    return ""


def vetoes_hold(moment: Moment, actions: Iterable[str]) -> Iterator[str]:
    """What the guard would say against actions must be true, and its advice possible."""
    for action in actions:
        if against := find_violation(moment.now, action):
            for fault in (*reason_faults(moment, action, against.reason),
                          *advice_faults(moment, action)):  # fmt: skip
                yield f"{moment.where}: {fault}: veto of '{action}': {against.reason}"


def advice_faults(moment: Moment, action: str) -> Iterator[str]:
    repair = find_repair(moment.manual, action, moment.state["belief"], moment.state["goal"])
    if repair is None:
        return
    truth, world = truth_of(moment), MANUAL.facts
    if repair.kind == "done" and not already_done(MANUAL, action, truth):
        yield "what it would do is not done"
    if repair.kind == "never":
        yield from is_so("is not so" in fact_fault(moment, repair.lacking), "it is so already")
    rule, names = match_action(MANUAL, repair.playable) or (None, {})
    for predicate in rule.needs if rule else ():
        if evaluate(predicate, moment.state["belief"], world, names) is False:
            yield f"'{repair.playable}' needs {need(predicate, names, world)}"


# Memory.


@kind("memory", r"From here, a similar task (?:was solved by|went on with): (.+)")
def snippet(moment: Moment, match: re.Match[str]) -> Iterator[str]:
    """No step that is done already when its turn comes, as far as an answer has shown that."""
    yield from step_faults(moment, match[1].split(" -> "))


@kind("memory", r"OK: \w+: (.+)")
def recorded_snippet(moment: Moment, match: re.Match[str]) -> Iterator[str]:
    """As it was recorded, whole and in the names of another ticket."""
    yield from step_faults(moment, match[1].split(" -> "), names_here=False)


def step_faults(moment: Moment, steps: list[str], names_here: bool = True) -> Iterator[str]:
    truth, shown = truth_of(moment), moment.state["belief"]["flags"]
    seen = {fact for known in shown.values() for fact in known.split(", ")}
    for number, step in enumerate(steps):
        matched = match_action(MANUAL, step)
        if matched is None:
            yield f"'{step}' is no action"
            continue
        for name in listed(" ".join(matched[1].values())) if names_here else ():
            yield from is_so(
                name in truth["last_seen"] or name == customer(moment), f"no {name} here"
            )
        if matched[0].name == HAND_OVER:
            hopeless = parse_predicate("hopeless")
            known = evaluate(hopeless, moment.state["belief"], MANUAL.facts, {})
            yield from is_so(known is True, "nobody has seen that it is beyond support")
        if not names_here or step in steps[:number] or not (switch := switched(matched[0])):
            continue
        wrong = evaluate(switch, truth, MANUAL.facts, {}) is False
        known = any(f in seen for family in MANUAL.facts.alternatives
                    if switch.arguments[1] in family for f in family)  # fmt: skip
        if wrong and known:
            yield f"'{step}' would switch back what is right"


def switched(rule: ActionRule) -> Predicate | None:
    """The state that a toggle is for; none for any other action."""
    return rule.needs[0] if rule.name.startswith("toggle_") and rule.effects else None


@kind("memory", r"Learned: (.+?)(?: needs (.+?))?(?:; afterwards (.+?))?"
                r"(?: \(worked in \d+ of \d+ tries\))?")  # fmt: skip
def learned(moment: Moment, match: re.Match[str]) -> Iterator[str]:
    yield from learned_faults(match[1], match[2], match[3])


@kind("memory", r"SCHEMA: (.+?)(?: \| needs (.+?))?(?: \| then (.+?))? \| confidence [\d.]+")
def recorded_schema(moment: Moment, match: re.Match[str]) -> Iterator[str]:
    yield from learned_faults(match[1], match[2], match[3])


def learned_faults(action: str, needs: str | None, then: str | None) -> Iterator[str]:
    """What memory noticed must be so by the tools and the policy."""
    matched = match_action(MANUAL, action)
    if matched is None:
        yield "no such action"
        return
    rule, names = matched
    if not (needs or then):
        yield "it says nothing"
    known = {need(p, names, MANUAL.facts) for p in rule.needs}
    yield from (f"'{words}' is no need of it" for words in (needs or "").split("; ")
                if words and words not in known)  # fmt: skip
    outcomes = {statement(p, names, MANUAL.facts) for p in rule.outcomes}
    for words in (then or "").split("; "):
        effect, _, given = words.removesuffix(")").partition(" (before: ")
        if effect and effect.removesuffix(" still") not in outcomes:
            yield f"'{effect}' is no effect of it"
        conditions = given.split(" and ") if given else []
        others = {
            statement(p._replace(arguments=(p.arguments[0], fact)), names, MANUAL.facts)
            for p in rule.outcomes
            for family in MANUAL.facts.alternatives
            if p.name == "state" and p.arguments[1] in family
            for fact in family
        }
        yield from (f"'{c}' is not what it changes" for c in conditions if c not in others)


@kind("memory", r"AVOID: (.+)|In a similar task '(.+)' was rejected; the reason is not known")
def rejected_before(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    action = match[1] or match[2]
    return is_so(match_action(MANUAL, action) is not None, f"'{action}' is no action")


@kind("memory", r"Rule: needs (.+)|"
                r"Rule: it was rejected in a similar task, the reason is not known")  # fmt: skip
def recorded_rule(moment: Moment, match: re.Match[str]) -> Iterator[str]:
    """Of the action in the line above it: some action must have all these needs."""
    above = moment.blocks.memory.partition(match[0])[0].rstrip().rpartition("\n")[2]
    matched = match_action(MANUAL, above.strip().removeprefix("AVOID: "))
    if match[1] and matched:
        known = {need(p, matched[1], MANUAL.facts) for p in matched[0].needs}
        yield from (f"'{w}' is no need of it" for w in match[1].split("; ") if w not in known)
    elif match[1]:
        yield "it is about no action"


@kind("memory", r"WARNING \[(.+?)\]: check first that (.+); that is not known yet")
def warning(moment: Moment, match: re.Match[str]) -> Iterator[str]:
    rule = next((rule for rule in MANUAL.actions if rule.id == match[1]), None)
    yield from is_so(rule is not None, "no such rule")
    shown = moment.state["belief"]
    for thing, known in shown["flags"].items():
        said = {SENTENCES.get(fact, fact).format(thing) for fact in known.split(", ")}
        yield from is_so(match[2] not in said, "that is known")


# The guard's offers: reasons that say how things are.

# What each reason claims; those that claim nothing about this ticket have no facts.
REASONS: dict[str, tuple[str, ...]] = {
    "airplane mode cuts the phone off": ("airplane on",),
    "no SIM card is detected": ("sim missing",),
    "a locked SIM card is beyond support": ("sim locked",),
    "the APN settings are broken": ("apn broken",),
    "settings are reset at a reboot": ("reset pending",),
    "a line whose contract has ended stays suspended": ("contract ended", "line suspended"),
    "a line is suspended for overdue bills": ("line suspended",),
    "the customer allows it": ("payment allowed", "payment awaiting"),
    "nothing is overdue any more": ("nothing overdue", "line suspended"),
    "the phone finds its network again at a reboot": ("line active",),
    "the customer is abroad": ("abroad",),
    "mobile data is off": ("data off",),
    "the limit is exceeded": ("usage exceeded",),
    "the app may not send messages": ("sms missing",),
    "the app may not read pictures": ("storage missing",),
    "the MMSC URL is missing": ("mmsc missing",),
}  # fmt: skip
PRINCIPLES = {
    pattern.because
    for patterns in MANUAL.domain.applicable.values()
    for pattern in patterns
    if "{" not in pattern.because
} - {*REASONS}


@kind("offered", r"\d+\. (.+?) \((.+)\)")
def offer(moment: Moment, match: re.Match[str]) -> Iterator[str]:
    truly, reason = facts(moment), match[2]
    known = {*truly["phone"], *truly["account"], *truly["ticket"], *truly[own_line(moment)]}
    if claims := REASONS.get(reason):
        yield from (f"'{claim}' is not so" for claim in claims if claim not in known)
    elif found := re.fullmatch(r"(\w+) is overdue", reason):
        yield from is_so("bill overdue" in truly.get(found[1], ()), f"{found[1]} is not overdue")
    elif found := re.fullmatch(r"(\w+) may be the ticket's line", reason):
        yield from is_so("a line" in truly.get(found[1], ()), f"{found[1]} is no line")
    elif found := re.fullmatch(r"the ticket names (.+)", reason):
        yield from is_so(found[1] in moment.state["goal"]["sentence"], "it does not")
    elif reason not in PRINCIPLES:
        yield "nobody can check this reason"
    rule, names = match_action(MANUAL, match[1]) or (None, {})
    if rule is None:
        yield f"'{match[1]}' is no action"
        return
    for predicate in rule.needs:
        if evaluate(predicate, truth_of(moment), MANUAL.facts, names) is False:
            yield f"it needs {need(predicate, names, MANUAL.facts)}"


KINDS: list[Kind] = [each for each in globals().values() if isinstance(each, Kind)]


def effects_hold(moment: Moment, truth_before: Belief | None) -> Iterator[str]:
    """What the manual prints of an action, against what tau2 made of the last one.

    The policy asks for more than the tools: that an action was carried out although a need was
    unmet is no fault. A toggle does the contrary then, as its line says.
    """
    if truth_before is None or not moment.state["history"]:
        return
    last, truth = moment.state["history"][-1], truth_of(moment)
    matched = match_action(MANUAL, last["action"])
    if matched is None:
        return
    rule, names = matched
    world, said = MANUAL.facts, f"{moment.where}: '{last['action']}' "
    typed = all(fits(name, text) for name, text in names.items())
    met = all(evaluate(p, truth_before, world, names) for p in rule.needs)
    if last["failed"] and met and rule.needs and rule.effects and typed:
        yield f"{said}was rejected, and all its needs were met"
    if last["failed"] or not rule.effects:
        return
    if met:
        for outcome in rule.outcomes:
            if evaluate(outcome, truth, world, names) is False:
                yield f"{said}was carried out, and '{statement(outcome, names, world)}' is not so"
    elif (switch := switched(rule)) and evaluate(switch, truth, world, names) is False:
        yield f"{said}was carried out, and did not switch the other way"


def fits(name: str, text: str) -> bool:
    """Whether an argument is of the type that the tool takes."""
    try:
        TYPES.get({"amount": "gb_amount", "settings": "apn_settings"}.get(name, name), str)(text)
    except (TypeError, ValueError):
        return False
    return True
