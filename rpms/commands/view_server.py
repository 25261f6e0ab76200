"""``rpms view``: serves report pages of runs, also of unfinished ones, to a local browser.

The server listens on the loopback address only, answers only GET and HEAD, and sends pages that it
made, never a file by its path. It checks the Host header, because a page of another site could let
a browser send requests here under another host name (DNS rebinding).
"""

from __future__ import annotations

from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

from rpms.evals.analysis.report.served import ServedRuns
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.safe_text import redact

HOST = "127.0.0.1"
SLOW_S = 30.0
"""The server closes a connection whose request takes longer than this."""
HTML, TEXT = "text/html; charset=utf-8", "text/plain; charset=utf-8"
HEADERS = {
    "Allow": "GET, HEAD",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class ViewServer(ThreadingHTTPServer):
    """Serves the pages of runs."""

    daemon_threads = True

    def __init__(self, served: ServedRuns, port: int = 0) -> None:
        """Listen on a port; 0 means any free one."""
        self.served = served
        try:
            super().__init__((HOST, port), _Handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise RpmsError(
                f"cannot listen on port {port} of {HOST}: {reason}; "
                "choose another --port, or 0 for any free one"
            ) from error
        end = "" if self.server_port == 80 else f":{self.server_port}"  # browsers leave 80 out
        self.hosts = {f"{HOST}{end}", f"localhost{end}"}

    @property
    def address(self) -> str:
        """The address of the only run, or of the list of runs."""
        names = list(self.served.runs())
        path = f"run/{names[0]}/" if len(names) == 1 else ""
        return f"http://{HOST}:{self.server_port}/{path}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a browser that disconnects early."""


class _Handler(BaseHTTPRequestHandler):
    server: ViewServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "rpms", ""
    timeout = SLOW_S

    def do_GET(self) -> None:
        if self.headers.get("Host", "").lower() not in self.server.hosts:
            self._send(HTTPStatus.FORBIDDEN, TEXT, b"use the address that 'rpms view' printed\n")
            return
        try:
            page = self._page(unquote(urlsplit(self.path).path))
        except (RpmsError, OSError) as error:
            text = redact(f"{error}\n").encode()
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, TEXT, text)
            return
        if page is None:
            self._send(HTTPStatus.NOT_FOUND, TEXT, b"no such page\n")
        else:
            self._send(HTTPStatus.OK, HTML, page.encode())

    do_HEAD = do_GET

    def _page(self, path: str) -> str | None:
        if path == "/":
            return self.server.served.index()
        top, _, rest = path.lstrip("/").partition("/")
        name, slash, more = rest.partition("/")
        run = self.server.served.runs().get(name) if top == "run" else None
        return run.page() if run and slash and not more else None

    def _refuse(self) -> None:
        self.close_connection = True  # the request body is not read
        self._send(HTTPStatus.METHOD_NOT_ALLOWED, TEXT, b"only GET and HEAD are allowed\n")

    do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_TRACE = do_CONNECT = _refuse

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Print no request log: the terminal shows only the address."""


def serve(server: ViewServer) -> None:
    """Serve until Ctrl-C."""
    with server, suppress(KeyboardInterrupt):
        server.serve_forever()
