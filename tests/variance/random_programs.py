"""Random typed programs: steps by chance on values of all types, and inputs that are as their types say."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import define, field

import xbuild as xb
from shape_inference import XbuildError
from xbuild.properties.variances import Variance

from .support import Made, made

m = xb.mesh
MESHES = [xb.Mesh(i=2), xb.Mesh(i=3), xb.Mesh(i=2, j=2), xb.Mesh(j=2, i=3), xb.Mesh(i=2, j=2, k=2)]
STATES = ("varying", "varying", "invarying", "invarying", "unreduced", "reduced")
DIMS = (6,)
REFUSALS = frozenset({
    "already_varying", "bilinear_on_unreduced", "branch_type_mismatch", "carry_type_mismatch", "divergent_collective",
    "mixed_axis_state", "nonlinear_on_unreduced", "nonzero_pad_on_unreduced", "state_mismatch", "unsupported_cast",
})  # fmt: skip


@define
class Drawn:
    """A program under construction: what operands are taken from, all f32[6], and how many steps were refused."""

    chance: random.Random
    mesh: xb.Mesh
    depth: int = 0
    refused: int = 0
    values: list[Any] = field(factory=list)

    def value(self) -> Any:
        return self.chance.choice(self.values[-5:] if self.chance.random() < 0.7 else self.values)

    def axes(self) -> list[str]:
        count = self.chance.choice([1, 1, 1, len(self.mesh.axes)])
        return self.chance.sample(self.mesh.axes, count)

    def predicate(self) -> Any:
        if self.chance.random() < 0.4:
            return m.axis_index(self.axes()) > 0
        return self.value()[0] > 0.0

    def step(self) -> Any:
        return self.chance.choice(STEPS if self.depth else (*STEPS, *NESTING))(self)

    def grow(self, count: int) -> None:
        for _ in range(count):
            try:
                self.values.append(self.step())
            except XbuildError as error:
                if error.kind not in REFUSALS:
                    raise
                self.refused += 1

    def inner(self, values: list[Any]) -> Drawn:
        return Drawn(self.chance, self.mesh, self.depth + 1, 0, values)


def _back(x: Any) -> Any:
    """What has grown, cut to six elements again."""
    return xb.slice(xb.reshape(x, (x.shape.size,)), (0,), DIMS, (1,))


def _loop(d: Drawn) -> Any:
    """A loop on two values; the bound may vary between devices."""
    trips = xb.convert(m.axis_index(d.axes()), xb.s32) + 1 if d.chance.random() < 0.3 else 2

    def body(s: Any) -> Any:
        inside = d.inner([s[2], s[3]])
        inside.grow(2)
        return s[0] + 1, s[1], inside.values[-1], inside.value()

    state = xb.while_((0, trips, d.value(), d.value()), lambda s: s[0] < s[1], body)
    return state[2]


def _branch(d: Drawn) -> Any:
    def branch(s: Any) -> Any:
        inside = d.inner([s[0], s[1]])
        inside.grow(2)
        return inside.values[-1]

    operands = d.value(), d.value()
    return xb.conditional(d.predicate(), operands, branch, operands, branch)


def _scan(d: Drawn) -> Any:
    carried = xb.scan([d.value()], [d.value()[0]], lambda each, carry: (each + carry, each - carry))
    return carried[0]


STEPS: tuple[Callable[[Drawn], Any], ...] = (
    lambda d: d.value() + d.value(),
    lambda d: d.value() * d.value(),
    lambda d: d.value() - d.value(),
    lambda d: -d.value(),
    lambda d: xb.tanh(d.value()),
    lambda d: xb.rev(d.value(), (0,)),
    lambda d: d.value() * 0.5,
    lambda d: xb.max(d.value(), d.value()),
    lambda d: xb.select(xb.broadcast(d.predicate(), DIMS), d.value(), d.value()),
    lambda d: xb.dynamic_slice(xb.concatenate([d.value(), d.value()], 0), [m.axis_index(d.axes())], DIMS),
    lambda d: xb.dynamic_update_slice(d.value(), d.value()[:2], [m.axis_index(d.axes())]),
    lambda d: xb.broadcast(xb.reduce(d.value(), 0.0, xb.add), DIMS),
    lambda d: xb.sort(d.value()),
    lambda d: d.value() + xb.convert(m.axis_index(d.axes()), xb.f32),
    lambda d: m.psum(d.value(), d.axes()) * 0.25,
    lambda d: m.psum(d.value(), d.axes()),
    lambda d: m.pmax(d.value(), d.axes()),
    lambda d: m.pmean(d.value(), d.axes()),
    lambda d: _back(m.all_gather(d.value(), d.axes())),
    lambda d: _back(m.all_gather_invariant(d.value(), d.axes(), axis=1)),
    lambda d: _back(m.all_gather_reduced(d.value(), d.axes(), tiled=True)),
    lambda d: xb.concatenate([d.value()[2:], m.psum_scatter(d.value(), "i", tiled=True)[:2]], 0),
    lambda d: xb.concatenate([d.value()[2:], m.pscatter(d.value(), "i")[:2]], 0),
    lambda d: m.all_to_all(d.value(), "i", 0, 0, tiled=True),
    lambda d: m.ppermute(d.value(), d.axes(), [(0, 1), (1, 0)]),
    lambda d: m.pbroadcast(d.value(), d.axes(), 1),
    lambda d: m.pvary(d.value(), d.axes()),
    lambda d: m.pcast(d.value(), d.axes(), to="reduced"),
    lambda d: m.pcast(d.value(), d.axes(), to="unreduced"),
    lambda d: m.pcast(d.value(), d.axes(), to="varying"),
)  # fmt: skip
NESTING: tuple[Callable[[Drawn], Any], ...] = (_loop, _branch, _scan)


def drawn(seed: int) -> tuple[Made, list[list[Any]], int]:
    """A typed program, values of its parameters on each device, and how many steps were refused."""
    chance = random.Random(seed)
    mesh = chance.choice(MESHES)
    types = [_type(chance, mesh) for _ in range(3)]
    found: list[Drawn] = []

    def program(*parameters: Any) -> Any:
        found[:] = [Drawn(chance, mesh, values=list(parameters))]
        found[0].grow(chance.randint(3, 14))
        return tuple(found[0].values)

    program.__signature__ = _SIGNATURE  # type: ignore[attr-defined]
    typed = made(program, mesh, [xb.f32[DIMS]] * 3, types)
    columns = [values(mesh, variance, seed + n) for n, variance in enumerate(types)]
    return typed, columns, found[0].refused


def _signature() -> Any:
    import inspect

    return inspect.signature(lambda x, y, z: None)


_SIGNATURE = _signature()


def _type(chance: random.Random, mesh: xb.Mesh) -> Variance:
    found = Variance()
    for axis in mesh.axes:
        found = found.moved((axis,), chance.choice(STATES))
    return found


def values(mesh: xb.Mesh, variance: Variance, seed: int) -> list[Any]:
    """A value for each device that differs only along the axes along which its type lets it."""
    draw = np.random.default_rng(seed)
    own = [draw.normal(size=DIMS).astype(np.float32) for _ in range(mesh.num_devices)]
    along = variance.varying | variance.unreduced
    return [own[mesh.device(**_only(mesh.coordinates(d), along))] for d in range(mesh.num_devices)]


def _only(place: dict[str, int], axes: frozenset[str]) -> dict[str, int]:
    return {axis: at for axis, at in place.items() if axis in axes}
