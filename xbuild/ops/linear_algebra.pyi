"""Made by `make stubs` from the declarations; the words stand in the source beside it."""

from collections.abc import Sequence
from typing import Literal

from ..core.builder import Value

def cholesky(a: Value, /, *, lower: bool = True, name: str | None = None) -> Value: ...
def triangular_solve(
    a: Value,
    b: Value,
    /,
    *,
    left_side: bool,
    lower: bool,
    unit_diagonal: bool,
    transpose_a: Literal["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"],
    name: str | None = None,
) -> Value: ...
def fft(
    operand: Value,
    /,
    *,
    fft_type: Literal["FFT", "IFFT", "RFFT", "IRFFT"],
    fft_length: Sequence[int],
    name: str | None = None,
) -> Value: ...
