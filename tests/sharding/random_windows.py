"""Random global programs of ops that move elements along dimensions: rolls, stencils, windows, greatest elements."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

import xbuild as xb
from shape_inference import XbuildError

EXTENTS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 24)
Draw = Callable[[random.Random, "xb.Value"], "xb.Value | None"]


def window_program(chance: random.Random) -> tuple[xb.Module, list[np.ndarray[Any, Any]]]:
    """A module of one to six such ops in a row, some of which take earlier values too, and its arguments."""
    builder, arguments, values = xb.Builder("windows"), [], []
    dtype = chance.choice((xb.s32, xb.f32))
    for number in range(chance.randrange(1, 3)):
        dims = tuple(chance.choice(EXTENTS) for _ in range(chance.choice((1, 1, 2, 2, 3))))
        values.append(xb.parameter(builder, number=number, shape=dtype[dims]))
        arguments.append(_numbers(chance, dims, dtype))
    length = chance.randrange(1, 7)
    for _ in range(60):
        made = _made(chance, values[-1] if chance.random() < 0.7 else chance.choice(values))
        if made is not None and 0 < made.shape.size <= 4096:
            values.append(made)
            length -= 1
        if not length:
            break
    results = values[-2:] if chance.random() < 0.3 else values[-1:]
    root = xb.ops.tuple_(tuple(results)) if len(results) > 1 else xb.copy(results[0])
    return xb.Module("windows", builder.build(root)), arguments


def _numbers(chance: random.Random, dims: Any, dtype: Any) -> Any:
    drawn = [chance.randrange(-4, 5) for _ in range(int(np.prod(dims)))]
    found = np.array(drawn).reshape(dims).astype(dtype.dtype)
    if dtype is xb.f32 and chance.random() < 0.2:
        found[found == 4] = np.inf
    return found


def _made(chance: random.Random, x: xb.Value) -> xb.Value | None:
    try:
        return chance.choice(DRAWS)(chance, x)
    except XbuildError:
        return None


def _number(x: xb.Value, number: int) -> xb.Value:
    return xb.constant(x.builder, np.array(number, x.shape.dtype.dtype))


def _part(x: xb.Value, dim: int, start: int, limit: int, stride: int = 1) -> xb.Value:
    starts, limits, strides = [0] * x.shape.rank, list(x.shape.dims), [1] * x.shape.rank
    starts[dim], limits[dim], strides[dim] = start, limit, stride
    return xb.ops.slice(x, start_indices=starts, limit_indices=limits, strides=strides)


def rolled(chance: random.Random, x: xb.Value) -> xb.Value:
    dim = chance.randrange(x.shape.rank)
    extent = x.shape.dims[dim]
    shift = chance.randrange(extent)
    return xb.ops.concatenate((_part(x, dim, shift, extent), _part(x, dim, 0, shift)), dimension=dim)


def _padded(x: xb.Value, number: int, around: dict[int, tuple[int, int, int]]) -> xb.Value:
    padding = [xb.PaddingDimension(*around.get(dim, (0, 0, 0))) for dim in range(x.shape.rank)]
    return xb.ops.pad(x, _number(x, number), padding=padding)


def shifted(chance: random.Random, x: xb.Value) -> xb.Value:
    """A pad and a slice back to the extent."""
    dim = chance.randrange(x.shape.rank)
    extent, by = x.shape.dims[dim], chance.randrange(4)
    if chance.random() < 0.5:
        return _part(_padded(x, 3, {dim: (by, 0, 0)}), dim, 0, extent)
    return _part(_padded(x, 0, {dim: (0, by, 0)}), dim, by, by + extent)


def stencil(chance: random.Random, x: xb.Value) -> xb.Value:
    """A sum of shifted arrays, each a slice of one padded array."""
    reach = chance.choice((1, 1, 2, 3))
    wide = _padded(x, chance.choice((0, 0, 2)), dict.fromkeys(range(x.shape.rank), (reach, reach, 0)))
    found = x
    for _ in range(chance.randrange(1, 5)):
        starts = [chance.randrange(2 * reach + 1) for _ in x.shape.dims]
        limits = [start + extent for start, extent in zip(starts, x.shape.dims, strict=True)]
        found = found + xb.ops.slice(wide, start_indices=starts, limit_indices=limits, strides=(1,) * x.shape.rank)
    return found


def padded(chance: random.Random, x: xb.Value) -> xb.Value:
    dims = chance.sample(range(x.shape.rank), chance.randrange(1, x.shape.rank + 1))
    around = {d: (chance.randrange(-2, 4), chance.randrange(-2, 4), chance.choice((0, 0, 1, 2))) for d in dims}
    return _padded(x, chance.choice((0, 2)), around)


def cropped(chance: random.Random, x: xb.Value) -> xb.Value:
    dim = chance.randrange(x.shape.rank)
    low = chance.randrange(x.shape.dims[dim])
    return _part(x, dim, low, chance.randrange(low + 1, x.shape.dims[dim] + 1), chance.choice((1, 1, 2, 3)))


def placed(chance: random.Random, x: xb.Value) -> xb.Value:
    """A dynamic slice, or an update, at places that are constants."""
    sizes = [chance.choice((extent, chance.randrange(1, extent + 1))) for extent in x.shape.dims]
    starts = [xb.constant(x.builder, np.int32(chance.randrange(-1, extent + 1))) for extent in x.shape.dims]
    part = xb.ops.dynamic_slice(x, starts, dynamic_slice_sizes=sizes)
    return part if chance.random() < 0.6 else xb.ops.dynamic_update_slice(x, xb.negate(part), starts[::1])


def reversed_(chance: random.Random, x: xb.Value) -> xb.Value:
    dims = chance.sample(range(x.shape.rank), chance.randrange(1, x.shape.rank + 1))
    return xb.ops.reverse(x, dimensions=sorted(dims))


def joined(chance: random.Random, x: xb.Value) -> xb.Value:
    dim = chance.randrange(x.shape.rank)
    parts = [cropped(chance, x) if chance.random() < 0.3 else xb.negate(x), x, x * x]
    fitting = [
        p
        for p in parts
        if all(a == b for n, (a, b) in enumerate(zip(p.shape.dims, x.shape.dims, strict=True)) if n != dim)
    ]
    chance.shuffle(fitting)
    return xb.ops.concatenate(tuple(fitting[: chance.randrange(1, 4)]), dimension=dim)


def _window(chance: random.Random, extent: int, *, dilates: bool = True) -> xb.WindowDimension:
    size = chance.choice((1, 2, 2, 3, 4, extent))
    low, high = chance.randrange(-1, 4), chance.randrange(-1, 4)
    dilations = (1, 1, 1, 2, 3) if dilates else (1,)
    return xb.WindowDimension(
        size, chance.choice((1, 1, 2, 3)), low, high, chance.choice(dilations), chance.choice(dilations)
    )


def windows(chance: random.Random, x: xb.Value) -> xb.Value | None:
    still = xb.WindowDimension(1)
    window = [_window(chance, extent) if chance.random() < 0.7 else still for extent in x.shape.dims]
    if any(each.places(n) <= 0 for each, n in zip(window, x.shape.dims, strict=True)):
        return None
    by, start = chance.choice(((xb.ops.add, 0), (xb.ops.maximum, -9), (xb.ops.minimum, 9)))
    return xb.ops.reduce_window((x,), (_number(x, start),), to_apply=by, window=window)


def scanned(chance: random.Random, x: xb.Value) -> xb.Value:
    """Sums, or the greatest numbers, of all elements up to each one, from either end."""
    dim = chance.randrange(x.shape.rank)
    extent = x.shape.dims[dim]
    low, high = chance.choice(((extent - 1, 0), (0, extent - 1)))
    window = [
        xb.WindowDimension(extent, 1, low, high) if n == dim else xb.WindowDimension(1) for n in range(x.shape.rank)
    ]
    by, start = chance.choice(((xb.ops.add, 0), (xb.ops.maximum, -99), (xb.ops.multiply, 1)))
    return xb.ops.reduce_window(
        (xb.clamp(-2, x, 2) if x.shape.dtype is xb.s32 else x,), (_number(x, start),), to_apply=by, window=window
    )


def convolved(chance: random.Random, x: xb.Value) -> xb.Value | None:
    """A convolution by a kernel, along one or two dimensions, or one by another array as large, as in its gradient."""
    if x.shape.rank > 2 or min(x.shape.dims) < 1:
        return None
    window = [_window(chance, extent) for extent in x.shape.dims]
    if any(each.places(n) <= 0 for each, n in zip(window, x.shape.dims, strict=True)):
        return None
    image = xb.ops.reshape(x, new_sizes=(1, 1, *x.shape.dims))
    sizes = tuple(each.size for each in window)
    rest = "01"[: x.shape.rank]
    if sizes == x.shape.dims and chance.random() < 0.8:
        kernel = image
    else:
        numbers = np.array([chance.randrange(-2, 3) for _ in range(2 * int(np.prod(sizes)))]).reshape(2, 1, *sizes)
        kernel = xb.constant(x.builder, numbers.astype(x.shape.dtype.dtype))
    roles = xb.ConvolutionDimensionNumbers.read(f"bf{rest}_oi{rest}->bf{rest}")
    found = xb.ops.convolution(image, kernel, window=window, dimension_numbers=roles)
    return (
        _part(found, 1, 0, 1)
        if x.shape.rank == 1
        else xb.ops.reshape(_part(found, 1, 0, 1), new_sizes=found.shape.dims[2:])
    )


def best(chance: random.Random, x: xb.Value) -> xb.Value:
    """The greatest number along some dimensions, or its place."""
    dims = sorted(chance.sample(range(x.shape.rank), chance.choice((1, x.shape.rank))))
    places = xb.ops.iota(x.builder, shape=xb.s32[x.shape.dims], iota_dimension=dims[0])

    def better(a: Any, i: Any, b: Any, j: Any) -> Any:
        is_more = xb.ops.or_(xb.gt(a, b), xb.ne(a, a))
        is_first = xb.ops.or_(is_more, xb.ops.and_(xb.eq(a, b), xb.lt(i, j)))
        return xb.select(is_more, a, b), xb.select(is_first, i, j)

    least = -(2**31) if x.shape.dtype is xb.s32 else -np.inf
    inits = (xb.constant(x.builder, np.array(least, x.shape.dtype.dtype)), xb.constant(x.builder, np.int32(0)))
    found = xb.ops.reduce((x, places), inits, to_apply=better, dimensions=dims)
    made = xb.ops.get_tuple_element(found, index=chance.randrange(2))
    made = made if made.shape.dtype is x.shape.dtype else xb.ops.convert(made, new_element_type=x.shape.dtype)
    return made if made.shape.rank else xb.ops.reshape(made, new_sizes=(1,))


def clipped_sum(chance: random.Random, x: xb.Value) -> xb.Value:
    """A reduction by a computation of several ops."""
    dim = chance.randrange(x.shape.rank)

    def larger(a: Any, b: Any) -> Any:
        return xb.select(xb.gt(xb.abs(a), xb.abs(b)), xb.abs(a), xb.abs(b))

    found = xb.ops.reduce((x,), (_number(x, 0),), to_apply=larger, dimensions=(dim,))
    return found if found.shape.rank else xb.ops.reshape(found, new_sizes=(1,))


def scattered_by_choice(chance: random.Random, x: xb.Value) -> xb.Value | None:
    """What the gradient of a maximum over windows is."""
    window = []
    for extent in x.shape.dims:
        size = chance.choice((1, 2, 2, 3))
        pads = (0, 0) if chance.random() < 0.6 else (chance.randrange(size), chance.randrange(size))
        window.append(xb.WindowDimension(min(size, extent), chance.choice((1, 2, 2, 3)), *pads))
    places = [each.places(n) for each, n in zip(window, x.shape.dims, strict=True)]
    if min(places) <= 0:
        return None
    numbers = np.array([chance.randrange(1, 5) for _ in range(int(np.prod(places)))]).reshape(places)
    source = xb.constant(x.builder, numbers.astype(x.shape.dtype.dtype))
    return xb.ops.select_and_scatter(x, source, _number(x, 0), select=lambda a, b: xb.ge(a, b), scatter=xb.ops.add,
                                     window=window)  # fmt: skip


def chosen(chance: random.Random, x: xb.Value) -> xb.Value:
    """The greatest numbers of the last dimension, or their places."""
    found = xb.ops.topk(x, k=chance.randrange(1, x.shape.dims[-1] + 1), largest=True)
    made = xb.ops.get_tuple_element(found, index=chance.randrange(2))
    return made if made.shape.dtype is x.shape.dtype else xb.ops.convert(made, new_element_type=x.shape.dtype)


def looked_up(chance: random.Random, x: xb.Value) -> xb.Value:
    """A loop that takes a part of an array in each trip."""
    dim = chance.randrange(x.shape.rank)
    trips, sizes = x.shape.dims[dim], [1 if n == dim else extent for n, extent in enumerate(x.shape.dims)]
    zero = xb.constant(x.builder, np.zeros(sizes, x.shape.dtype.dtype))

    def body(state: Any) -> Any:
        number, given, total = state
        nothing = xb.constant(number.builder, np.int32(0))
        starts = [number if n == dim else nothing for n in range(given.shape.rank)]
        return number + 1, given, total + xb.ops.dynamic_slice(given, starts, dynamic_slice_sizes=sizes)

    state = xb.ops.tuple_((xb.constant(x.builder, np.int32(0)), x, zero))
    found = xb.ops.while_(state, condition=lambda state: xb.lt(state[0], np.int32(trips)), body=body)
    return xb.ops.get_tuple_element(found, index=2)


def added(chance: random.Random, x: xb.Value) -> xb.Value:
    return xb.maximum(x, xb.ops.reverse(x, dimensions=(0,))) if chance.random() < 0.5 else x + xb.abs(x)


DRAWS: tuple[Draw, ...] = (
    rolled, rolled, shifted, stencil, padded, cropped, placed, reversed_, joined, windows, windows, scanned, convolved,
    convolved, best, clipped_sum, scattered_by_choice, chosen, looked_up, added,
)  # fmt: skip
