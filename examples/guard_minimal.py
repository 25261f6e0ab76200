"""A guard for tools of your own, in one file: ``python examples/guard_minimal.py``.

The tools check nothing. Two sentences of a policy become two rules, and a call that breaks one of
them does not reach its tool. No model takes part in the decision, and none is called here.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp

from langchain_core.tools import tool

import rpms
from rpms.guard import RulesGuard

RULES = """
records: [booking_id]  # an answer with this field says what is known about that booking
actions:               # the arguments: the name in the tool, then the name in the rules
  - {id: T-LOOK, name: get_booking, arguments: {booking_id: booking}}
  - {id: T-CANCEL, name: cancel, arguments: {booking_id: booking, fee: fee}}
policy:
  - id: P-FLOWN
    source: Cancel only bookings that are not flown.
    action: cancel
    needs: ["equal(booking.flown, false)"]
  - id: P-FEE
    source: The fee is at most a tenth of the price.
    action: cancel
    needs: ["at_most(fee, product(booking.price, 0.1))", "at_least(fee, 0)"]
"""


@tool
def get_booking(booking_id: str) -> dict[str, str | int | bool]:
    """Look a booking up."""
    return {"booking_id": booking_id, "price": 200, "flown": booking_id == "B2"}


@tool
def cancel(booking_id: str, fee: float) -> str:
    """Cancel a booking."""
    return f"{booking_id} is cancelled for a fee of {fee:g}."


class Desk(rpms.ToolWorld):
    """The rules are two files in a folder; in a project, a folder beside this file."""

    rules = Path(mkdtemp())


if __name__ == "__main__":
    (Desk.rules / "environment.yaml").write_text(RULES, encoding="utf-8")
    (Desk.rules / "domain.yaml").write_text("procedures: {cancel: [cancel]}", encoding="utf-8")
    look_up, guarded = RulesGuard(Desk()).protect([get_booking, cancel])
    print(guarded.invoke({"booking_id": "B1", "fee": 20}))  # refused: nobody has looked it up
    for booking, fee in (("B1", 50), ("B1", 20), ("B2", 0)):
        look_up.invoke(booking)
        print(guarded.invoke({"booking_id": booking, "fee": fee}))
