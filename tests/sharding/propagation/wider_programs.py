"""Random programs with the ops, shardings and groups that `random_programs.py` leaves out."""

from __future__ import annotations

import random
from typing import Any

from attrs import evolve

import xbuild as xb
from shape_inference import XbuildError
from xbuild.core.graph import Instruction, Module
from xbuild.properties.rewriting import mapped
from xbuild.sharding.sharding import Axis, DimSharding, Sharding, merge_parts
from xbuild.sharding.stated_shardings import SHARDING, annotated
from xbuild.text.annotations import Raw

from .random_programs import MAKERS as NARROW

EXTENTS = (1, 2, 3, 4, 4, 6, 8, 8, 12, 16, 24)
MESHES = (xb.Mesh(x=2, y=2), xb.Mesh(x=4, y=2), xb.Mesh(x=8), xb.Mesh(x=2, y=2, z=2), xb.Mesh(x=3, y=2), xb.Mesh(x=6))


def program(seed: int, count: int = 16) -> tuple[Module, xb.Mesh]:
    """A program of about `count` instructions without dead code, some of whose values state a sharding on a mesh."""
    draw = random.Random(seed)
    mesh = draw.choice(MESHES)
    builder = xb.Builder("wider")
    values = [xb.parameter(builder, number=n, shape=xb.f32[_dims(draw)]) for n in range(3)]
    made: list[xb.Value] = []
    for _ in range(count):
        try:
            one = draw.choice(MAKERS)(draw, draw.choice(values[-6:]), values)
        except XbuildError:
            continue  # the op refuses what was drawn
        for each in one if isinstance(one, list) else [one]:
            if each is not None:
                (values if each.shape.rank and each.shape.size <= 4096 else made).append(each)
    taken = {operand for each in builder.recorded for operand in each.operands}
    left = [xb.Value(each, builder) for each in builder.recorded if each not in taken]
    module = Module("wider", builder.build(xb.tuple_(*left)))
    return _grouped(draw, annotated(module, _shardings(draw, module, mesh))), mesh


def _dims(draw: random.Random) -> tuple[int, ...]:
    return tuple(draw.choice(EXTENTS) for _ in range(draw.choice((1, 2, 2, 3, 4))))


def _arrays(module: Module) -> list[Instruction]:
    """The arrays that operations of StableHLO give one by one, which can state a sharding there."""
    found = (i for i in module.entry.instructions if getattr(i.shape, "rank", 0))
    return [i for i in found if i.opcode not in ("get_tuple_element", "constant")]


def _shardings(draw: random.Random, module: Module, mesh: xb.Mesh) -> dict[str, Any]:
    arrays = _arrays(module)
    chosen = draw.sample(arrays, min(len(arrays), draw.choice((1, 2, 3, 4))))
    return {each.name: _sharding(draw, mesh, each.shape) for each in (*module.entry.parameters[:1], *chosen)}


def _sharding(draw: random.Random, mesh: xb.Mesh, shape: Any) -> Sharding:
    """A sharding by axes and parts of axes, with open dimensions, priorities, replicated and unreduced axes."""
    free = [part for name, size in mesh.sizes for part in _parts(draw, name, size)]
    draw.shuffle(free)
    dims = []
    for extent in shape.dims:
        axes: list[Axis] = []
        while free and draw.random() < 0.5 and not extent % free[-1].size:
            axes.append(free.pop())
            extent //= axes[-1].size
        is_open = draw.random() < 0.4
        dims.append(DimSharding(merge_parts(axes), is_open, draw.choice((0, 0, 0, 1, 2)) if axes or is_open else 0))
    chance, rest = draw.random(), merge_parts(sorted(free[:1], key=lambda axis: mesh.axes.index(axis.name)))
    return Sharding(mesh, tuple(dims), rest if chance < 0.15 else (), rest if 0.15 <= chance < 0.25 else ())


