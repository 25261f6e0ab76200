"""Evaluations: running plans, records of runs, and their analysis."""
