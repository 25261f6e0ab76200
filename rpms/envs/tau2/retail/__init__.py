"""tau2's retail desk: cancelled, modified, returned and exchanged orders."""

from pathlib import Path

from rpms.envs.tau2.desk import ServiceDesk

DESK = ServiceDesk("retail", Path(__file__).parent)