def _parts(draw: random.Random, name: str, size: int) -> list[Axis]:
    """An axis, or two parts of it."""
    divisors = [d for d in range(2, size) if size % d == 0]
    if not divisors or draw.random() < 0.5:
        return [Axis(name, size)]
    outer = draw.choice(divisors)
    return [Axis(name, outer), Axis(name, size // outer, outer)]


def _grouped(draw: random.Random, module: Module) -> Module:
    """The module with two values of one shape in one group, where two are without shardings."""
    plain = [each for each in _arrays(module) if SHARDING not in each.annotations]
    pairs = [(a, b) for n, a in enumerate(plain) for b in plain[n + 1 :] if a.shape == b.shape]
    if not pairs or draw.random() < 0.7:
        return module
    one, other = draw.choice(pairs)
    words = {one: Raw("{unknown shard_as 1}"), other: Raw("{unknown shard_like 1}")}

    def told(each: Instruction) -> Instruction:
        return evolve(each, annotations={**each.annotations, SHARDING: words[each]}) if each in words else each

    return mapped(module, told)


def _state(draw: random.Random, x: xb.Value, values: list[xb.Value]) -> tuple[Any, ...]:
    same = [each for each in values if each.shape == x.shape]
    return (0, x, draw.choice(same), draw.choice(values))


def _step(draw: random.Random, one: xb.Value, other: xb.Value, third: xb.Value) -> tuple[xb.Value, ...]:
    """What a trip of a loop, or a branch, makes of three arrays, the first two of one shape."""
    kind = draw.randrange(4)
    if kind == 0:
        return other, one + other, xb.tanh(third)
    if kind == 1:
        return xb.tanh(one), one * other, third
    if kind == 2 and one.shape.rank > 1:
        sums = xb.reduce(one, 0.0, xb.add, (one.shape.rank - 1,))
        return xb.ops.broadcast(sums, sizes=one.shape.dims, dimensions=tuple(range(one.shape.rank - 1))), other, third
    return one, xb.ops.negate(other), xb.ops.negate(third)


def _while(draw: random.Random, x: xb.Value, values: list[xb.Value]) -> Any:
    inner = random.Random(draw.random())
    state = xb.while_(
        _state(draw, x, values), lambda s: s[0] < 3, lambda s: (s[0] + 1, *_step(inner, s[1], s[2], s[3]))
    )
    return [state[1], state[2], state[3]]


def _case(draw: random.Random, x: xb.Value, values: list[xb.Value]) -> Any:
    inner, operands = random.Random(draw.random()), _state(draw, x, values)[1:]
    index = xb.constant(x.builder, draw.randrange(2))
    found = xb.conditional(index, branch_operands=[operands, operands],
                           branch_computations=[lambda s: _step(inner, *s), lambda s: _step(inner, *s)])  # fmt: skip
    return [found[0], found[1], found[2]]


def _indices(draw: random.Random, x: xb.Value, count: int) -> xb.Value:
    numbers = xb.ops.iota(x.builder, shape=xb.s32[count, 1], iota_dimension=0)
    return xb.ops.abs(numbers) if draw.random() < 0.5 else numbers


def _gather(draw: random.Random, x: xb.Value, values: list[xb.Value]) -> Any:
    dim, rank = draw.randrange(x.shape.rank), x.shape.rank
    sizes = [1 if n == dim else extent for n, extent in enumerate(x.shape.dims)]
    return xb.gather(x, _indices(draw, x, draw.choice((2, 4, 8))), offset_dims=tuple(range(1, rank)),
                     collapsed_slice_dims=(dim,), start_index_map=(dim,), slice_sizes=sizes)  # fmt: skip


def _scatter(draw: random.Random, x: xb.Value, values: list[xb.Value]) -> Any:
    dim, rank, count = draw.randrange(x.shape.rank), x.shape.rank, draw.choice((2, 4, 8))
    rest = [extent for n, extent in enumerate(x.shape.dims) if n != dim]
    fitting = [each for each in values if each.shape.dims == (count, *rest)]
    update = draw.choice(fitting) if fitting else xb.ops.broadcast(
        xb.constant(x.builder, 1.0, xb.f32), sizes=(count, *rest), dimensions=())  # fmt: skip
    return xb.scatter(x, _indices(draw, x, count), update, draw.choice((xb.add, xb.maximum, lambda old, new: new)),
                      update_window_dims=tuple(range(1, rank)), inserted_window_dims=(dim,),
                      scatter_dims_to_operand_dims=(dim,))  # fmt: skip


def _conv(draw: random.Random, x: xb.Value, values: list[xb.Value]) -> Any:
    """A convolution of an image with another value, or with a number spread out, as its kernel."""
    if x.shape.rank != 3:
        return None
    _, features, extent = x.shape.dims
    kernels = [each for each in values if each.shape.rank == 3 and each.shape.dims[1] == features
               and each.shape.dims[2] <= extent]  # fmt: skip
    kernel = draw.choice(kernels) if kernels else xb.ops.broadcast(
        xb.constant(x.builder, 1.0, xb.f32), sizes=(4, features, min(3, extent)), dimensions=())  # fmt: skip
    return xb.conv(x, kernel, (draw.choice((1, 1, 2)),), draw.choice(("SAME", "VALID")))


def _batched_dot(draw: random.Random, x: xb.Value, values: list[xb.Value]) -> Any:
    same = [each for each in values if each.shape.rank == x.shape.rank == 3 and each.shape.dims[0] == x.shape.dims[0]
            and each.shape.dims[2] == x.shape.dims[2]]  # fmt: skip
    if not same:
        return None
    return xb.ops.dot(x, draw.choice(same), lhs_contracting_dims=[2], rhs_contracting_dims=[2],
                      lhs_batch_dims=[0], rhs_batch_dims=[0])  # fmt: skip


def _split(draw: random.Random, x: xb.Value, values: list[xb.Value]) -> Any:
    """A reshape that splits or merges neighbouring dimensions."""
    dims = list(x.shape.dims)
    place = draw.randrange(len(dims))
    if draw.random() < 0.5 and place + 1 < len(dims):
        dims[place : place + 2] = [dims[place] * dims[place + 1]]
    else:
        outer = draw.choice([d for d in range(1, dims[place] + 1) if dims[place] % d == 0])
        dims[place : place + 1] = [outer, dims[place] // outer]
    return xb.ops.reshape(x, new_sizes=dims)


def _select(draw: random.Random, x: xb.Value, values: list[xb.Value]) -> Any:
    same = [each for each in values if each.shape == x.shape]
    other = draw.choice(same)
    return xb.select(xb.gt(x, other), x, other)


def _argsort(draw: random.Random, x: xb.Value, values: list[xb.Value]) -> Any:
    same = [each for each in values if each.shape == x.shape]
    found = xb.sort([x, draw.choice(same)], lambda a, b, *_: xb.lt(a, b), dimension=draw.randrange(x.shape.rank))
    return list(found)


def _reverse(draw: random.Random, x: xb.Value, values: list[xb.Value]) -> Any:
    return xb.ops.reverse(x, dimensions=[draw.randrange(x.shape.rank)])


def _update(draw: random.Random, x: xb.Value, values: list[xb.Value]) -> Any:
    dim = draw.randrange(x.shape.rank)
    sizes = [draw.randint(1, n) if d == dim else n for d, n in enumerate(x.shape.dims)]
    zero = xb.constant(x.builder, 0)
    part = xb.ops.slice(x, start_indices=[0] * len(sizes), limit_indices=sizes, strides=[1] * len(sizes))
    return xb.ops.dynamic_update_slice(x, xb.tanh(part), [zero] * len(sizes))


def _window(draw: random.Random, x: xb.Value, values: list[xb.Value]) -> Any:
    dim = draw.randrange(x.shape.rank)
    sizes = [min(2, n) if d == dim else 1 for d, n in enumerate(x.shape.dims)]
    return xb.reduce_window(x, 0.0, xb.add, sizes, [1] * len(sizes), "SAME")


def _barrier(draw: random.Random, x: xb.Value, values: list[xb.Value]) -> Any:
    found = xb.ops.opt_barrier(xb.tuple_(x, draw.choice(values)))
    return [found[0], found[1]]


WIDER = (_while, _case, _gather, _scatter, _conv, _batched_dot, _split, _split, _select, _argsort, _reverse, _update,
         _window, _barrier)  # fmt: skip
MAKERS = (*NARROW, *WIDER)
