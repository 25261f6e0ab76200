from __future__ import annotations

from typing import Any

import pytest

from tests.paper_entries import PAPER


@pytest.fixture
def paper_entries() -> list[dict[str, Any]]:
    return [dict(entry) for entry in PAPER]
