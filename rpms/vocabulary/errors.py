"""Errors that a person can act on.

A mistake of the user (a wrong name, a damaged file, a missing key) raises an ``RpmsError`` with a
message of one line: what is wrong, where, and what to do. The command line prints that line and
exits with code 2; library users can catch one class.

The errors are RuntimeErrors because LangGraph's server shows clients the message of those only.
"""

from __future__ import annotations


class RpmsError(RuntimeError):
    """Something the user can fix; ``str(error)`` is the whole message, on one line."""


class BadSetting(RpmsError):
    """A setting has an invalid value; the command line names its option instead."""

    def __init__(self, setting: str, value: object, why: str) -> None:
        super().__init__(f"{setting}={value!r} {why}")
        self.setting, self.value, self.why = setting, value, why


class EnvironmentFault(RuntimeError):
    """The simulator itself failed. Never counted as a failure of the agent."""


class ModelFault(RpmsError):
    """A model cannot be opened, or its call for something other than an action failed."""
