"""The rule manual R: three YAML tiers, and what follows from them."""

from rpms.rules.loader import read_manual
from rpms.rules.manual import ActiveRules, Manual, Rejection
from rpms.rules.semantics import (
    Diagnosis,
    already_done,
    can_work,
    check_action,
    explain_rejection,
    forbidden_by,
    imagine,
    match_action,
    needed_actions,
    simulate,
    spoken_of,
)
from rpms.vocabulary.naming import refers_to

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
    "imagine",
    "match_action",
    "needed_actions",
    "read_manual",
    "refers_to",
    "simulate",
    "spoken_of",
]
