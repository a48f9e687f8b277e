"""`xbuild learn --serve`: whom the server answers, what a run may take, and that lessons and puzzles run there."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("waitress", reason="the server wants waitress")

from tests.commands.command_line import usage, xbuild
from xbuild.learning import jobs, shelf
from xbuild.learning.forking import CAN_FORK, ForkingProcess
from xbuild.learning.puzzle import Unsolved
from xbuild.learning.serving import server
from xbuild.learning.submission import Bounds, run_cells

ROOT = Path(__file__).parents[2]
LINUX = pytest.mark.skipif(not CAN_FORK, reason="limits of processes on Linux")


class Client:
    """Requests to a server, with what its own pages send unless a test says otherwise; None leaves a header out."""

    def __init__(self, address: str) -> None:
        _, _, self.host, self.token, _ = address.split("/")

    def __call__(
        self, method: str, path: str, body: Any = None, token: str | None = None, **headers: str | None
    ) -> tuple[int, str, dict[str, str]]:
        own = {"Host": self.host, "Origin": f"http://{self.host}", "Content-Type": "application/json"}
        if method == "GET":
            own.pop("Origin")
        sent = own | {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection(self.host, timeout=60)
        try:
            connection.putrequest(method, f"/{self.token if token is None else token}/{path}", skip_host=True)
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            for name, value in (sent | ({} if body is None else {"Content-Length": str(len(data))})).items():
                if value is not None:
                    connection.putheader(name, value)
            connection.endheaders()
            if body is not None:
                connection.send(data)
            response = connection.getresponse()
            return response.status, response.read().decode(), dict(response.getheaders())
        finally:
            connection.close()

    def run(self, *cells: str) -> list[dict[str, str]]:
        status, text, _ = self(
            "POST", "lessons/1/run", {"cells": [[f"cell {n}", code] for n, code in enumerate(cells)]}
        )
        assert status == 200, text
        return list(json.loads(text)["parts"])


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def client(data: Path) -> Iterator[Client]:
    """A server in a process of its own, as the command starts it; at the end, an interrupt ends it."""
    command = [sys.executable, "-m", "xbuild", "learn", "--serve", "--port", "0"]
    environment = os.environ | {"XDG_DATA_HOME": str(data), "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=True)
    assert process.stdout is not None
    assert "stop with Ctrl+C" in process.stdout.readline()
    yield Client(process.stdout.readline().strip())
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (0, "")


def test_the_list_has_everything_and_nothing_may_frame_or_keep_it(client: Client) -> None:
    status, text, headers = client("GET", "")
    assert status == 200
    links = text.count('href="lessons/'), text.count('href="puzzles/'), text.count('href="game/')
    assert links == (len(shelf.entries("lessons")), len(shelf.entries("puzzles")), 28)
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert "Server" not in headers
    assert client("GET", "", Host=client.host.replace("127.0.0.1", "localhost"))[0] == 200


RUN = {"cells": [["cell 1", "print(1)"]]}
REFUSED: dict[str, tuple[int, tuple[Any, ...], dict[str, Any]]] = {
    "another name": (421, ("GET", ""), {"Host": "evil.example"}),
    "another port": (421, ("GET", ""), {"Host": "127.0.0.1:1"}),
    "no name": (421, ("GET", ""), {"Host": None}),
    "another origin": (403, ("POST", "lessons/1/run", RUN), {"Origin": "http://evil.example"}),
    "the origin of a file": (403, ("POST", "lessons/1/run", RUN), {"Origin": "null"}),
    "no origin": (403, ("POST", "lessons/1/run", RUN), {"Origin": None}),
    "another origin reads": (403, ("GET", ""), {"Origin": "http://evil.example"}),
    "another token": (403, ("GET", ""), {"token": "x" * 43}),
    "no token": (403, ("GET", "lessons/1"), {"token": ""}),
    "a token of other letters": (403, ("GET", ""), {"token": "%ff%e2%82"}),
    "a form": (415, ("POST", "lessons/1/run", b"cells=1"), {"Content_Type": "text/plain"}),
    "a large body": (413, ("POST", "lessons/1/run", b"x" * 300_000), {}),
    "a large head": (431, ("GET", ""), {"X_Long": "x" * 20_000}),
    "another method": (405, ("PUT", "lessons/1/run", RUN), {}),
    "a path upwards": (404, ("GET", "../../../etc/passwd"), {}),
    "a coded path": (404, ("GET", "lessons/..%2f..%2fpyproject.toml"), {}),
    "digits of another script": (404, ("GET", "lessons/%D9%A1"), {}),
    "no lesson": (404, ("GET", "lessons/99"), {}),
    "no level": (404, ("GET", "game/99"), {}),
    "no picture": (404, ("GET", "pictures/99"), {}),
    "no JSON": (400, ("POST", "lessons/1/run", b"{"), {}),
    "nested JSON": (400, ("POST", "lessons/1/run", b"[" * 100_000), {}),
    "a list": (400, ("POST", "lessons/1/run", [1]), {}),
    "cells of numbers": (400, ("POST", "lessons/1/run", {"cells": [[1, 2]]}), {}),
    "no source": (400, ("POST", "puzzles/1/run", {"source": 1}), {}),
    "no question": (400, ("POST", "lessons/1/answer", {"question": 99}), {}),
    "a truth for a question": (400, ("POST", "lessons/1/answer", {"question": True}), {}),
}  # fmt: skip


@pytest.mark.parametrize(("status", "request_", "headers"), REFUSED.values(), ids=[*REFUSED])
def test_no_other_request_is_answered(
    client: Client, status: int, request_: tuple[Any, ...], headers: dict[str, Any]
) -> None:
    found, text, _ = client(*request_, **headers)
    assert found == status
    assert client.token not in text


def test_requests_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "REQUESTS", 3)
    door = server.Doorkeeper("token", 80)
    environ = {"REQUEST_METHOD": "GET", "HTTP_HOST": "127.0.0.1:80", "PATH_INFO": "/token/lessons/1"}
    assert [door.admit(environ).path for _ in range(3)] == ["lessons/1"] * 3
    with pytest.raises(server.RefusedRequest, match="more than 3 requests"):
        door.admit(environ)


def test_programs_wait_for_their_turn_or_are_refused(client: Client) -> None:
    body = {"cells": [["cell 1", "import time; time.sleep(1)"]]}
    found = list[int]()
    threads = [
        threading.Thread(target=lambda: found.append(client("POST", "lessons/1/run", body)[0])) for _ in range(9)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {*found} == {200, 429}
    assert found.count(429) >= 9 - server.RUNNING - server.WAITING - server.RUNNING


def test_a_client_that_sends_slowly_is_no_activity() -> None:
    class Slow(server._Channel):
        def __init__(self, is_complete: bool) -> None:
            self.last_activity, self.requests, self.request = 1.0, [], None
            self.adj = type("Adjustments", (), {"recv_bytes": 1})
            self.is_complete = is_complete

        def recv(self, count: int) -> bytes:
            return b"G"

        def received(self, data: bytes) -> bool:
            self.request, self.requests = (None, [1]) if self.is_complete else (1, [])
            return True

        def __repr__(self) -> str:
            return "Slow"

    slow, quick = Slow(False), Slow(True)
    slow.handle_read()
    quick.handle_read()
    assert slow.last_activity == 1.0
    assert quick.last_activity > 1.0


def test_cells_run_as_in_a_notebook(client: Client) -> None:
    double = "import xbuild as xb\ndouble = xb.computation(xb.f32[2])(lambda x: x + x)"
    (value,) = client.run(double, "print('here')\nxb.evaluate(double, [1.0, 2.0])")
    assert value == {"kind": "text", "text": "here\n[2. 4.]"}
    picture, text = client.run(double, "from xbuild.learning import show\nshow(double)\nprint('after')")
    assert (picture["kind"], text["text"]) == ("picture", "after")
    assert "<svg" in picture["text"]
    assert [part["kind"] for part in client.run(double, "double")] == ["picture"]
    (page,) = client.run(double, "xb.trace(xb.Module('m', double), [[[1.0, 2.0]]])")
    assert page["kind"] == "page"
    assert client.run(double, "x = 1", "") == []


def test_errors_name_the_cell_and_its_line(client: Client) -> None:
    before, error = client.run("x = 1", "print('so far')\n\n1 / 0")
    assert (before["text"], error) == (
        "so far",
        {"kind": "error", "text": "cell 1:3: ZeroDivisionError: division by zero"},
    )
    (error,) = client.run("def", "x = 1")
    assert error["text"].startswith("cell 0:1: SyntaxError")
    (error,) = client.run("import xbuild as xb\n\nxb.computation(xb.f32[2], xb.f32[3])(xb.add)")
    assert "cell 0:3" in error["text"]
    assert "f32[3]" in error["text"]


def test_what_code_prints_is_bounded(client: Client) -> None:
    assert client.run("while True: print('x' * 999)")[-1]["text"] == "the code prints more than 50,000 characters"
    shows = (
        "import xbuild as xb\nfrom xbuild.learning import show\n"
        "double = xb.computation(xb.f32[2])(lambda x: x + x)\nwhile True: show(double)"
    )
    assert "more than 20 pictures" in client.run(shows)[-1]["text"]


FORGED = """
import json, os
parts = [{"kind": "script", "text": "x"}, {"kind": "text", "text": "mine", "more": 1}, 5]
os.write(3, json.dumps({"parts": parts}).encode())
os._exit(0)
"""


def test_an_answer_of_the_code_itself_has_only_known_parts(client: Client) -> None:
    assert client.run(FORGED) == [{"kind": "text", "text": "mine"}]


@LINUX
def test_a_run_is_confined_and_sees_nothing_of_the_server(client: Client) -> None:
    attempts = ("os.fork()", "subprocess.run(['ls'])", "socket.socket()", "os.kill(os.getppid(), 9)")
    found = client.run(
        "import os, socket, subprocess\n"
        f"for attempt in {attempts!r}:\n"
        "    try:\n        eval(attempt)\n        print('done')\n"
        "    except Exception as error:\n        print(type(error).__name__)\n"
        "for descriptor in range(64):\n"
        "    try: print(descriptor, os.readlink(f'/proc/self/fd/{descriptor}').split(':')[0])\n"
        "    except OSError: pass\n"
        "print(sorted({*os.environ} - {'LC_CTYPE'}))"
    )[0]["text"].split("\n")  # fmt: skip
    assert found[:4] == ["PermissionError"] * 4
    assert [line for line in found[4:-1] if "socket" in line] == []
    assert len(found[4:-1]) <= 5, "stdin, stdout and stderr, the answer and the device that discards"
    assert found[-1] == "['OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'PATH']"


LIMITED = [
    ("while True: pass", 90.0, "took more than 1 s on the processor"),
    ("import time; time.sleep(60)", 1.0, "did not finish within 1 s"),
    ("import os\nwhile True: os.write(3, b'x' * 9999)", 90.0, "returned more than 1,000,000 bytes"),
    ("import os; os._exit(3)", 90.0, "ended without a result (exit status 3)"),
]


@LINUX
@pytest.mark.parametrize(("code", "seconds", "words"), LIMITED)
def test_a_fork_has_limits(forking: ForkingProcess, code: str, seconds: float, words: str) -> None:
    with pytest.raises(Unsolved) as fault:
        run_cells([("cell 1", code)], forking, Bounds(seconds, 1, 1_000_000))
    assert words in str(fault.value)


@LINUX
def test_a_fork_has_no_more_memory_than_its_limit(forking: ForkingProcess) -> None:
    (error,) = run_cells([("cell 1", "x = bytearray(8 << 30)")], forking, Bounds(90.0, 5, 1_000_000))
    assert "MemoryError" in error["text"]


@pytest.fixture(scope="module")
def forking() -> Iterator[ForkingProcess]:
    process = ForkingProcess()
    process.start()
    yield process
    process.close()


@LINUX
def test_forks_share_nothing_and_the_forking_process_starts_again(forking: ForkingProcess) -> None:
    bounds = Bounds(20.0, 5, 1_000_000)
    assert run_cells([("cell", "import xbuild\nxbuild.mark = 1")], forking, bounds) == []
    (found,) = run_cells([("cell", "import xbuild\nhasattr(xbuild, 'mark')")], forking, bounds)
    assert found["text"] == "False"
    assert forking._started is not None
    forking._started[0].kill()
    forking._started[0].wait()
    assert run_cells([("cell", "1 + 1")], forking, bounds)[0]["text"] == "2"


def test_answers_and_solutions_are_saved(client: Client, data: Path) -> None:
    assert client("POST", "lessons/8/answer", {"question": 0})[0] == 200
    right = json.loads(client("POST", "puzzles/3/run", {"source": shelf.solution_of(3).read_text()})[1])
    assert (right["solved"], right["words"]) == (True, "solved: 40 FLOPs (the best known)")
    assert [part["kind"] for part in right["parts"]] == ["picture", "picture"]
    kept = json.loads((data / "xbuild" / "progress.json").read_text())
    assert len(kept["lessons"]["pad"]) == 1
    assert kept["puzzles"]["one_hot"]["flops"] == 40
    home = client("GET", "")[1]
    assert "1 of 4" in home
    assert "solved: 40 FLOPs" in home


WRONG = """import xbuild as xb
def solution(x):
    return xb.convert(xb.eq(xb.iota(x.builder, xb.s32[5, 4], 0), 1), xb.s32)
