"""``rpms view``: what its server gives out, what it refuses, and that Ctrl-C ends it."""

from __future__ import annotations

import http.client
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from rpms.commands.view_server import HOST, ViewServer
from rpms.evals.analysis.report.served import ServedRuns
from tests.command_line import Rpms
from tests.evals.sample_runs import write_run

NET_S = 60.0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ViewServer]:
    for name in ("one", "two"):
        write_run(tmp_path / name, {"A": [True, False], "B": [True, True]})
    started = ViewServer(ServedRuns([tmp_path / "one", tmp_path / "two"]))
    thread = threading.Thread(target=started.serve_forever)
    thread.start()
    yield started
    started.shutdown()
    thread.join()
    started.server_close()


def ask(
    server: ViewServer, path: str, method: str = "GET", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection(HOST, server.server_port, timeout=NET_S)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    headers = {name.lower(): value for name, value in answer.getheaders()}
    body = answer.read()
    connection.close()
    return answer.status, headers, body


def runs(server: ViewServer) -> list[str]:
    return re.findall(r'href="(run/[^"]+/)"', ask(server, "/")[2].decode())


def test_a_list_of_runs_and_a_page_for_each(server: ViewServer) -> None:
    assert server.address == f"http://{HOST}:{server.server_port}/"
    for run in runs(server):
        status, headers, page = ask(server, f"/{run}?again")
        assert status == 200 and headers["content-type"].startswith("text/html")
        assert page.count(b' id="log-') == 4
        status, headers, body = ask(server, f"/{run}", "HEAD")
        assert (status, body) == (200, b"") and int(headers["content-length"]) == len(page)


def test_no_other_site_may_read_or_frame_it(server: ViewServer) -> None:
    for path in ("/", f"/{runs(server)[0]}", "/nowhere"):
        headers = ask(server, path, Origin="http://evil.example")[1]
        assert "access-control-allow-origin" not in headers
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["x-frame-options"] == "DENY" and headers["cache-control"] == "no-store"


def test_another_name_for_this_machine_is_refused(server: ViewServer) -> None:
    for host in ("evil.example", "127.0.0.1", "127.0.0.1:1", "", "localhost.evil"):
        status, _, body = ask(server, "/", Host=host)
        assert status == 403 and b"alfworld" not in body
    assert ask(server, "/", Host=f"LocalHost:{server.server_port}")[0] == 200


def test_nothing_but_reading_and_no_file_by_its_path(server: ViewServer) -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"):
        status, headers, _ = ask(server, "/", method)
        assert status == 405 and headers["allow"] == "GET, HEAD"
    first, _ = runs(server)
    for path in (
        "manifest.json", "episodes.jsonl", "../../../../etc/passwd", "..%2f..%2fone/manifest.json",
        "steps", "steps/", "steps/../manifest.json", "%00", "\\..\\manifest.json", "state/",
        "//etc/passwd",
    ):  # fmt: skip
        assert ask(server, f"/{first}{path}")[0] == 404
        assert ask(server, f"/{path}")[0] == 404


def test_a_run_that_breaks_while_it_is_served_is_one_line(
    server: ViewServer, tmp_path: Path
) -> None:
    first, second = runs(server)
    (tmp_path / "one" / "manifest.json").write_text("{}\n")
    status, _, body = ask(server, f"/{first}")
    assert status == 500 and body.count(b"\n") == 1 and b"manifest.json: format" in body
    assert ask(server, f"/{second}")[0] == 200


def test_a_port_that_is_taken_is_one_line(tmp_path: Path, rpms: Rpms) -> None:
    folder = write_run(tmp_path / "run", {"A": [True]}, logs=False)
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        done = rpms("view", folder, "--port", taken.getsockname()[1])
    assert done.code == 2 and done.err.count("\n") == 1
    assert "choose another --port, or 0 for any free one" in done.err


@pytest.mark.server
def test_ctrl_c_ends_it_cleanly(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", {"A": [True]}, logs=False)
    words = [sys.executable, "-m", "rpms", "view", str(folder)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as view:
        assert view.stdout and view.stderr
        line = view.stdout.readline()
        address = re.match(r"http://127\.0\.0\.1:(\d+)(/run/run-\S+/|/run/\S+/) \(Ctrl-C", line)
        assert address, line
        connection = http.client.HTTPConnection(HOST, int(address[1]), timeout=NET_S)
        connection.request("GET", address[2])
        assert connection.getresponse().status == 200
        view.send_signal(signal.SIGINT)  # while a browser is still connected
        assert view.wait(NET_S) == 0
        assert view.stderr.read() == ""
