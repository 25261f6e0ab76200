"""The rule manual R: three YAML tiers, and what follows from them."""

# Importing a condition's module declares it, so that the vocabulary always has all of them.
from rpms.rules import comparisons as comparisons
from rpms.rules import conditions as conditions
from rpms.rules import things as things
from rpms.rules.effects import already_done, needed_actions, simulate, simulate_in_place
from rpms.rules.loader import read_manual
from rpms.rules.manual import ActiveRules, Manual, Rejection
from rpms.rules.verdicts import (
    Diagnosis,
    can_work,
    check_action,
    explain_rejection,
    forbidden_by,
    match_action,
    never_works,
)

__all__ = [
    "ActiveRules",
    "Diagnosis",
    "Manual",
    "Rejection",
    "already_done",
    "can_work",
    "check_action",
    "explain_rejection",
    "forbidden_by",
    "match_action",
    "needed_actions",
    "never_works",
    "read_manual",
    "simulate",
    "simulate_in_place",
]

if __name__ != "rpms.rules":
    raise ImportError("'rules' at the top of the clone is only a link: import rpms.rules")
