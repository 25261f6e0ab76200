"""Which sentences of a policy the rules come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from rpms.guard.conversation import ConversationTracker
from rpms.guard.sources import compare_policy, split_sentences
from tests.guard.audited.world import WORLD

POLICY = """# Refunds

A refund is **at most** what the
*order* cost. Be polite, e.g. greet people! Ask (if you must) "why?" Then stop.

Payment:
- Money goes back to the [same card](https://x.org).
  Nobody else gets it.
- [ ] Cards expire.

You can:

- cancel orders
- `change_address`

<!-- not
shown. -->
| what | when |
|------|------|
| Gifts | never |

Underlined
----------
1. In general an order is refunded once, and only once.
"""


def test_sentences_of_paragraphs_items_and_tables() -> None:
    assert [(line, text) for line, text in split_sentences(POLICY)] == [
        (3, "A refund is at most what the order cost."),
        (4, "Be polite, e.g. greet people!"),
        (4, 'Ask (if you must) "why?'),
        (4, "Then stop."),
        (7, "Money goes back to the same card."),
        (8, "Nobody else gets it."),
        (9, "Cards expire."),
        (11, "You can: cancel orders, change_address"),
        (18, "what when"),
        (20, "Gifts never"),
        (24, "In general an order is refunded once, and only once."),
    ]


def test_a_sentence_has_its_own_line() -> None:
    """Although another one begins with the same words."""
    policy = (
        "You may refund an order. You may refund\nan order twice.\nYou may refund\nnothing else."
    )
    assert [line for line, _ in split_sentences(policy)] == [1, 1, 3]
    policy = (
        "Ask for the order id first.\n\nAsk for the order id again. Ask for the order\nid never."
    )
    assert [line for line, _ in split_sentences(policy)] == [1, 3, 3]


def laid_over(folder: Path, environment: str) -> ConversationTracker:
    (folder / "environment.yaml").write_text(environment, encoding="utf-8")
    return ConversationTracker.open(WORLD, folder)


def test_a_source_cites_the_sentence_that_it_has_or_is_part_of() -> None:
    found = compare_policy(ConversationTracker.open(WORLD).manual, POLICY)
    assert len(found.sentences) == 11 and found.excused == [] and found.strange == []
    assert [s.line for s in found.uncited] == [4, 4, 4, 7, 8, 9, 11, 18, 20]


@pytest.mark.parametrize(
    ("source", "cited"),
    [
        ("BE POLITE, eg greet people", 0),
        ("be polite e g greet people", 1),
        ("Be polite, e.g. greet people! Nobody else gets it.", 2),
        ("goes back to the same", 1),
        ("the order", 0),  # too few words
        ("Then stop", 1),
        ("Refunds", 0),  # a heading
    ],
)
def test_words_are_compared(tmp_path: Path, source: str, cited: int) -> None:
    before = compare_policy(ConversationTracker.open(WORLD).manual, POLICY)
    rule = f'{{id: P-NEW, action: refund, needs: ["given(usd)"], source: "{source}"}}'
    after = compare_policy(laid_over(tmp_path, f"policy: [{rule}]").manual, POLICY)
    assert len(before.uncited) - len(after.uncited) == cited
    strange = [("P-NEW", source)] if source == "BE POLITE, eg greet people" else []
    assert after.strange == strange


def test_sentences_that_cannot_be_checked_are_listed_with_the_reason(tmp_path: Path) -> None:
    excuses = 'not_checkable: {Then stop.: no call shows it, "You can:": so, Go away.: so}'
    found = compare_policy(laid_over(tmp_path, excuses).manual, POLICY)
    assert [(s.text, reason) for s, reason in found.excused] == [("Then stop.", "no call shows it")]
    assert found.strange == [("not_checkable", "You can:"), ("not_checkable", "Go away.")]
