"""How `xbuild step` shows a place: in full, with what is watched, in colour or plain, cut to the terminal."""

from __future__ import annotations

import io
import sys

import pytest

from tests.pages.scripts import said
from xbuild.stepping.console import TextConsole, console_of
from xbuild.traces import Trace

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
    lines, failed = said(traces["loop"], "to all-reduce\nwhere\n")
    assert not failed
    assert lines[3:] == WHERE


def test_colour_says_the_same(traces: dict[str, Trace]) -> None:
    rich = pytest.importorskip("rich.console")
    script = "to all-reduce\nwhere\np\nhelp\nhelp to\nlist\ndevices\nnonsense\nto end\nn\ndiff parameter.1 0 1\n"
    for name in ("loop", "deadlock", "digits"):
        out = io.StringIO()
        console = rich.Console(file=out, width=300, force_terminal=True, color_system="256", record=True)
        face = TextConsole(out, console)
        said(traces[name], script, face)
        wanted, _ = said(traces[name], script)
        assert [line.rstrip() for line in console.export_text().splitlines() if ".py:" not in line] == wanted
        assert "\x1b[1;36m-> " in out.getvalue()


def test_a_narrow_terminal_cuts_lines_and_loses_no_message(traces: dict[str, Trace]) -> None:
    rich = pytest.importorskip("rich.console")
    out = io.StringIO()
    console = rich.Console(file=out, width=60)
    lines, _ = said(traces["ring"], "where\nhelp to\nto parameter.7\nhelp\n", TextConsole(out, console))
    assert max(map(len, lines)) <= 60
    assert "did you mean 'parameter.1'?" in " ".join(" ".join(lines).split())
    assert any(line.endswith("…") for line in lines)


def test_no_colour_but_on_a_terminal_that_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert console_of(io.StringIO()).rich is None
    assert console_of(Terminal()).rich is not None or not _has_rich()
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert console_of(Terminal()).rich is None
    monkeypatch.delitem(sys.modules, "rich.console")
    monkeypatch.setenv("NO_COLOR", "1")
    assert console_of(Terminal()).rich is None


def _has_rich() -> bool:
    try:
        import rich.console  # noqa: F401
    except ImportError:
        return False
    return True


def test_watching(traces: dict[str, Trace]) -> None:
    lines, failed = said(traces["loop"], "watch all-reduce.19 max(v)\nwatch\nto all-reduce\nunwatch\nn\n")
    assert not failed
    assert lines[2:] == [
        "all-reduce.19 max(v): device 0 has not reached all-reduce.19 by this step",
        "0  all-reduce.19 max(v)",
        WHERE[0],
        "all-reduce.19 max(v) = 7.5",
        "device 0  step 17  constant.20 in while.24, trip 1 = 1.",
    ]


def test_plain_blocks_where_there_are_no_others() -> None:
    assert TextConsole(io.TextIOWrapper(io.BytesIO(), "ascii")).blocks == "_.-:=+*#"
    assert TextConsole(io.StringIO()).blocks == "▁▂▃▄▅▆▇█"
