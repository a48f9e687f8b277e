"""Shapes of matrix decompositions and solvers, and of Fourier transforms."""

from __future__ import annotations

from .. import dims
from ..dims import array, element_type, same_type
from ..rules import infer, refuse
from ..types import COMPLEX_OF, COMPONENT, AnyShape, Dims, PrimitiveType, Shape
from .elementwise import INEXACT

_TRANSFORMED = {"FFT": COMPONENT, "IFFT": COMPONENT, "RFFT": COMPLEX_OF, "IRFFT": COMPONENT}
_WORDS = {"FFT": "c64 or c128", "IFFT": "c64 or c128", "RFFT": "f32 or f64", "IRFFT": "c64 or c128"}
MOST_DIMENSIONS = 3


@infer
def cholesky(a: AnyShape, *, lower: bool) -> Shape:
    return _square("a", a)


@infer
def triangular_solve(
    a: AnyShape, b: AnyShape, *, left_side: bool, lower: bool, unit_diagonal: bool, transpose_a: str
) -> Shape:
    matrix, right = _square("a", a), array("b", b)
    same_type("a", matrix, "b", right)
    if matrix.rank != right.rank:
        refuse("rank_mismatch", f"a is {matrix} and b is {right}: ranks {matrix.rank} and {right.rank} differ")
    for dim, (left, other) in enumerate(zip(matrix.dims[:-2], right.dims[:-2], strict=True)):
        if left != other:
            refuse(
                "dimension_mismatch",
                f"a is {matrix} and b is {right}: extents {left} and {other} of batch dimension {dim} differ",
            )
    dim = right.rank - (2 if left_side else 1)
    if matrix.dims[-1] != right.dims[dim]:
        refuse(
            "dimension_mismatch",
            f"a is {matrix} and b is {right}: with left_side={left_side}, dimension {dim} of b must have "
            f"extent {matrix.dims[-1]}, the number of rows of a, but has extent {right.dims[dim]}",
        )
    return right


def _square(name: str, shape: AnyShape) -> Shape:
    """The shape of an operand that must be a batch of square matrices of floats or complex numbers."""
    found = array(name, shape)
    if found.rank < 2:
        refuse("rank_too_small", f"expected matrices of rank 2 or more for {name}, got {found} of rank {found.rank}")
    if found.dims[-1] != found.dims[-2]:
        refuse(
            "dimension_mismatch",
            f"expected square matrices for {name}, got {found}, whose last two dimensions are {found.dims[-2]} and "
            f"{found.dims[-1]}",
        )
    element_type(name, found, *INEXACT)
    return found


@infer
def fft(operand: AnyShape, *, fft_type: str, fft_length: Dims) -> Shape:
    shape = array("operand", operand)
    if not 1 <= len(fft_length) <= MOST_DIMENSIONS:
        refuse(
            "invalid_attribute",
            f"fft_length must have 1 to {MOST_DIMENSIONS} entries, one for each of the trailing dimensions to "
            f"transform, got {len(fft_length)} in {list(fft_length)}",
        )
    dims.sizes("fft_length", fft_length)
    if shape.rank < len(fft_length):
        refuse(
            "rank_too_small",
            f"operand {shape} has rank {shape.rank}, less than the length of fft_length {list(fft_length)}",
        )
    element_type("operand", shape, _TRANSFORMED[fft_type], f"{_WORDS[fft_type]} for {fft_type}")
    _lengths(shape, fft_type, fft_length)
    last = half(fft_length[-1]) if fft_type == "RFFT" else fft_length[-1]
    extents = (*shape.dims[: -len(fft_length)], *fft_length[:-1], last)
    return Shape(_result_type(shape, fft_type), extents, shape.dynamic)


def half(length: int) -> int:
    """The number of complex elements in the Fourier transform of `length` real elements."""
    return length // 2 + 1 if length else 0


def _lengths(shape: Shape, fft_type: str, fft_length: Dims) -> None:
    """Refuse extents other than fft_length in the transformed dimensions; IRFFT's last one must be `half` of it."""
    first = shape.rank - len(fft_length)
    for dim, (size, length) in enumerate(zip(shape.dims[first:], fft_length, strict=True), first):
        halved = fft_type == "IRFFT" and dim == shape.rank - 1
        wanted = half(length) if halved else length
        if size != wanted and not (halved and size == 1 and not length):
            refuse(
                "dimension_mismatch",
                f"dimension {dim} of operand {shape} has extent {size}, but fft_length {list(fft_length)} requires "
                f"{wanted}{f' ({length} // 2 + 1)' if halved else ''}",
            )


def _result_type(shape: Shape, fft_type: str) -> PrimitiveType:
    if fft_type == "RFFT":
        return COMPLEX_OF[shape.dtype]
    return COMPONENT[shape.dtype] if fft_type == "IRFFT" else shape.dtype
