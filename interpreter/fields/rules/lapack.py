"""LAPACK's routines as JAX calls them: random functions of each matrix of a stack, which always succeed."""

from __future__ import annotations

from typing import Any

import numpy as np

from shape_inference import Shape
from xbuild.core.attributes import Array
from xbuild.core.graph import Instruction

from ...custom_calls.built_in import config_numbers
from ...custom_calls.lapack import result_shapes, targets_of
from .complexes import joined
from .functions import random_words
from .laws import chosen
from .places import mixed
from .wholes import digest, random_outputs

_ROUTINES = ("potrf", "getrf", "geqrf", "orgqr", "ungqr", "gesdd", "gesvd", "syevd", "heevd", "geev", "gtsv")
ROUTINES = frozenset(target for routine in _ROUTINES for target in targets_of(routine))
SOLVES = frozenset(targets_of("trsm"))


def routine(instruction: Instruction, operands: tuple[Any, ...]) -> Any:
    """The results of a routine: random words, pivots by a random function, and 0 for what tells of failures."""
    a = instruction.attributes
    batch = np.ndim(operands[0]) - 2
    seeds: Any = np.uint64(0)
    for place, operand in enumerate(operands):
        seeds = mixed(seeds ^ mixed(digest(operand, np.ndim(operand) - batch), place), 21)
    name = f"{a.custom_call_target} {sorted(config_numbers(instruction).items())}"
    found = tuple(_result(f"{name} {n}", seeds, each, batch) for n, each in enumerate(result_shapes(instruction)))
    return found if len(found) > 1 else found[0]


def _result(name: str, seeds: Array, shape: Shape, batch: int) -> Any:
    if shape.rank == batch:
        return np.zeros(shape.dims, shape.dtype.dtype)
    words = random_outputs(name, seeds, shape.dims[batch:])
    if shape.dtype.is_integer:
        below = np.uint64(shape.dims[-1])
        return chosen(shape.dims, lambda: words % below).astype(shape.dtype.dtype) + shape.dtype.dtype.type(1)
    return joined(words, random_words("i", words)) if shape.dtype.kind == "complex" else words


def solve(instruction: Instruction, matrix: Any, operand: Any) -> Any:
    """A random function of the matrix and of each right side."""
    given = sorted(config_numbers(instruction).items())
    is_left = chr(dict(given).get("side", ord("L"))) == "L"
    right = np.swapaxes(operand, -1, -2) if is_left else operand
    seeds = mixed(digest(right, 1) ^ mixed(digest(matrix, 2), 8)[..., None], 9)
    words = random_outputs(f"trsm {given}", seeds, right.shape[-1:])
    found = joined(words, random_words("i", words)) if operand.dtype.kind == "c" else words
    return np.swapaxes(found, -1, -2) if is_left else found
