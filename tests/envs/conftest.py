from __future__ import annotations

from collections.abc import Iterator

import pytest

from rpms.envs import live


@pytest.fixture
def nothing_left_open() -> Iterator[None]:
    live.close_all()
    yield
    live.close_all()
