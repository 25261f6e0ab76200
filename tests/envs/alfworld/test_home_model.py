from __future__ import annotations

from collections import Counter

from rpms.envs.alfworld.homes import Draws


def test_the_same_seed_draws_the_same() -> None:
    first, again, other = Draws("a"), Draws("a"), Draws("b")
    taken = [first.between(0, 999) for _ in range(20)]
    assert taken == [again.between(0, 999) for _ in range(20)]
    assert taken != [other.between(0, 999) for _ in range(20)]


def test_draws_do_not_change_between_python_versions() -> None:
    draws = Draws("generated_seen:0")
    assert [draws.between(0, 99) for _ in range(6)] == [87, 47, 29, 36, 37, 32]


def test_choices_cover_their_range() -> None:
    draws = Draws("cover")
    assert {draws.between(2, 4) for _ in range(200)} == {2, 3, 4}
    assert {draws.pick("xyz") for _ in range(200)} == set("xyz")
    assert sorted(draws.shuffled(range(20))) == list(range(20))
    assert all(draws.chance(1) and not draws.chance(0) for _ in range(100))


def test_weights_decide_how_often() -> None:
    draws = Draws("weights")
    drawn = Counter(draws.weighted({"often": 3, "never": 0, "seldom": 1}) for _ in range(2000))
    assert drawn["never"] == 0
    assert 0.7 < drawn["often"] / 2000 < 0.8
