"""A real OpenAI-compatible HTTP server on this machine, with scripted behaviour.

Tests talk to it through the very client that talks to a provider, so status codes, timeouts
and usage fields travel the whole way.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Answer(NamedTuple):
    """What the server does with one request, after ``delay`` seconds.

    ``wait`` hangs until the server is stopped.
    """

    text: str = "Action: look"
    status: int = 200
    wait: bool = False
    usage: tuple[int, int] | None = (100, 7)
    error: str = "scripted failure"
    delay: float = 0.0
    finish: str = "stop"


class OpenAIServer:
    """Plays a list of answers in order, then repeats the last one; keeps every request."""

    def __init__(self) -> None:
        self.script: list[Answer] = [Answer()]
        self.rule: Callable[[dict[str, Any]], Answer] | None = None
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.stopped = threading.Event()
        self.url = ""

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
def serving() -> Iterator[OpenAIServer]:
    state = OpenAIServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answer = state.take(
                json.loads(body), {name.lower(): value for name, value in self.headers.items()}
            )
            if answer.wait:
                state.stopped.wait(30)
            state.stopped.wait(answer.delay)
            data = json.dumps(reply_body(answer)).encode()
            try:
                self.send_response(answer.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            except OSError:
                self.close_connection = True  # the client gave up waiting

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            pass  # a client that hangs up is part of the script

    server = Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield state
    finally:
        state.stopped.set()
        server.shutdown()
        server.server_close()
        thread.join()


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
        }
    return body
