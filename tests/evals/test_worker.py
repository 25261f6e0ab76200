from __future__ import annotations

import asyncio

import pytest

from rpms.evals import workers
from rpms.evals.workers import drop


async def test_what_a_dropped_episode_leaves_behind_is_waited_for() -> None:
    ended: list[str] = []

    async def farewell() -> None:
        await asyncio.sleep(0.05)
        ended.append("traced")

    async def episode() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            # As tracing does it: shielded, so that a cancelled run is still reported.
            await asyncio.shield(asyncio.create_task(farewell()))
            raise

    playing = [asyncio.create_task(episode()) for _ in range(3)]
    await asyncio.sleep(0)
    await drop(playing)
    assert ended == ["traced"] * 3
    assert all(task.cancelled() for task in playing)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_what_does_not_end_is_not_waited_for_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "DROP_S", 0.1)
    enough = asyncio.Event()

    async def stubborn() -> None:
        while not enough.is_set():
            try:
                await enough.wait()
            except asyncio.CancelledError:
                continue

    task = asyncio.create_task(stubborn())
    await asyncio.sleep(0)
    await drop([task])
    assert not task.done()
    enough.set()
    await task
