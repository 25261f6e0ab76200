from __future__ import annotations

import asyncio
from typing import Any

from rpms.envs import get_environment
from rpms.evals.episode import STEPPING, Pacing, Place, play_job
from rpms.evals.plan import Job
from rpms.nodes.context import RunContext


async def test_a_few_at_a_time_are_worked_on_until_they_ask_again() -> None:
    pacing = Pacing()
    now = {"starting": 0, "working": 0}
    most = dict(now)
    asked: list[int] = []

    async def busy(what: str) -> None:
        now[what] += 1
        most[what] = max(most[what], now[what])
        for _ in range(20):
            await asyncio.sleep(0)
        now[what] -= 1

    async def episode(number: int) -> None:
        place = Place(pacing)
        await place.start()
        await busy("starting")
        await place.passed("reset_env")
        for _ in range(3):
            await place.passed("belief_update")
            await busy("working")
            await place.passed("prompt_build")
            asked.append(number)
            await asyncio.sleep(0.01)
            await place.passed("llm_call")
        place.leave()

    await asyncio.gather(*map(episode, range(12)))
    assert most == {"starting": 1, "working": STEPPING}
    assert sorted(asked) == sorted([*range(12)] * 3)
    assert asked[0] == 0 and asked.index(11) > asked.index(1)
    assert not pacing.starting.locked() and pacing.stepping._value == STEPPING


class Broken:
    """A graph that falls over after its first stage."""

    async def astream(self, *_: Any, **__: Any) -> Any:
        yield {"belief_update": {}}
        raise RuntimeError("fell over")


async def test_whatever_happens_the_place_is_given_back() -> None:
    pacing = Pacing()
    task = get_environment("alfworld").tasks("generated_unseen", 1)[0]
    for _ in range(STEPPING + 2):
        broken: Any = Broken()
        played = play_job(broken, Job("B", task), RunContext(), False, pacing)
        line, _ = await asyncio.wait_for(played, 300)
        assert line.failure_mode == "infrastructure_error"
    assert not pacing.starting.locked() and pacing.stepping._value == STEPPING
