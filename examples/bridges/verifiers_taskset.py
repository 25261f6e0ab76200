"""RPMS for verifiers: its tasks as a taskset, its graph as the harness, success as the reward.

The graph runs in this process. Its model calls go through verifiers, which records them.
"""

from collections.abc import Iterable
from typing import Any

import verifiers.v1 as vf
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

import rpms

__all__ = ["RpmsHarness", "RpmsTaskset"]


class RpmsData(vf.TaskData):
    env: str
    split: str


class RpmsTask(vf.Task[RpmsData]):
    @vf.reward
    async def success(self, trace: vf.Trace) -> float:
        return float(trace.info["success"])


class RpmsTasksetConfig(vf.TasksetConfig):
    env: str = "alfworld"
    split: str = ""


class RpmsTaskset(vf.Taskset[RpmsTask, RpmsTasksetConfig]):
    def load(self) -> Iterable[RpmsTask]:
        world = rpms.get_environment(self.config.env)
        for task in world.tasks(self.config.split or world.splits()[0]):
            names = {"id": task["id"], "env": task["env"], "split": task["split"]}
            yield RpmsTask(RpmsData(prompt=task["goal"], **names), self.config.task)


class RpmsHarnessConfig(vf.HarnessConfig):
    condition: str = "D"
    max_steps: int = 0


class RpmsHarness(vf.Harness[RpmsHarnessConfig]):
    EXECUTES_CODE = NEEDS_CONTAINER = False

    async def launch(
        self, ctx: Any, trace: Any, runtime: Any, endpoint: str, secret: str, urls: Any, data: Any
    ) -> vf.ProgramResult:
        model = ChatOpenAI(model=ctx.model, base_url=endpoint, api_key=SecretStr(secret))
        context = rpms.RunContext(max_steps=self.config.max_steps).under(self.config.condition)
        ended: Any = await rpms.arun_episode(
            data.id, env=data.env, split=data.split, context=context, model=model
        )
        trace.info |= {name: ended[name] for name in ("success", "failure_mode")}
        trace.record_metrics({name: ended[name] for name in ("steps", "invalid_actions")})
        return vf.ProgramResult(bool(ended["error"]), "", ended["error"])
