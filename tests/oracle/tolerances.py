"""How far results may be apart, by op and element type, and why: the one place where that is stated."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from shape_inference import PRIMITIVES, PrimitiveType

from .instance import Instance


@frozen
class Tolerance:
    """So many units in the last place: of each element (its larger part), or of the largest element of the result."""

    ulps: float
    is_of_largest: bool = False


EXACT = Tolerance(0)
TINY = [t.name for t in PRIMITIVES.values() if t.is_float and t.bits <= 8]


def _by_type(tiny: float, half: float, full: float, complex_: float, of_largest: bool = False) -> dict[str, Any]:
    ulps = {"bf16": half, "f16": half, "f32": full, "f64": full, "c64": complex_, "c128": complex_}
    return {name: Tolerance(n, of_largest) for name, n in {**ulps, **dict.fromkeys(TINY, tiny)}.items()}


ROWS: tuple[tuple[str, dict[str, Any], str], ...] = (
    (
        "acos acosh asin asinh atan2 atanh cbrt cosh cosine erf exponential log log_plus_one power rsqrt sine sinh tan "
        "tanh",
        _by_type(1, 1, 8, 32),
        "functions that no specification rounds; XLA's own kernels and NumPy's are each within 4 ulps of the truth",
    ),
    ("exponential_minus_one logistic", _by_type(1, 3, 8, 32), "the same; of half precision XLA rounds each step"),
    (
        "abs call divide fusion map multiply sign sqrt",
        _by_type(1, 0, 0, 8),
        "correctly rounded, but that XLA rounds 8 bits by way of f16, and complex numbers several times",
    ),
    (
        "all_reduce convolution dot reduce reduce_scatter reduce_window scan scatter select_and_scatter",
        _by_type(2, 2, 16, 16, True),
        "sums and products of many, in a free order",
    ),
    (
        "batch_norm_grad batch_norm_inference batch_norm_training",
        _by_type(8, 8, 32, 32, True),
        "moments, which XLA takes from sums of squares in the type itself",
    ),
    ("cholesky fft triangular_solve", _by_type(8, 8, 32, 32, True), "algorithms of many steps"),
)
TABLE = {opcode: (types, reason) for opcodes, types, reason in ROWS for opcode in opcodes.split()}


def tolerance(instance: Instance, dtype: PrimitiveType) -> Tolerance:
    """For a leaf of this type; nothing, but the sign of a zero that is a sum, where the operands leave no choice."""
    if instance.whole not in TABLE:
        return EXACT
    found: Tolerance = TABLE[instance.whole][0].get(dtype.name, EXACT)
    return Tolerance(0, found.is_of_largest) if instance.is_exact else found
