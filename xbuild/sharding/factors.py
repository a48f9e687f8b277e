"""The sharding rule of an instruction: which dimensions of operands and results are cut together, as factors."""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import frozen

FactorKind: TypeAlias = Literal["pass_through", "reduction", "need_replication", "permutation"]


@frozen
class Factor:
    """A factor of the extents of an instruction.

    A cut factor that is `pass_through` needs no communication; a cut `reduction` leaves parts of a sum (or of another
    reduction) in the results; `need_replication` has to be gathered before the instruction; `permutation` needs
    elements of neighbours. A factor that `is_blocked` does not propagate.

    Source: Shardy, op sharding rule.
    """

    size: int
    kind: FactorKind = "pass_through"
    is_blocked: bool = False


FactorMap: TypeAlias = tuple[tuple[int, ...], ...]
"""For each dimension of an array the numbers of its factors, the outermost first."""


@frozen
class ShardingRule:
    """The factors of an instruction, and for each operand and each result the factors of its dimensions.

    The product of the sizes of a dimension's factors is its extent. Operands without dimensions have an empty map.

    Source: Shardy, op sharding rule.
    """

    factors: tuple[Factor, ...]
    operands: tuple[FactorMap, ...]
    results: tuple[FactorMap, ...]

    def __str__(self) -> str:
        maps = (", ".join(map(_spelled, each)) for each in (self.operands, self.results))
        sizes = ", ".join(f"{_name(number)}={factor.size}" for number, factor in enumerate(self.factors))
        kinds = "".join(self._of_kind(kind) for kind in ("reduction", "need_replication", "permutation"))
        return "({})->({})".format(*maps) + f" {{{sizes}}}{kinds}"

    def _of_kind(self, kind: FactorKind) -> str:
        names = ", ".join(_name(number) for number, factor in enumerate(self.factors) if factor.kind == kind)
        return f" {kind}={{{names}}}" if names else ""


def _name(number: int) -> str:
    """i, j, k, ... z, then z_1, z_2, ..., as Shardy names factors."""
    return chr(ord("i") + number) if number < 18 else f"z_{number - 17}"


def _spelled(dims: FactorMap) -> str:
    return f"[{', '.join(''.join(map(_name, dim)) for dim in dims)}]"
