"""The tools of a refund desk, and the world by which the guard knows them.

The tools check nothing: ``rules/environment.yaml`` says what ``policy.md`` demands of each call.
"""

from __future__ import annotations

import json

from langchain_core.tools import BaseTool, tool

import rpms

CODES = {"C1": "4711"}
ORDERS = {
    "O1": {"order_id": "O1", "customer_id": "C1", "total": 60.0, "delivered_at": "2026-01-05"},
    "O2": {"order_id": "O2", "customer_id": "C1", "total": 80.0, "delivered_at": "2026-01-08"},
}
PAID: list[tuple[str, float]] = []  # what the desk has really paid back


@tool
def verify_customer(customer_id: str, code: str) -> str:
    """Check the code that a customer has given."""
    # An answer that begins with {"error" means that nothing was done: the guard reads it so.
    return json.dumps({"ok": True} if CODES.get(customer_id) == code else {"error": "wrong code"})


@tool
def get_order(order_id: str) -> str:
    """Look an order up."""
    return json.dumps(ORDERS.get(order_id, {"error": "no such order"}))


@tool
def refund(order_id: str, customer_id: str, usd: float, reason: str) -> str:
    """Pay money back."""
    PAID.append((order_id, usd))
    return json.dumps({"paid": usd})


class Desk(rpms.ToolWorld):
    """Its rules lie beside this file; answers are read by ``records`` and ``effects`` there."""

    def tools(self) -> list[BaseTool]:
        """``rpms rules check`` compares them with the rules."""
        return [verify_customer, get_order, refund]


WORLD = Desk()
