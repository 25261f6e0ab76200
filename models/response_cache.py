"""Replies that were paid for once: a SQLite file behind LangChain's cache interface.

Greedy decoding of the same prompt is asked for again and again (an ablation run twice, a report
repeated on another day). The key is everything that decides the reply and nothing else: model,
address, decoding and prompt. Timeouts, conditions and run folders are not part of it.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from langchain_core.caches import RETURN_VAL_TYPE, BaseCache
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, Generation

from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.folders import cache_dir, path_variable

REPLAYED = "rpms_replayed"
"""Set in the response metadata of a reply that came from here."""
BUSY_S = 30.0
_TABLE = "CREATE TABLE IF NOT EXISTS replies (key BLOB PRIMARY KEY, reply TEXT NOT NULL)"


def default_file() -> Path:
    """``$RPMS_RESPONSE_CACHE``, else a file in the user's cache folder."""
    if os.environ.get("RPMS_RESPONSE_CACHE"):
        return path_variable("RPMS_RESPONSE_CACHE", "")
    return cache_dir() / "responses.sqlite"


class ResponseCache(BaseCache):
    """Replies of one model with one way of decoding; the file may hold those of many.

    Several processes may use the file at once: SQLite's write-ahead log lets them read while
    one writes, and a writer waits for its turn.
    """

    def __init__(self, file: Path, identity: Mapping[str, Any]) -> None:
        """Open (or create) the file; ``identity`` is what decides a reply besides the prompt."""
        self._identity = json.dumps(identity, sort_keys=True).encode()
        self._lock = threading.Lock()
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(
                file, timeout=BUSY_S, isolation_level=None, check_same_thread=False
            )
            self._database.execute("PRAGMA journal_mode=WAL")
            # A power cut may lose the last replies, never the file.
            self._database.execute("PRAGMA synchronous=NORMAL")
            self._database.execute(_TABLE)
        except (OSError, sqlite3.Error) as error:
            raise RpmsError(
                f"cannot use the response cache {file}: {error}; set RPMS_RESPONSE_CACHE to "
                "another file, or give --no-cache"
            ) from error

    def lookup(self, prompt: str, llm_string: str) -> RETURN_VAL_TYPE | None:
        """The reply to a prompt, marked as replayed; None when it was never asked."""
        with self._lock:
            row = self._database.execute(
                "SELECT reply FROM replies WHERE key = ?", (self._key(prompt),)
            ).fetchone()
        if row is None:
            return None
        return [_read(kept) for kept in json.loads(row[0])]

    def update(self, prompt: str, llm_string: str, return_val: RETURN_VAL_TYPE) -> None:
        """Keep a reply; the first one stays."""
        kept = json.dumps([_keep(one) for one in return_val], ensure_ascii=False)
        with self._lock:
            self._database.execute(
                "INSERT OR IGNORE INTO replies VALUES (?, ?)", (self._key(prompt), kept)
            )

    def clear(self, **kwargs: Any) -> None:
        """Forget every reply in the file, whichever model gave it."""
        with self._lock:
            self._database.execute("DELETE FROM replies")

    def _key(self, prompt: str) -> bytes:
        return hashlib.sha256(self._identity + b"\0" + prompt.encode()).digest()


def _keep(generation: Generation) -> dict[str, Any]:
    """Text and token counts: all that a stage reads of a reply."""
    message = generation.message if isinstance(generation, ChatGeneration) else None
    if not isinstance(message, AIMessage):
        return {"content": generation.text, "usage": None}
    return {"content": message.content, "usage": message.usage_metadata}


def _read(kept: Mapping[str, Any]) -> ChatGeneration:
    message = AIMessage(
        content=kept["content"], usage_metadata=kept["usage"], response_metadata={REPLAYED: True}
    )
    return ChatGeneration(message=message)
