"""Why an op is not cut along a dimension by an axis: the op needs it whole, or the axis cuts something else."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from ....core.graph import Instruction
from ....properties.mesh import Mesh
from ...axis import Axis, count
from ...factors import FactorMap, ShardingRule
from ...sharding import Sharding
from .words import name_of, named


@frozen(eq=False)
class Chosen:
    """How an op is cut: its rule, the factors that may be cut, whether into equal parts alone, the axes of each."""

    op: Instruction
    mesh: Mesh
    rule: ShardingRule
    allowed: frozenset[int]
    is_even: bool
    assignment: tuple[tuple[Axis, ...], ...]

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
            cut = f"{named(axes, self.mesh)} cannot cut {size} elements into such"
            return f"{name_of(self.op)} takes equal parts alone, and {cut}"
        other = self._elsewhere(axes, factor, value)
        if other:
            return other
        if self.rule.factors[factor].kind == "reduction":
            return f"with dimension {dim} cut, {name_of(self.op)} would leave partial results"
        return self._inside(factor, dim, value)

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
    "concatenate": "joins arrays along", "reverse": "turns round", "top_k": "ranks along",
}  # fmt: skip
