"""Partitions products, matrix decompositions and Fourier transforms.

Sections:

    Products, whose contracted dimensions leave partial sums
    Decompositions, solvers and Fourier transforms, which need unsplit matrices
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from shape_inference import Shape

from ... import ops
from ...core.builder import Value
from ...core.graph import Instruction
from ...properties.patterns import neutral_element
from .frame import Frame
from .handler import Combiner, Handler, Operands, Split, handles
from .reasons import Verbs

# ----------------------------------------------------------------------------
# Products, whose contracted dimensions leave partial sums


class Contraction(Handler):
    """An op that contracts dimensions; its partial results are sums."""

    verbs: ClassVar[Verbs] = Verbs(reduces="contracts")

    def combiner(self, instruction: Instruction) -> Combiner:
        """Addition, or `or` for pred; None for a type without a zero."""
        shape = instruction.shape
        assert isinstance(shape, Shape)
        if any(neutral_element("add", each.shape.dtype) is None for each in instruction.operands):  # type: ignore[union-attr]
            return None
        return ops.or_ if shape.dtype.kind == "pred" else ops.add

    def fill_with_zeros(self, frame: Frame, split: Split, operands: Operands) -> Operands:
        """The operands with zeros in the padding of reduced dimensions."""
        return [
            split.fill_padding(
                frame, number, value, split.padded_reductions(number),
                neutral_element("add", split.operand_shape(number).dtype),
            )
            for number, value in enumerate(operands)
        ]  # fmt: skip


@handles("dot")
class Dot(Contraction):
    """Each device contracts its parts of both operands."""

    def record(self, frame: Frame, split: Split, operands: Operands) -> Value:
        return super().record(frame, split, self.fill_with_zeros(frame, split, operands))


@handles("scaled_dot")
class ScaledDot(Handler):
    """Contracted dimensions are not split."""

    verbs: ClassVar[Verbs] = Verbs(reduces="contracts")


@handles("ragged_dot")
class RaggedDot(Handler):
    """Contracted dimensions are not split, nor is one that the group sizes do not have."""

    verbs: ClassVar[Verbs] = Verbs(reduces="contracts")

    def may_split_passing(self, operands: Sequence[bool], results: Sequence[bool]) -> bool:
        return operands[2] or not operands[0]


# ----------------------------------------------------------------------------
# Decompositions, solvers and Fourier transforms, which need unsplit matrices


@handles("fft")
class Fft(Handler):
    verbs: ClassVar[Verbs] = Verbs(needs="transforms")


@handles("cholesky")
class Cholesky(Handler):
    verbs: ClassVar[Verbs] = Verbs(needs="factorizes")


@handles("triangular_solve")
class TriangularSolve(Handler):
    verbs: ClassVar[Verbs] = Verbs(needs="solves along")
