"""``rpms view``: report pages of runs that may still be going on, for a browser on this machine.

The server listens on the loopback address alone, answers GET and nothing else, and gives out
pages that it made itself, never a file by its path. A page of another site
could have a browser ask here under a name of its own; the Host header gives that away.
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
"""Who takes longer to ask is hung up on."""
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
        """Listen; 0 is any free port."""
        self.served = served
        try:
            super().__init__((HOST, port), _Handler)
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise RpmsError(
                f"cannot listen on port {port} of {HOST}: {why}; give another --port, or 0 for any"
            ) from error
        end = "" if self.server_port == 80 else f":{self.server_port}"  # browsers leave 80 out
        self.hosts = {f"{HOST}{end}", f"localhost{end}"}

    @property
    def address(self) -> str:
        """Where the pages are: the only run, or the list of all."""
        names = list(self.served.runs())
        path = f"run/{names[0]}/" if len(names) == 1 else ""
        return f"http://{HOST}:{self.server_port}/{path}"

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that hangs up early is nobody's concern."""


class _Handler(BaseHTTPRequestHandler):
    server: ViewServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "rpms", ""
    timeout = SLOW_S

    def do_GET(self) -> None:
        if self.headers.get("Host", "").lower() not in self.server.hosts:
            self._send(HTTPStatus.FORBIDDEN, TEXT, b"ask for this page by its own address\n")
            return
        try:
            page = self._page(unquote(urlsplit(self.path).path))
        except (RpmsError, OSError) as error:
            text = redact(f"{error}\n").encode()
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, TEXT, text)
            return
        if page is None:
            self._send(HTTPStatus.NOT_FOUND, TEXT, b"there is nothing here\n")
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
        self.close_connection = True  # whatever body follows is not read
        self._send(HTTPStatus.METHOD_NOT_ALLOWED, TEXT, b"only GET\n")

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
        """The terminal is for the address."""


def serve(server: ViewServer) -> None:
    """Serve until Ctrl-C."""
    with server, suppress(KeyboardInterrupt):
        server.serve_forever()
