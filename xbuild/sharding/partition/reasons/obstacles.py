"""Why an op is not cut along a dimension by an axis: the op needs it whole, or the axis cuts something else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from attrs import frozen

from ....core.graph import Instruction
from ....properties.mesh import Mesh
from ...axis import Axis, count, merged
from ...factors import FactorMap, ShardingRule
from ...sharding import Sharding, cut
from .words import name_of, named, told


@frozen
class Alternative:
    """Another way to cut an op, which leaves an array as it is: what it would send, and what the chosen way sends."""

    what: str
    bytes: int
    chosen: int

    def told(self) -> str:
        """The comparison in words."""
        if self.bytes == self.chosen:
            return f"{self.what} would send as much, {self.bytes} bytes"
        return f"{self.what} would send {self.bytes} bytes in place of {self.chosen}"


Others: TypeAlias = "Callable[[Chosen, FactorMap, Sharding, bool], Alternative | None]"
"""Gives the cheapest other way in which an array, made of factors, has a sharding; of a result, whether it is made."""


@frozen(eq=False, repr=False)
class Chosen:
    """How an op is cut: its rule, the factors that may be cut, whether into equal parts alone, the axes of each, and in
    which shardings its results are wanted.
    """

    op: Instruction
    mesh: Mesh
    rule: ShardingRule
    allowed: frozenset[int]
    is_even: bool
    assignment: tuple[tuple[Axis, ...], ...]
    wanted: tuple[Sharding | None, ...]
    others: Others

    def other(self, dims: FactorMap, sharding: Sharding, *, is_made: bool = False) -> Alternative | None:
        """The cheapest other way in which an array has a sharding; None where none was looked at."""
        return self.others(self, dims, sharding, is_made)

    def lost(self, given: Sharding, made: Sharding, dims: FactorMap) -> Iterator[tuple[int, int, tuple[Axis, ...]]]:
        """The axes that one sharding of an array has and another has not on the same dimension: dimension, factor,
        axes.
        """
        for dim, (old, new) in enumerate(zip(given.dims, made.dims, strict=True)):
            gone = tuple(axis for axis in old.axes if not any(axis.overlaps(each) for each in new.axes))
            if gone:
                yield dim, self._factor(dims[dim]), gone

    def _factor(self, factors: tuple[int, ...]) -> int:
        """The factor of a dimension that axes would cut: the outermost wide one that is not filled."""
        wide = [each for each in factors if self.rule.factors[each].size > 1] or list(factors)
        return next((each for each in wide if count(self.assignment[each]) < self.rule.factors[each].size), wide[-1])

    def why_not(self, factor: int, dim: int, value: Instruction, axes: tuple[Axis, ...]) -> str:
        """Why a factor, which is a dimension of a value, is not cut by axes."""
        if factor not in self.allowed:
            return f"{name_of(self.op)} {needs_whole(self.op.opcode, self.rule.factors[factor].kind, dim)}"
        size = self.rule.factors[factor].size
        if self.is_even and size % count(axes):
            uneven = f"{named(axes, self.mesh)} cannot cut {size} elements into such"
            return f"{name_of(self.op)} takes equal parts alone, and {uneven}"
        other = self._elsewhere(axes, factor, value)
        if other:
            return other
        if self.rule.factors[factor].kind == "reduction":
            return f"with dimension {dim} cut, {name_of(self.op)} would leave partial results"
        return self._inside(factor, dim, value) or self._apart(dim, value, axes)

    def _elsewhere(self, axes: tuple[Axis, ...], factor: int, value: Instruction) -> str:
        """Which dimension the axes cut instead, of the result if there is one, or of another operand."""
        for number, own in enumerate(self.assignment):
            if number != factor and any(axis.overlaps(each) for axis in axes for each in own):
                places = [*self._places(number)]
                held, dim = next((each for each in places if each[0] is not value), places[0])
                return f"{named(axes, self.mesh)} cuts dimension {dim} of {name_of(held)} instead"
        return ""

    def _inside(self, factor: int, dim: int, value: Instruction) -> str:
        """Whether a factor is the inner part of a dimension whose outer part is not cut into single elements."""
        for held, each, factors in self._dims():
            outer = (
                [own for own in factors[: factors.index(factor)] if self.rule.factors[own].size > 1]
                if factor in factors
                else []
            )
            if any(count(self.assignment[own]) < self.rule.factors[own].size for own in outer):
                return (
                    f"dimension {dim} of {name_of(value)} is the inner part of dimension {each} of {name_of(held)}, "
                    "and a device with a part of it would have many separate pieces of that"
                )
        return ""

    def _apart(self, dim: int, value: Instruction, axes: tuple[Axis, ...]) -> str:
        """Whether the parts of a dimension are no parts of the factors that an op makes of it."""
        factors = next((own for held, each, own in self._dims() if held is value and each == dim), ())
        sizes = [size for each in factors if (size := self.rule.factors[each].size) > 1]
        parts = count(axes)
        if len(sizes) < 2 or not sizes[0] % parts or not parts % sizes[0]:
            return ""
        split = " x ".join(map(str, sizes))
        apart = f"{parts} parts over {named(axes, self.mesh)} are no parts of these"
        return f"{name_of(self.op)} splits dimension {dim} of {name_of(value)} into {split}, and {apart}"

    def asked(self) -> str:
        """In which sharding the result is made, and whether it is wanted so."""
        made = self.made()
        if not made:
            return ""
        return f"{name_of(self.op)} is {'wanted' if made[0] == self.wanted[0] else 'made'} {told(made[0])}"

    def made(self) -> tuple[Sharding, ...]:
        """The shardings in which the results are made, without those that partial results are joined in."""
        assigned = self.assignment
        return tuple(
            cut(self.mesh, [merged(axis for factor in each for axis in assigned[factor]) for each in dims])
            for dims in self.rule.results
        )

    def _dims(self) -> Iterator[tuple[Instruction, int, tuple[int, ...]]]:
        """The dimensions of the results, then of the operands, with their factors."""
        for dims in self.rule.results[:1]:
            yield from ((self.op, dim, factors) for dim, factors in enumerate(dims))
        for operand, dims in zip(self.op.operands, self.rule.operands, strict=True):
            yield from ((operand, dim, factors) for dim, factors in enumerate(dims))

    def _places(self, factor: int) -> Iterator[tuple[Instruction, int]]:
        """The dimensions of the results, then of the operands, that have a factor."""
        return ((held, dim) for held, dim, factors in self._dims() if factor in factors)


def needs_whole(opcode: str, kind: str, dim: int) -> str:
    """What an op does along a dimension that each device has to have whole."""
    if opcode in _ALONG:
        return f"{_ALONG[opcode]} the whole of dimension {dim}"
    if kind == "permutation":
        return f"moves elements along dimension {dim}, and is done on the whole of it"
    if kind == "reduction":
        return f"cannot join results of parts of dimension {dim}"
    return f"needs the whole of dimension {dim}"


_ALONG = {
    "sort": "sorts along", "fft": "transforms", "cholesky": "factorizes", "triangular_solve": "solves along",
    "concatenate": "joins arrays along", "reverse": "turns round", "topk": "ranks along",
}  # fmt: skip
