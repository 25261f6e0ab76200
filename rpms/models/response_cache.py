"""Replies that were paid for once: a SQLite file behind LangChain's cache interface.

Greedy decoding of the same prompt is asked for again and again (an ablation run twice, a report
repeated on another day). The key is everything that decides the reply and nothing else: model,
address, weights, decoding and prompt. Timeouts, conditions and run folders are not part of it.

The weights are known by the server's model list (``served_weights.py``), which is asked for when
the first reply is looked up, in the thread that does so, and not again before the model is opened
anew. While the server does not answer, no reply is looked up or kept.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from langchain_core.caches import RETURN_VAL_TYPE, BaseCache
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, Generation

from rpms.models.replies import CAPPED, normalize_reply
from rpms.models.served_weights import WeightsId
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import cache_dir, path_variable
from rpms.vocabulary.safe_text import valid

log = logging.getLogger("rpms")

REPLAYED = "rpms_replayed"
"""Set in the response metadata of a reply that came from here."""
BUSY_S, BUSY_PAUSE_S = 30.0, 0.02
PAUSE_S = 10.0
"""Before a server that did not answer is asked for its models again: others wait meanwhile."""
_warned: set[str] = set()
_REPLIES = "CREATE TABLE IF NOT EXISTS replies (key BLOB PRIMARY KEY, reply TEXT NOT NULL)"
# Of which weights there are replies under a name and address; both as digests, because an
# address may hold a key.
_WEIGHTS = (
    "CREATE TABLE IF NOT EXISTS weights (served BLOB, weights BLOB, PRIMARY KEY (served, weights))"
)


def default_file() -> Path:
    """``$RPMS_RESPONSE_CACHE``, else a file in the user's cache folder."""
    if os.environ.get("RPMS_RESPONSE_CACHE"):
        return path_variable("RPMS_RESPONSE_CACHE", "")
    return cache_dir() / "responses.sqlite"


