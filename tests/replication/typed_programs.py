"""Random programs with types on a mesh: what is typed to be one value along an axis is inferred to be equal there."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import define

import xbuild as xb
from xbuild.properties.variances import Variance

m = xb.mesh
MESHES = ({"i": 2}, {"i": 4}, {"i": 2, "j": 2}, {"i": 2, "j": 4}, {"a": 2, "b": 2, "c": 2})
SPECS = ("cut", "whole", "whole")


@define
class Typed:
    """The values of a function under recording, all f32[8], and the mesh that they live on."""

    rng: random.Random
    mesh: xb.Mesh
    values: list[xb.Value]
    depth: int = 0

    def pick(self) -> xb.Value:
        return self.values[-1 - int(self.rng.choice((0, self.rng.random())) * len(self.values))]

    def axes(self, x: xb.Value, *states: str) -> tuple[str, ...]:
        """Some axes along which a value is in one of these states, all in the same; none where there are none."""
        if self.depth:  # inside a loop or a branch types are not known yet
            return ()
        variance: Variance = m.type_of(x)
        state = self.rng.choice(states)
        able = [axis for axis in self.mesh.axes if variance.state(axis) == state]
        self.rng.shuffle(able)
        return tuple(able[: self.rng.randrange(1, 3)])


def random_typed(seed: int) -> xb.Module:
    """The module of a seed, without casts: what runs."""
    rng = random.Random(seed)
    mesh = xb.Mesh(rng.choice(MESHES))
    specs = tuple(_spec(rng, mesh) for _ in range(3))

    def function(*given: xb.Value) -> Any:
        typed = Typed(rng, mesh, [*given])
        _fill(typed, rng.choice((3, 5, 8, 12)))
        return tuple(_for_exit(typed, value) for value in typed.values[-3:])

    shapes = [spec.whole(mesh, xb.f32[8], "x") for spec in specs]
    every = xb.P(mesh.axes)
    made = xb.shard_map(lambda a, b, c: function(a, b, c), mesh, specs, (every, every, every)).program(*shapes)
    return made.module


def _spec(rng: random.Random, mesh: xb.Mesh) -> Any:
    axes = rng.sample(mesh.axes, rng.randrange(0, len(mesh.axes) + 1))
    return xb.P(tuple(axes)) if axes else xb.P()


def _for_exit(typed: Typed, value: xb.Value) -> xb.Value:
    """Of a value that is a part of a sum, the sum."""
    unreduced = m.type_of(value).unreduced
    return m.psum(value, tuple(unreduced)) if unreduced else value


def _fill(typed: Typed, count: int) -> None:
    for _ in range(count):
        way = typed.rng.choice(FLOWS if typed.rng.random() < 0.2 and typed.depth < 2 else OPS)
        found = way(typed)
        if found is not None:
            typed.values.append(found)


def _plain(typed: Typed, x: xb.Value) -> bool:
    """Whether it is no part of a sum, which few ops take."""
    return bool(typed.depth) or not (m.type_of(x).unreduced or m.type_of(x).reduced)


def _two(typed: Typed) -> xb.Value | None:
    a, b = typed.pick(), typed.pick()
    op = typed.rng.choice((xb.add, xb.multiply, xb.maximum, xb.subtract))
    return op(a, b) if _plain(typed, a) and _plain(typed, b) else None


def _one(typed: Typed) -> xb.Value | None:
    a = typed.pick()
    ways: tuple[Callable[[xb.Value], xb.Value], ...] = (xb.negate, xb.abs, lambda x: xb.rev(x, [0]), lambda x: x * 0.5)
    return typed.rng.choice(ways)(a) if _plain(typed, a) else None


def _index(typed: Typed) -> xb.Value:
    axes = typed.rng.sample(typed.mesh.axes, typed.rng.randrange(1, len(typed.mesh.axes) + 1))
    return xb.broadcast(xb.convert(m.axis_index(tuple(axes)), xb.f32), (8,))


def _constant(typed: Typed) -> xb.Value:
    return xb.constant(typed.values[0].builder, np.arange(8, dtype=np.float32))


def _over(*states: str) -> Callable[..., Any]:
    """A collective over axes along which its operand is in one of these states."""

    def decorated(function: Callable[..., Any]) -> Callable[[Typed], xb.Value | None]:
        def way(typed: Typed) -> xb.Value | None:
            x = typed.pick()
            axes = typed.axes(x, *states)
            return function(typed, x, axes) if axes else None

        return way

    return decorated


@_over("varying", "invarying", "unreduced")
def _psum(typed: Typed, x: xb.Value, axes: Any) -> Any:
    return m.psum(x, axes)


@_over("varying")
def _pmax(typed: Typed, x: xb.Value, axes: Any) -> Any:
    return typed.rng.choice((m.pmax, m.pmin, m.pmean))(x, axes)


@_over("varying", "invarying")
def _gather(typed: Typed, x: xb.Value, axes: Any) -> Any:
    gather = typed.rng.choice((m.all_gather, m.all_gather_invariant))
    return xb.slice_in_dim(gather(x, axes, tiled=True), 0, 8, 1, 0)


@_over("varying")
def _scatter(typed: Typed, x: xb.Value, axes: Any) -> Any:
    part = m.psum_scatter(x, axes, tiled=True)
    return xb.concatenate([part] * typed.mesh.size(axes), 0)


@_over("invarying")
def _own_part(typed: Typed, x: xb.Value, axes: Any) -> Any:
    part = m.pscatter(x, axes)
    return xb.concatenate([part] * typed.mesh.size(axes), 0)


@_over("varying", "invarying")
def _exchange(typed: Typed, x: xb.Value, axes: Any) -> Any:
    return m.all_to_all(x, axes, 0, 0, tiled=True)


@_over("varying", "invarying")
def _permute(typed: Typed, x: xb.Value, axes: Any) -> Any:
    size = typed.mesh.size(axes)
    targets = typed.rng.sample(range(size), size)
    return m.ppermute(x, axes, [*enumerate(targets)][: typed.rng.randrange(1, size + 1)])


@_over("varying", "invarying")
def _broadcast(typed: Typed, x: xb.Value, axes: Any) -> Any:
    return m.pbroadcast(x, axes, typed.rng.randrange(typed.mesh.size(axes)))


@_over("invarying")
def _pvary(typed: Typed, x: xb.Value, axes: Any) -> Any:
    return m.pcast(x, axes, to="varying")


@_over("varying")
def _part_of_sum(typed: Typed, x: xb.Value, axes: Any) -> Any:
    return m.pcast(x, axes, to="unreduced")


def _inner(typed: Typed, count: int) -> Callable[[Any], Any]:
    def region(state: Any) -> Any:
        inner = Typed(typed.rng, typed.mesh, [*state], typed.depth + 1)
        _fill(inner, count)
        return tuple(inner.pick() for _ in range(2))

    return region


def _is_positive(x: xb.Value) -> xb.Value:
    return xb.reshape(xb.slice_in_dim(x, 0, 1, 1, 0), []) > 0.5


def _choose(typed: Typed) -> xb.Value | None:
    decides, a, b = typed.pick(), typed.pick(), typed.pick()
    if not all(_plain(typed, each) for each in (decides, a, b)):
        return None
    first, second = (_inner(typed, typed.rng.randrange(0, 4)) for _ in range(2))
    return xb.conditional(_is_positive(decides), (a, b), first, (a, b), second)[typed.rng.randrange(2)]


def _loop(typed: Typed) -> xb.Value | None:
    """Three trips at most, and fewer where a value says so."""
    stops, a, b = typed.pick(), typed.pick(), typed.pick()
    if not all(_plain(typed, each) for each in (stops, a, b)):
        return None
    region, is_early = _inner(typed, typed.rng.randrange(0, 4)), typed.rng.random() < 0.4

    def holds(state: Any) -> Any:
        under = state[0] < 3
        return xb.and_(under, _is_positive(state[1])) if is_early else under

    def body(state: Any) -> Any:
        return state[0] + 1, state[1], *region((state[2], state[3]))

    return xb.while_((0, stops, a, b), holds, body)[typed.rng.randrange(2, 4)]


OPS: tuple[Callable[[Typed], xb.Value | None], ...] = (
    _two, _two, _one, _index, _constant, _psum, _psum, _pmax, _gather, _gather, _scatter, _own_part, _exchange,
    _permute, _broadcast, _pvary, _part_of_sum,
)  # fmt: skip
FLOWS: tuple[Callable[[Typed], xb.Value | None], ...] = (_choose, _choose, _loop)
