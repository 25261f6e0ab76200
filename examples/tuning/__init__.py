"""The parts of ``examples/tune.py``; docs/tuning.md tells how to use it."""