class ResponseCache(BaseCache):
    """Replies of one model with one way of decoding; the file may hold those of many.

    Several processes may use the file at once: SQLite's write-ahead log lets them read while
    one writes, and a writer waits for its turn. A file that cannot be used is refused when it is
    opened; what happens to it later (a full disk, damage) is told once, and costs nothing but
    the saving: the replies themselves are good.
    """

    def __init__(
        self,
        file: Path,
        identity: Mapping[str, Any],
        max_tokens: int = 256,
        served: str = "",
        ask_weights: Callable[[], WeightsId | None] = lambda: WeightsId({}),
    ) -> None:
        """Open (or create) the file.

        Args:
            file: where the replies are.
            identity: what decides a reply besides the weights and the prompt.
            max_tokens: how long a reply may be.
            served: name and address of the model, for messages.
            ask_weights: which weights answer; None while nobody can tell.
        """
        self._file, self._max_tokens = file, max_tokens
        self._working = True
        self._identity, self._served, self._ask_weights = dict(identity), served, ask_weights
        self._weights: WeightsId | None = None
        self._next_ask = 0.0
        self._lock, self._asking = threading.Lock(), threading.Lock()
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(
                file, timeout=BUSY_S, isolation_level=None, check_same_thread=False
            )
            self._prepare()
        except (OSError, sqlite3.Error) as error:
            if _is_full(error):
                self._go_on_without(error)
                return
            raise RpmsError(
                f"cannot use the response cache {file}: {error}; set RPMS_RESPONSE_CACHE to "
                "another file, or give --no-cache"
            ) from error

    def _prepare(self) -> None:
        """Make the tables; wait while another process does so.

        SQLite itself does not wait where two processes switch a new file to the log at once.
        """
        deadline = time.monotonic() + BUSY_S
        while True:
            try:
                self._database.execute("PRAGMA journal_mode=WAL")
                # A power cut may lose the last replies, never the file.
                self._database.execute("PRAGMA synchronous=NORMAL")
                self._database.execute(_REPLIES)
                self._database.execute(_WEIGHTS)
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(BUSY_PAUSE_S)

    def lookup(self, prompt: str, llm_string: str) -> RETURN_VAL_TYPE | None:
        """The reply to a prompt, marked as replayed; None when it was never asked."""
        if (key := self._key(prompt)) is None:
            return None
        rows = self._run("SELECT reply FROM replies WHERE key = ?", key)
        try:
            return [_read(stored) for stored in json.loads(rows[0][0])] if rows else None
        except (ValueError, LookupError, TypeError):
            return None  # a damaged entry is no entry

    def update(self, prompt: str, llm_string: str, return_val: RETURN_VAL_TYPE) -> None:
        """Keep a reply; the first one stays."""
        if (key := self._key(prompt)) is None:
            return
        stored = json.dumps(
            [self._keep(generation) for generation in return_val], ensure_ascii=False
        )
        self._run("INSERT OR IGNORE INTO replies VALUES (?, ?)", key, stored)

    def clear(self, **kwargs: Any) -> None:
        """Forget every reply in the file, whichever model gave it."""
        self._run("DELETE FROM replies")

    def ask_anew(self) -> None:
        """Ask for the weights again before the next reply: the model was opened once more."""
        with self._asking:
            self._weights, self._next_ask = None, 0.0

    def doubt(self) -> str:
        """Why a cached reply could be of other weights, in one line; asks the server.

        Empty where it cannot be, and while the server does not answer.
        """
        weights = self._known_weights()
        if weights is None or not weights.doubt:
            return ""
        return (
            f"rpms: {self._served} {weights.doubt}: cached replies may be of other weights under "
            "the same name; --no-cache asks for every reply anew"
        )

    def _known_weights(self) -> WeightsId | None:
        with self._asking:
            if self._weights is None and time.monotonic() >= self._next_ask:
                self._weights = self._ask_weights()
                self._next_ask = time.monotonic() + PAUSE_S
                if self._weights is not None and self._served:
                    self._compare(self._weights)
            return self._weights

    def _compare(self, weights: WeightsId) -> None:
        """Note the weights of this name; say it once if there are replies of other ones."""
        row = _digest(self._served), _digest(json.dumps(weights.fields, sort_keys=True))
        new = self._run("INSERT OR IGNORE INTO weights VALUES (?, ?) RETURNING 1", *row)
        if new and self._run("SELECT 1 FROM weights WHERE served = ? AND weights != ?", *row):
            log.warning(
                "rpms: %s is another model than the cached replies are of, or was started anew: "
                "they are not used",
                self._served,
            )

    def _run(self, statement: str, *values: Any) -> list[Any]:
        """What the database answers; nothing once it has failed."""
        if not self._working:
            return []
        try:
            with self._lock:
                return self._database.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            self._go_on_without(error)
            return []

    def _go_on_without(self, error: Exception) -> None:
        self._working = False
        warning = f"rpms: the response cache {self._file} fails ({error}); going on without it"
        if warning not in _warned:
            _warned.add(warning)
            log.warning("%s", warning)

    def _key(self, prompt: str) -> bytes | None:
        """None while the weights are not known."""
        if (weights := self._known_weights()) is None:
            return None
        # Where nothing is known of the weights the key is that of earlier versions.
        told = {"weights": weights.fields} if weights.fields else {}
        identity = json.dumps({**self._identity, **told}, sort_keys=True)
        return _digest(f"{identity}\0{valid(prompt)}")

    def _keep(self, generation: Generation) -> dict[str, Any]:
        """Text and token counts: all that a stage reads of a reply."""
        message = generation.message if isinstance(generation, ChatGeneration) else None
        reply = normalize_reply(message or AIMessage(generation.text), self._max_tokens)
        stored = {"content": reply.text, "usage": reply.usage_metadata}
        return {**stored, CAPPED: True} if reply.response_metadata.get(CAPPED) else stored


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _is_full(error: Exception) -> bool:
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    name = str(getattr(error, "sqlite_errorname", ""))
    return name == "SQLITE_FULL" or name.startswith("SQLITE_IOERR")


def _read(stored: Mapping[str, Any]) -> ChatGeneration:
    marks = {REPLAYED: True, **({CAPPED: True} if stored.get(CAPPED) else {})}
    message = AIMessage(stored["content"], usage_metadata=stored["usage"], response_metadata=marks)
    return ChatGeneration(message=message)
