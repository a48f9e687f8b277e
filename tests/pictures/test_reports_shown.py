"""Reports in notebooks: a verdict and a stopped run as lanes beside their words, in one piece that stands alone."""

from __future__ import annotations

import html
import re
from typing import Any
from xml.etree import ElementTree

import pytest

import xbuild as xb
from examples.gallery import deadlocks
from interpreter import Limits, Refused, Stopped, execute
from interpreter.runtime.report import Report, lanes_of
from xbuild.core.report_text import BESIDE_PICTURE
from xbuild.pictures import Drawing
from xbuild.pictures.lanes import MOST


def loops(devices: int) -> xb.Module:
    """A collective in a loop whose trips come with the arguments."""

    def program(n: xb.Value) -> xb.Value:
        def body(state: xb.Value) -> list[xb.Value]:
            return [state[0] - 1, xb.cross_replica_sum(state[1])]

        return xb.while_([n, xb.constant(n.builder, 1.0)], lambda s: s[0] > 0, body)[1]

    return xb.Module("loops", xb.computation(xb.s32[()])(program), num_replicas=devices)


def stopped(devices: int, ending: int) -> Stopped:
    with pytest.raises(Stopped) as caught:
        execute(loops(devices), [[2 if device < ending else 3] for device in range(devices)])
    return caught.value


def pieces(shown: Any) -> tuple[ElementTree.Element, str]:
    """The picture, and the words beside it; that the page is well formed and needs no other file."""
    page = shown._repr_html_()
    root = ElementTree.fromstring(page)
    svg = root.find(".//{http://www.w3.org/2000/svg}svg")
    report = root.find("pre")
    assert svg is not None
    assert report is not None
    assert "prefers-color-scheme:dark" in page
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|<script|<link|@import|url\((?!#)", page)
    return svg, "".join(report.itertext())


def test_a_stopped_run_is_lanes_beside_its_report() -> None:
    found = stopped(3, 1)
    svg, words = pieces(found)
    assert words == found.report.report(width=BESIDE_PICTURE)
    drawn = ["".join(each.itertext()) for each in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert {"stopped", "device 0", "has finished", "all-reduce.16 in while.18, trip 3", "waits for device 0"} <= {
        *drawn
    }
    assert pieces(found.report)[1] == words


def test_the_lanes_of_a_stopped_run() -> None:
    lanes = lanes_of(stopped(3, 1).report)
    assert [(stop.lane, stop.state, stop.name) for stop in lanes.stops] == [
        (0, "cycle", "has finished"),
        (1, "waits", "all-reduce.16 in while.18, trip 3"),
        (2, "waits", "all-reduce.16 in while.18, trip 3"),
    ]
    assert {(arrow.tail, arrow.head, arrow.what) for arrow in lanes.arrows} == {(1, 0, "waits"), (2, 0, "waits")}
    assert lanes.halt == 0
    assert dict(lanes.remarks)["cause"].startswith("device 0 has finished without reaching all-reduce.16")
    assert "✗ has finished" in str(Drawing(lanes))
    assert "root cause" in str(Drawing(lanes))


def test_many_devices_share_lanes() -> None:
    lanes = lanes_of(stopped(40, 33).report)
    assert len(lanes.lanes) <= MOST
    titles = " ".join(f"{lane.title} {lane.note}" for lane in lanes.lanes)
    assert "+7 devices like it" in titles
    pieces(stopped(40, 33))


def test_a_run_without_an_end_shows_where_it_is() -> None:
    module = xb.Module("forever", xb.computation(xb.f32[()])(lambda x: xb.while_([x], lambda s: s[0] < 1, lambda s: s)))
    with pytest.raises(Stopped) as caught:
        execute(module, [[0.0]], limits=Limits(seconds=0.05))
    lanes = lanes_of(caught.value.report)
    assert [stop.state for stop in lanes.stops] == ["open"]
    assert lanes.halt is None
    pieces(caught.value)


def test_words_of_a_report_are_no_markup() -> None:
    bad = "</pre><script>alert(1)</script> & ]]>"
    report = Report("raised", bad, cause=bad, repair=bad, parting=(bad,))
    page = report._repr_html_()
    assert "<script>" not in page
    assert html.escape(bad, quote=True) in page
    assert pieces(report)[1] == report.report(width=BESIDE_PICTURE)


def test_a_verdict_is_lanes_beside_its_report() -> None:
    verdict = deadlocks.swapped_collectives()
    assert pieces(verdict)[1] == verdict.report(width=BESIDE_PICTURE)
    with pytest.raises(Refused) as caught:
        execute(deadlocks.exchange(2, "send recv done"), [[0.0] * 4] * 2)
    assert pieces(caught.value)[1] == caught.value.verdict.report(width=BESIDE_PICTURE)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_theme_that_is_asked_for_stays(theme: str) -> None:
    page = xb.viz(deadlocks.swapped_collectives(), theme=theme)._repr_html_()
    assert "prefers-color-scheme" not in page
    assert f'class="xb-report {theme}"' in page
