"""The commands of `xbuild step` as a user types them: going somewhere, wrong input, help, a terminal."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.pages.scripts import said
from xbuild.cli import main
from xbuild.stepping import Shell
from xbuild.stepping.shell import ALIASES, GROUPS
from xbuild.traces import Trace

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("name", "script", "last"),
    [
        ("loop", "n 5", "device 0  step 6  constant.6 in while.24, trip 1 = 4"),
        (
            "loop",
            "step 5\nb 2",
            "step 4  parameter.4 in while.24, trip 1 = (0, [[0., 1., 2.], [3., 4., 5.]])",
        ),
        ("loop", "to trip 3\nto all-reduce.19", "all-reduce.19 in while.24, trip 3"),
        ("loop", "to end\nback to all-reduce.19", "all-reduce.19 in while.24, trip 4"),
        ("loop", "to end\nback to trip 2", "trip 2"),
        ("loop", "trip 2\nback comm", "all-reduce.19 in while.24, trip 1"),
        ("loop", "c\nc\nc", "all-reduce.19 in while.24, trip 3"),
        ("loop", "to step 12\nto device 1", "device 1  step 12"),
        ("loop", "until all-reduce.19 min(v) < -1", "all-reduce.19 in while.24, trip 3"),
        ("loop", "to end\nback until v > 7", "all-reduce.19 in while.24, trip 1"),
        ("loop", "to start", "device 0  step 1  parameter.1"),
        ("digits", "to all-reduce\nn", "device 0"),
        ("ring", "to recv-done\nd 3", "device 3"),
    ],
)
def test_going_somewhere(traces: dict[str, Trace], name: str, script: str, last: str) -> None:
    lines, failed = said(traces[name], script)
    assert not failed
    assert last in lines[-1]


@pytest.mark.parametrize(
    ("script", "fault"),
    [
        ("nonsense", "! unknown command 'nonsense'; `help` lists the commands"),
        ("nxt", "! unknown command 'nxt'; did you mean 'next'? `help` lists the commands"),
        ("n two", "! expected a number, got 'two'"),
        ("n -1", "! expected a number, got '-1'"),
        ("back", "! the run starts here"),
        ("to end\nn", "! the run ends here"),
        ("to", "! expected a place: an instruction, trip N, step N, device N, start or end"),
        ("to ad.3", "! the run never reached 'ad.3'; did you mean 'add.11'?"),
        ("to end\nto add.11", "! device 0 does not reach add.11 again"),
        ("back to add.11", "! device 0 has not reached add.11 before"),
        ("to trip 9", "! no loop has a trip 9 after this place"),
        ("d 2", "! device 2 does not exist; the devices are 0..1"),
        ("d", "! expected a number"),
        ("until v > 1e9", "! no value on this device after this place satisfies v > 1e9"),
        ("until add.99 v > 1", "! the run never reached 'add.99'; did you mean 'add.11'?"),
        ("p add.11", "! device 0 has not reached add.11 by this step"),
        ("p nothing", "! the run never reached 'nothing'"),
        (
            "p v[7]",
            "! 'v[7]' does not apply to a value with dimensions [2, 3]: index 7 is out of bounds for axis 0 with size "
            "2",
        ),
        ("diff 0", "! expected two devices, such as `0 1`"),
        ("diff add.11 0 1", "! device 0 has not reached add.11 by this step"),
        ("part 0 7", "! device 7 does not exist; the devices are 0..1"),
        ("unwatch 0", "! watch 0 does not exist; the number of watches is 0"),
        ("view all", "! unknown view 'all'; expected line or full"),
        ("help nothing", "! unknown command 'nothing'; `help` lists the commands"),
    ],
)
def test_what_cannot_be_done_is_told(traces: dict[str, Trace], script: str, fault: str) -> None:
    lines, failed = said(traces["loop"], script)
    assert failed
    assert lines[-1] == fault


@pytest.mark.parametrize(
    "text",
    [
        "v.__class__",
        "__import__('os')",
        "v ** 9",
        "(lambda: 1)()",
        "open('x')",
        "v >",
        "'a' == v",
        "[v for v in v]",
        "(" * 500,
    ],
)
def test_what_is_no_condition_is_told(traces: dict[str, Trace], text: str) -> None:
    lines, failed = said(traces["loop"], f"until {text}\n")
    assert failed
    assert "cannot be read" in lines[-1]


def test_help_has_every_command(traces: dict[str, Trace]) -> None:
    lines, _ = said(traces["loop"], "help\n")
    commands = {name[3:] for name in dir(Shell) if name.startswith("do_")}
    assert commands == {name for group in GROUPS.values() for name in group}
    assert set(ALIASES.values()) <= commands
    for name in commands:
        (row,) = [line for line in lines if line.startswith(f"  {name} ")]
        assert len(row) <= 84
        texts, failed = said(traces["loop"], f"help {name}\n")
        assert not failed
        assert texts[2].startswith(name)
    for short, name in ALIASES.items():
        if short.isalpha() and len(short) <= 2:
            assert any(line.startswith(f"  {name} ") and short in line.split("(")[1] for line in lines)


def test_completion(traces: dict[str, Trace]) -> None:
    shell = Shell(traces["loop"], io.StringIO(), io.StringIO())
    assert shell.completenames("wa") == ["watch"]
    assert shell.completedefault("all", "to all", 3, 6) == ["all-reduce.19"]
    assert shell.completedefault("tr", "t tr", 2, 4) == ["trip"]
    assert shell.completedefault("", "d ", 2, 2) == ["0", "1"]
    assert shell.complete_help("pr", "help pr", 5, 7) == ["program", "print"]


@pytest.mark.parametrize(
    ("target", "script"),
    [
        ("examples/ring.py:program", "to recv-done\nwhere\n"),
        ("examples/deadlocks/ring.py:program", "devices\nwhere\n"),
    ],
)
def test_the_command(target: str, script: str) -> None:
    done = CliRunner().invoke(main, ["step", str(ROOT / target), "--random", "0"], input=script)
    assert done.exit_code == 0, done.output
    assert done.output.startswith("Trace(")
    assert "\x1b" not in done.output
    done = CliRunner().invoke(main, ["step", str(ROOT / target), "--random", "0"], input="nonsense\n")
    assert done.exit_code == 1


@pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal of its own")
def test_on_a_terminal() -> None:
    """What is typed there is read with a prompt, names are completed, and an empty line repeats a move."""
    import os
    import pty

    controller, terminal = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "NO_COLOR": ""}
    command = [sys.executable, "-c", "from xbuild.cli import main; main()"]
    process = subprocess.Popen(
        [*command, "step", "examples/ring.py:program", "--random", "0"], cwd=ROOT, env=environment,
        stdin=terminal, stdout=terminal, stderr=terminal, close_fds=True,
    )  # fmt: skip
    os.close(terminal)
    seen = b""
    for wanted, typed in ((b"step 1) ", b"n\n"), (b"step 2) ", b"\n"), (b"step 3) ", b"q\n")):
        while wanted not in seen:
            seen += os.read(controller, 4096)
        os.write(controller, typed)
    assert process.wait(timeout=30) == 0
    os.close(controller)
    assert "(device 0, step 3)" in seen.decode()


def test_a_search_is_interrupted_and_the_place_stays(traces: dict[str, Trace], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr("xbuild.stepping.place.TracePlace.search", interrupted)
    lines, failed = said(traces["loop"], "n\nto all-reduce\nw\n")
    assert failed
    assert "! interrupted" in lines
    assert "step 2" in lines[lines.index("! interrupted") + 1]
