"""Pictures of verdicts: every lane, every wait, the cycle, the fix; many devices in few lanes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

import xbuild as xb
from examples import pipeline, ring
from examples.gallery import deadlocks, programs
from tests.conformance.deadlock_cases.programs import prepared
from xbuild.cli import main
from xbuild.pictures.lanes import MOST, Lanes, lanes_of, rows
from xbuild.pictures.lanes_svg import LanesDrawing

CASES = json.loads((Path(__file__).parents[1] / "data" / "deadlock_cases.json").read_text())["cases"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_every_verdict_is_drawn(case: dict[str, Any]) -> None:
    verdict = xb.check(prepared(case).program)
    lanes = lanes_of(verdict)
    assert lanes.kind == verdict.kind
    ElementTree.fromstring(str(xb.viz(verdict, "svg")))
    assert str(xb.viz(verdict)).startswith(f"{verdict.kind}: ")
    assert len({(stop.lane, stop.column) for stop in lanes.stops}) == len(lanes.stops)
    if verdict.kind == "deadlock":
        waiting = {wait.instruction.name for wait in verdict.findings[0].cycle}
        assert waiting == {stop.name.partition(" ")[0] for stop in lanes.stops if stop.state == "cycle"}
        assert lanes.halt is not None


def described(lanes: Lanes, what: str) -> set[tuple[str, str]]:
    return {
        (
            f"{lanes.stops[a.tail].name}@{lanes.stops[a.tail].lane}",
            f"{lanes.stops[a.head].name}@{lanes.stops[a.head].lane}",
        )
        for a in lanes.arrows
        if a.what == what
    }


def test_the_cycle_of_two_that_send_first() -> None:
    lanes = lanes_of(deadlocks.both_send_first())
    assert described(lanes, "cycle") == {("send@0", "recv@1"), ("send@1", "recv@0")}
    assert described(lanes, "after") == {("recv@0", "send@0"), ("recv@1", "send@1")}
    assert described(lanes, "move") == {("recv@1", "send@1")}
    assert dict(lanes.remarks)["fix"] == "on device 1 move recv before send (checked: ok)"
    assert {stop.column for stop in lanes.stops if stop.state == "cycle"} == {lanes.halt}


def test_those_who_wait_because_of_the_cycle_are_told_from_it() -> None:
    lanes = lanes_of(deadlocks.swapped_collectives())
    states = {(stop.lane, stop.name): stop.state for stop in lanes.stops}
    assert states[0, "of_weights"] == states[3, "of_bias"] == "cycle"
    assert states[1, "of_weights"] == states[2, "of_weights"] == "waits"
    assert states[0, "of_bias"] == states[3, "of_weights"] == "asked"
    assert states[1, "of_bias"] == "later"


def test_many_devices_have_few_lanes() -> None:
    lanes = lanes_of(xb.check(deadlocks.exchange(64, "send recv done")))
    assert [lane.title for lane in lanes.lanes] == [*(f"device {n}" for n in range(4)), "devices 4-63"]
    assert lanes.lanes[-1].note == "+60 devices like it"
    assert ("send@4", "recv@0") in described(lanes, "cycle")


def test_devices_that_differ_are_not_called_alike() -> None:
    found = rows({n: n for n in range(20)}, ())
    assert len(found.lanes) == MOST
    assert found.lanes[-1].note == f"+{20 - MOST + 1} devices"
    assert set(found.lane_of) == set(range(20))


def test_what_runs_has_arrows_and_bars() -> None:
    lanes = lanes_of(xb.check(pipeline.program()))
    assert (lanes.halt, len([a for a in lanes.arrows if a.what == "channel"])) == (None, 3)
    for arrow in lanes.arrows:
        assert lanes.stops[arrow.tail].column < lanes.stops[arrow.head].column
    lanes = lanes_of(xb.check(programs.groups()))
    assert [(bar.name, bar.lanes) for bar in lanes.bars] == [
        ("rows", (0, 1)), ("columns", (0, 2)), ("parts", (0, 1, 2, 3)),
        ("columns", (1, 3)), ("rows", (2, 3)),
    ]  # fmt: skip
    assert {stop.column for stop in lanes.stops if stop.name == "columns"} == {1}


@pytest.mark.parametrize("program", [ring.ring_all_reduce(3), pipeline.program()], ids=["ring", "pipeline"])
def test_what_runs_goes_on_in_rows_that_can_be_read(program: Any) -> None:
    """At 600 pixels words are at least 8 high; a later column is to the right of one before, or in a row below."""
    verdict = xb.check(program)
    assert float(ElementTree.fromstring(str(xb.viz(verdict, "svg"))).attrib["width"]) * 8 <= 12 * 600
    lanes = lanes_of(verdict)
    drawn = LanesDrawing(lanes)
    places = list(zip(lanes.stops, drawn.places, strict=True))
    for stop, place in places:
        assert 0 < place.x < place.right < drawn.width
        assert 0 < place.y < place.bottom < drawn.height
        for other, after in places:
            if other.lane == stop.lane and other.column > stop.column:
                assert after.x > place.right or after.y > place.bottom + 60 * len(lanes.lanes)
            if other.column == stop.column and other.lane > stop.lane:
                assert after.y > place.bottom


def test_what_is_stuck_stays_in_one_row() -> None:
    lanes = lanes_of(xb.check(deadlocks.exchange(4, "send recv done")))
    assert len({place.y for place in LanesDrawing(lanes).places}) == len(lanes.lanes)


def test_long_runs_are_cut_and_say_so() -> None:
    lanes = lanes_of(xb.check(ring.ring_all_reduce(6)))
    assert max(stop.column for stop in lanes.stops) < 20
    assert any("steps after these hidden" in note for note in lanes.notes)


def test_what_the_data_decide_is_marked() -> None:
    lanes = lanes_of(deadlocks.loop_of_unknown_length())
    assert {stop.state for stop in lanes.stops} == {"open"}
    assert dict(lanes.remarks)["otherwise"]


def test_errors_mark_both_sides() -> None:
    lanes = lanes_of(deadlocks.unlike_shapes())
    assert {(stop.lane, stop.name) for stop in lanes.stops if stop.state == "cycle"} == {(0, "send"), (1, "recv")}
    assert [a.what for a in lanes.arrows] == ["clash"]


def test_a_verdict_made_by_hand_has_its_words() -> None:
    svg = str(xb.viz(xb.Verdict("ok", "every", summary="nothing communicates"), "svg"))
    assert "nothing communicates" in svg


def test_forms_of_a_verdict() -> None:
    verdict = deadlocks.both_send_first()
    with pytest.raises(ValueError, match="a verdict can be drawn as svg or txt, not as png"):
        xb.viz(verdict, "png")
    assert verdict._repr_html_().startswith("<div")
    assert str(verdict).startswith("deadlock")


def test_the_command_draws_the_verdict(tmp_path: Path) -> None:
    target, run = "examples/ring.py:program", CliRunner().invoke
    done = run(main, ["check", target, "--picture", str(tmp_path / "out.svg")])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "out.svg").read_text().startswith("<svg")
    done = run(main, ["check", target, "--picture", str(tmp_path / "out.png")])
    assert done.exit_code == 2
    assert "a verdict can be drawn as svg or txt, not as png" in done.stderr
    refused = run(main, ["check", "examples/gallery/deadlocks.py:both", "--picture", str(tmp_path / "no.svg")])
    assert refused.exit_code == 2
    assert not (tmp_path / "no.svg").exists()


def sends_first() -> xb.Module:
    """One program for four devices, in which each sends before it has posted where it receives."""
    builder = xb.Builder("exchange")
    mine, token = xb.parameter(builder, number=0, shape=xb.f32[4], name="mine"), xb.after_all(builder=builder)
    pairs = [(device, (device + 1) % 4) for device in range(4)]
    with xb.scope("step"), xb.scope("exchange"):
        sent = xb.send(mine, token, channel_id=1, source_target_pairs=pairs, name="send")
        xb.send_done(sent, channel_id=1, name="sent")
    posted = xb.recv(token, shape=xb.f32[4], channel_id=1, source_target_pairs=pairs, name="recv")
    taken, _ = xb.recv_done(posted, channel_id=1, name="taken")
    return xb.Module("exchange", builder.build(taken), num_replicas=4, is_scheduled=True)


def test_a_program_that_devices_share_has_one_repair() -> None:
    lanes = lanes_of(xb.check(sends_first()))
    assert described(lanes, "move") == {("recv@0", "send@0")}
    assert [arrow.words for arrow in lanes.arrows if arrow.what == "move"] == ["fix on devices 0-3"]


def test_scopes_are_blocks() -> None:
    verdict = xb.check(sends_first())
    lanes = lanes_of(verdict)
    assert {stop.name: stop.scope for stop in lanes.stops} == {
        "send": "step/exchange", "sent": "step/exchange", "recv": "",
    } | ({"taken": ""} if any(stop.name == "taken" for stop in lanes.stops) else {})  # fmt: skip
    svg = str(xb.viz(verdict, "svg"))
    assert svg.count('class="block"') == 4
    assert svg.count(">step/exchange</text>") == 4


def test_unequal_trips_are_shown() -> None:
    builder = xb.Builder("loop")
    x = xb.parameter(builder, number=0, shape=xb.f32[4], name="x")
    trips = xb.convert(xb.replica_id(builder), xb.s32) + 3
    last = xb.while_(
        [trips, x],
        condition=lambda state: state[0] > 0,
        body=lambda state: [state[0] - 1, xb.cross_replica_sum(state[1], name="total")],
        name="loop",
    )
    lanes = lanes_of(xb.check(xb.Module("loop", builder.build(last), num_replicas=3)))
    assert {(stop.lane, stop.fact) for stop in lanes.stops if stop.name == "loop"} == {
        (0, "3 trips"), (1, "4 trips"), (2, "5 trips"),
    }  # fmt: skip


def test_known_trips_are_shown() -> None:
    builder = xb.Builder("loop")
    x = xb.cross_replica_sum(xb.parameter(builder, number=0, shape=xb.f32[4], name="x"), name="first")
    body = lambda state: [state[0] - 1, xb.cross_replica_sum(state[1], name="total")]  # noqa: E731
    last = xb.while_([xb.constant(builder, 3), x], condition=lambda state: state[0] > 0, body=body, name="loop")
    lanes = lanes_of(xb.check(xb.Module("loop", builder.build(last), num_replicas=2)))
    assert [(stop.name, stop.fact) for stop in lanes.stops if stop.lane == 0][-1] == ("loop", "3 trips")
