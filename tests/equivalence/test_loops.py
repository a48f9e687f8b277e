"""Long loops, of which a few trips are evaluated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter.fields import reduction
from interpreter.fields.comparison import ProgramComparison
from interpreter.fields.loops import parts_of
from xbuild.sharding.sharding import Axis, shard_dims

LINE = xb.Mesh(i=4)
AXIS = Axis("i", 4)
LAYERS, WIDTH, HIDDEN = 20, 4, 8
ALL = [[0, 1, 2, 3]]
STACK = shard_dims(LINE, [[], [], [AXIS]]), shard_dims(LINE, [[], [AXIS], []]), shard_dims(LINE, [[], []])
Change = Callable[[Any, Any, Any], Any]


@pytest.fixture(autouse=True)
def small_programs_count_as_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reduction, "MUCH", 1)


def row(stack: Any, number: Any) -> Any:
    """The array of a layer."""
    sizes = [1, *stack.shape.dims[1:]]
    return xb.reshape(xb.dynamic_slice(stack, [number, *[np.int32(0)] * (len(sizes) - 1)], sizes), sizes[1:])


def network(
    on_devices: bool,
    change: Change = lambda x, number, layer: x,
    is_turned: bool = False,
    up_row: Callable[[Any], Any] = lambda number: number,
    seen_row: Callable[[Any], Any] = lambda number: number,
) -> Any:
    """Layers in a loop that also stacks what each of them gets; each device has a part of the hidden dimension."""
    hidden = HIDDEN // 4 if on_devices else HIDDEN

    def body(number: Any, x: Any, seen: Any, up: Any, down: Any) -> Any:
        seen = xb.dynamic_update_slice(seen, xb.reshape(x, (1, 2, WIDTH)), [seen_row(number), *[np.int32(0)] * 2])
        inside = xb.tanh(xb.dot(x, row(up, up_row(number))))
        out = xb.dot(inside * inside, row(down, number))
        if on_devices:
            out = xb.all_reduce(out, xb.add, ALL, channel_id=1, use_global_device_ids=True)
        return number + np.int32(1), change(x + out * x, number, out), seen, up, down

    order = (3, 1, 4, 0, 2) if is_turned else (0, 1, 2, 3, 4)  # of the number, x, what is seen, and both stacks

    def element(state: Any, n: int) -> Any:
        return xb.get_tuple_element(state, order[n])

    def state(*values: Any) -> Any:
        return xb.tuple_(*(values[order.index(n)] for n in range(5)))

    def program(x: Any, up: Any, down: Any) -> Any:
        zeros = xb.broadcast(xb.constant(x.builder, np.float32(0)), (LAYERS, 2, WIDTH))
        loop = xb.while_(
            state(xb.constant(x.builder, np.int32(0)), x, zeros, up, down),
            lambda s: xb.lt(element(s, 0), np.int32(LAYERS)),
            lambda s: state(*body(*(element(s, n) for n in range(5)))),
        )
        return xb.tuple_(element(loop, 1), element(loop, 2))

    f = xb.f32
    shapes = f[2, WIDTH], f[LAYERS, WIDTH, hidden], f[LAYERS, hidden, WIDTH]
    made = xb.computation(*shapes)(program)
    return xb.Module("local", made, num_partitions=4) if on_devices else made


def compare(other: Any, one: Any = None) -> Any:
    x, out = shard_dims(LINE, [[], []]), shard_dims(LINE, [[], [], []])
    return xb.equivalent(one or network(False), other, inputs=[x, *STACK[:2]], outputs=[x, out])


@pytest.mark.parametrize("is_turned", [False, True])
def test_a_loop_over_layers(is_turned: bool) -> None:
    """All trips do the same with other rows, so that nothing is assumed of those that are not evaluated."""
    found = compare(network(True, is_turned=is_turned))
    assert found.kind == "equal", str(found)
    assert "trips" not in dict(found.assumed)


def test_trips_that_may_all_be_different(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of a trip is a factor."""
    factor = lambda x, number, out: x * xb.convert(number, xb.f32)  # noqa: E731
    found = compare(network(True, factor), network(False, factor))
    assert found.kind == "equal", str(found)
    assert dict(found.assumed)["trips"] == 1
    assert found.details["trips"][0].endswith(f": trips 1, 2, {(LAYERS + 3) // 2} and {LAYERS} of {LAYERS}")
    assert "the other trips are taken to do the same: 1 loop (trips)" in str(found).replace("\n    ", " ")


