"""Scans whose computation communicates, in a run: every way to run them, traces, stops, and real XLA."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import Stopped, execute, trace
from interpreter.engines import execute_on_xla
from tests.checking.scan_programs import PAIRS, RING, both, counted, inputs, scanned, summed, total
from tests.support.compare import assert_same

# How it runs.


def programs() -> dict[str, xb.Module]:
    """Scans on four replicas: the collectives of XLA:CPU, from either end, nested, in loops and around branches."""
    some = {"replica_groups": PAIRS}

    def gathered(each: xb.Value, carry: xb.Value) -> Any:
        wide = xb.ops.all_gather(each, shard_count=2, replica_groups=PAIRS, all_gather_dimension=0)
        return wide, carry + xb.slice(wide, (1,), (3,), (1,))

    def scattered(each: xb.Value, carry: xb.Value) -> Any:
        part = xb.ops.reduce_scatter(
            each + carry, to_apply=xb.add, shard_count=2, replica_groups=PAIRS, scatter_dimension=0
        )
        return part, carry + xb.reshape(xb.broadcast_in_dim(part, (1, 2), (0,)), (2,))

    def moved(each: xb.Value, carry: xb.Value) -> Any:
        after = xb.ops.collective_permute(carry, source_target_pairs=RING) + each
        return after, after

    def exchanged(each: xb.Value, carry: xb.Value) -> Any:
        after = xb.ops.all_to_all((each + carry,), split_count=2, replica_groups=PAIRS, split_dimension=0)
        return after, after

    def started(each: xb.Value, carry: xb.Value) -> Any:
        start = xb.ops.all_reduce_start(each, to_apply=xb.add, **some)
        local = carry * 0.5 + each
        return local, local - xb.ops.all_reduce_done(start)

    def nested(each: xb.Value, carry: xb.Value) -> Any:
        zero = xb.constant(each.builder, np.float32(0))
        inner, last = xb.scan(each, zero, lambda e, c: (total(e + c, None, **some), e - c), is_reverse=True)
        return inner, carry * 0.5 + last

    def branched(each: xb.Value, carry: xb.Value) -> Any:
        most = xb.ops.all_reduce(each, to_apply=xb.maximum)
        first = xb.reshape(xb.slice(most, (0,), (1,), (1,)), ())
        return xb.conditional(first > 2.0, each, lambda v: total(v, None), each, xb.negate), carry + each

    def repeated(x: xb.Value, z: xb.Value) -> Any:
        def step(state: xb.Value) -> Any:
            trip, x, carry = state
            return trip + 1, x * 0.5, xb.scan(x, carry, moved)[1]

        start = [xb.constant(x.builder, np.int32(0)), x, z]
        return xb.while_(start, condition=lambda state: state[0] < 3, body=step)[2]

    found = {
        "sum": scanned(3),
        "reverse": scanned(4, is_reverse=True),
        "associative": scanned(4, is_associative=True),
        "one slice": scanned(1),
        "groups": scanned(3, lambda e, c: (total(e + c, None, **some), c + e)),
        "all-gather": scanned(3, gathered),
        "reduce-scatter": scanned(3, scattered),
        "permute": scanned(5, moved, is_reverse=True),
        "all-to-all": scanned(3, exchanged),
        "start and done": scanned(3, started),
        "nested": scanned(3, nested),
        "conditional": scanned(6, branched),
        "who": scanned(3, lambda e, c: (total(e * xb.convert(xb.replica_id(e.builder), xb.f32), None), c + e)),
        "counted": counted(5, lambda i: xb.eq(i % 2, 0)),
        "no carry": xb.computation(xb.f32[3, 2])(lambda x: xb.scan(x, (), lambda e: total(e, None))),
        "second dimension": xb.computation(xb.f32[2, 3], xb.f32[2])(lambda x, z: xb.scan(x, z, summed, 1)),
        "in a loop": xb.computation(xb.f32[3, 2], xb.f32[2])(repeated),
    }
    return {name: xb.Module("m", computation, num_replicas=4) for name, computation in found.items()}


PROGRAMS = programs()


def leaves(results: Any) -> list[Any]:
    return [np.asarray(leaf) for row in results for leaf in (row if isinstance(row, tuple) else (row,))]


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_way_to_run_it_gives_the_same(name: str) -> None:
    module = PROGRAMS[name]
    given = inputs(module)
    assert xb.check(module).kind == "ok"
    results = leaves(execute(module, given))
    group = xb.ModuleGroup({device: xb.Module("m", module.entry, num_replicas=4) for device in range(4)})
    read = xb.parse_hlo(module.to_hlo())
    for other in (
        execute(module, given, strict=True),
        execute(read, given),
        trace(module, given).results,
        *([execute(group, given)] if name != "who" else []),
    ):
        for mine, its in zip(results, leaves(other), strict=True):
            np.testing.assert_array_equal(mine, its)


def test_what_all_devices_have_is_computed_once_for_all() -> None:
    def body(each: xb.Value, carry: xb.Value) -> Any:
        root = xb.sqrt(xb.abs(each)) + carry
        return xb.ops.all_reduce(root, to_apply=xb.add), root * 0.5

    entry = xb.computation(xb.f32[3, 2000], xb.f32[2000])(lambda x, z: xb.scan(x, z, body, is_reverse=True))
    row = [np.arange(6000, dtype=np.float32).reshape(3, 2000), np.ones(2000, np.float32)]
    group = xb.ModuleGroup({device: xb.Module("m", entry, num_replicas=4) for device in range(4)})
    alike = leaves(execute(xb.Module("m", entry, num_replicas=4), [row] * 4))
    for mine, its in zip(alike, leaves(execute(group, [row] * 4)), strict=True):
        np.testing.assert_array_equal(mine, its)


@pytest.mark.oracle
def test_real_xla_gives_the_same() -> None:
    """Of all of them in one program, bit for bit."""
    builder, numbers = xb.Builder("all"), itertools.count()
    found = []
    for module in PROGRAMS.values():
        given = [xb.parameter(builder, number=next(numbers), shape=p.shape) for p in module.entry.parameters]
        found.append(xb.ops.call(given, to_apply=module.entry))
    together = xb.Module("all", builder.build(xb.tuple_(found)), num_replicas=4)
    arguments = inputs(together)
    for mine, its in zip(execute(together, arguments), execute_on_xla(together, arguments), strict=True):
        assert_same(mine, its)


def test_the_trips_of_a_trace_are_those_of_the_scan() -> None:
    program = both(scanned(3), scanned(3))
    found = trace(program, inputs(program))
    meetings = [each for each in found if each.instruction.name == "total"]
    for device in (0, 1):
        assert [found.trips(e.number) for e in meetings if e.device == device] == [[("s", n)] for n in (1, 2, 3)]
    assert found.standing(meetings[-1].number) == "total in s, trip 3"


def test_trips_of_nested_scans_are_counted_from_one_each_time() -> None:
    found = trace(PROGRAMS["nested"], inputs(PROGRAMS["nested"]), values=False)
    inner = [e for e in found.where(device=0) if e.instruction.opcode == "all_reduce"]
    assert [[n for _, n in found.trips(e.number)] for e in inner] == [[a, b] for a in (1, 2, 3) for b in (1, 2)]


def test_a_run_that_stops_says_in_which_trip() -> None:
    program = both(scanned(3), scanned(2))
    with pytest.raises(Stopped, match="total in s, trip 3") as caught:
        execute(program, inputs(program), check=False)
    assert "it ran s fewer than 3 times" in caught.value.report.report(width=1000)


def test_a_strict_finding_leads_back_through_the_trips() -> None:
    from interpreter import StrictFailure

    body = lambda e, c: (total(xb.log(c), None), c - e)  # noqa: E731
    module = xb.Module("m", scanned(3, body), num_replicas=2)
    rows = [np.full((3, 2), 1.0, np.float32), np.full(2, 1.5, np.float32)]
    with pytest.raises(StrictFailure) as caught:
        execute(module, [rows, rows], strict=True)
    finding = caught.value.findings[0]
    assert finding.standing.trips[0] == 3
    assert {each.opcode for each in finding.chain} == {"parameter", "subtract", "log"}
