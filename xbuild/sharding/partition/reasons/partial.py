"""`Partial`: results of which each device holds a part, since a dimension that an op reduces is cut."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from attrs import frozen

from ....core.graph import Instruction
from ....properties.mesh import Mesh
from ...axis import Axis
from ...factors import ShardingRule, factor_name
from .reason import Move, Reason, Use, because, wanted_by
from .words import called, listed, name_of, named

Axes = tuple[Axis, ...]


@frozen
class CutFactor:
    """A reduced factor that is cut: its name in the rule, its axes, and each dimension that is made of it."""

    name: str
    axes: Axes
    places: tuple[tuple[Instruction, int], ...]
    mesh: Mesh

    def told(self, *, is_contracted: bool) -> str:
        """The factor in words: its dimensions, and what cuts them."""
        dims = listed([f"dimension {dim} of {name_of(value)}" for value, dim in self.places])
        values = {value for value, _ in self.places}
        what = (
            "which both sides cut"
            if is_contracted and len(values) == 2
            else f"which {'is' if len(self.places) == 1 else 'are'} cut"
        )
        return f"{dims}, {what} over {named(self.axes, self.mesh)}"


@frozen(eq=False, repr=False)
class Reduced(Reason):
    """An op reduces a dimension that is cut."""

    user: Instruction
    mesh: Mesh
    rule: ShardingRule
    assignment: tuple[Axes, ...]

    def factors(self) -> Iterator[CutFactor]:
        """The reduced factors that are cut."""
        for number, (factor, axes) in enumerate(zip(self.rule.factors, self.assignment, strict=True)):
            if factor.kind == "reduction" and axes:
                yield CutFactor(factor_name(number), axes, tuple(self._places(number)), self.mesh)

    def _places(self, factor: int) -> Iterator[tuple[Instruction, int]]:
        for operand, dims in zip(self.user.operands, self.rule.operands, strict=True):
            yield from ((operand, dim) for dim, factors in enumerate(dims) if factor in factors)

    def what(self) -> str:
        """What the op does along the dimensions that are cut."""
        return ", and ".join(map(self._reduced, self.factors()))

    def _reduced(self, factor: CutFactor) -> str:
        verb = _VERBS.get(self.user.opcode, "reduces")
        name = f"{factor.name}, " if verb == "contracts" else ""
        return f"{verb} {name}{factor.told(is_contracted=verb == 'contracts')}"

    def reduced(self) -> list[dict[str, Any]]:
        """The reduced factors as plain data."""
        return [
            {"factor": each.name, "axes": [axis.name for axis in each.axes],
             "dimensions": [{"value": value.name, "dim": dim} for value, dim in each.places]}
            for each in self.factors()
        ]  # fmt: skip


@frozen(eq=False, repr=False)
class Gathered(Reduced):
    """Results of parts that no op joins two by two: all devices take those of all parts, and reduce them again."""

    kind: ClassVar[str] = "results of parts"

    def sentence(self, move: Move) -> str:
        return f"{called(self.user)} {self.what()}; {_GATHERED.get(self.user.opcode, _GATHERED['reduce'])}"

    def facts(self, move: Move) -> dict[str, Any]:
        return {**super().facts(move), "reduced": self.reduced()}


@frozen(eq=False, repr=False)
class Partial(Reduced):
    """An op reduces a dimension that is cut. `combiner` is the op that joins two parts, `uses` who takes the result."""

    kind: ClassVar[str] = "partial results"
    combiner: str
    uses: list[Use]

    def sentence(self, move: Move) -> str:
        held = _HELD.get(self.user.opcode, "a partial {}").format(_NOUNS.get(self.combiner, "result"))
        return f"{called(self.user)} {self.what()}; each device holds {held}; {self._end(move)}"

    def _end(self, move: Move) -> str:
        assert move.needed is not None
        if move.opcode not in ("all_reduce", "reduce_scatter"):
            return f"moved on the way, because {because(self.uses, move)}"
        verb = _JOINED.get(self.combiner, "joined by its computation")
        cut = " and cut" if move.opcode == "reduce_scatter" else ""
        return f"{verb}{cut} here, because {because(self.uses, move)}"

    def facts(self, move: Move) -> dict[str, Any]:
        assert move.needed is not None
        takers = [each.user.name for each in wanted_by(self.uses, move.needed)]
        return {**super().facts(move), "reduced": self.reduced(), "combiner": self.combiner, "wanted_by": takers}


_VERBS = {
    "dot": "contracts", "convolution": "contracts", "ragged_dot": "contracts", "scaled_dot": "contracts",
    "gather": "chooses elements along", "dynamic_slice": "takes a part of",
    "scatter": "joins updates along", "topk": "ranks along",
}  # fmt: skip
_HELD = {
    "gather": "the chosen elements that it has, and zeros for the others",
    "dynamic_slice": "the elements of the part that it has, and zeros for the others",
    "scatter": "what its own updates make",
}
_GATHERED = {
    "reduce": "each device reduces its own part, and all devices take the results of all parts and reduce these",
    "topk": "each device ranks its own part, and all devices take what each of them found and rank that",
}
_NOUNS = {"add": "sum", "multiply": "product", "maximum": "maximum", "minimum": "minimum"}
_JOINED = {
    "add": "added", "multiply": "multiplied", "maximum": "joined by maximum", "minimum": "joined by minimum",
    "and": "joined by and", "or": "joined by or", "xor": "joined by xor",
}  # fmt: skip
