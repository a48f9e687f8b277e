"""What has to be the same where ranks launch one operation."""

from __future__ import annotations

from collections.abc import Hashable

from .records import Launch

_NO_SIZES = ("all_to_all", "barrier", "coalesced", "unknown")
OUTPUT_SIZES = ("scatter", "reduce_scatter")
ROOTED = ("broadcast", "reduce", "gather", "scatter")
"""What may complete on some ranks before all have launched it."""

_BYTES = {
    "Double": 8, "Long": 8, "ComplexFloat": 8, "ComplexDouble": 16, "Half": 2, "BFloat16": 2, "Short": 2, "Byte": 1,
    "Char": 1, "Bool": 1,
}  # fmt: skip


def count_bytes(operation: Launch) -> int:
    """How many bytes one side of an operation has; elements of unknown types count as four bytes."""
    side = operation.outputs if operation.name in OUTPUT_SIZES else operation.inputs
    return sum(side) * (_BYTES.get(operation.types[0], 4) if operation.types else 4)


def find_difference(one: Launch, other: Launch) -> str | None:
    """The kind in which two operations under the same number differ; None if they agree."""
    if one.pair is None and one.name != other.name:
        return "wrong_op"
    if one.pair is not None or one.name not in _NO_SIZES:
        side = "outputs" if one.name in OUTPUT_SIZES else "inputs"
        sizes = getattr(one, side), getattr(other, side)
        if all(sizes) and sum(sizes[0]) != sum(sizes[1]) and not (_is_uneven(one) or _is_uneven(other)):
            return "wrong_size"
    if one.types and other.types and one.types[0] != other.types[0]:
        return "wrong_type"
    return None


def _is_uneven(operation: Launch) -> bool:
    """Whether a gather states different sizes for its ranks, which is allowed."""
    return operation.name in ("all_gather", "gather") and len({*operation.outputs}) > 1


def signature(operation: Launch) -> Hashable:
    """Name, size and type of an operation, as far as they are the same on all ranks."""
    size: int | None = None
    if operation.name not in _NO_SIZES and not _is_uneven(operation):
        size = sum(operation.outputs if operation.name in OUTPUT_SIZES else operation.inputs)
    return operation.name, size, operation.types[:1]


def content(operation: Launch) -> Hashable:
    """What is the same if a rank executes a line again."""
    return operation.group, signature(operation), operation.pair, operation.frames
