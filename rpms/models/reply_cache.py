"""``--cache FILE``: a cache of LangChain's for model replies, in a SQLite file.

LangChain decides what is part of the key: the prompt, the options of the call, and the fields of
the client, such as model, address, decoding and seed. The weights that a server has under that name
are not part of it. LangChain's own ``SQLiteCache`` is in langchain-community, which is no longer
maintained and needs SQLAlchemy, so its interface is implemented here with the standard library.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from typing import Any

from langchain_core.caches import RETURN_VAL_TYPE, BaseCache
from langchain_core.globals import get_llm_cache, set_llm_cache
from langchain_core.messages import messages_from_dict, messages_to_dict
from langchain_core.outputs import ChatGeneration

from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.safe_text import redact_known

BUSY_S = 60.0
"""The time to wait for other processes that write into the file."""


class ReplyCache(BaseCache):
    """The replies of chat models in a file that several processes may share."""

    def __init__(self, file: str) -> None:
        self._file = file
        try:
            self._run("CREATE TABLE IF NOT EXISTS replies (key BLOB PRIMARY KEY, reply TEXT)")
        except sqlite3.Error as error:
            raise RpmsError(f"cannot use {file} as the cache of replies: {error}") from error

    def lookup(self, prompt: str, llm_string: str) -> RETURN_VAL_TYPE | None:
        rows = self._run("SELECT reply FROM replies WHERE key = ?", _key(prompt, llm_string))
        if not rows:
            return None
        return [ChatGeneration(message=each) for each in messages_from_dict(json.loads(rows[0][0]))]

    def update(self, prompt: str, llm_string: str, return_val: RETURN_VAL_TYPE) -> None:
        messages = [each.message for each in return_val if isinstance(each, ChatGeneration)]
        kept = redact_known(json.dumps(messages_to_dict(messages)))
        self._run("INSERT OR REPLACE INTO replies VALUES (?, ?)", _key(prompt, llm_string), kept)

    def clear(self, **_: Any) -> None:
        self._run("DELETE FROM replies")

    def _run(self, statement: str, *values: Any) -> list[Any]:
        with closing(sqlite3.connect(self._file, timeout=BUSY_S)) as database, database:
            return database.execute(statement, values).fetchall()


def _key(prompt: str, llm_string: str) -> bytes:
    return sha256(f"{llm_string}\0{prompt}".encode("utf-8", "surrogatepass")).digest()


@contextmanager
def cached_replies(file: str) -> Iterator[None]:
    """Answer repeated prompts of this process from a file; an empty name changes nothing."""
    if not file:
        yield
        return
    before = get_llm_cache()
    set_llm_cache(ReplyCache(file))
    try:
        yield
    finally:
        set_llm_cache(before)
