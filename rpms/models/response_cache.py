"""A cache of model replies in a SQLite file; ``cached.py`` puts it in front of a model.

Runs repeat the same prompts with greedy decoding, for example an ablation that is run twice. The
key is everything that decides the reply: model, address, weights, decoding, prompt and the options
of the call. Timeouts, conditions and run folders are not part of it.

The server's model list identifies the weights (``served_weights.py``). It is requested at the
first lookup after the model was opened, in the thread of that lookup. While the server does not
answer, the cache is not used.
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

from langchain_core.messages import AIMessage, BaseMessage

from rpms.models.replies import CAPPED, normalize_reply
from rpms.models.served_weights import WeightsId
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import cache_dir, path_variable

log = logging.getLogger("rpms")

REPLAYED = "rpms_replayed"
"""Set in the response metadata of a cached reply."""
BUSY_S, BUSY_PAUSE_S = 30.0, 0.02
PAUSE_S = 10.0
"""Seconds before a server that did not answer is asked again; other threads wait for the answer."""
_warned: set[str] = set()
_REPLIES = "CREATE TABLE IF NOT EXISTS replies (key BLOB PRIMARY KEY, reply TEXT NOT NULL)"
# The weights whose replies are stored, by name and address. Both are stored as digests, because an
# address may contain a key.
_WEIGHTS = (
    "CREATE TABLE IF NOT EXISTS weights (served BLOB, weights BLOB, PRIMARY KEY (served, weights))"
)


def default_file() -> Path:
    """Return ``$RPMS_RESPONSE_CACHE``, else a file in the user's cache folder."""
    if os.environ.get("RPMS_RESPONSE_CACHE"):
        return path_variable("RPMS_RESPONSE_CACHE", "")
    return cache_dir() / "responses.sqlite"


class ResponseCache:
    """The replies of one model with one decoding; the file may hold those of many.

    Several processes may use the file at once: SQLite's write-ahead log lets them read while one
    writes, and writers wait for each other. A file that cannot be opened is an error. Later faults
    (a full disk, a damaged file) are logged once, and the run continues without the cache.
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
            file: the SQLite file.
            identity: the part of the key besides the weights and the question.
            max_tokens: the token limit of a reply.
            served: name and address of the model, for messages.
            ask_weights: identifies the weights; returns None while the server does not answer.
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
        """Create the tables; wait while another process does so.

        SQLite does not wait when two processes switch a new file to the log at the same time.
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

    def lookup(self, question: str) -> AIMessage | None:
        """Return the cached reply to a question, marked as replayed."""
        if (key := self._key(question)) is None:
            return None
        rows = self._run("SELECT reply FROM replies WHERE key = ?", key)
        try:
            return _read(json.loads(rows[0][0])) if rows else None
        except (ValueError, LookupError, TypeError):
            return None  # a damaged entry

    def update(self, question: str, reply: BaseMessage) -> None:
        """Store a reply, unless the question has one already."""
        if (key := self._key(question)) is not None:
            stored = json.dumps(self._keep(reply), ensure_ascii=False)
            self._run("INSERT OR IGNORE INTO replies VALUES (?, ?)", key, stored)

    def ask_again(self) -> None:
        """Identify the weights again before the next lookup; called when the model is opened."""
        with self._asking:
            self._weights, self._next_ask = None, 0.0

    def doubt(self) -> str:
        """Ask the server for its weights; return a warning if cached replies may be of others.

        Empty if they cannot be, and while the server does not answer.
        """
        weights = self._current_weights()
        if weights is None or not weights.doubt:
            return ""
        return (
            f"rpms: {self._served} {weights.doubt}: cached replies may be of other weights under "
            "the same name; use --no-cache to request every reply again"
        )

    def _current_weights(self) -> WeightsId | None:
        with self._asking:
            if self._weights is None and time.monotonic() >= self._next_ask:
                self._weights = self._ask_weights()
                self._next_ask = time.monotonic() + PAUSE_S
                if self._weights is not None and self._served:
                    self._compare(self._weights)
            return self._weights

    def _compare(self, weights: WeightsId) -> None:
        """Store the weights of this model; warn once if the cache has replies of others."""
        row = _digest(self._served), _digest(json.dumps(weights.fields, sort_keys=True))
        new = self._run("INSERT OR IGNORE INTO weights VALUES (?, ?) RETURNING 1", *row)
        if new and self._run("SELECT 1 FROM weights WHERE served = ? AND weights != ?", *row):
            log.warning(
                "rpms: the cached replies are not used: they are of another model than %s, or it "
                "was restarted since",
                self._served,
            )

    def _run(self, statement: str, *values: Any) -> list[Any]:
        """Run a statement; return no rows once the database has failed."""
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
        warning = f"rpms: the response cache {self._file} fails ({error}); continuing without it"
        if warning not in _warned:
            _warned.add(warning)
            log.warning("%s", warning)

    def _key(self, question: str) -> bytes | None:
        """Return the key of a question; None while the weights are not identified."""
        if (weights := self._current_weights()) is None:
            return None
        identity = json.dumps([self._identity, weights.fields], sort_keys=True)
        return _digest(f"{identity}\0{question}")

    def _keep(self, message: BaseMessage) -> dict[str, Any]:
        """Return the text and token counts of a reply, the only parts that a stage reads."""
        reply = normalize_reply(message, self._max_tokens)
        stored = {"content": reply.text, "usage": reply.usage_metadata}
        return {**stored, CAPPED: True} if reply.response_metadata.get(CAPPED) else stored


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _is_full(error: Exception) -> bool:
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    name = str(getattr(error, "sqlite_errorname", ""))
    return name == "SQLITE_FULL" or name.startswith("SQLITE_IOERR")


def _read(stored: Mapping[str, Any]) -> AIMessage:
    message = AIMessage(stored["content"], usage_metadata=stored["usage"])
    marks = {REPLAYED: True, **({CAPPED: True} if stored.get(CAPPED) else {})}
    # A trace shows the tokens of the reply, but no cost.
    usage = {**stored["usage"], "total_cost": 0} if stored["usage"] else None
    return message.model_copy(update={"response_metadata": marks, "usage_metadata": usage})
