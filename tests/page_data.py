"""The data inside a page of the report, which lies gzipped in it."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any


def data_of(page: str) -> dict[str, Any]:
    """The data that the scripts of a page read."""
    packed = page.partition('id="data">')[2].partition("</script>")[0]
    data: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(packed)))
    return data
