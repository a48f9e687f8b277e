"""Built-in custom call targets: their table, readers of backend_config, and the targets that need no LAPACK.

Sections:

    The table, and readers of backend_config
    Annotations of placement and partitioning, and TopK
    Conversions between dynamic and static dimensions
    Products of a sparse matrix
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from shape_inference import TupleShape
from xbuild.core.attributes import Array
from xbuild.core.graph import Instruction
from xbuild.properties.placement import SAME, SHARDING_GROUP

from ..rules import compute

# ----------------------------------------------------------------------------
# The table, and readers of backend_config.

Target: TypeAlias = Callable[..., Any]
"""The function of a target: takes the instruction and the values of its operands."""

BUILT_IN: dict[str, Target] = {}

_ENTRY = re.compile(r"\b(\w++)\s*+=\s*+(-?\d{1,18}+)(?!\d)")


def target(*names: str) -> Callable[[Target], Target]:
    """A decorator that enters a function into the table under these targets."""

    def enter(function: Target) -> Target:
        BUILT_IN.update(dict.fromkeys(names, function))
        return function

    return enter


def config_numbers(instruction: Instruction) -> dict[str, int]:
    """The integers of a backend_config such as `{mode = 83 : ui8, uplo = 76 : ui8}`."""
    return {key: int(value) for key, value in _ENTRY.findall(instruction.attributes.backend_config)}


def config_letter(instruction: Instruction, key: str, default: str) -> str:
    """A letter among the integers of a backend_config, such as LAPACK's uplo."""
    return chr(config_numbers(instruction).get(key, ord(default)))


def config_flag(instruction: Instruction, key: str) -> bool:
    """Whether a backend_config states `key = true`."""
    return re.search(rf"\b{key}\s*=\s*true\b", instruction.attributes.backend_config) is not None


# ----------------------------------------------------------------------------
# Annotations of placement and partitioning, which return their operands unchanged on each device, and TopK.


@target(*SAME)
def return_operands(instruction: Instruction, *operands: Any) -> Any:
    """The operands, unchanged; a program that declares another shape needs a partitioner."""
    return operands if isinstance(instruction.shape, TupleShape) else operands[0]


@target(SHARDING_GROUP)
def return_nothing(instruction: Instruction, *operands: Any) -> Any:
    """The empty tuple: the target has no result."""
    return ()


@target("TopK")
def top_k(instruction: Instruction, operand: Any) -> Any:
    """The largest elements along the last dimension, and their indices."""
    k = instruction.shape.elements[0].dims[-1]  # type: ignore[union-attr]
    return compute["topk"](np.asarray(operand), k=k, largest=True)


# ----------------------------------------------------------------------------
# Conversions between dynamic and static dimensions.


@target("SliceToDynamic")
def slice_to_dynamic(instruction: Instruction, operand: Array, *sizes: Any) -> Array:
    """The operand sliced to these sizes, one for each dimension."""
    return operand[tuple(slice(int(size)) for size in sizes)]


@target("PadToStatic")
def pad_to_static(instruction: Instruction, operand: Array) -> tuple[Any, ...]:
    """The operand padded with zeros to its bounds, and the size of each dimension."""
    padded = np.zeros(instruction.shape.elements[0].dims, operand.dtype)  # type: ignore[union-attr]
    padded[tuple(slice(size) for size in operand.shape)] = operand
    return padded, *(np.int32(size) for size in operand.shape)


# ----------------------------------------------------------------------------
# Products of a sparse matrix in compressed row format.


@target("cpu_csr_sparse_dense_ffi")
def csr_times_dense(instruction: Instruction, elements: Array, ends: Array, columns: Array, dense: Array) -> Array:
    """The product of a sparse and a dense matrix; row i has the elements from ends[i] to ends[i + 1]."""
    product = np.zeros((len(ends) - 1, *dense.shape[1:]), dense.dtype)
    count = int(ends[-1])
    rows = np.repeat(np.arange(len(product)), np.diff(ends))
    np.add.at(product, rows, (elements[:count] * dense[columns[:count]].T).T)
    return product
