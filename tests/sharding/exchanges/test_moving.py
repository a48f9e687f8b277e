"""Rolls, shifts, stencils, slices, pads, reversals and concatenations along cut dimensions send what devices lack."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb

from .support import Function, checked, line, numbers, opcodes, sent

EXTENTS, COUNTS = (16, 13, 3), (1, 3, 8)


def _part(x: xb.Value, start: int, limit: int, stride: int = 1, dim: int = 0) -> xb.Value:
    rank = x.shape.rank
    limits = [limit if n == dim else x.shape.dims[n] for n in range(rank)]
    starts, strides = (
        [value if n == dim else usual for n in range(rank)] for value, usual in ((start, 0), (stride, 1))
    )
    return xb.ops.slice(x, start_indices=starts, limit_indices=limits, strides=strides)


def rolled(x: xb.Value, by: int, dim: int = 0) -> xb.Value:
    extent = x.shape.dims[dim]
    by %= extent
    return xb.ops.concatenate(
        (_part(x, extent - by, extent, dim=dim), _part(x, 0, extent - by, dim=dim)), dimension=dim
    )


def padded(x: xb.Value, *around: tuple[int, int, int], filler: float = 0.0) -> xb.Value:
    number = xb.constant(x.builder, np.array(filler, x.shape.dtype.dtype))
    return xb.ops.pad(x, number, padding=[xb.PaddingDimension(*each) for each in around])


def _extent(x: xb.Value) -> int:
    return x.shape.dims[0]


FORMS: dict[str, Function] = {
    "roll": lambda x: rolled(x, 1),
    "roll back": lambda x: rolled(x, -2),
    "roll by half": lambda x: rolled(x, _extent(x) // 2),
    "two rolls": lambda x: rolled(rolled(x, 3), -1),
    "shift": lambda x: _part(padded(x, (1, 0, 0)), 0, _extent(x)),
    "shift up": lambda x: _part(padded(x, (0, 2, 0), filler=4.0), 2, _extent(x) + 2),
    "stencil": lambda x: (
        _part(padded(x, (1, 1, 0)), 0, _extent(x)) + _part(padded(x, (1, 1, 0)), 2, _extent(x) + 2) - x
    ),
    "wide stencil": lambda x: _part(padded(x, (4, 4, 0), filler=1.0), 0, _extent(x)) + x,
    "slice": lambda x: _part(x, 1, _extent(x) - 1),
    "slice of every second": lambda x: _part(x, 1, _extent(x), 2),
    "pad": lambda x: padded(x, (2, 3, 0), filler=5.0),
    "pad that crops": lambda x: padded(x, (-1, 2, 0), filler=5.0),
    "pad between": lambda x: padded(x, (1, 0, 2), filler=3.0),
    "every second of a pad between": lambda x: _part(padded(x, (1, 1, 1), filler=3.0), 1, 2 * _extent(x), 2),
    "reverse": lambda x: xb.ops.reverse(x, dimensions=(0,)),
    "wrapped": lambda x: xb.ops.concatenate((_part(x, _extent(x) - 2, _extent(x)), x, _part(x, 0, 2)), dimension=0),
    "mirrored": lambda x: xb.ops.concatenate((x, xb.ops.reverse(x, dimensions=(0,))), dimension=0),
    "concatenate": lambda x: xb.ops.concatenate((x, xb.negate(x), _part(x, 1, 3)), dimension=0),
    "differences": lambda x: _part(x, 1, _extent(x)) - _part(x, 0, _extent(x) - 1),
    "nothing of it": lambda x: xb.ops.concatenate((_part(x, 1, 1), x, _part(x, 2, 2)), dimension=0),
}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("count", COUNTS)
def test_each_form_is_that_of_the_global_program(name: str, count: int) -> None:
    for extent, dtype in zip(EXTENTS, (np.float32, np.int32, np.int8), strict=True):
        checked(FORMS[name], [numbers(extent, dtype=dtype)], [xb.P("x")], line(count))


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("roll", 1), ("roll back", 2), ("roll by half", 4), ("two rolls", 2), ("shift", 1), ("shift up", 2),
        ("stencil", 2), ("wide stencil", 4), ("slice", 4), ("differences", 2), ("wrapped", 4), ("reverse", 4),
        ("every second of a pad between", 0), ("nothing of it", 0), ("mirrored", 8),
    ],
)  # fmt: skip
def test_permutes_send_no_more_rows_than_are_lacking(name: str, rows: int) -> None:
    found = checked(FORMS[name], [numbers(16)], [xb.P("x")], line(4))
    assert opcodes(found) <= {"collective_permute"}
    assert sent(found) <= rows * 4


def test_two_neighbours_of_two_devices_send_at_once() -> None:
    found = checked(lambda x: xb.reduce_window(x, 0.0, xb.ops.add, (3,), (1,), [(1, 1)]), [numbers(16)], [xb.P("x")],
                    line(2))  # fmt: skip
    assert [each.bytes for each in found.communications] == [4]


def game(x: xb.Value) -> xb.Value:
    total = x
    for rows in (-1, 0, 1):
        for columns in (-1, 0, 1):
            if rows or columns:
                total = total + rolled(rolled(x, rows, 0), columns, 1)
    return total


def test_corners_of_two_cut_dimensions_come_by_their_neighbours() -> None:
    mesh = xb.Mesh(h=4, w=2)
    found = checked(game, [numbers(16, 8)], [xb.P("h", "w")], mesh)
    assert opcodes(found) == {"collective_permute"}
    assert sent(found) == 2 * 4 * 4 + 6 * 4 * 4


def test_three_cut_dimensions() -> None:
    mesh = xb.Mesh(a=2, b=2, c=2)

    def moved(x: xb.Value) -> xb.Value:
        wide = padded(x, (1, 1, 0), (2, 0, 0), (0, 1, 0))
        return xb.ops.slice(wide, start_indices=(2, 0, 1), limit_indices=(6, 6, 6), strides=(1, 1, 1))

    found = checked(moved, [numbers(4, 6, 5)], [xb.P("a", "b", "c")], mesh)
    assert opcodes(found) == {"collective_permute"}


def test_a_pad_that_only_slices_use_is_not_made() -> None:
    mesh = xb.Mesh(h=4, w=2)

    def stencil(x: xb.Value) -> xb.Value:
        wide = padded(x, (1, 1, 0), (1, 1, 0))
        corners = ((0, 1), (2, 1), (1, 0), (1, 2))
        parts = [xb.ops.slice(wide, start_indices=at, limit_indices=(at[0] + 16, at[1] + 16), strides=(1, 1))
                 for at in corners]  # fmt: skip
        return parts[0] + parts[1] + parts[2] + parts[3] - x

    found = checked(stencil, [numbers(16, 16)], [xb.P("h", "w")], mesh)
    assert sent(found) == 2 * 8 * 4 + 2 * 4 * 4


def test_a_slice_at_constants_is_a_slice() -> None:
    def taken(x: xb.Value) -> xb.Value:
        at = xb.constant(x.builder, np.int32(20))  # moved to 3, as the slice has to fit
        return xb.ops.dynamic_slice(x, [at], dynamic_slice_sizes=(13,))

    found = checked(taken, [numbers(16)], [xb.P("x")], line(4))
    assert opcodes(found) == {"collective_permute"}


def test_the_last_row_is_summed_not_gathered_where_all_want_it() -> None:
    found = checked(lambda x: _part(x, 15, 16), [numbers(16, 64)], [xb.P("x", None)], line(4), out=xb.P(None, None))
    assert opcodes(found) == {"all_reduce"}


def test_several_arrays_are_joined_by_permutes() -> None:
    def joined(x: Any, y: Any) -> Any:
        return xb.ops.concatenate((_part(x, 1, 16), _part(y, 0, 1)), dimension=0)

    found = checked(joined, [numbers(16), numbers(16, seed=1)], [xb.P("x"), xb.P("x")], line(4))
    assert opcodes(found) == {"collective_permute"}
    assert sent(found) == 4


def test_a_padded_array_with_two_numbers() -> None:
    def twice(x: xb.Value) -> xb.Value:
        return _part(padded(padded(x, (1, 1, 0), filler=2.0), (1, 1, 0), filler=3.0), 0, 18)

    for count in COUNTS:
        checked(twice, [numbers(16)], [xb.P("x")], line(count))


def test_what_came_once_is_not_sent_again() -> None:
    def smoothed(x: xb.Value) -> xb.Value:
        wide = padded(x, (3, 0, 0))
        parts = [_part(wide, start, start + _extent(x)) for start in range(4)]
        return parts[0] - parts[1] + parts[2] * 3.0 + parts[3]

    for count in COUNTS:
        for extent in EXTENTS:
            checked(smoothed, [numbers(extent)], [xb.P("x")], line(count))
    assert sent(checked(smoothed, [numbers(16)], [xb.P("x")], line(4))) == 3 * 4
