"""Windows along cut dimensions: strides, dilations, paddings, windows larger than a part, scans, kernels' gradients."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import xbuild as xb

from .support import Function, checked, line, numbers, opcodes, sent

WINDOWS = {
    "size 3": xb.WindowDimension(3, 1, 1, 1),
    "size 2, stride 2": xb.WindowDimension(2, 2),
    "size 3, stride 2": xb.WindowDimension(3, 2, 0, 1),
    "size 3, stride 2, low": xb.WindowDimension(3, 2, 2, 0),
    "size 1, stride 3": xb.WindowDimension(1, 3),
    "crops": xb.WindowDimension(2, 1, -1, -1),
    "pads much": xb.WindowDimension(2, 1, 4, 5),
    "larger than a part": xb.WindowDimension(7, 1, 3, 3),
    "as large as all": xb.WindowDimension(12, 1, 4, 4),
    "window dilation": xb.WindowDimension(3, 1, 2, 2, 2),
    "base dilation": xb.WindowDimension(3, 1, 1, 2, 1, 2),
    "base dilation, stride 3": xb.WindowDimension(2, 3, 0, 2, 1, 2),
    "base dilation, size 1": xb.WindowDimension(1, 1, 1, 0, 1, 3),
    "both dilations, stride 2": xb.WindowDimension(3, 2, 3, 1, 2, 3),
}
COUNTS, EXTENTS = (1, 3, 4, 8), (16, 13)


def _window_of(window: xb.WindowDimension, by: Any, start: float) -> Function:
    def made(x: Any) -> Any:
        init = xb.constant(x.builder, np.array(start, x.shape.dtype.dtype))
        return xb.ops.reduce_window((x,), (init,), to_apply=by, window=(window,))

    return made


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("count", COUNTS)
def test_reductions_of_windows(name: str, count: int) -> None:
    for extent in EXTENTS:
        checked(_window_of(WINDOWS[name], xb.ops.add, 2.0), [numbers(extent)], [xb.P("x")], line(count))
        given = numbers(extent, dtype=np.int32)
        checked(_window_of(WINDOWS[name], xb.ops.maximum, -99), [given], [xb.P("x")], line(count))


def _convolved(window: xb.WindowDimension) -> Function:
    roles = xb.ConvolutionDimensionNumbers.read("bf0_oi0->bf0")

    def made(x: Any, kernel: Any) -> Any:
        return xb.ops.convolution(x, kernel, window=(window,), dimension_numbers=roles)

    return made


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("count", COUNTS)
def test_convolutions(name: str, count: int) -> None:
    for extent in EXTENTS:
        arrays = [numbers(2, 1, extent), numbers(3, 1, WINDOWS[name].size)]
        specs = [xb.P(None, None, "x"), xb.P(None, None, None)]
        checked(_convolved(WINDOWS[name]), arrays, specs, line(count))


@pytest.mark.parametrize(
    ("name", "rows"), [("size 3", 2), ("size 2, stride 2", 0), ("size 3, stride 2", 1), ("larger than a part", 6),
                       ("base dilation", 1), ("window dilation", 4)]
)  # fmt: skip
def test_windows_fetch_what_they_cover(name: str, rows: int) -> None:
    found = checked(_window_of(WINDOWS[name], xb.ops.add, 0.0), [numbers(16)], [xb.P("x")], line(4))
    assert opcodes(found) <= {"collective_permute"}
    assert sent(found) <= rows * 4


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize(
    ("extent", "low", "stride", "dilation"),
    [(16, 1, 1, 1), (14, 0, 1, 1), (13, 1, 1, 1), (9, 2, 1, 2), (7, 1, 2, 1), (5, 3, 1, 1)],
)
def test_a_kernel_cut_along_its_window(count: int, extent: int, low: int, stride: int, dilation: int) -> None:
    """As in the gradient of a kernel: two arrays that are cut alike, and a few windows."""
    window = xb.WindowDimension(extent, stride, low, low, dilation)
    given = numbers(1, 2, (extent - 1) * dilation + 1)
    given[0, 0, 1] = np.inf
    arrays = [given, numbers(3, 2, extent, seed=1)]
    specs = [xb.P(None, None, "x")] * 2
    found = checked(_convolved(window), arrays, specs, line(count), out=xb.P(None, None, None))
    if count == 4 and extent >= 13:
        assert "all_reduce" in opcodes(found)


def test_a_kernel_of_two_uneven_cuts() -> None:
    roles = xb.ConvolutionDimensionNumbers.read("bf01_oi01->bf01")
    window = (xb.WindowDimension(7, 1, 1, 1), xb.WindowDimension(5, 1, 1, 1))

    def made(x: Any, kernel: Any) -> Any:
        return xb.ops.convolution(x, kernel, window=window, dimension_numbers=roles)

    arrays, specs = [numbers(1, 1, 7, 5), numbers(2, 1, 7, 5)], [xb.P(None, None, "h", "w")] * 2
    checked(made, arrays, specs, xb.Mesh(h=3, w=2), out=xb.P(None, None, None, None))


def test_windows_of_two_cut_dimensions() -> None:
    window = (xb.WindowDimension(3, 2, 1, 0), xb.WindowDimension(2, 1, 1, 1, 1, 2))

    def made(x: Any) -> Any:
        return xb.ops.reduce_window((x,), (xb.constant(x.builder, np.float32(0)),), to_apply=xb.ops.add, window=window)

    for mesh in (xb.Mesh(h=4, w=2), xb.Mesh(h=2, w=3)):
        found = checked(made, [numbers(15, 8)], [xb.P("h", "w")], mesh)
        assert opcodes(found) == {"collective_permute"}


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("is_backward", [False, True])
def test_scans_send_totals(count: int, *, is_backward: bool) -> None:
    for extent, (by, start) in itertools.product((16, 13, 5), ((xb.ops.add, 3), (xb.ops.maximum, -99))):
        low, high = (0, extent - 1) if is_backward else (extent - 1, 0)
        window = xb.WindowDimension(extent, 1, low, high)
        given = numbers(extent, dtype=np.int32)
        found = checked(_window_of(window, by, start), [given], [xb.P("x")], line(count))
        assert opcodes(found) <= {"all_gather"}
        assert sent(found) == 4 * (count - 1)


def _gradient_of_maximum(size: int, stride: int, low: int = 0) -> Function:
    def made(x: Any, source: Any) -> Any:
        zero = xb.constant(x.builder, np.zeros((), x.shape.dtype.dtype))
        window = [xb.WindowDimension(size, stride, low, low)]
        return xb.ops.select_and_scatter(x, source, zero, select=lambda a, b: xb.ge(a, b), scatter=xb.ops.add,
                                         window=window)  # fmt: skip

    return made


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize(("size", "stride", "low"), [(2, 2, 0), (3, 2, 0), (3, 1, 0), (1, 2, 0), (2, 4, 0), (3, 2, 1)])
def test_gradients_of_the_greatest_of_windows(count: int, size: int, stride: int, low: int) -> None:
    for extent in (16, 24, 13):
        given = numbers(extent, dtype=np.int32)
        places = xb.WindowDimension(size, stride, low, low).places(extent)
        source = np.arange(1, places + 1, dtype=np.int32)
        for spec in (xb.P("x"), xb.P(None)):
            checked(_gradient_of_maximum(size, stride, low), [given, source], [xb.P("x"), spec], line(count))


def test_windows_that_stay_in_a_part_send_nothing() -> None:
    arrays = [numbers(16, dtype=np.int32), np.arange(8, dtype=np.int32)]
    found = checked(_gradient_of_maximum(2, 2), arrays, [xb.P("x"), xb.P("x")], line(4))
    assert not found.communications
