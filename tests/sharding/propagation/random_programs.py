"""Random programs with random shardings, for the comparison of propagation with Shardy's."""

from __future__ import annotations

import random
from typing import Any

import xbuild as xb
from xbuild.core.graph import Module
from xbuild.sharding.sharding import Axis, DimSharding, Sharding
from xbuild.sharding.stated_shardings import annotated

SIZES = (1, 2, 3, 4, 4, 6, 8, 8, 12, 16)
MESHES = (xb.Mesh(x=2, y=2), xb.Mesh(x=2, y=4), xb.Mesh(x=4), xb.Mesh(x=2, y=2, z=2), xb.Mesh(x=3, y=2))


def program(seed: int, count: int = 14) -> tuple[Module, xb.Mesh]:
    """A program of about `count` instructions without dead code, some of whose values state a sharding on a mesh."""
    draw = random.Random(seed)
    mesh = draw.choice(MESHES)
    builder = xb.Builder("random")
    values = [xb.parameter(builder, number=n, shape=xb.f32[_dims(draw)]) for n in range(3)]
    for _ in range(count):
        made = draw.choice(MAKERS)(draw, draw.choice(values[-6:]), values)
        if made is not None and made.shape.size <= 4096 and made.shape.rank:
            values.append(made)
    taken = {operand for each in builder.recorded for operand in each.operands}
    root = xb.tuple_(*(xb.Value(each, builder) for each in builder.recorded if each not in taken))
    module = Module("random", builder.build(root))
    return annotated(module, _shardings(draw, module, mesh)), mesh


def _dims(draw: random.Random) -> tuple[int, ...]:
    return tuple(draw.choice(SIZES) for _ in range(draw.choice((1, 2, 2, 3))))


def _shardings(draw: random.Random, module: Module, mesh: xb.Mesh) -> dict[str, Any]:
    named = {}
    arrays = [i for i in module.entry.instructions if hasattr(i.shape, "rank") and i.shape.rank]
    for instruction in draw.sample(arrays, min(len(arrays), draw.choice((1, 2, 3)))):
        named[instruction.name] = _sharding(draw, mesh, instruction.shape)
    for parameter in module.entry.parameters[:1]:
        named.setdefault(parameter.name, _sharding(draw, mesh, parameter.shape))
    return named


def _sharding(draw: random.Random, mesh: xb.Mesh, shape: Any) -> Sharding:
    free = [Axis(name, size) for name, size in mesh.sizes]
    draw.shuffle(free)
    dims = []
    for extent in shape.dims:
        axes = []
        while free and draw.random() < 0.5:
            if extent % free[-1].size:
                break
            axes.append(free.pop())
            extent //= axes[-1].size
        is_open = draw.random() < 0.4
        dims.append(DimSharding(tuple(axes), is_open, draw.choice((0, 0, 0, 1)) if axes or is_open else 0))
    replicated = tuple(sorted(free[:1], key=lambda a: mesh.axes.index(a.name))) if draw.random() < 0.15 else ()
    return Sharding(mesh, tuple(dims), replicated)


def _unary(draw: random.Random, x: xb.Value, values: list[xb.Value]) -> Any:
    return draw.choice((xb.tanh, xb.ops.negate, xb.ops.abs))(x)


def _binary(draw: random.Random, x: xb.Value, values: list[xb.Value]) -> Any:
    same = [each for each in values if each.shape == x.shape]
    return draw.choice((xb.ops.add, xb.ops.multiply))(x, draw.choice(same))


def _transpose(draw: random.Random, x: xb.Value, values: list[xb.Value]) -> Any:
    order = list(range(x.shape.rank))
    draw.shuffle(order)
    return xb.ops.transpose(x, permutation=order)


def _reshape(draw: random.Random, x: xb.Value, values: list[xb.Value]) -> Any:
    rest, sizes = x.shape.size, []
    for _ in range(draw.choice((0, 1, 2))):
        divisors = [d for d in range(1, rest + 1) if rest % d == 0]
        sizes.append(draw.choice(divisors))
        rest //= sizes[-1]
    return xb.ops.reshape(x, new_sizes=[*sizes, rest])


def _broadcast(draw: random.Random, x: xb.Value, values: list[xb.Value]) -> Any:
    if x.shape.rank > 2:
        return None
    place = draw.randrange(x.shape.rank + 1)
    sizes = list(x.shape.dims)
    sizes.insert(place, draw.choice(SIZES))
    kept = [dim for dim in range(len(sizes)) if dim != place]
    return xb.ops.broadcast(x, dimensions=kept, sizes=sizes)


def _dot(draw: random.Random, x: xb.Value, values: list[xb.Value]) -> Any:
    pairs = [(y, a, b) for y in values for a in range(x.shape.rank) for b in range(y.shape.rank)
             if x.shape.dims[a] == y.shape.dims[b] and x.shape.rank + y.shape.rank <= 5]  # fmt: skip
    if not pairs:
        return None
    y, a, b = draw.choice(pairs)
    return xb.ops.dot(x, y, lhs_contracting_dims=[a], rhs_contracting_dims=[b])


def _reduce(draw: random.Random, x: xb.Value, values: list[xb.Value]) -> Any:
    return xb.reduce(x, 0.0, xb.add, (draw.randrange(x.shape.rank),)) if x.shape.rank > 1 else None


def _slice(draw: random.Random, x: xb.Value, values: list[xb.Value]) -> Any:
    dim = draw.randrange(x.shape.rank)
    limits = list(x.shape.dims)
    limits[dim] = draw.randint(1, limits[dim])
    return xb.ops.slice(x, start_indices=[0] * len(limits), limit_indices=limits, strides=[1] * len(limits))


def _dynamic_slice(draw: random.Random, x: xb.Value, values: list[xb.Value]) -> Any:
    dim = draw.randrange(x.shape.rank)
    sizes = list(x.shape.dims)
    sizes[dim] = draw.randint(1, sizes[dim])
    zero = xb.constant(x.builder, 0)
    return xb.ops.dynamic_slice(x, [zero] * len(sizes), dynamic_slice_sizes=sizes)


def _concatenate(draw: random.Random, x: xb.Value, values: list[xb.Value]) -> Any:
    same = [each for each in values if each.shape == x.shape]
    return xb.ops.concatenate([x, draw.choice(same)], dimension=draw.randrange(x.shape.rank))


def _pad(draw: random.Random, x: xb.Value, values: list[xb.Value]) -> Any:
    padding = [(draw.choice((0, 0, 1, 2)), 0, 0) for _ in x.shape.dims]
    return xb.pad(x, 0.0, padding)


def _scaled(draw: random.Random, x: xb.Value, values: list[xb.Value]) -> Any:
    ones = xb.ops.broadcast(xb.constant(x.builder, 2.0, xb.f32), dimensions=[], sizes=x.shape.dims)
    return xb.ops.multiply(x, ones)


def _sort(draw: random.Random, x: xb.Value, values: list[xb.Value]) -> Any:
    return xb.sort(x, dimension=draw.randrange(x.shape.rank))


MAKERS = (_unary, _binary, _binary, _transpose, _reshape, _reshape, _broadcast, _dot, _dot, _reduce, _slice,
          _dynamic_slice, _concatenate, _pad, _scaled, _sort)  # fmt: skip
