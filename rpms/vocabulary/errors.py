"""Errors a person can act on.

Anything a user can cause (a wrong name, a damaged file, a missing key) is raised as an
``RpmsError`` whose message is one line: what is wrong, where, and what to do about it. The
command line prints that line and exits with code 2; library users can catch one class.

Both are RuntimeErrors because LangGraph's server passes on the words of those, and keeps the text
of any other kind of exception from its clients.
"""

from __future__ import annotations


class RpmsError(RuntimeError):
    """Something the user can fix; ``str(error)`` is the whole message, on one line."""


class BadSetting(RpmsError):
    """A setting has a value that is not possible; the command line calls it by its option."""

    def __init__(self, setting: str, value: object, why: str) -> None:
        super().__init__(f"{setting}={value!r} {why}")
        self.setting, self.value, self.why = setting, value, why


class EnvironmentFault(RuntimeError):
    """The simulator itself failed. Never counted as a failure of the agent."""


class ModelFault(RpmsError):
    """A model that was asked for something else than an action did not answer."""