@pytest.mark.parametrize(
    "change",
    [
        lambda x, number, out: x + out,
        lambda x, number, out: xb.rev(x, [0]),
        lambda x, number, out: x * 1.5,
        lambda x, number, out: xb.select(number == np.int32(LAYERS - 1), x * 2.0, x),
        lambda x, number, out: xb.select(
            number == np.int32(7), x * 2.0, x
        ),  # no trip that is evaluated over the fields
    ],
    ids=["a term", "an order", "a factor", "the last trip", "one trip of many"],
)
def test_a_body_that_differs_is_found(change: Change) -> None:
    assert compare(network(True, change)).kind == "different"


def test_small_programs_are_evaluated_at_all_trips(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reduction, "MUCH", 1 << 27)
    assert "trips" not in compare(network(True)).details


def test_loops_whose_end_depends_on_floats_are_evaluated_at_all_trips() -> None:
    def program(x: Any) -> Any:
        state = xb.tuple_(xb.constant(x.builder, np.int32(0)), x)
        norm = lambda s: xb.reduce(xb.get_tuple_element(s, 1), 0.0, xb.maximum)  # noqa: E731
        loop = xb.while_(
            state,
            lambda s: xb.lt(norm(s), np.float32(100)),
            lambda s: xb.tuple_(xb.get_tuple_element(s, 0) + np.int32(1), xb.get_tuple_element(s, 1) * 2.0),
        )
        return xb.get_tuple_element(loop, 1)

    loop = next(i for i in xb.computation(xb.f32[4])(program).instructions if i.opcode == "while")
    assert parts_of(loop) is None


def test_the_parts_of_a_state() -> None:
    loop = next(i for i in network(False).instructions if i.opcode == "while")
    parts = parts_of(loop)
    assert parts is not None
    kinds = {n: str(loop.shape.elements[n]) for n in parts.written}
    assert list(kinds.values()) == [f"f32[{LAYERS},2,{WIDTH}]"]
    assert len(parts.integers) == 1


