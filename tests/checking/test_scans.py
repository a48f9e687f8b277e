"""Scans whose computation communicates: checked as loops of a known length, run like them, and as real XLA does."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import Stopped, execute, trace
from interpreter.engines import execute_on_xla
from tests.support.compare import assert_same
from xbuild.checking import Verdict

Body = Callable[..., Any]

RING = ((0, 1), (1, 2), (2, 3), (3, 0))
PAIRS = ((0, 2), (1, 3))


def total(value: xb.Value, name: str | None = "total", **attributes: Any) -> xb.Value:
    return xb.ops.all_reduce(value, to_apply=xb.add, name=name, **attributes)


def summed(each: xb.Value, carry: xb.Value) -> Any:
    after = xb.add(each, carry)
    return total(after), after


def scanned(count: int, body: Body = summed, **attributes: Any) -> xb.Computation:
    return xb.computation(xb.f32[count, 2], xb.f32[2])(lambda x, z: xb.scan(x, z, body, name="s", **attributes))


def counted(count: int, holds: Callable[[xb.Value], Any], **attributes: Any) -> xb.Computation:
    """The slices of an iota decide in which trips the devices meet."""

    def body(number: xb.Value, each: xb.Value, carry: xb.Value) -> Any:
        met = xb.conditional(holds(number), each, total, each, lambda v: v * 2.0, name="c")
        return met, carry + met

    @xb.computation(xb.f32[count, 2], xb.f32[2])
    def program(x: xb.Value, z: xb.Value) -> Any:
        numbers = xb.iota(x.builder, shape=xb.s32[count], iota_dimension=0)
        return xb.scan((numbers, x), z, body, name="s", **attributes)

    return program


def looped(count: int) -> xb.Computation:
    """What `scanned` does, as a while."""

    def body(state: xb.Value) -> Any:
        trip, x, carry = state
        zero = xb.constant(trip.builder, literal=np.int32(0))
        each = xb.reshape(xb.dynamic_slice(x, [trip, zero], (1, 2)), (2,))
        after = each + carry
        total(after)
        return trip + 1, x, after

    def program(x: xb.Value, z: xb.Value) -> Any:
        start = [xb.constant(x.builder, literal=np.int32(0)), x, z]
        return xb.while_(start, condition=lambda state: state[0] < count, body=body, name="s")[2]

    return xb.computation(xb.f32[count, 2], xb.f32[2])(program)


def both(first: xb.Computation, second: xb.Computation) -> xb.ModuleGroup:
    return xb.ModuleGroup({0: xb.Module("first", first), 1: xb.Module("second", second)})


def inputs(program: xb.Module | xb.ModuleGroup) -> list[list[Any]]:
    module_of = (lambda _: program) if isinstance(program, xb.Module) else program.modules.__getitem__
    rng = np.random.default_rng(0)
    return [
        [rng.integers(-4, 5, p.shape.dims).astype(p.shape.dtype.dtype) for p in module_of(device).entry.parameters]
        for device in range(program.num_devices)
    ]


def ends(program: xb.Module | xb.ModuleGroup, **options: Any) -> bool:
    try:
        execute(program, inputs(program), check=False, **options)
    except Stopped:
        return False
    return True


def agreed(program: xb.Module | xb.ModuleGroup) -> Verdict:
    """The verdict, which the run bears out."""
    verdict = xb.check(program)
    assert verdict.kind != "depends"
    assert ends(program) == (verdict.kind == "ok")
    return verdict


# What is refused, and what is not.


def test_scans_of_one_length_meet() -> None:
    assert agreed(both(scanned(3), scanned(3))).kind == "ok"
    assert agreed(both(scanned(0), scanned(0))).kind == "ok"


@pytest.mark.parametrize(("first", "second"), [(3, 2), (4, 1), (0, 4)])
def test_scans_of_different_lengths_do_not(first: int, second: int) -> None:
    verdict = agreed(both(scanned(first), scanned(second)))
    assert verdict.findings[0].kind == "trip_count_mismatch"
    assert f"s runs {first} trip{'s' * (first != 1)} on device 0" in verdict.findings[0].message


def test_a_length_that_is_too_long_to_follow_is_counted() -> None:
    verdict = xb.check(both(scanned(1_000_000), scanned(999_999)))
    assert verdict.findings[0].kind == "trip_count_mismatch"
    assert xb.check(both(scanned(1_000_000), scanned(1_000_000))).kind == "ok"


def test_a_scan_of_one_trip_stands_like_a_call() -> None:
    """As a loop of one trip does: the one that is missing is told, and not that loops differ."""
    assert agreed(both(scanned(1), scanned(0))).findings[0].kind == "deadlock"


def test_a_scan_meets_a_while_of_as_many_trips() -> None:
    assert agreed(both(scanned(3), looped(3))).kind == "ok"
    assert agreed(both(scanned(3), looped(4))).findings[0].kind == "trip_count_mismatch"


@pytest.mark.parametrize("more", [{}, {"is_reverse": True}])
@pytest.mark.parametrize(
    ("first", "second", "is_ok"),
    [
        (lambda i: xb.eq(i % 2, 0), lambda i: xb.eq(i % 2, 0), True),
        (lambda i: xb.eq(i % 2, 0), lambda i: xb.eq(i % 2, 1), True),  # as often, in other trips
        (lambda i: i < 2, lambda i: i > 1, True),
        (lambda i: i < 2, lambda i: i < 3, False),
        (lambda i: i / 2 < 1, lambda i: xb.eq(i % 3, 0), True),
    ],
)
def test_a_conditional_beside_it_is_followed_trip_by_trip(
    first: Any, second: Any, is_ok: bool, more: dict[str, Any]
) -> None:
    program = both(counted(4, first, **more), counted(4, second))
    assert (agreed(program).kind == "ok") == is_ok


@pytest.mark.parametrize(("there", "is_ok"), [((1, 0, 1, 0), True), ((0, 1, 1, 0), True), ((1, 1, 1, 0), False)])
def test_a_table_that_a_loop_looks_up_is_known(there: tuple[int, ...], is_ok: bool) -> None:
    """One device scans it, the other looks it up in each trip of a while."""

    def meeting_if(here: xb.Value, x: xb.Value) -> Any:
        return xb.conditional(xb.eq(here, 1), x, total, x, lambda v: v * 2.0, name="c")

    def looking(state: xb.Value) -> Any:
        trip, table, x = state
        here = xb.reshape(xb.dynamic_slice(table, [trip], (1,)), ())
        return trip + 1, table, meeting_if(here, x)

    def looked_up(x: xb.Value) -> Any:
        table = xb.constant(x.builder, np.array(there, np.int32))
        start = [xb.constant(x.builder, np.int32(0)), table, x]
        return xb.while_(start, condition=lambda state: state[0] < 4, body=looking, name="s")[2]

    def scanned_through(x: xb.Value) -> Any:
        table = xb.constant(x.builder, np.array([0, 0, 1, 1], np.int32))
        return xb.scan(table, x, meeting_if, name="s")

    program = both(*(xb.computation(xb.f32[2])(each) for each in (looked_up, scanned_through)))
    assert (agreed(program).kind == "ok") == is_ok


def test_a_replica_that_leaves_out_a_trip_is_found() -> None:
    who = lambda i: xb.convert(xb.replica_id(i.builder), xb.s32)  # noqa: E731
    alone = xb.Module("alone", counted(4, lambda i: i < who(i) + 1), num_replicas=2)
    verdict = agreed(alone)
    assert verdict.refused
    assert "total in true_computation of conditional c in scan s" in str(verdict)
    assert agreed(xb.Module("all", counted(4, lambda i: i < 3), num_replicas=2)).kind == "ok"


def test_data_decide_in_a_trip() -> None:
    def body(each: xb.Value, carry: xb.Value) -> Any:
        first = xb.reshape(xb.slice(each, (0,), (1,), (1,)), ())
        return xb.conditional(first > 0.0, each, total, each, lambda v: v * 2.0), carry

    assert xb.check(xb.Module("m", scanned(3, body), num_replicas=2)).kind == "depends"

    def told(each: xb.Value, carry: xb.Value) -> Any:
        same = xb.ops.all_reduce(each, to_apply=xb.maximum)
        first = xb.reshape(xb.slice(same, (0,), (1,), (1,)), ())
        return xb.conditional(first > 0.0, each, total, each, lambda v: v * 2.0), carry

    module = xb.Module("m", scanned(3, told), num_replicas=2)
    assert xb.check(module).kind == "ok"
    assert ends(module)


def test_a_bounded_number_of_slices_is_left_to_the_data() -> None:
    def program(x: xb.Value, n: xb.Value) -> Any:
        some = xb.ops.set_dimension_size(x, n, dimension=0)
        return xb.scan(some, xb.constant(x.builder, np.zeros(2, np.float32)), summed, name="s")[1]

    computation = xb.computation(xb.f32[4, 2], xb.s32[()])(program)
    module = xb.Module("m", computation, num_replicas=2)
    verdict = xb.check(module)
    assert verdict.kind == "depends"
    assert "the number of slices of s differs between devices 0 and 1" in str(verdict)
    x = np.ones((4, 2), np.float32)
    assert [row[0] for row in execute(module, [[x, 3], [x, 3]])] == [3.0, 3.0]
    with pytest.raises(Stopped, match="s, trip 3"):
        execute(module, [[x, 3], [x, 2]])


def test_sends_and_recvs_pair_in_a_scan() -> None:
    def sending(each: xb.Value, carry: xb.Value) -> Any:
        token = xb.after_all(builder=each.builder)
        sent = xb.ops.send(each, token, channel_id=1, name="sent")
        xb.ops.send_done(sent, channel_id=1)
        return each, carry

    def receiving(each: xb.Value, carry: xb.Value) -> Any:
        token = xb.after_all(builder=each.builder)
        posted = xb.ops.recv(token, shape=xb.f32[2], channel_id=1, name="posted")
        got = xb.ops.get_tuple_element(xb.ops.recv_done(posted, channel_id=1), index=0)
        return got, got + carry

    program = both(scanned(3, sending), scanned(3, receiving))
    assert agreed(program).kind == "ok"
    (sent, _), (_, got) = execute(program, [[np.ones((3, 2), np.float32), np.zeros(2, np.float32)]] * 2)
    np.testing.assert_array_equal(got, sent.sum(0))
    assert agreed(both(scanned(2, sending), scanned(3, receiving))).refused


def test_an_infeed_in_a_scan_takes_an_item_a_trip() -> None:
    def body(each: xb.Value, carry: xb.Value) -> Any:
        item = xb.ops.infeed(xb.after_all(builder=each.builder), shape=xb.f32[2])
        return xb.ops.get_tuple_element(item, index=0), carry + each

    module = xb.Module("m", scanned(3, body))
    items = [np.full(2, n, np.float32) for n in range(3)]
    (given, _), *_ = execute(module, inputs(module), infeed={0: items})
    np.testing.assert_array_equal(given, items)
    assert xb.check(module, infeed={0: 3}).kind == "ok"
    assert xb.check(module, infeed={0: 2}).refused


def test_an_order_that_crosses_in_a_scan_is_refused_and_mended() -> None:
    def body(order: tuple[str, str]) -> Body:
        def step(each: xb.Value, carry: xb.Value) -> Any:
            first, second = (total(each, name) for name in order)
            return first, carry + second

        return step

    def module(*order: str) -> xb.Module:
        return xb.Module("m", scanned(3, body(order)), is_scheduled=True)  # type: ignore[arg-type]

    program = xb.ModuleGroup({0: module("a", "b"), 1: module("b", "a")})
    verdict = agreed(program)
    assert verdict.kind == "deadlock"
    assert "in scan s" in str(verdict)
    assert verdict.repair is not None


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
    assert "it ran s fewer than 3 times" in str(caught.value.report)


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
