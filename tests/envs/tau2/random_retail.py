"""Random changes of orders at the retail desk: many legal, many with one mistake.

python -m tests.envs.tau2.random_retail 6000    # compare the guard with tau2's own tools
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from rpms.envs.tau2.retail import DESK
from rpms.guard import Call
from rpms.guard.decision import Judgement
from tools.desk_gold import DeskConversation

ADDRESS = {
    "address1": "1 Elm Street", "address2": "", "city": "Denver", "state": "CO", "country": "USA",
    "zip": "80218",
}  # fmt: skip
CHANGES = ("cancel_pending_order", "modify_pending_order_items", "modify_pending_order_payment",
           "modify_pending_order_address", "return_delivered_order_items",
           "exchange_delivered_order_items")  # fmt: skip
REASONS = ("no longer needed", "ordered by mistake", "found a better price")


class Compared(NamedTuple):
    """A call, the guard's judgement of it after all look-ups, and the answer of tau2's tool."""

    call: Call
    judgement: Judgement
    answer: str

    @property
    def agrees(self) -> bool:
        """Return whether the guard allows exactly what the tool carries out."""
        return (self.judgement.verdict == "allow") == (not self.answer.startswith("Error"))


class RandomCalls:
    """Draws calls from tau2's database."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        tables = DESK.open().database()
        self.orders, self.users, self.products = (
            [*tables[name].values()] for name in ("orders", "users", "products")
        )
        self.items = {
            item: product["variants"] for product in self.products for item in product["variants"]
        }
        self.by_id = {user["user_id"]: user for user in self.users}

    def draw(self) -> tuple[dict[str, Any], Call]:
        """An order, and a call that changes it."""
        tool, order = self.random.choice(CHANGES), self.random.choice(self.orders)
        status = "pending" if "pending" in tool else "delivered"
        while order["status"] != status and self._often():
            order = self.random.choice(self.orders)
        arguments: dict[str, Any] = {"order_id": order["order_id"]}
        if tool == "cancel_pending_order":
            arguments["reason"] = self.random.choice(REASONS)
        elif tool == "modify_pending_order_address":
            arguments |= ADDRESS
        else:
            arguments["payment_method_id"] = self._payment(order)
        if tool.endswith("items"):
            arguments["item_ids"] = self._ordered(order)
        if tool.endswith("items") and not tool.startswith("return"):
            arguments["new_item_ids"] = self._replacements(arguments["item_ids"])
        return order, Call(tool, arguments)

    def _often(self, share: float = 0.85) -> bool:
        return self.random.random() < share

    def _payment(self, order: dict[str, Any]) -> str:
        user = self.by_id[order["user_id"]] if self._often(0.93) else self.random.choice(self.users)
        return self.random.choice([*user["payment_methods"]])

    def _ordered(self, order: dict[str, Any]) -> list[str]:
        ids = [item["item_id"] for item in order["items"]]
        chosen = self.random.sample(ids, self.random.randint(1, min(3, len(ids))))
        chosen += [] if self._often() else [self.random.choice(ids)]
        return chosen if self._often(0.93) else [*chosen[1:], self.random.choice([*self.items])]

    def _replacements(self, items: list[str]) -> list[str]:
        variants = [self.items[item] if self._often(0.95) else self.items for item in items]
        chosen = [self.random.choice([*each]) for each in variants]
        return chosen if self._often(0.95) else chosen[1:]


def compare(count: int, seed: int = 0) -> Iterator[Compared]:
    """Judge random calls after all look-ups, and let tau2's tool answer them."""
    calls = RandomCalls(seed)
    for _ in range(count):
        order, call = calls.draw()
        conversation = DeskConversation(DESK, words="Hello.")
        email = calls.by_id[order["user_id"]]["email"]
        look_ups = [
            Call("find_user_id_by_email", {"email": email}),
            Call("get_user_details", {"user_id": order["user_id"]}),
            Call("get_order_details", {"order_id": order["order_id"]}),
        ]
        products = {item["product_id"] for item in order["items"]}
        look_ups += [Call("get_product_details", {"product_id": each}) for each in sorted(products)]
        for look_up in look_ups:
            conversation.run(look_up)
        yield Compared(call, conversation.judge(call), conversation.run(call))


def main() -> None:
    """Print how often the guard and tau2's tools agree, and the rules where they do not."""
    compared = [*compare(int(sys.argv[1]) if sys.argv[1:] else 1000)]
    allowed = sum(each.judgement.verdict == "allow" for each in compared)
    agreed = sum(each.agrees for each in compared)
    print(f"{len(compared):,} calls, {allowed:,} allowed, {agreed:,} judged as by tau2's tools")
    print(Counter((each.call.tool, each.judgement.rule) for each in compared if not each.agrees))


if __name__ == "__main__":
    main()
