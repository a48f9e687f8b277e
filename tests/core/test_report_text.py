"""Lines of reports: rows that fit in the width, folded lists, the first screen, colours and HTML."""

from __future__ import annotations

import pytest

import xbuild as xb
from examples.deadlocks import parameter_server, pipeline, ring
from xbuild.core.report_text import (
    MOST_ROWS,
    PlaceRow,
    StyledText,
    coloured,
    first_screen,
    folded,
    html,
    indented,
    labelled,
    more_text,
    place_rows,
    plain,
    wrapped,
)


def test_text_is_wrapped_at_spaces_and_nothing_is_lost() -> None:
    text = "one two  three " + "x" * 30 + " four"
    lines = wrapped(text, 10)
    assert " ".join(lines).split() == text.split()
    assert [line for line in lines if len(line) > 10] == ["x" * 30]
    assert wrapped("", 10) == [""]


@pytest.mark.parametrize("width", [40, 60, 100])
def test_labelled_lines_fit_and_continue_below_their_first(width: int) -> None:
    lines = plain(labelled("fix", "word " * 40, width)).splitlines()
    assert lines[0].startswith("  fix    word")
    assert all(line.startswith(" " * 9 + "word") for line in lines[1:])
    assert max(map(len, lines)) <= width
    assert max(map(len, plain(indented("word " * 40, width)).splitlines())) <= width


def test_lists_fold_after_ten_rows_with_their_count() -> None:
    assert folded(range(MOST_ROWS + 1), False) == (range(11), 0)
    assert folded(range(33), False) == (range(10), 23)
    assert folded(range(33), True) == (range(33), 0)
    assert more_text(23, "--all shows them", "place") == "... and 23 more places; --all shows them"


def test_rows_are_a_table_if_they_fit() -> None:
    rows = [
        PlaceRow("device 0", "at a", "f32[]", "f.py:1 in f"),
        PlaceRow("devices 1-3", "at bcd", "f32[2]", "f.py:22 in f"),
    ]
    assert plain(line for block in place_rows(rows, 60) for line in block).splitlines() == [
        "  device 0     at a     f32[]    f.py:1 in f",
        "  devices 1-3  at bcd   f32[2]   f.py:22 in f",
    ]


def test_a_row_that_does_not_fit_keeps_its_line_beside_the_device() -> None:
    row = PlaceRow(
        "device 0", "stops at all-reduce.1", "f32[1024,1024], groups {0,1}", "model.py:10 in layer", ("waits for 1",)
    )
    (block,) = place_rows([row], 60)
    assert plain(block).splitlines() == [
        "  device 0  stops at all-reduce.1   model.py:10 in layer",
        "            f32[1024,1024], groups {0,1}",
        "            waits for 1",
    ]
    (block,) = place_rows([row], 50)
    assert plain(block).splitlines()[:2] == ["  device 0  stops at all-reduce.1   model.py:10", "            in layer"]


def test_the_first_screen_has_room_for_two_devices_at_least() -> None:
    block = [("line",)] * 5
    assert first_screen([block] * 4) == 2
    assert first_screen([[("line",)]] * 8) == 8
    assert first_screen([[("line",)]] * 9) == 6


def test_styles_become_colours_and_classes() -> None:
    lines = [(StyledText("a<b", "bad"), " c")]
    assert coloured(lines, lambda text, style: f"[{style}]{text}") == "[bad]a<b[] c"
    assert html(lines) == '<span class="r-bad">a&lt;b</span> c'


@pytest.mark.parametrize("program", [ring.program, pipeline.program, parameter_server.program])
def test_the_first_screen_of_a_verdict_has_the_sentence_the_devices_the_cause_and_the_fix(program: object) -> None:
    verdict = xb.check(program())  # type: ignore[operator]
    lines = str(verdict).splitlines()
    starts = [
        next(n for n, line in enumerate(lines) if line.startswith(f"  {word} ")) for word in ("cause", "fix", "cycle")
    ]
    assert lines[0].startswith("deadlock: ")
    assert starts == sorted(starts)
    assert starts[1] <= 12
    assert max(map(len, lines[1:])) <= 100
    assert max(map(len, verdict.report(width=72).splitlines()[1:])) <= 72


def test_many_places_are_folded_and_all_can_be_shown() -> None:
    lines = [f"x{n} = f32[] parameter({n})" for n in range(30)]
    sends = [
        f"t{n} = token[] after-all()  y{n} = (f32[], u32[], token[]) send(x{n}, t{n}), channel_id={n + 1}  "
        f"d{n} = token[] send-done(y{n}), channel_id={n + 1}"
        for n in range(30)
    ]
    verdict = xb.check(xb.parse_hlo(f"HloModule m, num_partitions=2\nENTRY main {{ {' '.join(lines + sends)} }}"))
    assert verdict.kind == "error"
    assert len(verdict.findings) > MOST_ROWS + 1
    hidden = len(verdict.findings) - MOST_ROWS
    assert f"... and {hidden} more findings; report(all=True) shows them" in str(verdict)
    assert verdict.report(all=True).count("error: ") == len(verdict.findings)
