"""An agent of LangChain's that releases services, with our rules, belief, memory and run files.

Nothing of it is a world of ours: tools that answer in JSON, a manual, and a class that reads the
answers. ``python -m examples.release.agent openai:gpt-5-mini "Release the api." runs/release``
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.tools import BaseTool, StructuredTool

import rpms
from rpms.guard import Call, RulesGuard
from rpms.middleware import Recorder, StateMemory

NAME = "examples.release.agent:WORLD"
TOOLS = ("status", "lock", "build", "test", "deploy", "unlock")
STAGES = ("changed", "built", "tested", "live")


class Pipeline:
    """What the tools act upon. A step that cannot work is refused, and nobody says why."""

    def __init__(self) -> None:
        self.holder, self.stages = "", {"api": "changed", "web": "changed"}

    def step(self, tool: str, service: str) -> str:
        """One call; the answer tells how all services are."""
        stage = STAGES.index(self.stages.get(service, "live"))
        if tool == "lock" and not self.holder and service in self.stages:
            self.holder = service
        elif tool == "unlock" and self.holder == service:
            self.holder = ""
        elif self.holder == service and tool == TOOLS[stage + 2] and stage < 3:
            self.stages[service] = STAGES[stage + 1]
        elif tool != "status":
            return json.dumps({"error": "refused"})
        return json.dumps({"lock": self.holder, **self.stages})

    def tool(self, name: str) -> BaseTool:
        """One of the tools."""

        def call(service: str) -> str:
            return self.step(name, service)

        return StructuredTool.from_function(call, name=name, description=f"{name} a service")


class Release(rpms.ToolWorld):
    """How the answers read: who holds the lock, and how far every service is."""

    def read_answer(self, belief: rpms.Belief, call: Call, answer: str) -> rpms.Belief:
        """Every answer but a refusal tells all there is."""
        if not answer.startswith('{"lock"'):
            return belief
        stages = json.loads(answer)
        holder = stages.pop("lock")
        return {**belief, "holding": [holder] if holder else [], "flags": stages}

    def parse_goal(self, sentence: str) -> rpms.GoalSpec:
        """The service is the last word."""
        name = sentence.rstrip(".").split()[-1]
        return {**super().parse_goal(sentence), "object": name, "signature": f"release:{name}::"}

    def sub_goal(
        self, goal: rpms.GoalSpec, belief: rpms.Belief, history: Sequence[rpms.Turn]
    ) -> rpms.SubGoal:
        """Five steps, of which the belief tells the next; in the end the lock is free again."""
        stage = STAGES.index(belief["flags"].get(goal["object"], "changed"))
        locked = goal["object"] in belief["holding"]
        step = stage + 1 if locked or stage == 3 else 0
        progress = 100 if step == 4 and not locked else 20 * step
        return rpms.SubGoal(name=TOOLS[step + 1], target=goal["object"], progress=progress)


WORLD = Release()


def make_agent(model: Any, runs: str, memory: str | bool = True, **guard: Any) -> Any:
    """The agent in front of a pipeline of its own."""
    pipeline = Pipeline()
    knowledge: Any = [StateMemory(NAME, memory), Recorder(NAME, runs), RulesGuard(WORLD, **guard)]
    tools = [*map(pipeline.tool, TOOLS)]
    return create_agent(model, tools, middleware=knowledge, name="release")


if __name__ == "__main__":
    model, task, runs = sys.argv[1:]
    print(make_agent(model, runs).invoke({"messages": [("user", task)]})["messages"][-1].text)
