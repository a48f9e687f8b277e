"""Rules of reductions, windows, sorts, gathers and scatters."""

from __future__ import annotations

from typing import Any

from ...core.graph import Instruction
from ..reading.operation import Reading
from ..reading.rules import Results, both, rule
from .contraction import window_of


def halves(op: Reading) -> tuple[tuple[Instruction, ...], tuple[Instruction, ...]]:
    """The operands, and their starts."""
    count, odd = divmod(len(op.operands), 2)
    if odd or not count:
        op.fail("arity_mismatch", f"{len(op.operands)} operands, and as many starts as arrays are wanted")
    return op.operands[:count], op.operands[count:]


@rule(*both("reduce"))
def reduce(op: Reading) -> Results:
    operands, starts = halves(op)
    region = op.region(0, "reducer", 2 * len(operands))
    made = op.result("reduce", operands, starts, to_apply=region, dimensions=op.integers("dimensions"))
    return op.one_or_elements(made)


@rule(*both("reduce_window"))
def reduce_window(op: Reading) -> Results:
    operands, starts = halves(op)
    region = op.region(0, "reducer", 2 * len(operands))
    window = window_of(op, op.integers("window_dimensions"), "base_dilations", "window_dilations")
    return op.one_or_elements(op.result("reduce_window", operands, starts, to_apply=region, window=window))


@rule(*both("select_and_scatter"))
def select_and_scatter(op: Reading) -> Results:
    operand, source, start = op.wants(3)
    rank = getattr(operand.shape, "rank", 0)
    sizes = op.integers("window_dimensions", None) or (1,) * rank
    regions = {"select": op.region(0, "select", 2), "scatter": op.region(1, "scatter", 2)}
    window = window_of(op, sizes, "base_dilations", "window_dilations")
    return op.result("select_and_scatter", operand, source, start, **regions, window=window)


@rule(*both("sort"))
def sort(op: Reading) -> Results:
    rank = getattr(op.operands[0].shape, "rank", 1) if op.operands else 1
    dim = op.integer("dimension", -1)
    region = op.region(0, "comparator", 2 * len(op.operands))
    made = op.result(
        "sort", op.operands, to_apply=region, dimension=dim + rank * (dim < 0), is_stable=op.flag("is_stable", False)
    )
    return op.one_or_elements(made)


_GATHER = (
    "offset_dims",
    "collapsed_slice_dims",
    "start_index_map",
    "operand_batching_dims",
    "start_indices_batching_dims",
)
_SCATTER = (
    "update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims", "input_batching_dims",
    "scatter_indices_batching_dims",
)  # fmt: skip


def numbers_of(op: Reading, key: str, names: tuple[str, ...]) -> dict[str, Any]:
    """The lists of dimensions of a gather or scatter, and which dimension the index vectors have."""
    fields = op.fields(key)
    found: dict[str, Any] = {name: fields.get(name, ()) for name in names}
    found["index_vector_dim"] = fields.get("index_vector_dim", 0)
    for name, value in found.items():
        if not (type(value) is int if name == "index_vector_dim" else isinstance(value, tuple)):
            op.fail("invalid_attribute", f"{name}: {value!r} is no list of dimensions")
    return found


@rule(*both("gather"))
def gather(op: Reading) -> Results:
    numbers = numbers_of(op, "dimension_numbers", _GATHER)
    sizes, is_sorted = op.integers("slice_sizes"), op.flag("indices_are_sorted", False)
    return op.result("gather", *op.wants(2), **numbers, slice_sizes=sizes, indices_are_sorted=is_sorted)


@rule(*both("scatter"))
def scatter(op: Reading) -> Results:
    count, rest = divmod(len(op.operands) - 1, 2)
    if rest or count < 1:
        op.fail("arity_mismatch", f"{len(op.operands)} operands, and arrays, indices and as many updates are wanted")
    numbers = numbers_of(op, "scatter_dimension_numbers", _SCATTER)
    flags = {key: op.flag(key, False) for key in ("indices_are_sorted", "unique_indices")}
    region = op.region(0, "update", 2 * count)
    arrays, indices, updates = op.operands[:count], op.operands[count], op.operands[count + 1 :]
    return op.one_or_elements(op.result("scatter", arrays, indices, updates, to_apply=region, **numbers, **flags))
