"""Ops of whole matrices and features: normalization by its formulas, factorizations as random functions of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from shape_inference import Dims, Shape
from shape_inference.ops.linear_algebra import half
from xbuild.core.attributes import Array

from . import residues
from .arithmetic import minus, plus, quotient, times
from .complexes import joined
from .functions import applied, random_words
from .places import mixed
from .residues import Word
from .tables import Undecidable, fields


def digest(words: Any, axes: int) -> Array:
    """One random number for the last `axes` dimensions together, in which each place counts for itself."""
    array = np.asarray(words)
    outer = array.ndim - axes
    rows = array.reshape(*array.shape[:outer], int(np.prod(array.shape[outer:], dtype=np.int64)))
    at = np.arange(rows.shape[-1], dtype=np.uint64)
    return mixed(np.bitwise_xor.reduce(mixed(random_words("digest", rows) ^ mixed(at, 5), 6), -1), 4)


def random_outputs(name: str, seeds: Array, extents: Dims) -> Word:
    """Random numbers for each place of an output, by the seed of its matrix."""
    count = int(np.prod(extents, dtype=np.int64))
    at = np.arange(count, dtype=np.uint64)
    words = random_words(name, np.broadcast_to(seeds[..., None], (*seeds.shape, count)) & residues.LIMIT - np.uint64(1),
                         np.broadcast_to(at, (*seeds.shape, count)))  # fmt: skip
    return words.reshape((*seeds.shape, *extents))


@fields
def cholesky(a: Word, *, lower: bool) -> Word:
    """A random function of each matrix, zero beyond the triangle."""
    found = random_outputs(f"cholesky {lower}", digest(a, 2), a.shape[-2:])
    found = np.where((np.tril if lower else np.triu)(np.ones(a.shape[-2:], bool)), found, np.uint64(0))
    return joined(found, np.zeros_like(found)) if a.dtype.kind == "c" else found


@fields
def triangular_solve(a: Word, b: Word, **attributes: Any) -> Word:
    """A random function of the matrix and of each right side."""
    is_left = attributes["left_side"]
    right = np.swapaxes(b, -1, -2) if is_left else b
    seeds = mixed(digest(right, 1) ^ mixed(digest(a, 2), 8)[..., None], 9)
    found = random_outputs(f"triangular-solve {sorted(attributes.items())}", seeds, right.shape[-1:])
    found = joined(found, random_words("i", found)) if b.dtype.kind == "c" else found
    return np.swapaxes(found, -1, -2) if is_left else found


@fields
def fft(operand: Word, *, fft_type: str, fft_length: Dims) -> Word:
    """A random function of each transformed array."""
    last = half(fft_length[-1]) if fft_type == "RFFT" else fft_length[-1]
    found = random_outputs(f"{fft_type} {fft_length}", digest(operand, len(fft_length)), (*fft_length[:-1], last))
    return found if fft_type == "IRFFT" else joined(found, random_words("i", found))


def _along(vector: Word, like: Word, feature: int) -> Word:
    return np.broadcast_to(vector.reshape([-1 if n == feature else 1 for n in range(like.ndim)]), like.shape)


def _sums(words: Word, feature: int) -> Word:
    if residues.has_special(words):
        raise Undecidable("normalization of infinities and NaN")
    return residues.total(words, tuple(n for n in range(words.ndim) if n != feature))


def _mean(words: Word, feature: int) -> Word:
    total = _sums(words, feature)
    count = words.size // max(words.shape[feature], 1)
    return quotient(total, residues.of_integers(np.full(total.shape, count)))


def _inverse_deviation(variance: Word, epsilon: float) -> Word:
    return applied("rsqrt", plus(variance, residues.of_reals(np.full(variance.shape, epsilon, np.float32))))


@fields
def batch_norm_inference(
    operand: Word, scale: Word, offset: Word, mean: Word, variance: Word, *, epsilon: float, feature_index: int
) -> Word:
    factor = times(scale, _inverse_deviation(variance, epsilon))
    centred = minus(operand, _along(mean, operand, feature_index))
    return plus(times(centred, _along(factor, operand, feature_index)), _along(offset, operand, feature_index))


@fields
def batch_norm_training(
    operand: Word, scale: Word, offset: Word, *, epsilon: float, feature_index: int
) -> tuple[Word, Word, Word]:
    mean = _mean(operand, feature_index)
    centred = minus(operand, _along(mean, operand, feature_index))
    variance = _mean(times(centred, centred), feature_index)
    found = batch_norm_inference(operand, scale, offset, mean, variance, epsilon=epsilon, feature_index=feature_index)
    return found, mean, variance


@fields
def batch_norm_grad(
    operand: Word, scale: Word, mean: Word, variance: Word, grad_output: Word, *, epsilon: float, feature_index: int
) -> tuple[Word, Word, Word]:
    def along(vector: Word) -> Word:
        return _along(vector, operand, feature_index)

    centred, inverse = minus(operand, along(mean)), _inverse_deviation(variance, epsilon)
    aligned = times(grad_output, centred)
    slope = times(_mean(aligned, feature_index), times(inverse, inverse))
    rest = minus(minus(grad_output, along(_mean(grad_output, feature_index))), times(along(slope), centred))
    grad_scale = times(_sums(aligned, feature_index), inverse)
    return times(along(times(scale, inverse)), rest), grad_scale, _sums(grad_output, feature_index)


def drawn(shape: Shape, number: int, distribution: str, *operands: Any) -> Any:
    """What a random op draws for the n-th time on a device, alike on each: a random function of n and the distribution.

    The operands shift and scale it: both ends of a uniform distribution, mean and deviation of a normal one.
    """
    at = np.arange(shape.size, dtype=np.uint64).reshape(shape.dims)
    first, second = (np.broadcast_to(each, shape.dims) for each in operands)
    scale = minus(second, first) if distribution == "rng_uniform" else second
    return plus(first, times(scale, random_words(f"{distribution} {number}", at)))
