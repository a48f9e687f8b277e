"""Programs of many layers, compared in parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from xbuild.sharding.sharding import Axis, shard_dims

LAYERS = 40
LINE = xb.Mesh(i=4)
AXIS = Axis("i", 4)
COLUMNS, ROWS, WHOLE = (shard_dims(LINE, dims) for dims in ([[], [AXIS]], [[AXIS], []], [[], []]))


def layer(x: Any, up: Any, gate: Any, down: Any) -> Any:
    """The degree of the result is twice that of the input."""
    return x + xb.dot(xb.dot(x, up) * xb.dot(x, gate), down)


def network(change: Callable[[int, Any], Any] = lambda number, x: x) -> Any:
    def program(x: Any, up: Any, gate: Any, down: Any) -> Any:
        for number in range(LAYERS):
            x = change(number, layer(x, up, gate, down))
        return x

    return program


def on_devices(change: Callable[[int, Any], Any] = lambda number, x: x) -> xb.Module:
    """The network on four devices, each with a part of the hidden dimension."""

    def program(x: Any, up: Any, gate: Any, down: Any) -> Any:
        for number in range(LAYERS):
            part = xb.dot(xb.dot(x, up) * xb.dot(x, gate), down)
            total = xb.all_reduce(part, xb.add, [[0, 1, 2, 3]], channel_id=1 + number, use_global_device_ids=True)
            x = change(number, x + total)
        return x

    f = xb.f32
    return xb.Module("local", xb.computation(f[2, 4], f[4, 2], f[4, 2], f[2, 4])(program), num_partitions=4)


GLOBAL = xb.computation(xb.f32[2, 4], xb.f32[4, 8], xb.f32[4, 8], xb.f32[8, 4])
LAYOUTS = {"inputs": [WHOLE, COLUMNS, COLUMNS, ROWS], "outputs": [WHOLE]}


def test_degrees_start_again_at_values_that_both_compute() -> None:
    found = xb.equivalent(GLOBAL(network()), on_devices(), **LAYOUTS)
    assert found.kind == "equal", str(found)
    assert found.degree < 1 << 16
    assert found.log2_error < -60
    assert found.draws <= 24


@pytest.mark.parametrize("at", [0, 11, LAYERS - 1])
@pytest.mark.parametrize(
    "change",
    [lambda x: x * 1.5, lambda x: xb.rev(x, [0]), lambda x: x + xb.sqrt(x) * 0.0001, lambda x: x * x],
    ids=["a factor", "elements in another order", "a small term", "a square"],
)
def test_a_layer_that_differs_is_found(at: int, change: Callable[[Any], Any]) -> None:
    wrong = on_devices(lambda number, x: change(x) if number == at else x)
    assert xb.equivalent(GLOBAL(network()), wrong, **LAYOUTS).kind != "equal"


def test_loops_are_cut_at_each_trip() -> None:
    f = xb.f32

    def loop(body: Callable[[Any], Any]) -> xb.Computation:
        def program(x: Any) -> Any:
            state = xb.tuple_(x, xb.constant(x.builder, np.int32(0)))
            below = lambda s: xb.lt(xb.get_tuple_element(s, 1), np.int32(40))  # noqa: E731
            step = lambda s: xb.tuple_(body(xb.get_tuple_element(s, 0)), xb.get_tuple_element(s, 1) + np.int32(1))  # noqa: E731
            return xb.get_tuple_element(xb.while_(state, below, step), 0)

        return xb.computation(f[4])(program)

    square, other = loop(lambda x: x * x + x), loop(lambda x: x * (x + xb.constant(x.builder, np.ones(4, np.float32))))
    found = xb.equivalent(square, other)
    assert found.kind == "equal", str(found)
    wrong = loop(lambda x: x * (x + xb.constant(x.builder, np.array([1, 1, 1, 1.25], np.float32))))
    assert xb.equivalent(square, wrong).kind == "different"


def test_a_result_that_goes_past_the_cuts_is_undecided() -> None:
    """The second program computes the squares and returns them, but the power in another way."""

    def powers(x: Any) -> Any:
        return xb.tuple_(*squares(x)[-2:])

    def squares(x: Any) -> list[Any]:
        found = [x]
        for _ in range(40):
            found.append(found[-1] * found[-1])
        return found

    def past(x: Any) -> Any:
        y = x * 2.0
        for _ in range(40):
            y = y * y * 0.5
        return xb.tuple_(squares(x)[-2], y * 0.5)

    one, other = (xb.computation(xb.f32[2])(each) for each in (powers, past))
    found = xb.equivalent(one, other)
    assert found.kind == "undecided"
    assert "degree" in found.undecided[0]
