"""Pictures of timelines: proportions, panels, formats, and the commands that draw them."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import xbuild as xb
from benchmarks.pipelines import pipeline
from tests.costs.test_cost import LOOP
from xbuild.cli import main
from xbuild.pictures.time_lanes import (
    MOST_LANES,
    STEP,
    WIDTH,
    TimePicture,
    columns_of,
    memory_svg,
    time_picture,
    time_svg,
)
from xbuild.timelines.report import loop_times

MACHINE = xb.Machine(flops=1e9, memory_bandwidth=1e9, links=xb.Link(alpha=1e-5, bandwidth=1e8))
MANY = LOOP.replace("constant(5)", "constant(500)")


def filled(picture: TimePicture, lane: int, track: str, category: str | None = None) -> float:
    """The part of a track of the first panel that bars and columns fill."""
    (found,) = (each for each in picture.panels[0].lanes[lane].tracks if each.name == track)
    bars = sum(bar.right - bar.left for bar in found.bars if category in (None, bar.category))
    thin = sum(c.width * part for c in found.columns for name, part in c.shares if category in (None, name))
    return (bars + thin) / WIDTH


@pytest.mark.parametrize("program", [xb.parse_hlo(LOOP), xb.parse_hlo(MANY), pipeline(4, 8), pipeline(3, 6, 2)])
def test_lanes_have_real_proportions(program: xb.Module | xb.ModuleGroup) -> None:
    line = xb.timeline(program, MACHINE)
    picture = time_picture(line)
    for lane, each in enumerate(line.classes):
        assert filled(picture, lane, "work", "exposed") == pytest.approx(each.exposed / line.seconds, abs=0.03)
        worked = (each.busy + each.exposed + each.waiting) / line.seconds
        assert filled(picture, lane, "work") == pytest.approx(worked, abs=0.03)
        bars = [bar for track in picture.panels[0].lanes[lane].tracks for bar in track.bars]
        assert all(0 <= bar.left < bar.right <= WIDTH for bar in bars)
    path = sum(filled(picture, lane, "critical path") for lane in range(len(line.classes)))
    assert path == pytest.approx(1, abs=0.05)


def test_a_loop_in_a_steady_state_has_a_panel_of_one_trip() -> None:
    line = xb.timeline(xb.parse_hlo(MANY), MACHINE)
    whole, trip = time_picture(line).panels
    assert [words for _, _, words in whole.marks] == ["499 equal trips"]
    assert trip.end - trip.start == pytest.approx(line.recorder.repeats[0].period)
    assert [bar.name for bar in trip.lanes[0].tracks[0].bars].count("d") == 1
    (loop,) = loop_times(line)
    assert loop.trips == 500
    assert loop.seconds == pytest.approx(500 * line.recorder.repeats[0].period, rel=0.01)


def test_of_many_classes_some_are_drawn_and_a_note_says_so() -> None:
    picture = time_picture(xb.timeline(pipeline(20, 2), MACHINE))
    assert len(picture.panels[0].lanes) == MOST_LANES
    assert picture.notes == ("4 more classes of devices are not drawn",)
    assert picture.panels[0].lanes[-1].title == "device 19"


@given(st.lists(st.tuples(st.floats(0, 90), st.floats(0, 9), st.sampled_from("DCE")), max_size=40))
def test_columns_fill_what_thin_bars_do(given_bars: list[tuple[float, float, str]]) -> None:
    """Bars that do not overlap: as much of each category, but for what is rounded off in each column."""
    left, bars = 0.0, list[tuple[float, float, str]]()
    for _, width, category in given_bars:
        bars.append((left, left + width / 10, category))
        left += width / 5
    lows, highs = (np.array([bar[place] for bar in bars]) for place in (0, 1))
    found = columns_of(lows, highs, [category for *_, category in bars], 100.0)
    for category in "DCE":
        drawn = sum(c.width * part for c in found for name, part in c.shares if name == category)
        assert drawn == pytest.approx(
            sum(b - a for a, b, c in bars if c == category), abs=0.04 * STEP * len(bars) + 1e-9
        )


@pytest.mark.parametrize("theme", ["auto", "light", "dark"])
def test_the_svg_is_well_formed_and_the_same_each_time(theme: str) -> None:
    line = xb.timeline(pipeline(4, 8), MACHINE)
    svg = str(xb.viz(line, "svg", theme=theme))
    assert svg == str(xb.viz(line, "svg", theme=theme))
    root = ElementTree.fromstring(svg)
    words = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"device 0", "device 3", "critical path"} <= {*words}
    assert "nan" not in svg
    width = float(root.attrib["width"])
    assert all(float(x) <= width for x in re.findall(r'x="([\d.]+)"', svg))


def test_a_name_of_a_stranger_is_escaped() -> None:
    named = LOOP.replace('op_name="layer/dot"', 'op_name="<b>&"')
    line = xb.timeline(xb.parse_hlo(named), MACHINE)
    ElementTree.fromstring(str(xb.viz(line, "svg")))
    page = str(xb.viz(line, "html"))
    assert "&lt;b&gt;&amp;" in page
    assert "<b>" not in page


def test_text_and_pages_are_drawn_and_other_formats_refused() -> None:
    line = xb.timeline(xb.parse_hlo(LOOP), MACHINE)
    assert xb.viz(line, "txt") == f"{line}\n"
    assert "<svg" in str(xb.viz(line, "html"))
    with pytest.raises(ValueError, match="svg, html or txt"):
        xb.viz(line, "dot")


@pytest.mark.parametrize(
    ("share", "told"), [(1.0, "of 1 kB: fits"), (0.5, "of 500 B: does not fit by 500 B"), (None, "states no limit")]
)
def test_memory_is_told_against_the_machine(share: float | None, told: str) -> None:
    program = xb.parse_hlo(
        "HloModule m\nENTRY e {\n x = s8[500] parameter(0)\n ROOT y = s8[500] reverse(x), dimensions={0}\n}"
    )
    limit = None if share is None else 1000 * share
    line = xb.timeline(program, xb.Machine(flops=1e12, memory_bandwidth=1e11, memory=limit))
    assert told in str(line)
    assert "alive there  x 500 B, y 500 B" in str(line)
    drawn = memory_svg(line.cost.memory, limit)
    ElementTree.fromstring(drawn)
    assert ("the machine has" in drawn) is (limit is not None)
    assert "peak at y" in drawn


def test_the_commands_draw(tmp_path: Path) -> None:
    target, run = tmp_path / "loop.hlo", CliRunner().invoke
    target.write_text(LOOP)
    done = run(main, ["viz", str(target), "--timeline", "--machine", "v5e", "-o", str(tmp_path / "t.svg")])
    assert done.exit_code == 0
    ElementTree.fromstring((tmp_path / "t.svg").read_text())
    assert run(main, ["cost", str(target), "--machine", "v5e", "--page", str(tmp_path / "p.html")]).exit_code == 0
    assert "largest by FLOPs" in (tmp_path / "p.html").read_text()
    boxes = run(main, ["viz", str(target), "--data", "cost"]).stdout
    assert "FLOPs: 5 to 40,960" in boxes
    assert "bytes: " in run(main, ["viz", str(target), "--data", "cost=bytes"]).stdout
    for wrong, told in (
        (["--timeline"], "--timeline needs --machine"),
        (["--machine", "v5e"], "no effect without --timeline"),
        (["--timeline", "--machine", "v5e", "--fold", "add"], "--fold applies to the picture of a program"),
        (["--timeline", "--machine", "v5e", "-o", "t.png"], "drawn as svg, html or txt"),
    ):
        failed = run(main, ["viz", str(target), *wrong])
        assert failed.exit_code == 2
        assert told in failed.stderr


def test_a_program_without_work_has_a_picture() -> None:
    line = xb.timeline(xb.parse_hlo("HloModule m, num_partitions=2\nENTRY e { ROOT t = () tuple() }"), MACHINE)
    assert line.seconds == 0
    assert time_svg(time_picture(line)).startswith("<svg")
