"""The settings of a run as the stages read them; they are declared in ``rpms/vocabulary``."""

from __future__ import annotations

from rpms.models import default_timeout
from rpms.vocabulary.context import (
    CEILING,
    CONDITIONS,
    OLD_GUARDS,
    Layout,
    RunContext,
    condition_name,
    refuse_unknown,
    settings,
)

__all__ = [
    "CEILING",
    "CONDITIONS",
    "OLD_GUARDS",
    "Layout",
    "RunContext",
    "call_s",
    "condition_name",
    "refuse_unknown",
    "settings",
]


def call_s(context: RunContext) -> float:
    """How long one model call may take, as asked for or by the kind of model."""
    return context.timeout_s or default_timeout(context.model)
