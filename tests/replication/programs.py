"""Random programs of several devices in which values are made equal and apart: ids, groups, loops, branches, calls."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import field, frozen

import xbuild as xb
from shape_inference import AnyShape
from tests.replication.collectives import COLLECTIVES
from tests.replication.drawing import Drawing, Pool, given, packed, unpacked
from tests.replication.local_ops import LOCAL

GRIDS = ((2, 1), (3, 1), (4, 1), (1, 2), (1, 3), (1, 4), (2, 2), (2, 2), (2, 3), (3, 2), (4, 2), (6, 1))
PARAMETERS: tuple[AnyShape, ...] = (xb.s32[()], xb.s32[4], xb.f32[4], xb.TupleShape((xb.s32[()], xb.s32[4])))


@frozen
class Program:
    """A program, and which of its parameters come equal on all devices."""

    module: xb.Module | xb.ModuleGroup
    replicated: dict[int, bool | list[bool]] = field(factory=dict)


def random_program(seed: int) -> Program:
    """The program of a seed: one for all devices, or sometimes two that differ in what they compute alone."""
    rng = random.Random(seed)
    replicas, partitions = rng.choice(GRIDS)
    is_one = rng.random() < 0.85
    if not is_one:
        replicas, partitions = replicas * partitions, 1
    flags = {0: rng.random() < 0.5, 1: rng.random() < 0.5, 2: rng.random() < 0.5}
    replicated: dict[int, bool | list[bool]] = {**flags, 3: [rng.random() < 0.5, rng.random() < 0.5]}
    modules = [_module(seed, number, replicas, partitions, is_one) for number in range(1 if is_one else 2)]
    if is_one:
        return Program(modules[0], replicated)
    which = [0, 1, *(rng.randrange(2) for _ in range(replicas - 2))]
    return Program(xb.ModuleGroup({device: modules[n] for device, n in enumerate(which)}), replicated)


def _module(seed: int, number: int, replicas: int, partitions: int, is_one: bool) -> xb.Module:
    drawing = Drawing(random.Random(seed + 1), random.Random(f"{seed} {number}"), replicas, partitions, is_one)
    builder = xb.Builder("main")
    parameters = [xb.parameter(builder, number=n, shape=shape) for n, shape in enumerate(PARAMETERS)]
    pool = given(builder, [*parameters[:3], xb.ops.get_tuple_element(parameters[3], index=0)])
    pool.add(xb.ops.get_tuple_element(parameters[3], index=1))
    fill(drawing, pool, drawing.rng.choice((2, 3, 4, 5, 6, 8, 11)))
    root = packed(pool)
    return xb.Module(f"m{number}", builder.build(root), num_replicas=replicas, num_partitions=partitions)


def fill(drawing: Drawing, pool: Pool, count: int) -> None:
    """Record that many instructions, or some more, on what there is."""
    for _ in range(count):
        kind = drawing.rng.random()
        if kind < 0.62 or drawing.depth > 2:
            drawing.local.choice(LOCAL[drawing.rng.choice(pool.types)])(drawing, pool)
        elif kind < 0.82 and not (drawing.depth and drawing.rng.random() < drawing.quiet):
            drawing.rng.choice(COLLECTIVES)(drawing, pool)
        else:
            drawing.rng.choice((_conditional, _conditional, _loop, _loop, _call, _scan))(drawing, pool)


Body = Callable[[Drawing, Pool], Sequence[xb.Value]]


def _region(drawing: Drawing, pool: Pool, kinds: str, count: int) -> Callable[[Any], Any]:
    """A function from a tuple of values of these kinds to one of the same, with random instructions."""

    def region(state: Any) -> Any:
        inner = unpacked(state, kinds)
        drawing.depth += 1
        fill(drawing, inner, count)
        drawing.depth -= 1
        return xb.ops.tuple_([_handed_on(drawing, inner, state, n, kind) for n, kind in enumerate(kinds)])

    return region


def _handed_on(drawing: Drawing, inner: Pool, state: Any, n: int, kind: str) -> xb.Value:
    """What came at this place, or anything of its kind."""
    if drawing.local.random() < 0.35:
        return xb.ops.get_tuple_element(state, index=n)
    return inner.pick(drawing, kind)


def _state(drawing: Drawing, pool: Pool) -> tuple[str, xb.Value]:
    kinds = "".join(drawing.rng.choice("ivvif") for _ in range(drawing.rng.randrange(1, 4)))
    return kinds, xb.ops.tuple_([pool.pick(drawing, kind) for kind in kinds])


def _conditional(drawing: Drawing, pool: Pool) -> None:
    kinds, state = _state(drawing, pool)
    is_two, count = drawing.rng.random() < 0.6, drawing.rng.randrange(0, 4)
    index = pool.pick(drawing, "b" if is_two else "i")
    branches = [_region(drawing, pool, kinds, count) for _ in range(2 if is_two else drawing.rng.randrange(1, 4))]
    if drawing.rng.random() < 0.2:
        branches[0] = lambda given: given
    result = xb.ops.conditional(index, [state] * len(branches), branch_computations=branches)
    pool.take(result, kinds)


def _loop(drawing: Drawing, pool: Pool) -> None:
    """At most three trips: a counter that starts anywhere below, and a limit that may be anything."""
    kinds, state = _state(drawing, pool)
    first, limit = pool.pick(drawing, "i"), pool.pick(drawing, "i")
    zero, three = pool.number(0), pool.number(3)
    first = drawing.rng.choice((zero, zero, xb.ops.clamp(zero, first, three)))
    limit = drawing.rng.choice((three, xb.ops.clamp(zero, limit, three), xb.ops.clamp(zero, limit, three)))
    inner, count = _region(drawing, pool, kinds, drawing.rng.randrange(1, 5)), drawing.rng.random()

    def condition(given: Any) -> Any:
        n, most = (xb.ops.get_tuple_element(given, index=k) for k in (0, 1))
        return xb.ops.compare(n, most, direction="LT")

    def body(given: Any) -> Any:
        n, most, state = (xb.ops.get_tuple_element(given, index=k) for k in (0, 1, 2))
        one = xb.ops.constant(n.builder, literal=np.int32(1))
        return xb.ops.tuple_([xb.ops.add(n, one), most, inner(state)])

    result = xb.ops.while_(xb.ops.tuple_([first, limit, state]), condition=condition, body=body)
    if count < 0.5:
        pool.add(xb.ops.get_tuple_element(result, index=0))
    pool.take(xb.ops.get_tuple_element(result, index=2), kinds)


def _call(drawing: Drawing, pool: Pool) -> None:
    """One computation, called once or twice."""
    kinds, state = _state(drawing, pool)
    inner = _region(drawing, pool, kinds, drawing.rng.randrange(1, 4))
    computation = xb.computation(state.shape)(inner)
    for n in range(drawing.rng.randrange(1, 3)):
        given = state if n == 0 else xb.ops.tuple_([pool.pick(drawing, kind) for kind in kinds])
        pool.take(xb.ops.call([given], to_apply=computation), kinds)


def _scan(drawing: Drawing, pool: Pool) -> None:
    """Over the four elements of an array, with one carried value."""
    xs, start, what = pool.pick(drawing, "v"), pool.pick(drawing, "i"), drawing.local.randrange(3)

    def body(x: Any, carried: Any) -> Any:
        x = xb.ops.reshape(x, new_sizes=[]) if x.shape.rank else x
        total = (xb.ops.add, xb.ops.maximum, lambda a, b: b)[what](x, carried)
        return xb.ops.tuple_([x if what == 1 else total, total])

    result = xb.ops.scan([xs, start], dimension=0, num_carries=1, to_apply=body)
    pool.add(xb.ops.get_tuple_element(result, index=0))
    pool.add(xb.ops.get_tuple_element(result, index=1))
