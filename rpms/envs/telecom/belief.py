"""What tool answers tell, as facts about the phone, the account, its lines and its bills.

Every answer is read by the same few patterns, whatever tool gave it. Facts of one family exclude
each other: a new one takes the place of the old. What a change may have made untrue, and only a new
test would tell, is forgotten. Nothing here reads the manual: a belief is the same without rules.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, cast

from rpms.vocabulary.belief import Belief, copy_belief, empty_belief
from rpms.vocabulary.calls import Call
from rpms.vocabulary.files import read_yaml

TODAY = "2025-02-25"
"""The date that the policy says it is."""
PHONE, ACCOUNT, TICKET = "phone", "account", "ticket"
READS = ("check_", "get_", "run_", "can_")
_PASSING = ("speed ", "mms ")
# Facts that only describe a line or a bill: no rule and no memory is about them.
DETAILS = ("number ", "plan ", "amount ")
_SWITCHES = {"Yes": "on", "No": "off", "ON": "on", "OFF": "off"}
_REQUESTED = re.compile(r"payment request for bill (\w+)|Payment request sent .* for bill (\w+)")
_PAID = re.compile(r"Payment of .+ has been made for bill (\w+)\.")
_ROAMING = re.compile(r"Roaming (?:was already )?(enabled|disabled)")
_PHONE_NUMBER = re.compile(r"phone number: ([\d-]+\d)")


@cache
def _read(name: str) -> dict[str, Any]:
    return cast(dict[str, Any], read_yaml(Path(__file__).parent / name)[1])


def read_tier(name: str) -> dict[str, Any]:
    """A tier of the manual, for what may ask the rules: the sub-goal."""
    return _read(f"rules/{name}.yaml")


def read_table(name: str) -> Any:
    """A table of how answers are read."""
    return _read("reading.yaml")[name]


def facts_of(belief: Belief, thing: str) -> list[str]:
    """All that is known of a thing."""
    text = belief["flags"].get(thing, "")
    return text.split(", ") if text else []


def known_facts(belief: Belief) -> dict[str, set[str]]:
    """All that is known of the customer, the ticket's line, the phone and the account."""
    lines = ({*facts_of(belief, name)} for name in belief["last_seen"])
    line = next((facts for facts in lines if "of the ticket" in facts), set())
    customer = {"identified"} if belief["last_seen"] else set()
    phone, account = ({*facts_of(belief, thing)} for thing in (PHONE, ACCOUNT))
    line = {fact for fact in line if not fact.startswith(DETAILS)}
    return {"customer": customer, "line": line, PHONE: phone, ACCOUNT: account}


def role_names(belief: Belief) -> dict[str, str]:
    """Who plays a part in a ticket: its customer and line (or one that may be it), a bill due."""
    facts = {name: {*facts_of(belief, name)} for name in belief["last_seen"]}
    lines = [name for name in facts if "of the ticket" in facts[name] or facts[name] == {"a line"}]
    lines.sort(key=lambda name: "of the ticket" not in facts[name])
    due = [name for name in facts if facts[name] & {"bill overdue", "bill awaiting payment"}]
    names = {
        "the ticket's number": belief["visible"][:1],
        "the customer": [*belief["last_seen"].values()],
        "the ticket's line": lines,
        "the bill due": due,
    }
    return {role: candidates[0] for role, candidates in names.items() if candidates}


def note(belief: Belief, thing: str, *facts: str) -> None:
    """Put facts in the place of those that they exclude."""
    known, families = facts_of(belief, thing), read_table("families")
    for fact in facts:
        rivals = {other for family in families if fact in family for other in family}
        known = [*(other for other in known if other not in rivals and other != fact), fact]
    belief["flags"][thing] = ", ".join(known)


def forget(belief: Belief, thing: str, *beginnings: str) -> None:
    """Drop facts that begin so."""
    known = [fact for fact in facts_of(belief, thing) if not fact.startswith(beginnings)]
    if known:
        belief["flags"][thing] = ", ".join(known)
    else:
        belief["flags"].pop(thing, None)


def read_ticket(observation: str) -> Belief:
    """b_0: who it is about, where they are, and what they allow."""
    belief = empty_belief()
    # Besides ids, tools take words that their documentation names.
    words = read_table("words")
    belief["visible"] = [*_PHONE_NUMBER.findall(observation), *words]
    note(belief, TICKET, "abroad" if " abroad " in observation else "at home")
    allowed = "allowed" if "permission to pay" in observation else "not allowed"
    note(belief, TICKET, f"payment {allowed}")
    return belief


def update_belief(previous: Belief, action: str, observation: str) -> Belief:
    """b_t from one tool call, as text, and its answer."""
    if not action:
        return read_ticket(observation)
    return read_answer(previous, Call(*read_call(action)), observation)


