"""f_upd for telecom: reads tool answers as facts about the phone, the account, lines and bills.

The same few patterns read the answers of all tools. Facts of one family exclude each other: a new
one replaces the old. Facts that a change may have made untrue are dropped until a new test. The
belief does not read the manual, so it is the same without rules.
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
"""The current date according to the policy."""
PHONE, ACCOUNT, TICKET = "phone", "account", "ticket"
READS = ("check_", "get_", "run_", "can_")
_PASSING = ("speed ", "mms ")
# Facts that only describe a line or a bill; no rule and no memory refers to them.
DETAILS = ("number ", "plan ", "amount ")
_SWITCHES = {"Yes": "on", "No": "off", "ON": "on", "OFF": "off"}
_REQUESTED = re.compile(r"payment request for bill (\w+)|Payment request sent .* for bill (\w+)")
_PAID = re.compile(r"Payment of .+ has been made for bill (\w+)\.")
_ROAMING = re.compile(r"Roaming (?:was already )?(enabled|disabled)")
_PHONE_NUMBER = re.compile(r"phone number: ([\d-]+\d)")


@cache
def _read(name: str) -> dict[str, Any]:
    return cast(dict[str, Any], read_yaml(Path(__file__).parent / name)[1])


def read_table(name: str) -> Any:
    """A table of ``reading.yaml``, which says how answers are read."""
    return _read("reading.yaml")[name]


def facts_of(belief: Belief, thing: str) -> list[str]:
    text = belief["flags"].get(thing, "")
    return text.split(", ") if text else []


def ticket_facts(belief: Belief) -> dict[str, set[str]]:
    """The facts about the customer, the ticket's line, the phone and the account."""
    lines = ({*facts_of(belief, name)} for name in belief["last_seen"])
    line = next((facts for facts in lines if "of the ticket" in facts), set())
    customer = {"identified"} if belief["last_seen"] else set()
    phone, account = ({*facts_of(belief, thing)} for thing in (PHONE, ACCOUNT))
    line = {fact for fact in line if not fact.startswith(DETAILS)}
    return {"customer": customer, "line": line, PHONE: phone, ACCOUNT: account}


def role_names(belief: Belief) -> dict[str, str]:
    """The roles of a ticket: its number, customer, line (or a candidate) and a bill due."""
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
    """Add facts and remove those that they exclude."""
    noted, families = facts_of(belief, thing), read_table("families")
    for fact in facts:
        rivals = {other for family in families if fact in family for other in family}
        noted = [*(other for other in noted if other not in rivals and other != fact), fact]
    belief["flags"][thing] = ", ".join(noted)


def forget(belief: Belief, thing: str, *prefixes: str) -> None:
    """Drop the facts with one of these prefixes."""
    kept = [fact for fact in facts_of(belief, thing) if not fact.startswith(prefixes)]
    if kept:
        belief["flags"][thing] = ", ".join(kept)
    else:
        belief["flags"].pop(thing, None)


def read_ticket(observation: str) -> Belief:
    """b_0: the customer's number and location, and whether payment is allowed."""
    belief = empty_belief()
    # Besides ids, tools take words that their documentation lists.
    words = read_table("words")
    belief["visible"] = [*_PHONE_NUMBER.findall(observation), *words]
    note(belief, TICKET, "abroad" if " abroad " in observation else "at home")
    allowed = "allowed" if "permission to pay" in observation else "not allowed"
    note(belief, TICKET, f"payment {allowed}")
    return belief


def update_belief(previous: Belief, action: str, observation: str) -> Belief:
    """b_t from the text of a tool call and its answer."""
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
    """Split ``tool a=1 b=two words`` into its name and arguments."""
    tool, _, rest = action.partition(" ")
    return tool, dict(re.findall(r"(\w+)=(.*?)(?= \w+=|$)", rest))


def _records(observation: str) -> list[dict[str, Any]]:
    """Every JSON object of an answer."""
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
        of_ticket = record["phone_number"] in belief["visible"]
        contract = "contract ended" if record["contract_end_date"] < TODAY else "contract valid"
        forget(belief, record["line_id"], "plan ")
        note(belief, record["line_id"], "a line", f"number {record['phone_number']}",
             f"plan {record['plan_id']}", f"line {record['status'].lower()}", contract,
             "roaming allowed" if record["roaming_enabled"] else "roaming refused",
             "of the ticket" if of_ticket else "of another number",
             "refuelled" if record["data_refueling_gb"] else "not refuelled")  # fmt: skip
        if of_ticket:
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
    """Note whether a bill is overdue, once every bill of the account was seen."""
    records = [facts_of(belief, name) for name in belief["last_seen"]]
    bills = [facts for facts in records if "a bill" in facts]
    listed = any("a line" in facts for facts in records)  # in the customer's record
    if listed and all(len(facts) > 1 for facts in bills):
        overdue = any("bill overdue" in facts for facts in bills)
        note(belief, ACCOUNT, "bills overdue" if overdue else "nothing overdue")
    _settle_customers(belief)


def _settle_customers(belief: Belief) -> None:
    """Note for each customer whether a bill is due; a requested payment is still due.

    All bills are certain to be listed only if the customer's record was shown.
    """
    facts = {name: facts_of(belief, name) for name in belief["last_seen"]}
    for customer in {*belief["last_seen"].values()}:
        records = [facts[name] for name, owner in belief["last_seen"].items() if owner == customer]
        bills = [record for record in records if "a bill" in record]
        forget(belief, customer, "bills overdue", "nothing overdue")
        listed = any("a line" in record for record in records)
        if listed and all(len(record) > 1 for record in bills):
            due = any({"bill overdue", "bill awaiting payment"} & {*record} for record in bills)
            note(belief, customer, "bills overdue" if due else "nothing overdue")


def _read_phone(belief: Belief, text: str) -> None:
    for pattern, *facts in read_table("answers"):
        if match := re.search(pattern, text):
            word = match[1] if match.re.groups else ""
            note(belief, PHONE, *(f.format(_SWITCHES.get(word, word.lower())) for f in facts))
    for words, prefix in read_table("forgotten").items():
        if words in text:
            forget(belief, PHONE, prefix)


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
