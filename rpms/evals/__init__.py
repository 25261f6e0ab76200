"""Evaluations: running plans, records of runs, and their analysis."""

if __name__ != "rpms.evals":
    raise ImportError("'evals' at the top of the clone is only a link: import rpms.evals")
