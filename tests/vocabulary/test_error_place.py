"""Which line of somebody's own an error is traced to, and how much of it is kept."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest
from pydantic import BaseModel

from rpms.vocabulary.error_place import LONGEST, ErrorPlace, place_of
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import parse_json
from rpms.vocabulary.imports import load_object


class Point(BaseModel):
    x: int


def in_a_library() -> None:
    Point.model_validate({"x": "far"})


def wrapped_by_ours() -> None:
    try:
        raise KeyError("foo")
    except KeyError as error:
        raise RpmsError("cannot load it") from error


def again_and_again(depth: int = 0) -> None:
    again_and_again(depth + 1)


def of_many_words() -> None:
    raise ValueError("sk-a-key-of-somebody " + "x" * 100 * LONGEST)


def place(raising: Callable[[], object]) -> ErrorPlace | None:
    with pytest.raises(Exception) as caught:
        raising()
    # Without the frame of this test, which is outside of rpms too.
    trace = caught.value.__traceback__
    return place_of(caught.value.with_traceback(trace and trace.tb_next))


@pytest.mark.parametrize("raising", [in_a_library, wrapped_by_ours, again_and_again, of_many_words])
def test_the_last_line_of_their_own(raising: Callable[[], object]) -> None:
    location = place(raising)
    assert location and location["file"] == __file__ and location["stage"] == ""
    lines, first = inspect.getsourcelines(raising)
    assert first < location["line"] < first + len(lines)
    assert f"in {raising.__name__}" in location["frames"]
    assert max(len(location["frames"]), len(location["traceback"])) <= 2 * LONGEST
    assert "site-packages" not in location["frames"] and "sk-a-key" not in location["traceback"]


def test_what_is_nobodys_own_has_no_place_unless_any_will_do() -> None:
    for raising in (load_nothing, parse_nothing):
        with pytest.raises(RpmsError) as caught:
            raising()
        trace = caught.value.__traceback__
        while trace and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        error = caught.value.with_traceback(trace)
        assert place_of(error) is None
        anywhere = place_of(error, anywhere=True)
        assert anywhere and "/rpms/vocabulary/" in anywhere["file"]
    assert place_of(None) is None and place_of(RpmsError("never raised"), anywhere=True) is None


def load_nothing() -> None:
    load_object("no_such_module:x", "it")


def parse_nothing() -> None:
    parse_json(b"{", "here")
