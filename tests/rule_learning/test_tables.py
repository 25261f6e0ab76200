"""Tables of kinds: what is known of them, and what is left open."""

from __future__ import annotations

from rpms.rule_learning.tables import make_tables


def test_no_refusal_no_table() -> None:
    assert make_tables([(("mug", "shelf"), 4)], [], 2).works(("pen", "bed")) is True


def test_a_kind_is_ruled_out_only_beside_kinds_that_work() -> None:
    accepted = [(("apple", "microwave"), 2), (("egg", "microwave"), 1)]
    refused = [(("book", "microwave"), 1), (("apple", "shelf"), 1), (("pen", "bed"), 1)]
    tables = make_tables(accepted, refused, 2)
    assert tables.works(("egg", "microwave")) is True
    assert tables.works(("book", "microwave")) is False
    assert tables.works(("egg", "shelf")) is False
    # The pen was only tried with the bed: either may have been at fault.
    assert tables.works(("pen", "microwave")) is None
    assert tables.single[0]["apple"] == (2, 0) and tables.single[1]["shelf"] == (0, 1)


def test_pairs_where_every_kind_works_somewhere() -> None:
    accepted = [(("apple", "fridge"), 1), (("pillow", "sofa"), 1)]
    refused = [(("apple", "sofa"), 2), (("pillow", "fridge"), 1)]
    tables = make_tables(accepted, refused, 2)
    assert tables.pair[("apple", "sofa")] == (0, 2)
    assert tables.works(("pillow", "sofa")) is True
    assert tables.works(("apple", "sofa")) is False
    assert tables.works(("apple", "bed")) is None
    assert not tables.unexplained


def test_what_kinds_cannot_explain_is_counted() -> None:
    tables = make_tables([(("lamp",), 3)], [(("lamp",), 2)], 1)
    assert tables.unexplained == 2
