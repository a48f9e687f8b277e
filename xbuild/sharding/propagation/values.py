"""The values of a program as its tensors: which instructions give one array, and how often each is used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import define

from shape_inference import Shape, TupleShape, leaves

from ...core.graph import Instruction
from .tensors import Tensor


@define(eq=False)
class Value:
    """A leaf of an instruction's value, and how many instructions take it; `same` is the value that it is."""

    tensor: Tensor
    uses: int = 0
    same: Value | None = None

    def found(self) -> Value:
        """The value that this one is, after all that were found to be the same."""
        value = self
        while value.same is not None:
            value = value.same
        return value


def fresh(instruction: Instruction) -> tuple[Value, ...]:
    """A value with a tensor of its own for each leaf."""
    made = []
    for number, leaf in enumerate(leaves(instruction.shape)):
        made.append(Value(Tensor(leaf.dims if isinstance(leaf, Shape) else (), names=[(instruction, number)])))
    return tuple(made)


def fresh_of(values: Sequence[Value]) -> tuple[Value, ...]:
    """Values with tensors of their own that have the extents of others, and their names."""
    return tuple(Value(Tensor(value.tensor.dims, names=list(value.tensor.names[:1]))) for value in values)


def leaf_range(shape: TupleShape, index: int) -> slice:
    """The places that the leaves of an element have among those of a tuple."""
    counts = [sum(1 for _ in leaves(each)) for each in shape.elements[: index + 1]]
    return slice(sum(counts[:-1]), sum(counts))


def identify(one: Sequence[Value], other: Sequence[Value]) -> None:
    """Make values of two lists the same, pair by pair: uses and instructions of both together."""
    for left, right in zip(one, other, strict=True):
        kept, gone = left.found(), right.found()
        if kept is not gone:
            kept.uses += gone.uses
            merge(of_one(kept.tensor), of_one(gone.tensor))
            gone.same = kept


def merge(kept: Tensor, gone: Tensor) -> None:
    """Make two tensors one, which is `kept`; of two shardings that are stated, its own counts."""
    if kept is gone:
        return
    kept.names += gone.names
    kept.stated = kept.stated if kept.stated is not None else gone.stated
    kept.is_fixed |= gone.is_fixed
    gone.merged_into = kept


def of_one(tensor: Tensor) -> Tensor:
    """The tensor that a tensor was made one with."""
    while tensor.merged_into is not None:
        tensor = tensor.merged_into
    return tensor


def used(values: Iterable[Value]) -> None:
    """Count one more use of each value."""
    for value in values:
        value.found().uses += 1
