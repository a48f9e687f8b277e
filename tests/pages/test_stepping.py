"""`xbuild step`: each command as a user types it, in plain text and in colour; waits; reports of wrong input."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import xbuild as xb
from examples import ring
from examples.deadlocks import ring as crossed
from examples.digits import model
from interpreter import trace
from xbuild.cli import main
from xbuild.files.results import random_arguments
from xbuild.stepping import Shell
from xbuild.stepping.face import STYLES, Face, Piece, face_of
from xbuild.stepping.picture import picture, spark
from xbuild.stepping.shell import ALIASES, GROUPS
from xbuild.stepping.waits import Waits
from xbuild.traces import Trace, summary

ROOT = Path(__file__).parents[2]


def _traced(program: xb.Module, **options: Any) -> Trace:
    shapes = [[p.shape for p in program.entry.parameters]] * program.num_devices
    return trace(program, random_arguments(0, shapes), **options)


def _loop() -> Trace:
    """Four trips on two devices, which meet in each."""

    @xb.computation(xb.f32[2, 3])
    def program(x: xb.Value) -> xb.Value:
        start = xb.tuple_((xb.constant(x.builder, literal=np.int32(0)), x))
        body = lambda s: xb.tuple_((s[0] + 1, xb.all_reduce(s[1] * 0.5, xb.add) - 1.0))  # noqa: E731
        return xb.while_(start, condition=lambda s: xb.lt(s[0], 4), body=body)[1]

    inputs = [[np.arange(6, dtype=np.float32).reshape(2, 3) * factor] for factor in (1, 2)]
    return trace(xb.Module("loop", program, num_replicas=2), inputs)


def _unequal() -> Trace:
    """Device r makes r trips, then all meet."""

    @xb.computation(xb.f32[()])
    def program(x: xb.Value) -> xb.Value:
        start = xb.tuple_((xb.convert(xb.replica_id(x.builder), xb.s32), x))
        body = lambda s: xb.tuple_((s[0] - 1, xb.sqrt(s[1])))  # noqa: E731
        return xb.all_reduce(xb.while_(start, condition=lambda s: xb.gt(s[0], 0), body=body)[1], xb.add)

    return trace(xb.Module("unequal", program, num_replicas=3), [[np.float32(16.0)]] * 3)


TRACES = {
    "loop": _loop,
    "unequal": _unequal,
    "ring": lambda: _traced(ring.program()),
    "deadlock": lambda: _traced(crossed.program(), check=False),
    "digits": lambda: _traced(xb.Module("digits", model.train_epoch(2, 16, xb.f32), num_replicas=4)),
    "none": lambda: _traced(ring.program(), values=False),
}


@pytest.fixture(scope="module")
def traces() -> dict[str, Trace]:
    return {name: build() for name, build in TRACES.items()}


def _said(found: Trace, script: str, face: Face | None = None) -> tuple[list[str], bool]:
    """The lines that a script brings, without those that name a line of this file, and whether a command failed."""
    out = io.StringIO()
    shell = Shell(found, io.StringIO(script), out, face or Face(out))
    shell.cmdloop()
    return [line for line in shell.face.out.getvalue().splitlines() if ".py:" not in line], shell.failed  # type: ignore[attr-defined]


WHERE = """\
device 0  step 16  all-reduce.19 in while.24, trip 1 = [[0. , 1.5, 3. ], [4.5, 6. , 7.5]]

