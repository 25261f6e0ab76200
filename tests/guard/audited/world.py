"""A refund desk, for tests of what reads conversations and manuals without an agent."""

from __future__ import annotations

from typing import Any

from langchain_core.tools import tool

import rpms


@tool
def get_order(order_id: str) -> str:
    """Show an order."""
    return f'{{"order_id": "{order_id}", "total": 50.0, "status": "delivered"}}'


@tool
def verify(customer_id: str, code: str) -> str:
    """Check a customer's code."""
    return "ok" if code == "1234" else "Error: a wrong code"


@tool
def refund(order_id: str, usd: float, currency: str = "USD") -> str:
    """Pay money back."""
    return "done"


TOOLS = [get_order, verify, refund]


class AuditedDesk(rpms.ToolWorld):
    """Refunds orders."""

    name = "audited"

    def tools(self) -> list[Any]:
        """Those of the agent."""
        return TOOLS


WORLD = AuditedDesk()
NAME = f"{__name__}:WORLD"
