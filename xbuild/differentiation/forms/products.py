"""Products of arrays whose dimensions have labels: what both have and the result lacks is contracted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from attrs import frozen

from shape_inference import Dims, PrimitiveType

from ... import ops
from ...core.builder import Value
from .arrays import array_of, in_type, transposed

Labels: TypeAlias = tuple[Any, ...]


@frozen(eq=False)
class Labelled:
    """An array with a label for each dimension, and the precision that its products are to have."""

    value: Value
    labels: Labels
    precision: str | None = None

    def places(self, labels: Sequence[Any]) -> Dims:
        return tuple(self.labels.index(label) for label in labels)

    def ordered(self, labels: Labels) -> Value:
        """The array with its dimensions in the order of these labels."""
        return transposed(self.value, self.places(labels))


@frozen(eq=False)
class Roles:
    """Which labels of two operands are batch, contracted, and free."""

    batch: Labels
    contracted: Labels
    first_free: Labels
    second_free: Labels

    @classmethod
    def of(cls, first: Labels, second: Labels, result: Labels) -> Roles:
        return cls(
            batch=tuple(label for label in result if label in first and label in second),
            contracted=tuple(label for label in first if label in second and label not in result),
            first_free=tuple(label for label in first if label not in second),
            second_free=tuple(label for label in second if label not in first),
        )

    @property
    def result(self) -> Labels:
        return self.batch + self.first_free + self.second_free


def product(first: Labelled, second: Labelled, result: Labels, dtype: PrimitiveType) -> Value:
    """The sum of products with these labels; the operands stand in the order that needs no transposition."""
    if Roles.of(first.labels, second.labels, result).result != result:
        swapped = Roles.of(second.labels, first.labels, result)
        if swapped.result == result:
            first, second = second, first
    roles = Roles.of(first.labels, second.labels, result)
    left, right = fitting(first.value, second.value)
    found = ops.dot(
        left,
        right,
        lhs_contracting_dims=first.places(roles.contracted),
        rhs_contracting_dims=second.places(roles.contracted),
        lhs_batch_dims=first.places(roles.batch),
        rhs_batch_dims=second.places(roles.batch),
        operand_precision=precisions(first, second),
        preferred_element_type=preferred(left, right, dtype),
    )
    return Labelled(found, roles.result).ordered(result)


def precisions(first: Labelled, second: Labelled) -> tuple[str, ...]:
    if first.precision is None or second.precision is None:
        return ()
    return first.precision, second.precision


def fitting(first: Value, second: Value) -> tuple[Value, Value]:
    """Operands of a product: a complex cotangent of real products counts by its real part."""
    kinds = array_of(first).dtype.kind, array_of(second).dtype.kind
    if kinds == ("complex", "float"):
        first = in_type(first, array_of(second).dtype)
    if kinds == ("float", "complex"):
        second = in_type(second, array_of(first).dtype)
    return first, second


def preferred(first: Value, second: Value, dtype: PrimitiveType) -> PrimitiveType | None:
    """The element type that a product must be told to give; None where it gives it anyway."""
    return None if array_of(first).dtype is array_of(second).dtype is dtype else dtype
