"""tau2's retail desk: cancelled, modified, returned and exchanged orders."""

from pathlib import Path

from rpms.envs.tau2.desk import Desk

DESK = Desk("retail", Path(__file__).parent)
