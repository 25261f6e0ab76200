"""Measuring the agent: conditions side by side on the same tasks."""

from evals.conditions import Tally, run_conditions

__all__ = ["Tally", "run_conditions"]