def read_answer(belief: Belief, call: Call, answer: str) -> Belief:
    """b_t from one tool call and its answer."""
    belief, observation = copy_belief(belief), answer
    if observation.startswith("Error"):
        return belief
    tool, arguments = call
    if not tool.startswith(READS):
        forget(belief, PHONE, *_PASSING)
    for record in _records(observation):
        _read_record(belief, record)
    _read_phone(belief, observation)
    _read_payment(belief, observation)
    line = str(arguments.get("line_id", ""))
    if "new_data_refueling_gb" in observation:
        note(belief, line, "refuelled")
        forget(belief, line, "usage ")
    if tool in ("enable_roaming", "disable_roaming") and (roaming := _ROAMING.match(observation)):
        note(belief, line, "roaming allowed" if roaming[1] == "enabled" else "roaming refused")
    return belief


def read_call(action: str) -> tuple[str, dict[str, str]]:
    """``tool a=1 b=two words`` as its name and arguments."""
    tool, _, rest = action.partition(" ")
    return tool, dict(re.findall(r"(\w+)=(.*?)(?= \w+=|$)", rest))


def _records(observation: str) -> list[dict[str, Any]]:
    """Every object of an answer in JSON."""
    records: list[dict[str, Any]] = []
    with suppress(ValueError):
        json.loads(observation, object_hook=records.append)
    return records


def _read_record(belief: Belief, record: dict[str, Any]) -> None:
    if "line_ids" in record:
        for kind in ("line", "bill"):
            for name in record[f"{kind}_ids"]:
                _meet(belief, name, kind, record["customer_id"])
        _settle_customers(belief)
    elif "bill_id" in record:
        _meet(belief, record["bill_id"], "bill", record["customer_id"])
        note(belief, record["bill_id"], f"bill {record['status'].lower()}")
        if record["status"] in ("Overdue", "Awaiting Payment"):  # a draft may still grow
            forget(belief, record["bill_id"], "amount ")
            note(belief, record["bill_id"], f"amount {record['total_due']}")
        _settle(belief)
    elif "plan_id" in record and "line_id" in record:
        own = record["phone_number"] in belief["visible"]
        contract = "contract ended" if record["contract_end_date"] < TODAY else "contract valid"
        forget(belief, record["line_id"], "plan ")
        note(belief, record["line_id"], "a line", f"number {record['phone_number']}",
             f"plan {record['plan_id']}", f"line {record['status'].lower()}", contract,
             "roaming allowed" if record["roaming_enabled"] else "roaming refused",
             "of the ticket" if own else "of another number",
             "refuelled" if record["data_refueling_gb"] else "not refuelled")  # fmt: skip
        if own:
            note(belief, ACCOUNT, contract.replace("contract", "term"))
    elif "data_limit_gb" in record and "line_id" in record:
        limit = float(record["data_limit_gb"]) + float(record["data_refueling_gb"])
        exceeded = float(record["data_used_gb"]) >= limit
        note(belief, record["line_id"], "usage exceeded" if exceeded else "usage within")


def _meet(belief: Belief, name: str, kind: str, customer: str) -> None:
    belief["visible"] = list(dict.fromkeys([*belief["visible"], customer, name]))
    belief["last_seen"][name] = customer
    note(belief, name, f"a {kind}")


def _settle(belief: Belief) -> None:
    """What the bills seen so far add up to, once every bill of the account has been seen."""
    known = [facts_of(belief, name) for name in belief["last_seen"]]
    bills = [facts for facts in known if "a bill" in facts]
    listed = any("a line" in facts for facts in known)  # by the customer's own record
    if listed and all(len(facts) > 1 for facts in bills):
        overdue = any("bill overdue" in facts for facts in bills)
        note(belief, ACCOUNT, "bills overdue" if overdue else "nothing overdue")
    _settle_customers(belief)


def _settle_customers(belief: Belief) -> None:
    """The same of each customer: what is only asked for is still due.

    That all bills were seen is certain only of a customer whose own record was shown.
    """
    facts = {name: facts_of(belief, name) for name in belief["last_seen"]}
    for customer in {*belief["last_seen"].values()}:
        own = [facts[name] for name, owner in belief["last_seen"].items() if owner == customer]
        bills = [known for known in own if "a bill" in known]
        forget(belief, customer, "bills overdue", "nothing overdue")
        if any("a line" in known for known in own) and all(len(known) > 1 for known in bills):
            due = any({"bill overdue", "bill awaiting payment"} & {*known} for known in bills)
            note(belief, customer, "bills overdue" if due else "nothing overdue")


def _read_phone(belief: Belief, text: str) -> None:
    for pattern, *facts in read_table("answers"):
        if match := re.search(pattern, text):
            word = match[1] if match.re.groups else ""
            note(belief, PHONE, *(f.format(_SWITCHES.get(word, word.lower())) for f in facts))
    for words, beginning in read_table("forgotten").items():
        if words in text:
            forget(belief, PHONE, beginning)


def _read_payment(belief: Belief, text: str) -> None:
    if requested := _REQUESTED.search(text):
        note(belief, requested[1] or requested[2], "bill awaiting payment")
        note(belief, ACCOUNT, "payment awaiting")
        _settle(belief)
    elif "No payment request" in text or "You do not have a payment request" in text:
        note(belief, ACCOUNT, "nothing awaiting")
    elif paid := _PAID.search(text):
        note(belief, paid[1], "bill paid")
        note(belief, ACCOUNT, "nothing awaiting")
        _settle(belief)
