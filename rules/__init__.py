"""The rule manual R: three YAML tiers, and what follows from them."""

from rules.manual import ActiveRules, Manual, load_manual
from rules.semantics import (
    Diagnosis,
    check_action,
    explain_refusal,
    forbidden_by,
    match_action,
    simulate,
)

__all__ = [
    "ActiveRules",
    "Diagnosis",
    "Manual",
    "check_action",
    "explain_refusal",
    "forbidden_by",
    "load_manual",
    "match_action",
    "simulate",
]
