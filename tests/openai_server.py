"""A real OpenAI-compatible HTTP server on this machine, with scripted behaviour.

Tests talk to it through the very client that talks to a provider, so status codes, timeouts
and usage fields travel the whole way.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any, NamedTuple


class Answer(NamedTuple):
    """What the server does with one request, after ``delay`` seconds.

    ``wait`` hangs until the server is stopped, ``reset`` drops the connection, ``raw`` is a body
    sent as it is, and ``torn`` promises more of it than comes. In ``error`` the words
    AUTHORIZATION stand for what the client sent under that name.
    """

    text: str = "Action: look"
    status: int = 200
    wait: bool = False
    usage: tuple[int, int] | None = (100, 7)
    error: str = "scripted failure"
    delay: float = 0.0
    finish: str = "stop"
    cached: int = 0
    headers: Mapping[str, str] = MappingProxyType({})
    raw: bytes | None = None
    torn: bool = False
    reset: bool = False


class OpenAIServer:
    """Plays a list of answers in order, then repeats the last one; keeps every request."""

    def __init__(self) -> None:
        self.script: list[Answer] = [Answer()]
        self.rule: Callable[[dict[str, Any]], Answer] | None = None
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.stopped = threading.Event()
        self.url = ""
        self.models: list[dict[str, Any]] | None = None
        """What it lists under /models; None for a server that has no such list."""
        self.connections: list[socket.socket] = []
        self.listings = 0
        self.listing = threading.Event()
        """Cleared, requests for the list wait until it is set."""
        self.listing.set()

    def plays(self, *answers: Answer | str) -> None:
        self.rule = None
        self.script = [Answer(a) if isinstance(a, str) else a for a in answers]
        self.requests.clear()
        self.headers.clear()

    def plays_by(self, rule: Callable[[dict[str, Any]], Answer]) -> None:
        """Answer each request by what is in it."""
        self.plays()
        self.rule = rule

    def take(self, request: dict[str, Any], headers: dict[str, str]) -> Answer:
        self.requests.append(request)
        self.headers.append(headers)
        if self.rule:
            return self.rule(request)
        return self.script[min(len(self.requests), len(self.script)) - 1]


@contextmanager
def serving(port: int = 0) -> Iterator[OpenAIServer]:
    state = OpenAIServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            state.connections.append(self.connection)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answer = state.take(
                json.loads(body), {name.lower(): value for name, value in self.headers.items()}
            )
            if answer.wait:
                state.stopped.wait()
            state.stopped.wait(answer.delay)
            if answer.reset:
                hang_up(self.connection)
                self.close_connection = True
                return
            key = self.headers.get("Authorization", "")
            answer = answer._replace(error=answer.error.replace("AUTHORIZATION", key))
            data = json.dumps(reply_body(answer)).encode() if answer.raw is None else answer.raw
            try:
                self.send_response(answer.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data) + 500 * answer.torn))
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)
                self.close_connection |= answer.torn
            except OSError:
                self.close_connection = True  # the client gave up waiting

        def do_GET(self) -> None:
            state.listings += 1
            state.listing.wait()
            listed = state.models is not None and self.path.endswith("/models")
            data = json.dumps({"object": "list", "data": state.models} if listed else {}).encode()
            try:
                self.send_response(200 if listed else 404)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            except OSError:
                self.close_connection = True  # the client gave up waiting

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 128

        def handle_error(self, request: Any, client_address: Any) -> None:
            pass  # a client that hangs up is part of the script

    server = Server(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield state
    finally:
        state.stopped.set()
        state.listing.set()
        server.shutdown()
        server.server_close()
        thread.join()
        for connection in state.connections:  # a client would talk to a server that is gone
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def hang_up(connection: socket.socket) -> None:
    """Close with a reset, as a crashed server or a proxy in between would."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def reply_body(answer: Answer) -> dict[str, Any]:
    if answer.status != 200:
        return {"error": {"message": answer.error, "type": "scripted", "code": None}}
    body: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": "scripted",
        "choices": [
            {
                "index": 0,
                "finish_reason": answer.finish,
                "message": {"role": "assistant", "content": answer.text},
            }
        ],
    }
    if answer.usage:
        spent, written = answer.usage
        body["usage"] = {
            "prompt_tokens": spent,
            "completion_tokens": written,
            "total_tokens": spent + written,
            "prompt_tokens_details": {"cached_tokens": answer.cached},
        }
    return body
