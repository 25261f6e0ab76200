"""A LangChain agent that releases services, with rules, belief, memory and run files.

It has no built-in environment: only tools that answer in JSON, a manual, and a class that reads the
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
from rpms import Recorder, StateMemory
from rpms.guard import Call, RulesGuard

NAME = "examples.release.agent:WORLD"
TOOLS = ("status", "lock", "build", "test", "deploy", "unlock")
STAGES = ("changed", "built", "tested", "live")


class Pipeline:
    """The state behind the tools. It rejects a step that cannot work, without a reason."""

    def __init__(self) -> None:
        self.holder, self.stages = "", {"api": "changed", "web": "changed"}

    def step(self, tool: str, service: str) -> str:
        """Execute one call; the answer has the state of all services."""
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
        """The LangChain tool of this name."""

        def call(service: str) -> str:
            return self.step(name, service)

        return StructuredTool.from_function(call, name=name, description=f"{name} a service")


class Release(rpms.ToolWorld):
    """Reads the answers: the holder of the lock and the stage of every service."""

    def read_answer(self, belief: rpms.Belief, call: Call, answer: str) -> rpms.Belief:
        """Read the whole state; only a rejection does not have it."""
        if not answer.startswith('{"lock"'):
            return belief
        stages = json.loads(answer)
        holder = stages.pop("lock")
        return {**belief, "holding": [holder] if holder else [], "flags": stages}

    def parse_goal(self, sentence: str) -> rpms.GoalSpec:
        """Read the service, the last word of the sentence."""
        name = sentence.rstrip(".").split()[-1]
        return {**super().parse_goal(sentence), "object": name, "signature": f"release:{name}::"}

    def sub_goal(
        self, goal: rpms.GoalSpec, belief: rpms.Belief, history: Sequence[rpms.Turn]
    ) -> rpms.SubGoal:
        """The next of the five steps, by the belief; the last one frees the lock."""
        stage = STAGES.index(belief["flags"].get(goal["object"], "changed"))
        locked = goal["object"] in belief["holding"]
        step = stage + 1 if locked or stage == 3 else 0
        progress = 100 if step == 4 and not locked else 20 * step
        return rpms.SubGoal(name=TOOLS[step + 1], target=goal["object"], progress=progress)


WORLD = Release()


def make_agent(model: Any, runs: str, memory: str | bool = True, **guard: Any) -> Any:
    """An agent with its own pipeline."""
    pipeline = Pipeline()
    knowledge: Any = [StateMemory(NAME, memory), Recorder(NAME, runs), RulesGuard(WORLD, **guard)]
    tools = [*map(pipeline.tool, TOOLS)]
    return create_agent(model, tools, middleware=knowledge, name="release")


if __name__ == "__main__":
    model, task, runs = sys.argv[1:]
    print(make_agent(model, runs).invoke({"messages": [("user", task)]})["messages"][-1].text)
