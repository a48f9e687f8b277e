"""`FactorBuilder`, which collects the factors of an instruction and makes its rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from shape_inference import Shape, leaves
from shape_inference.types import Dims

from ...core.graph import Instruction
from ..factors import Factor, FactorKind, ShardingRule

Places: TypeAlias = Iterable["int | None"]
"""For each array the number of the dimension that a factor is of, None where it is of none."""

KindOf: TypeAlias = Callable[[int], FactorKind]


def passing(dim: int) -> FactorKind:
    """The kind of the factors of most dimensions."""
    return "pass_through"


def extents(values: Iterable[Instruction]) -> tuple[Dims, ...]:
    """The extents of all arrays that values hold, tuples flattened; a token has none."""
    return tuple(leaf.dims if isinstance(leaf, Shape) else () for value in values for leaf in leaves(value.shape))


class FactorBuilder:
    """The factors of an instruction while its rule adds them: `operands` and `results` are the extents of its arrays.

    Dimensions that no factor was added for get one of their own in `rule`, which needs replication and is blocked.
    """

    def __init__(self, instruction: Instruction) -> None:
        self.operands, self.results = extents(instruction.operands), extents((instruction,))
        self._factors: list[Factor] = []
        self._maps: list[list[list[int]]] = [[[] for _ in dims] for dims in (*self.operands, *self.results)]

    def add(
        self,
        size: int,
        operands: Places,
        results: Places,
        kind: FactorKind = "pass_through",
        *,
        is_blocked: bool = False,
    ) -> None:
        """Add a factor of a size, inside those that its dimensions have already."""
        places = [*operands, *[None] * len(self.operands)][: len(self.operands)]
        places += [*results, *[None] * len(self.results)][: len(self.results)]
        for dims, place in zip(self._maps, places, strict=True):
            if place is not None:
                dims[place].append(len(self._factors))
        self._factors.append(Factor(size, kind, is_blocked))

    def alike(
        self, dim: int, size: int, kind: FactorKind = "pass_through", *, is_blocked: bool = False, without: int = 0
    ) -> None:
        """Add a factor of one dimension of all arrays that have dimensions, but the last operands, `without` many."""
        kept = self.operands[: len(self.operands) - without]
        self.add(size, [_of(dims, dim) for dims in kept], [_of(dims, dim) for dims in self.results], kind,
                 is_blocked=is_blocked)  # fmt: skip

    def rule(self) -> ShardingRule:
        """The rule, in which every dimension has a factor."""
        for dims, shape in zip(self._maps, (*self.operands, *self.results), strict=True):
            for own, extent in zip(dims, shape, strict=True):
                if not own:
                    own.append(len(self._factors))
                    self._factors.append(Factor(extent, "need_replication", is_blocked=True))
        maps = tuple(tuple(map(tuple, dims)) for dims in self._maps)
        count = len(self.operands)
        return ShardingRule(tuple(self._factors), maps[:count], maps[count:])


def _of(dims: Dims, dim: int) -> int | None:
    return dim if dims else None


def pointwise(instruction: Instruction, kind: KindOf = passing) -> ShardingRule:
    """A factor for each dimension, which operands and results share; scalars beside arrays have none.

    An operand whose extent is 1 where the result has more keeps that dimension for itself.
    """
    builder = FactorBuilder(instruction)
    for dim, size in enumerate(builder.results[0]):
        places = [_matching(dims, dim, size) for dims in builder.operands]
        builder.add(size, places, [_matching(dims, dim, size) for dims in builder.results], kind(dim))
    return builder.rule()


def _matching(dims: Dims, dim: int, size: int) -> int | None:
    return dim if dim < len(dims) and dims[dim] == size else None


def blocked(instruction: Instruction) -> ShardingRule:
    """A rule by which nothing propagates, and every array is wanted whole."""
    return FactorBuilder(instruction).rule()


def only(number: int, dim: int | None, count: int) -> Sequence[int | None]:
    """The places of a factor that one array of `count` has."""
    return [dim if n == number else None for n in range(count)]
