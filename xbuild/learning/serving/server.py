"""The server of `xbuild learn --serve`: it answers only this machine, and only requests with its token.

Sections:

    Requests: who may ask, and how much
    Routes
    The server
"""

from __future__ import annotations

import hmac
import json
import logging
import re
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from typing import Any

from attrs import define, field, frozen
from waitress import create_server
from waitress.channel import HTTPChannel

from ...game.levels import in_order
from .. import progress, shelf
from ..forking import CAN_FORK, ForkingProcess
from ..moving import PICTURES
from ..puzzle import Unsolved
from ..sandbox import TRUSTED, bubblewrap
from ..submission import Bounds, Starter, judge_and_draw, run_cells
from .pages import Pages

# ----------------------------------------------------------------------------
# Requests: who may ask, and how much

HOST = "127.0.0.1"
PORT = 8731
"""The port that the server takes if it is free."""

MOST_BODY = 1 << 18
"""The bytes of the largest request."""

MOST_HEAD = 1 << 14
"""The bytes of the largest head of a request."""

RUNNING, WAITING = 2, 4
"""The most programs that run at one time, and that wait for their turn."""

REQUESTS, WINDOW = 600, 60.0
"""The most requests in a window of seconds."""

CONNECTIONS, PATIENCE = 40, 15
"""The most connections, and the seconds after which one without a complete request is closed."""

BOUNDS = Bounds(seconds=15.0, processor_seconds=8, output=1 << 23)
"""What a run may take."""


