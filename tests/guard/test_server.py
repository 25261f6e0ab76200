"""Four clients at once on one thread of a real ``langgraph dev``: one payment."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_client

from tests.langgraph_dev import langgraph_dev

pytestmark = [pytest.mark.server, pytest.mark.xdist_group("server")]
ROOT = Path(__file__).parents[2]
GRAPH = '''
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from rpms.guard import RulesGuard
from tests.guard.desk.world import Desk, DeskWorld

LOOK = [("get_customer", {"customer_id": "C1"}), ("get_order", {"order_id": "O2"}),
        ("verify_customer", {"customer_id": "C1", "code": "1111"})]
PAY = [("refund", {"customer_id": "C1", "order_id": "O2", "usd": 40})]


class Clerk(BaseChatModel):
    """Looks everything up, and pays when it is told to; it ends once its calls are answered."""

    _llm_type = "clerk"

    def bind_tools(self, *_: Any, **__: Any) -> Any:
        return self

    def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
        calls = PAY if str(messages[-1].content) == "Pay!" else LOOK
        done = isinstance(messages[-1], ToolMessage)
        made = [{"name": name, "args": args, "id": f"{len(messages)}-{number}"}
                for number, (name, args) in enumerate(calls)]
        reply = AIMessage("That is all." if done else "", tool_calls=[] if done else made)
        return ChatResult(generations=[ChatGeneration(message=reply)])


class Till(Desk):
    """Writes down what it pays."""

    def refund(self, customer_id: str, order_id: str, usd: float, note: str = "") -> str:
        answer = super().refund(customer_id, order_id, usd, note)
        Path(__file__).with_name("paid.txt").open("a").write(f"{usd}\\n")
        return answer


agent = create_agent(Clerk(), Till(slow=0.05).tools(), middleware=[RulesGuard(DeskWorld())])
'''


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "shop.py").write_text(GRAPH, encoding="utf-8")
    config = {"dependencies": ["."], "graphs": {"shop": "./shop.py:agent"}}
    paths = {"PYTHONPATH": str(ROOT)}
    with langgraph_dev(tmp_path, config, "--allow-blocking", cwd=tmp_path, **paths) as server:
        yield server.url


@pytest.mark.parametrize("strategy", ["reject", "enqueue"])
def test_runs_of_one_thread_pay_once(url: str, tmp_path: Path, strategy: Any) -> None:
    async def play() -> Any:
        client = get_client(url=url)
        thread = (await client.threads.create())["thread_id"]

        async def say(text: str) -> Any:
            given = {"messages": [{"role": "user", "content": text}]}
            return await client.runs.wait(thread, "shop", input=given, multitask_strategy=strategy)

        await say("Look!")
        await asyncio.gather(*(say("Pay!") for _ in range(4)), return_exceptions=True)
        return (await client.threads.get_state(thread))["values"]["messages"]

    messages = asyncio.run(play())
    assert (tmp_path / "paid.txt").read_text() == "40.0\n"
    refusals = [m for m in messages if "was not carried out" in str(m["content"])]
    assert len(refusals) == (3 if strategy == "enqueue" else 0)
