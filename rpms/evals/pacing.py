"""Who may compute now: keeps many episodes on one loop from marching in step.

Left alone, an event loop shares itself out evenly. Thirty replies that arrive together are then
worked on together, all next requests go out together at the end, and every round takes the
model's time plus thirty times ours. When a few episodes at a time are worked on until their next
request is out, they spread over the model's time and the waiting hides the work.
"""

from __future__ import annotations

import asyncio

STEPPING = 2
"""Two, so that one can compute while the simulator works for the other."""


class Pacing:
    """The places of one event loop."""

    def __init__(self) -> None:
        """One game is started at a time, so that steps never wait behind a row of them."""
        self.starting = asyncio.Semaphore(1)
        self.stepping = asyncio.Semaphore(STEPPING)


class Place:
    """What one episode holds: a place to start, a place to step, or none while it waits."""

    def __init__(self, pacing: Pacing) -> None:
        """None yet."""
        self._pacing = pacing
        self._held: asyncio.Semaphore | None = None

    async def start(self) -> None:
        """Wait for the turn to start a game."""
        await self._take(self._pacing.starting)

    async def passed(self, stage: str) -> None:
        """A stage is done; before the model is asked the place is given up."""
        if stage == "prompt_build":
            self.leave()
        elif stage in ("reset_env", "llm_call"):
            await self._take(self._pacing.stepping)

    async def _take(self, semaphore: asyncio.Semaphore) -> None:
        self.leave()
        await semaphore.acquire()
        self._held = semaphore

    def leave(self) -> None:
        """Let the next one in."""
        if self._held is not None:
            self._held.release()
            self._held = None