%lambda.1 (5 lines above)
   constant.13 = f32[] constant(0.5)                             0.5
   broadcast.14 = f32[2,3] broadcast(constant.13), dimension...  [[0.5, 0.5, 0.5], [0.5, 0.5, 0.5]]
   multiply.15 = f32[2,3] multiply(get-tuple-element.12, bro...  [[0. , 0.5, 1. ], [1.5, 2. , 2.5]]
-> all-reduce.19 = f32[2,3] all-reduce(multiply.15), replica...  [[0. , 1.5, 3. ], [4.5, 6. , 7.5]]
   constant.20 = f32[] constant(1)
   broadcast.21 = f32[2,3] broadcast(constant.20), dimension...
   subtract.22 = f32[2,3] subtract(all-reduce.19, broadcast.21)
   (1 line below)

-> device 0  step 16  all-reduce.19 in while.24, trip 1
   device 1  step 16  all-reduce.19 in while.24, trip 1
""".splitlines()


def test_a_place_in_full(traces: dict[str, Trace]) -> None:
    lines, failed = _said(traces["loop"], "to all-reduce\nwhere\n")
    assert not failed
    assert lines[3:] == WHERE


def test_colour_says_the_same(traces: dict[str, Trace]) -> None:
    rich = pytest.importorskip("rich.console")
    script = "to all-reduce\nwhere\np\nhelp\nhelp to\nlist\ndevices\nnonsense\nto end\nn\ndiff parameter.1 0 1\n"
    for name in ("loop", "deadlock", "digits"):
        out = io.StringIO()
        console = rich.Console(file=out, width=300, force_terminal=True, color_system="256", record=True)
        face = Face(out, console)
        _said(traces[name], script, face)
        wanted, _ = _said(traces[name], script)
        assert [line.rstrip() for line in console.export_text().splitlines() if ".py:" not in line] == wanted
        assert "\x1b[1;36m-> " in out.getvalue()


def test_a_narrow_terminal_cuts_lines_and_loses_no_message(traces: dict[str, Trace]) -> None:
    rich = pytest.importorskip("rich.console")
    out = io.StringIO()
    console = rich.Console(file=out, width=60)
    lines, _ = _said(traces["ring"], "where\nhelp to\nto parameter.7\nhelp\n", Face(out, console))
    assert max(map(len, lines)) <= 60
    assert "did you mean 'parameter.1'?" in " ".join(" ".join(lines).split())
    assert any(line.endswith("…") for line in lines)


def test_no_colour_but_on_a_terminal_that_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert face_of(io.StringIO()).console is None
    assert face_of(Terminal()).console is not None or not _has_rich()
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert face_of(Terminal()).console is None
    monkeypatch.delitem(sys.modules, "rich.console")
    monkeypatch.setenv("NO_COLOR", "1")
    assert face_of(Terminal()).console is None


def _has_rich() -> bool:
    try:
        import rich.console  # noqa: F401
    except ImportError:
        return False
    return True


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
    lines, failed = _said(traces[name], script)
    assert not failed
    assert last in lines[-1]


@pytest.mark.parametrize(
    ("script", "fault"),
    [
        ("nonsense", "! 'nonsense' is no command; `help` lists them"),
        ("nxt", "! 'nxt' is no command; did you mean 'next'? `help` lists them"),
        ("n two", "! 'two' is no count"),
        ("n -1", "! '-1' is no count"),
        ("back", "! this is where the run begins"),
        ("to end\nn", "! the run has ended here"),
        ("to", "! to what? An instruction, or trip N, step N, device N, start, end"),
        ("to ad.3", "! the run never came to 'ad.3'; did you mean 'add.11'?"),
        ("to end\nto add.11", "! device 0 does not come to add.11 again"),
        ("back to add.11", "! device 0 has not come to add.11 before"),
        ("to trip 9", "! no loop has a trip 9 from here on"),
        ("d 2", "! device 2 is none of 0..1"),
        ("d", "! a number is wanted"),
        ("until v > 1e9", "! no value on this device from here on has v > 1e9"),
        ("until add.99 v > 1", "! the run never came to 'add.99'; did you mean 'add.11'?"),
        ("p add.11", "! device 0 has not come to add.11 by now"),
        ("p nothing", "! the run never came to 'nothing'"),
        ("p v[7]", "! 'v[7]' does not fit a value of extents [2, 3]: index 7 is out of bounds for axis 0 with size 2"),
        ("diff 0", "! two devices are wanted, as in `0 1`"),
        ("diff add.11 0 1", "! device 0 has not come to add.11 by now"),
        ("part 0 7", "! device 7 is none of 0..1"),
        ("unwatch 0", "! 0 is none of the 0 that are watched"),
        ("view all", "! 'all' is no view: there are line and full"),
        ("help nothing", "! 'nothing' is no command; `help` lists them"),
    ],
)
def test_what_cannot_be_done_is_told(traces: dict[str, Trace], script: str, fault: str) -> None:
    lines, failed = _said(traces["loop"], script)
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
    lines, failed = _said(traces["loop"], f"until {text}\n")
    assert failed
    assert "cannot be read" in lines[-1]


def test_values(traces: dict[str, Trace]) -> None:
    lines, failed = _said(traces["loop"], "print\nprint v[1]\nprint max(abs(v))\nto end\nprint while.24\n")
    assert not failed
    assert lines[2:7] == [
        "parameter.1 f32[2,3] =", "  0  1  2", "  3  4  5", "parameter.1 v[1] f32[3] = 3  4  5",
        "parameter.1 max(abs(v)) = 5.",
    ]  # fmt: skip
    assert lines[-4:] == ["while.24 =", "  (0) 4", "  (1)   -4  -2.5    -1", "       0.5     2   3.5"]


def test_large_values_are_told_by_bars() -> None:
    wide = np.add.outer(np.arange(32.0), np.arange(64.0)).astype(np.float32)
    first, *rows = [*picture(wide, "12345678")]
    assert first == ["f32[32,64] 0 .. 94, mean 47"]
    texts = ["".join(piece.text for piece in row if isinstance(piece, Piece)) for row in rows]
    assert len(texts) == 16
    assert (texts[0][:2], texts[-1][-2:]) == ("11", "88")
    assert all(list(text) == sorted(text) for text in texts)
    assert [*picture(summary(wide), "12345678")][1:] == rows
    assert [piece.text for piece in spark(np.array([0.0, np.nan, 7.0, 14.0]), "12345678")] == ["1", "1", "5", "8"]


@pytest.mark.parametrize(
    "value",
    [
        np.array([True, False]), np.array([1 + 2j, np.nan]), np.array([-(2**63), 2**63 - 1]), np.full(3, np.nan),
        np.array([-np.inf, 1e308, -1e308]), np.zeros((0, 3)), np.zeros((2, 0)), np.zeros(1, xb.bf16.dtype),
        np.array([[1.5]], xb.f8e4m3fn.dtype), np.zeros((3, 4, 5)), None, (np.float32(1), None, (np.zeros(2),)), (),
    ],
    ids=str,
)  # fmt: skip
def test_every_value_has_a_picture(value: Any) -> None:
    for line in picture(value, "12345678"):
        assert "\n" not in "".join(piece if isinstance(piece, str) else piece.text for piece in line)
        assert all(piece.style in STYLES for piece in line if isinstance(piece, Piece))


def test_who_waits_for_whom(traces: dict[str, Trace]) -> None:
    lines, _ = _said(traces["unequal"], "to step 13\ndevices\n")
    assert lines[-4] == "    waits in all-reduce.21 for devices 1, 2, until step 33"
    assert lines[-3:] == [
        "-> device 0  step 10  get-tuple-element.17                      waits in all-reduce.21 for devices 1, 2, "
        "until step 33",
        "   device 1  step 13  get-tuple-element.13 in while.16, trip 1",
        "   device 2  step 13  get-tuple-element.13 in while.16, trip 1",
    ]
    late, _ = _said(traces["unequal"], "to step 30\ndevices\n")
    assert late[-3].endswith("waits in all-reduce.21 for device 2, until step 33")
    ended, _ = _said(traces["unequal"], "to end\ndevices\n")
    assert all(line.endswith("all-reduce.21  has ended") for line in ended[-3:])


def test_a_deadlock_says_where_all_are_stuck(traces: dict[str, Trace]) -> None:
    lines, failed = _said(traces["deadlock"], "to end\nn\ndevices\n")
    assert failed
    assert lines[1].startswith("stopped: no device can go on")
    waits = "stuck at send.3, waits for device 1, which is at send.3, to post a recv on channel 1"
    assert lines[-5] == f"! the run has ended here: {waits}"
    assert lines[-4] == f"-> device 0  step 2  after-all.2  {waits}"


def test_nobody_waits_without_an_event_that_waited(traces: dict[str, Trace]) -> None:
    """What a device waits in at a time is what it comes to next, later than it could have."""
    for name in ("loop", "unequal", "ring", "digits"):
        found, waits = traces[name], Waits(traces[name])
        for device in range(found.num_devices):
            lane = found.of_device[device]
            waiting = {t for n in lane.tolist() for t in range(int(found.since[n]), int(found.time[n]))}
            for time in range(1, found.end + 1):
                assert bool(waits.state(device, time).waits) == (time in waiting)


def test_devices_that_part(traces: dict[str, Trace]) -> None:
    lines, _ = _said(traces["loop"], "part 0 1\n")
    assert lines[-10:] == [
        "parameter.1 on device 0 = [[0., 1., 2.], [3., 4., 5.]]",
        "parameter.1 on device 1 = [[0., 2., 4.], [6., 8., 10.]]",
        "they differ at [0, 1], by 5 at most",
        "  element  device 0  device 1",
        "  [0, 1]   1.        2.",
        "  [0, 2]   2.        4.",
        "  [1, 0]   3.        6.",
        "  [1, 1]   4.        8.",
        "  [1, 2]   5.        10.",
        "  5 of 6 elements differ",
    ]
    same, failed = _said(traces["loop"], "to end\ndiff while.24 0 1\npart 0 0\n")
    assert same[-1] == "devices 0 and 0 have the same values, as far as they were kept"
    assert "the same" in same[-2]
    assert not failed


def test_watching(traces: dict[str, Trace]) -> None:
    lines, failed = _said(traces["loop"], "watch all-reduce.19 max(v)\nwatch\nto all-reduce\nunwatch\nn\n")
    assert not failed
    assert lines[2:] == [
        "all-reduce.19 max(v): device 0 has not come to all-reduce.19 by now",
        "0  all-reduce.19 max(v)",
        WHERE[0],
        "all-reduce.19 max(v) = 7.5",
        "device 0  step 17  constant.20 in while.24, trip 1 = 1.",
    ]


def test_without_values(traces: dict[str, Trace]) -> None:
    lines, failed = _said(traces["none"], "n\np\np v[0]\nwhere\ndiff 0 1\nto end\npart 0 1\nlist 2\n")
    assert not failed
    assert "replica-id.2 = not kept" in lines
    assert "what was not kept is not compared" in lines


def test_help_has_every_command(traces: dict[str, Trace]) -> None:
    lines, _ = _said(traces["loop"], "help\n")
    commands = {name[3:] for name in dir(Shell) if name.startswith("do_")}
    assert commands == {name for group in GROUPS.values() for name in group}
    assert set(ALIASES.values()) <= commands
    for name in commands:
        (row,) = [line for line in lines if line.startswith(f"  {name} ")]
        assert len(row) <= 84
        texts, failed = _said(traces["loop"], f"help {name}\n")
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


def test_plain_blocks_where_there_are_no_others() -> None:
    assert Face(io.TextIOWrapper(io.BytesIO(), "ascii")).blocks == "_.-:=+*#"
    assert Face(io.StringIO()).blocks == "▁▂▃▄▅▆▇█"


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


def test_an_empty_tuple_is_printed() -> None:
    module = xb.Module("none", xb.computation(xb.f32[()])(lambda x: xb.tuple_((), builder=x.builder)))
    lines, failed = _said(trace(module, [[1.0]]), "to end\nprint\n")
    assert not failed
    assert lines[-1].endswith(" = ()")


def test_a_search_is_interrupted_and_the_place_stays(traces: dict[str, Trace], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr("xbuild.stepping.walk.Walk.to", interrupted)
    lines, failed = _said(traces["loop"], "n\nto all-reduce\nw\n")
    assert failed
    assert "! interrupted" in lines
    assert "step 2" in lines[lines.index("! interrupted") + 1]
