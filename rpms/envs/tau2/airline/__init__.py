"""tau2's airline desk: bookings, changes, cancellations and compensation."""

from pathlib import Path

from rpms.envs.tau2.desk import ServiceDesk

DESK = ServiceDesk("airline", Path(__file__).parent)