@pytest.fixture
def trips_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No runs in floating point, which execute all trips, and no evaluation of all trips."""
    monkeypatch.setattr(ProgramComparison, "after_float_runs", lambda self, found, seconds=0.0: found)
    monkeypatch.setattr(ProgramComparison, "_draw", lambda self, number: None)


def is_compared_by_trips(other: Any) -> bool:
    """Whether programs are equal at the trips that are evaluated."""
    compared: list[Any] = []
    keep = ProgramComparison._verdict_by_trips

    def kept(self: Any) -> Any:
        compared.append(keep(self))
        return compared[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ProgramComparison, "_verdict_by_trips", kept)
        compare(other)
    return any(compared)


@pytest.mark.usefixtures("trips_alone")
@pytest.mark.parametrize("trip", [1, 2, 3, 7, (LAYERS + 3) // 2, LAYERS - 1, LAYERS])
def test_a_trip_that_differs_is_evaluated(trip: int) -> None:
    wrong = network(True, lambda x, number, out: xb.select(number == np.int32(trip - 1), x * 2.0, x))
    assert not is_compared_by_trips(wrong)


def other_row(number: Any) -> Any:
    """The number of a trip, but two trips have that of each other."""
    return xb.select(number == np.int32(7), np.int32(8), xb.select(number == np.int32(8), np.int32(7), number))


@pytest.mark.usefixtures("trips_alone")
@pytest.mark.parametrize("place", ["up_row", "seen_row"])
def test_a_row_that_differs_at_one_trip_is_found(place: str) -> None:
    """The row that a trip takes from an array, or at which it writes."""
    assert is_compared_by_trips(network(True))
    assert not is_compared_by_trips(network(True, **{place: other_row}))


def weighed(factors: Any) -> Change:
    """A factor of each layer from a constant."""

    def change(x: Any, number: Any, out: Any) -> Any:
        found = xb.dynamic_slice(xb.constant(x.builder, factors), [number], [1])
        return x * xb.broadcast(xb.reshape(found, []), x.shape.dims, [])

    return change


def test_rows_of_constants_are_not_renamed() -> None:
    """A constant has no variables: that rows are equal at some trips says nothing of others."""
    factors = np.ones(LAYERS, np.float32)
    same = compare(network(True, weighed(factors)))
    assert same.kind == "equal"
    assert dict(same.assumed)["trips"] == 1
    factors[7] = 2
    assert compare(network(True, weighed(factors))).kind == "different"


def with_first_row(is_doubled: bool, at: int = 7) -> Any:
    """Layers in a loop that also has one row of their weights; one program tells by it which layer has this row."""

    def program(x: Any, up: Any) -> Any:
        def body(x: Any, up: Any, known: Any, number: Any) -> tuple[Any, ...]:
            w = row(up, number)
            is_known = xb.eq(xb.reduce(w, 0.0, xb.add, (0,)), xb.reduce(known, 0.0, xb.add, (0,)))
            y = xb.tanh(x * w)
            return (xb.select(is_known, y + y, y) if is_doubled else y), up, known

        count = np.int32(LAYERS)
        first = xb.reshape(xb.slice(up, [at, 0], [at + 1, 4], [1, 1]), [4])
        state = xb.tuple_(xb.constant(x.builder, np.int32(0)), x, up, first)
        element = xb.get_tuple_element
        loop = xb.while_(
            state,
            lambda s: xb.lt(element(s, 0), count),
            lambda s: xb.tuple_(
                element(s, 0) + np.int32(1), *body(element(s, 1), element(s, 2), element(s, 3), element(s, 0))
            ),
        )
        return element(loop, 1)

    return xb.computation(xb.f32[4], xb.f32[LAYERS, 4])(program)


def test_rows_that_another_array_of_the_state_has_are_not_renamed() -> None:
    found = xb.equivalent(with_first_row(False), with_first_row(False))
    assert found.kind == "equal"
    assert dict(found.assumed)["trips"] == 1
    assert xb.equivalent(with_first_row(False), with_first_row(True)).kind == "different"


def test_a_row_that_is_written_again_leaves_trips_unknown() -> None:
    """What a trip writes is not seen if a later one writes the same row."""
    found = compare(network(True, seen_row=lambda number: number * np.int32(0)),
                    network(False, seen_row=lambda number: number * np.int32(0)))  # fmt: skip
    assert found.kind == "equal"
    assert dict(found.assumed)["trips"] == 1


def counted(state: list[Any], body: Callable[..., tuple[Any, ...]], below: Callable[[Any], Any]) -> Any:
    """A loop with a counter before this state; its last state without the counter."""
    count = len(state) + 1
    loop = xb.while_(
        xb.tuple_(xb.constant(state[0].builder, np.int32(0)), *state),
        lambda s: below(xb.get_tuple_element(s, 0)),
        lambda s: xb.tuple_(
            xb.get_tuple_element(s, 0) + np.int32(1), *body(*(xb.get_tuple_element(s, n) for n in range(1, count)))
        ),
    )
    return xb.get_tuple_element(loop, 1)


def test_states_that_obey_a_law_are_evaluated_at_all_trips(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second element is twice the first at each trip, which does not hold of arbitrary states."""

    def first(x: Any, y: Any) -> tuple[Any, ...]:
        return x * x * 0.5 + x * y * 0.25, x * x + x * y * 0.5

    def second(x: Any, y: Any) -> tuple[Any, ...]:
        return x * x, y * x

    one, other = (
        xb.computation(xb.f32[4])(lambda x, body=body: counted([x, x + x], body, lambda n: xb.lt(n, np.int32(LAYERS))))
        for body in (first, second)
    )
    found = xb.equivalent(one, other)
    monkeypatch.setattr(reduction, "MUCH", 1 << 60)
    assert found.kind == "equal"
    assert found.to_dict() == xb.equivalent(one, other).to_dict()


def test_a_loop_that_does_not_end_reaches_the_limit_of_trips() -> None:
    def program(x: Any) -> Any:
        x = counted([x], lambda x: (x * x,), lambda n: xb.lt(n, np.int32(LAYERS)))
        return counted([x], lambda x: (x + x,), lambda n: xb.ne(n, np.int32(-1)))

    made = xb.computation(xb.f32[4])(program)
    found = xb.equivalent(made, made, limits=xb.Limits(trips=100))
    assert found.undecided == ("a run stopped: limit_trips",)


def test_large_integers_of_a_state_are_not_kept_for_all_trips() -> None:
    def program(x: Any, places: Any) -> Any:
        return counted([x, places], lambda x, n: (x + x, n + n), lambda n: xb.lt(n, np.int32(LAYERS)))

    loop = next(i for i in xb.computation(xb.f32[4], xb.s32[2000])(program).instructions if i.opcode == "while")
    assert parts_of(loop) is None
