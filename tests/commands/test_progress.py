"""The line that shows the progress of long work: on a terminal after a second, never in pipes or beside JSON."""

from __future__ import annotations

import io
import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import xbuild as xb
from xbuild.pages import page_text, write_page
from xbuild.process import progress

ROOT = Path(__file__).parents[2]
ON_A_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)
"""A program that makes its stdin the terminal of its session, and becomes the command of its arguments."""
posix = pytest.mark.skipif(os.name != "posix", reason="pseudo terminals as POSIX has them")


def text(instructions: int) -> str:
    """A program of this many additions."""
    lines = (f"  x.{n} = f32[8] add(x.{n - 1}, x.0)" for n in range(1, instructions))
    return "\n".join(
        ["HloModule big", "ENTRY e {", "  x.0 = f32[8] parameter(0)", *lines, "  ROOT y = f32[8] abs(x.1)\n}"]
    )


class Terminal(io.StringIO):
    """A terminal that keeps what was written."""

    def isatty(self) -> bool:
        return True


# What each pass says


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The lines of all passes that begin, with those of what they have counted at their end."""
    found: list[str] = []
    finish = progress._Display.finish

    def keep(self: progress._Display, work: progress.during) -> None:
        found.append(work.line())
        finish(self, work)

    monkeypatch.setattr(progress._Display, "finish", keep)
    with progress.shown(Terminal()):
        yield found


def net(mesh: xb.Mesh) -> xb.Module:
    product = xb.computation(xb.f32[8, 8], xb.f32[8, 8])(lambda x, w: xb.tanh(xb.dot(x, w)))
    return xb.shard.annotated(xb.Module("net", product), {0: xb.P(None, "x"), 1: xb.P("x")}, mesh=mesh)


SUM = xb.Module("total", xb.computation(xb.f32[2])(lambda x: xb.cross_replica_sum(x * x)), num_replicas=4)


def write_step_page() -> None:
    write_page(xb.trace(SUM, [[np.ones(2, np.float32)]] * 4, origins=True), os.devnull)


LONG: dict[str, tuple[Callable[[], object], set[str]]] = {
    "read": (lambda: xb.parse(text(50)), {"reading text: 1,580 of 1,580 characters"}),
    "check": (lambda: xb.check(SUM), {"checking the program", "running all devices level by level"}),
    "deadlock": (
        lambda: xb.check(xb.Module("m", SUM.entry, num_replicas=2), {0: [*SUM.entry.instructions]}),
        {"checking the program"},
    ),
    "cost": (lambda: xb.cost(SUM), {"counting costs: 2 of 3 instructions"}),
    "memory": (lambda: xb.cost(SUM).memory, {"laying out memory"}),
    "timeline": (lambda: xb.timeline(SUM, "v5e"), {"modelling time", "modelling time: 3 steps"}),
    "viz": (lambda: xb.viz(SUM).render("svg"), {"drawing the picture", "laying out the picture as svg"}),
    "page": (lambda: page_text(xb.trace(SUM, [[np.ones(2, np.float32)]] * 4)), {"writing the page: 3 of 4 devices"}),
    "partition": (
        lambda: xb.shard.partition(net(xb.Mesh(x=4))),
        {"partitioning the program", "propagating shardings: 0 instructions left to visit"},
    ),
    "equivalent": (
        lambda: xb.equivalent(SUM, SUM),
        {"comparing the programs", "evaluating both: 0 of 3 random inputs"},
    ),
}


@pytest.mark.parametrize("name", LONG)
def test_long_work_says_what_it_does_and_how_far_it_is(passes: list[str], name: str) -> None:
    work, lines = LONG[name]
    work()
    assert lines <= {*passes}, passes


def test_walks_are_untouched_where_nothing_is_shown() -> None:
    items = [1, 2, 3]
    assert progress.over(items, "walking") is items
    with progress.during("working") as work:
        assert work.line() == "working"


def test_an_error_ends_the_passes_inside_it() -> None:
    with progress.shown(Terminal()):
        display = progress._display
        assert display is not None
        with progress.during("outer"):
            walk = iter(progress.over([1, 2], "inner"))
            next(walk)  # a walk that an error leaves, whose traceback keeps it
            assert [work.what for work in display.passes] == ["outer", "inner"]
        assert display.passes == []


# The line


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """The terminal of a pass that has done 3 of 4, as it is drawn."""
    terminal = Terminal()
    monkeypatch.setattr(progress, "DELAY", 1000.0)
    with progress.shown(terminal):
        yield terminal


def draw() -> None:
    assert progress._display is not None
    with progress.during("checking"), progress.during("matching", lambda: 3, 4, "channels"):
        progress._display.draw()


def test_the_line_has_the_pass_what_is_done_and_the_seconds(line: Terminal) -> None:
    draw()
    assert re.fullmatch(r"checking: matching: 3 of 4 channels  .*0 s", plain(line.getvalue()))


def test_without_rich_the_line_is_plain(line: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    draw()
    assert line.getvalue() == "checking: matching: 3 of 4 channels  0 s"


def test_other_output_erases_the_line(line: Terminal) -> None:
    draw()
    with progress.hidden():
        assert re.search(r"\r +\r$", line.getvalue())


def test_nothing_is_drawn_without_a_pass_or_after_the_end(line: Terminal) -> None:
    display = progress._display
    assert display is not None
    display.draw()
    progress.end()
    assert line.getvalue() == ""
    assert progress._display is None


def test_a_short_command_draws_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    with progress.shown(terminal), progress.during("reading"):
        time.sleep(0.3)
    assert terminal.getvalue() == ""


def test_a_pipe_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert progress.terminal() is None
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert progress.terminal() is sys.stderr
    monkeypatch.setenv("TERM", "dumb")
    assert progress.terminal() is None


# Commands on a terminal


def plain(shown: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)


def on_terminal(*words: object, interrupted_at: str = "") -> tuple[int, str]:
    """The exit code of a command on a pseudo terminal and all that it shows; Ctrl-C is pressed once it shows a text."""
    terminal, end = os.openpty()
    command = [sys.executable, "-c", ON_A_TERMINAL, sys.executable, "-m", "xbuild", *map(str, words)]
    process = subprocess.Popen(command, stdin=end, stdout=end, stderr=end, start_new_session=True)
    os.close(end)
    shown = b""
    while select.select([terminal], [], [], 60)[0]:
        try:
            read = os.read(terminal, 1 << 16)
        except OSError:
            break
        if not read:
            break
        shown += read
        if interrupted_at and interrupted_at in plain(shown.decode(errors="replace")):
            os.write(terminal, b"\x03")
            interrupted_at = ""
    os.close(terminal)
    return process.wait(), plain(shown.decode(errors="replace"))


@pytest.fixture
def big(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(ROOT)
    path = tmp_path / "big.hlo"
    path.write_text(text(450_000))
    return path


@posix
def test_a_long_command_shows_its_progress_and_erases_it(big: Path) -> None:
    code, shown = on_terminal("check", big)
    assert code == 0
    assert re.search(r"reading text: [\d,]+ of [\d,]+ characters", shown)
    assert re.search(r"\r +\rok: ", shown), shown[-500:]


@posix
def test_nothing_is_shown_beside_json(big: Path) -> None:
    code, shown = on_terminal("check", big, "--json")
    assert code == 0
    assert "reading text" not in shown


@posix
def test_an_interrupt_ends_the_command_as_without_the_line(big: Path) -> None:
    code, shown = on_terminal("check", big, interrupted_at="reading text")
    assert code == 130
    assert re.search(r"\r +\r(\^C)?\r\ninterrupted\r\n$", shown), shown[-300:]


@posix
def test_the_limit_of_seconds_ends_the_command_as_without_the_line(big: Path) -> None:
    code, shown = on_terminal("check", big, "--max-seconds", 1.3)
    assert code == 3
    assert re.search(r"stopped: reached the limit of 1\.3 seconds while (reading text|working|checking)", shown)
