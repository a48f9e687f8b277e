"""Shapes of the ops that generate random numbers."""

from __future__ import annotations

from .. import dims
from ..dims import array, element_type, same_type, scalar
from ..rules import infer, refuse
from ..types import PRIMITIVES, AnyShape, Shape, TupleShape, u32, u64
from .elementwise import FLOAT
from .ordering import ORDERED

_BITS = frozenset(
    t
    for t in PRIMITIVES.values()
    if t.kind in ("signed", "unsigned", "float") and t.bits > 1 and f"u{t.bits}" in PRIMITIVES
)
_BITS_WORDS = "an integer or floating-point type that is as wide as an unsigned type of at least 2 bits"


@infer
def rng(a: AnyShape, b: AnyShape, *, shape: Shape, distribution: str) -> Shape:
    first, second = scalar("a", a), scalar("b", b)
    same_type("a", first, "b", second)
    element_type("a", first, *(FLOAT if distribution == "rng_normal" else ORDERED))
    if shape.dtype is not first.dtype:
        refuse(
            "element_type_mismatch",
            f"shape is {shape}, but a and b are {first}: element types {shape.dtype} and {first.dtype} differ",
        )
    dims.sizes("shape", shape.dims)
    return shape.plain()


@infer
def rng_bit_generator(state: AnyShape, *, algorithm: str, shape: Shape) -> TupleShape:
    found = array("state", state)
    element_type("state", found, (u64, u32), "u64, or u32 for its two halves")
    if found.rank != 1:
        refuse("rank_mismatch", f"expected a vector for state, got {found} of rank {found.rank}")
    legal_dimensions = _state_sizes(found, algorithm)
    if found.dims[0] not in legal_dimensions:
        words = " or ".join(f"{found.dtype}[{size}]" for size in legal_dimensions)
        refuse("dimension_mismatch", f"expected {words} as the state of {algorithm}, got {found}")
    if shape.dtype not in _BITS:
        refuse("element_type_unsupported", f"shape is {shape}, but its element type must be {_BITS_WORDS}")
    dims.sizes("shape", shape.dims)
    return TupleShape((found, shape.plain().with_dtype(PRIMITIVES[f"u{shape.dtype.bits}"])))


def _state_sizes(state: Shape, algorithm: str) -> tuple[int, ...]:
    """The legal numbers of words of a state: a key and a counter of 64 bits or, for Philox, also of 128 bits."""
    words = (2,) if algorithm == "rng_three_fry" else (2, 3)
    return tuple(size * (64 // state.dtype.bits) for size in words)


@infer
def rng_get_and_update_state(*, delta: int, shape: Shape) -> Shape:
    if shape.plain() != u64[2]:
        refuse(
            "dimension_mismatch" if shape.dtype is u64 else "element_type_unsupported",
            f"expected the shape of the state, u64[2], got {shape}",
        )
    return shape.plain()
