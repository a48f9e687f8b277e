"""Progress of long work on a terminal: one line says what is done and, if it is known, of how much.

A long pass names itself with `during`, and counts what it walks over with `over`. `shown`, which the command line
enters, starts a thread that draws the innermost pass after `DELAY` seconds. Outside of `shown` the passes only look
at one variable: `over` returns its argument.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from attrs import define, field

if TYPE_CHECKING:
    import threading

Item = TypeVar("Item")

DELAY = 1.0
"""Seconds of work before the line appears."""

_INTERVAL = 0.1  # seconds between two drawings
_FEWEST_COLUMNS, _BAR_COLUMNS = 30, 24
_FEWEST = 2  # items that are counted

# ----------------------------------------------------------------------------
# What a pass calls


class during:  # noqa: N801, since it reads as a word: `with during("drawing"):`
    """Inside the block the command does this; `done` is called to read how many it has done, of `total` in this unit.

    >>> with during("reading text", done=lambda: 3, total=10, unit="characters") as work:
    ...     work.line()
    'reading text: 3 of 10 characters'
    """

    __slots__ = ("done", "total", "unit", "what")

    def __init__(
        self, what: str, done: Callable[[], int] | None = None, total: int | None = None, unit: str = ""
    ) -> None:
        self.what, self.done, self.total, self.unit = what, done, total, unit

    def __enter__(self) -> during:
        if _display is not None:
            _display.begin(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if _display is not None:
            _display.finish(self)

    def count(self) -> int | None:
        """How many are done; None where it is unknown."""
        try:
            return None if self.done is None else max(self.done(), 0)
        except Exception:  # it is read from a second thread, while the pass changes what it reads
            return None

    def line(self) -> str:
        """The pass and how far it is."""
        done = self.count()
        if done is None:
            return self.what
        number = f"{done:,}" if self.total is None else f"{min(done, self.total):,} of {self.total:,}"
        return f"{self.what}: {number} {self.unit}".rstrip()


def over(items: Iterable[Item], what: str, unit: str = "") -> Iterable[Item]:
    """The items; while the caller walks over them, the line counts them.

    >>> items = [1, 2]
    >>> over(items, "adding", "numbers") is items
    True
    """
    if _display is None:
        return items
    total = len(items) if isinstance(items, Sized) else None
    return items if total is not None and total < _FEWEST else _counted(items, during(what, None, total, unit))


def _counted(items: Iterable[Item], work: during) -> Iterator[Item]:
    number = 0
    work.done = lambda: number
    with work:
        for number, item in enumerate(items):  # noqa: B007, since the line reads it
            yield item


# ----------------------------------------------------------------------------
# What a command calls


@contextmanager
def shown(stream: TextIO | None) -> Iterator[None]:
    """Inside, long work is shown on this terminal; None shows nothing."""
    global _display
    if stream is None or _display is not None:
        yield
        return
    _display = _Display(stream)
    try:
        _display.start()
        yield
    finally:
        end()


def end() -> None:
    """Erase the line, and draw no other: the command has ended, or waits for its user."""
    global _display
    display, _display = _display, None
    if display is not None:
        display.end()


@contextmanager
def hidden() -> Iterator[None]:
    """Inside, the terminal is free for other output."""
    if _display is None:
        yield
        return
    with _display.lock:
        _display.erase()
        yield


def terminal() -> TextIO | None:
    """The terminal for the line: stderr, if neither stdout nor stderr is a pipe or a file."""
    with suppress(AttributeError, ValueError):  # a stream that is missing or closed
        if sys.stdout.isatty() and sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
            return sys.stderr
    return None


# ----------------------------------------------------------------------------
# The line, which a second thread draws


def _lock() -> threading.RLock:
    import threading

    return threading.RLock()


@define(eq=False)
class _Display:
    """The line on a terminal, and the passes that run now, the innermost last."""

    stream: TextIO
    lock: threading.RLock = field(factory=_lock)
    passes: list[during] = field(factory=list)
    begun: float = field(factory=time.monotonic)
    thread: int = field(init=False, default=0)
    drawn: int = 0  # columns
    _ended: threading.Event = field(init=False)
    _draws_with_rich: bool = True

    def start(self) -> None:
        import threading

        self.thread, self._ended = threading.get_ident(), threading.Event()
        with suppress(RuntimeError, MemoryError):  # a process that may not have a second thread shows nothing
            threading.Thread(target=self._run, name="progress", daemon=True).start()

    def begin(self, work: during) -> None:
        import threading

        if threading.get_ident() == self.thread:
            self.passes.append(work)

    def finish(self, work: during) -> None:
        """Remove a pass, and those inside that an error has ended."""
        if work in self.passes:
            del self.passes[self.passes.index(work) :]

    def end(self) -> None:
        self._ended.set()
        with self.lock:
            self.erase()

    def _run(self) -> None:
        wait = DELAY
        with suppress(Exception):  # a terminal that is gone; the work continues
            while not self._ended.wait(wait):
                wait = _INTERVAL
                with self.lock:
                    if not self._ended.is_set():
                        self.draw()

    def draw(self) -> None:
        """Draw the innermost pass with its count, after the outermost if there is room."""
        passes = [*self.passes]
        columns = self._columns()
        if not passes or columns < _FEWEST_COLUMNS:
            self.erase()
            return
        outer, inner, seconds = passes[0].what, passes[-1], f"{time.monotonic() - self.begun:.0f} s"
        text = f"{outer}: {inner.line()}" if outer != inner.what else inner.line()
        bar = _BAR_COLUMNS + 2 if self._draws_with_rich and inner.total else 0
        if len(text) + len(seconds) + 2 + bar > columns:
            text = inner.line()[: columns - len(seconds) - 2]
        line = self._rich_line(text, seconds, inner, columns) if self._draws_with_rich else None
        self.erase()
        self.drawn = columns
        self.stream.write(f"{text}  {seconds}" if line is None else line)
        self.stream.flush()

    def erase(self) -> None:
        if self.drawn:
            self.stream.write(f"\r{' ' * self.drawn}\r")
            self.stream.flush()
            self.drawn = 0

    def _columns(self) -> int:
        """The columns that the line may take; a terminal prints ^C behind it."""
        try:
            columns = os.get_terminal_size(self.stream.fileno()).columns
        except (OSError, ValueError):
            columns = 0
        return (columns or 80) - 4  # a terminal that does not know its size says 0

    def _rich_line(self, text: str, seconds: str, work: during, columns: int) -> str | None:
        """The line with a bar, as rich draws it; None without rich."""
        try:
            from rich.console import Console
            from rich.progress_bar import ProgressBar
            from rich.table import Table
            from rich.text import Text
        except (ImportError, MemoryError):
            self._draws_with_rich = False
            return None
        done, room = work.count(), columns - len(text) - len(seconds) - 4
        parts: list[Any] = [Text(text), Text(seconds, style="dim")]
        row = Table.grid(padding=(0, 2))
        if done is not None and work.total and room >= _BAR_COLUMNS:
            parts.insert(1, ProgressBar(total=work.total, completed=done, width=_BAR_COLUMNS))
        for _ in parts:
            row.add_column(no_wrap=True)
        row.add_row(*parts)
        console = Console(file=self.stream, width=columns, highlight=False)
        with console.capture() as captured:
            console.print(row)
        return captured.get().splitlines()[0].rstrip()


_display: _Display | None = None
