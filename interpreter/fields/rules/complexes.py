"""Complex numbers over the fields: two words, carried in one complex128 so that ops that move elements move both."""

from __future__ import annotations

import numpy as np

from .residues import Word
from .tables import fields


def parts(words: Word) -> tuple[Word, Word]:
    """The words of the real and of the imaginary part."""
    raw = np.ascontiguousarray(words).reshape((*np.shape(words), 1)).view(np.uint64)
    return raw[..., 0], raw[..., 1]


def joined(real: Word, imag: Word) -> Word:
    """The complex numbers of two parts."""
    return np.stack(np.broadcast_arrays(real, imag), -1).astype(np.uint64).view(np.complex128)[..., 0]


@fields
def real(operand: Word) -> Word:
    return parts(operand)[0] if operand.dtype.kind == "c" else operand


@fields
def imag(operand: Word) -> Word:
    return parts(operand)[1] if operand.dtype.kind == "c" else np.zeros_like(operand)


def complex_(lhs: Word, rhs: Word) -> Word:
    return joined(lhs, rhs)


fields.enter("complex", complex_)