"""


def test_a_wrong_solution_is_drawn_beside_the_specification(client: Client) -> None:
    found = json.loads(client("POST", "puzzles/3/run", {"source": WRONG})[1])
    assert not found["solved"]
    assert found["words"].startswith("not solved yet: for [")
    table = found["parts"][0]["text"]
    assert "expected: s32[5,4]" in table
    assert "yours: s32[5,4]" in table
    assert 0 < table.count('class="wrong"') <= 20
    assert " is wrong, expected " in table
    fault = json.loads(client("POST", "puzzles/3/run", {"source": "def solution(x): return 1 / 0"})[1])["words"]
    assert fault == "not solved yet: solution.py:1: ZeroDivisionError: division by zero"


def test_a_deadlock_is_drawn(client: Client) -> None:
    source = """import xbuild as xb
def solution(x):
    both = [(0, 1), (1, 0)]
    token = xb.send_done(xb.send(x, channel_id=1, source_target_pairs=both), channel_id=1)
    return xb.recv_done(xb.recv(token, x.shape, channel_id=1, source_target_pairs=both), channel_id=1)[0]
"""
    found = json.loads(client("POST", "puzzles/18/run", {"source": source})[1])
    assert "deadlock" in found["words"]
    assert "solution.py:4" in found["words"]
    assert [part["kind"] for part in found["parts"]] == ["picture"]


@pytest.mark.parametrize("number", [*shelf.entries("lessons")])
def test_the_editors_of_a_lesson_run(number: int) -> None:
    """Every cell runs after those before it, and every question has what runs its program."""
    cells = [cell for cell in shelf.entry("lessons", number).cells if cell.kind == "code"]
    pieces = [("set-up", "from xbuild.learning import run_program, show")]
    pieces += [(f"cell {n}", "\n".join(cell.code_to_edit)) for n, cell in enumerate(cells, 1)]
    parts = jobs.run_cells({"cells": pieces})["parts"]
    assert [part["text"] for part in parts if part["kind"] == "error"] == []
    assert sum(len(cell.code_to_edit) - 1 for cell in cells) == shelf.entry("lessons", number).number_of_questions


def test_options_that_exclude_each_other_are_refused() -> None:
    assert "--serve serves all lessons or puzzles: omit the number" in usage(xbuild("learn", 3, "--serve"))
    assert "--port has no effect without --serve" in usage(xbuild("learn", "--port", 1))
    assert "--copy and --serve cannot be used together" in usage(xbuild("learn", "--copy", ".", "--serve"))
