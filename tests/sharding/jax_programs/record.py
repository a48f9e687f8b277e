"""The record of a program: a function of arrays, their shapes, a mesh, and the shardings of arguments and results."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from attrs import field, frozen
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import xbuild as xb

Specs: TypeAlias = Sequence["P | Sequence[Any] | None"]


def f32(*dims: int) -> jax.ShapeDtypeStruct:
    """An array of f32 of these extents."""
    return jax.ShapeDtypeStruct(dims, jnp.float32)


def i32(*dims: int) -> jax.ShapeDtypeStruct:
    """An array of s32 of these extents."""
    return jax.ShapeDtypeStruct(dims, jnp.int32)


def _specs(given: Specs | None) -> tuple[P, ...] | None:
    return None if given is None else tuple(P(*(each or ())) for each in given)


@frozen
class Program:
    """A function of JAX and how its arguments and results are cut.

    `function` takes arrays of `shapes` and gives an array or a tuple of arrays; with `takes_mesh` the mesh is its first
    argument. `in_specs` has a PartitionSpec for each argument (P() is replicated); `out_specs` one for each array of a
    result, or None where users leave them to the partitioner. Numbers are drawn with a deviation of `scale`, integers
    below `most`; with `is_positive` the first argument is a stack of positive definite matrices.
    """

    name: str
    function: Callable[..., Any]
    shapes: tuple[Any, ...] = field(converter=tuple)
    mesh: dict[str, int]
    in_specs: tuple[P, ...] = field(converter=_specs)
    out_specs: tuple[P, ...] | None = field(default=None, converter=_specs)
    takes_mesh: bool = False
    most: int = 8
    scale: float = 1.0
    is_positive: bool = False

    def abstract_mesh(self) -> Any:
        """The mesh without devices."""
        automatic = (jax.sharding.AxisType.Auto,) * len(self.mesh)
        return jax.sharding.AbstractMesh(tuple(self.mesh.values()), tuple(self.mesh), axis_types=automatic)

    def device_mesh(self) -> Any:
        """The mesh on the first devices of this process."""
        count = math.prod(self.mesh.values())
        return jax.sharding.Mesh(np.array(jax.devices()[:count]).reshape(tuple(self.mesh.values())), tuple(self.mesh))

    def called(self, mesh: Any) -> Callable[..., Any]:
        """The function of the arrays alone."""
        return functools.partial(self.function, mesh) if self.takes_mesh else self.function

    def jitted(self, mesh: Any = None, out_specs: Sequence[Any] | None = None) -> Any:
        """The function under `jax.jit` with shardings on a mesh, without devices unless one with devices is given.

        `out_specs` are for results for which the program states none.
        """
        mesh = mesh or self.abstract_mesh()
        wanted = self.out_specs or out_specs
        options = {"out_shardings": self._nested(mesh, wanted)} if wanted is not None else {}
        placed = tuple(NamedSharding(mesh, spec) for spec in self.in_specs)
        return jax.jit(self.called(mesh), in_shardings=placed, keep_unused=True, **options)

    def opened(self) -> Any:
        """The function with the shardings of arguments that axes cut, and no others."""
        mesh = self.abstract_mesh()
        placed = tuple(NamedSharding(mesh, spec) if any(spec) else None for spec in self.in_specs)
        return jax.jit(self.called(mesh), in_shardings=placed, keep_unused=True)

    def _nested(self, mesh: Any, specs: Sequence[Any]) -> Any:
        """The shardings of results, nested as the results are."""
        results = jax.eval_shape(self.called(mesh), *self.shapes)
        placed = [NamedSharding(mesh, spec) for spec in specs]
        return jax.tree.unflatten(jax.tree.structure(results), placed)

    def module(self, out_specs: Sequence[Any] | None = None) -> xb.Module:
        """The program for all devices, not yet cut, with the shardings that are stated."""
        return xb.from_jax(self.jitted(out_specs=out_specs), *self.shapes, partition=False)

    def arrays(self, seed: int = 0) -> list[Any]:
        """Arrays of the shapes: normally distributed numbers, integers below `most`."""
        chance = np.random.default_rng(seed)
        found = [self._drawn(chance, shape) for shape in self.shapes]
        if self.is_positive:
            size = self.shapes[0].shape[-1]
            found[0] = np.broadcast_to(np.eye(size) * size + 0.1, self.shapes[0].shape).astype(self.shapes[0].dtype)
        return found

    def _drawn(self, chance: Any, shape: Any) -> Any:
        if jnp.issubdtype(shape.dtype, jnp.integer):
            return chance.integers(0, self.most, shape.shape).astype(shape.dtype)
        return (self.scale * chance.normal(size=shape.shape)).astype(shape.dtype)