class RefusedRequest(Exception):
    """Raised with the status and a sentence if a request is not answered."""

    def __init__(self, status: HTTPStatus, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


@frozen
class AdmittedRequest:
    """A request that the server answers: its method, its path below the token, and its data."""

    method: str
    path: str
    data: Mapping[str, Any]


@define(eq=False)
class Doorkeeper:
    """Decides which requests are answered: those with the token, the name and the origin of this server."""

    token: str
    port: int
    _times: deque[float] = field(factory=deque, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def admit(self, environ: Mapping[str, Any]) -> AdmittedRequest:
        """The request; raises RefusedRequest for every other."""
        self._count()
        names = {f"{HOST}:{self.port}", f"localhost:{self.port}"}
        if (host := environ.get("HTTP_HOST", "")) not in names:
            raise RefusedRequest(HTTPStatus.MISDIRECTED_REQUEST, "this server has another name")
        method, origin = environ["REQUEST_METHOD"], environ.get("HTTP_ORIGIN")
        if method not in ("GET", "POST"):
            raise RefusedRequest(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and POST are answered")
        if origin != f"http://{host}" and (method == "POST" or origin is not None):
            raise RefusedRequest(HTTPStatus.FORBIDDEN, "the request comes from a page of another server")
        _, token, path = (*environ.get("PATH_INFO", "").split("/", 2), "", "")[:3]
        if not hmac.compare_digest(token.encode("latin-1", "replace"), self.token.encode()):
            raise RefusedRequest(HTTPStatus.FORBIDDEN, "the address lacks the token: use the one that xbuild printed")
        return AdmittedRequest(method, path, _read_data(environ) if method == "POST" else {})

    def _count(self) -> None:
        now = time.monotonic()
        with self._lock:
            while self._times and self._times[0] < now - WINDOW:
                self._times.popleft()
            if len(self._times) >= REQUESTS:
                raise RefusedRequest(HTTPStatus.TOO_MANY_REQUESTS, f"more than {REQUESTS} requests in {WINDOW:.0f} s")
            self._times.append(now)


def _read_data(environ: Mapping[str, Any]) -> Mapping[str, Any]:
    """The JSON object in the body of a request."""
    if environ.get("CONTENT_TYPE", "").partition(";")[0].strip().lower() != "application/json":
        raise RefusedRequest(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "expected application/json")
    body = environ["wsgi.input"].read(MOST_BODY + 1)
    if len(body) > MOST_BODY:
        raise RefusedRequest(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the request has more than {MOST_BODY:,} bytes")
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise RefusedRequest(HTTPStatus.BAD_REQUEST, "expected a JSON object")
    return data


# ----------------------------------------------------------------------------
# Routes

_HEADERS = [
    ("Cache-Control", "no-store"),
    ("Content-Security-Policy", "frame-ancestors 'none'"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
]

Start = Callable[[str, list[tuple[str, str]]], Any]


@define(eq=False)
class LessonServer:
    """The application: pages, runs of code, and the learner's progress."""

    door: Doorkeeper
    workers: Starter
    judges: Starter
    pages: Pages = field(factory=Pages)
    _turns: threading.BoundedSemaphore = field(factory=lambda: threading.BoundedSemaphore(RUNNING), init=False)
    _places: threading.BoundedSemaphore = field(
        factory=lambda: threading.BoundedSemaphore(RUNNING + WAITING), init=False
    )

    def __call__(self, environ: Mapping[str, Any], start: Start) -> Iterable[bytes]:
        try:
            kind, text = self._answer(self.door.admit(environ))
            status = HTTPStatus.OK
        except RefusedRequest as reason:
            kind, text, status = "text/plain", f"{reason}\n", reason.status
        start(f"{status.value} {status.phrase}", [("Content-Type", f"{kind}; charset=utf-8"), *_HEADERS])
        return [text.encode("utf-8", "replace")]

    def _answer(self, request: AdmittedRequest) -> tuple[str, str]:
        for method, pattern, answer in self._routes():
            if method == request.method and (match := re.fullmatch(pattern, request.path)):
                number = int(match[1]) if match.re.groups else 0
                found = answer(number, request.data)
                return ("text/html", found) if isinstance(found, str) else ("application/json", json.dumps(found))
        raise RefusedRequest(HTTPStatus.NOT_FOUND, "this page does not exist")

    def _routes(self) -> Iterator[tuple[str, str, Callable[[int, Mapping[str, Any]], Any]]]:
        yield "GET", "", lambda number, data: self.pages.home(progress.read_progress())
        yield "GET", r"lessons/(\d{1,3})", lambda number, data: self.pages.lesson(_entry("lessons", number))
        yield "GET", r"puzzles/(\d{1,3})", lambda number, data: self.pages.puzzle(_entry("puzzles", number))
        yield "GET", r"game/(\d{1,3})", lambda number, data: self._level(number)
        yield "GET", r"pictures/(\d{1,3})", lambda number, data: self._picture(number)
        yield "POST", r"lessons/(\d{1,3})/run", self._run_cells
        yield "POST", r"lessons/(\d{1,3})/answer", self._note_answer
        yield "POST", r"puzzles/(\d{1,3})/run", self._judge

    def _level(self, number: int) -> str:
        if all(level.number != number for level in in_order()):
            raise RefusedRequest(HTTPStatus.NOT_FOUND, f"level {number} does not exist")
        return self.pages.level(number)

    def _picture(self, number: int) -> str:
        if not 1 <= number <= len(PICTURES):
            raise RefusedRequest(HTTPStatus.NOT_FOUND, f"picture {number} does not exist")
        return self.pages.picture(number)

    def _run_cells(self, number: int, data: Mapping[str, Any]) -> Any:
        _entry("lessons", number)
        cells = data.get("cells")
        if not isinstance(cells, list) or not all(_is_pair_of_texts(cell) for cell in cells):
            raise RefusedRequest(HTTPStatus.BAD_REQUEST, "expected cells: a list of names with code")
        with self._turn():
            try:
                return {"parts": run_cells([(name, code) for name, code in cells], self.workers, BOUNDS)}
            except Unsolved as fault:
                return {"parts": [{"kind": "error", "text": str(fault)}]}

    def _judge(self, number: int, data: Mapping[str, Any]) -> Any:
        entry, source = _entry("puzzles", number), data.get("source")
        if not isinstance(source, str):
            raise RefusedRequest(HTTPStatus.BAD_REQUEST, "expected source: the code of a solution")
        with self._turn():
            try:
                grade, parts = judge_and_draw(number, source, "solution.py", self.workers, self.judges, BOUNDS)
            except (Unsolved, shelf.LessonError) as fault:
                return {"words": f"not solved yet: {fault}", "solved": False, "parts": []}
        if grade["solved"]:
            progress.read_progress().solve(entry.name, grade["score"])
        return {"words": grade["words"], "solved": grade["solved"], "parts": parts}

    def _note_answer(self, number: int, data: Mapping[str, Any]) -> Any:
        entry, place = _entry("lessons", number), data.get("question")
        words = self.pages.questions(entry)
        if type(place) is not int or not 0 <= place < len(words):
            raise RefusedRequest(HTTPStatus.BAD_REQUEST, f"expected question: a number below {len(words)}")
        progress.read_progress().note(entry.name, words[place])
        return {}

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Wait for a turn to run code; raises RefusedRequest if too many others wait."""
        if not self._places.acquire(blocking=False):
            raise RefusedRequest(HTTPStatus.TOO_MANY_REQUESTS, "too many programs run: wait until one has finished")
        try:
            with self._turns:
                yield
        finally:
            self._places.release()


def _entry(kind: str, number: int) -> shelf.ShelfEntry:
    try:
        return shelf.entry(kind, number)
    except shelf.LessonError as error:
        raise RefusedRequest(HTTPStatus.NOT_FOUND, str(error)) from None


def _is_pair_of_texts(cell: Any) -> bool:
    return isinstance(cell, list) and len(cell) == 2 and all(isinstance(text, str) for text in cell)


# ----------------------------------------------------------------------------
# The server


class _Channel(HTTPChannel):  # type: ignore[misc,unused-ignore]
    """A connection whose time does not begin again with each byte of a request, so that slow clients are closed."""

    last_activity: float

    def handle_read(self) -> None:
        before: float = self.last_activity
        super().handle_read()
        if self.request is not None and not self.requests:
            self.last_activity = before


@contextmanager
def serving(port: int | None = None) -> Iterator[tuple[str, Callable[[], None]]]:
    """The address of a server with its token, and the function that serves until an interrupt.

    Without a port, the server takes PORT, or any free port. Raises OSError if the port is taken.
    """
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # a request that waits is no news
    token = secrets.token_urlsafe(32)
    door, sandbox = Doorkeeper(token, 0), bubblewrap() or TRUSTED
    forking = [ForkingProcess(sandbox), ForkingProcess()] if CAN_FORK else []
    workers, judges = forking or (sandbox, TRUSTED)
    server = _create(LessonServer(door, workers, judges), port)
    server.channel_class = _Channel
    door.port = server.effective_port
    try:
        for process in forking:
            process.start()
        yield f"http://{HOST}:{door.port}/{token}/", server.run
    finally:
        server.close()
        for process in forking:
            process.close()


def _create(served: LessonServer, port: int | None) -> Any:
    create = partial(
        create_server, served, host=HOST, threads=RUNNING + WAITING + 2, ident="", connection_limit=CONNECTIONS,
        channel_timeout=PATIENCE, cleanup_interval=5, max_request_body_size=MOST_BODY,
        max_request_header_size=MOST_HEAD, clear_untrusted_proxy_headers=True,
    )  # fmt: skip
    if port is not None:
        return create(port=port)
    try:
        return create(port=PORT)
    except OSError:
        return create(port=0)
