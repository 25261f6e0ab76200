"""How a mistake of the user's is answered."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rpms.vocabulary.errors import RpmsError


@contextmanager
def refused(*names: str) -> Iterator[None]:
    """In one line that names what was wrong, and what it may have been meant to be."""
    with pytest.raises(RpmsError) as caught:
        yield
    message = str(caught.value)
    assert "\n" not in message
    assert [name for name in names if name not in message] == [], message
