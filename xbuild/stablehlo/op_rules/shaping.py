"""Rules of constants and of ops that arrange elements."""

from __future__ import annotations

from shape_inference import Shape
from shape_inference.elided import ElidedArray

from ..reading.operation import Reading
from ..reading.rules import Results, both, rule


@rule(*both("constant"), "sdy.constant", "chlo.constant")
def constant(op: Reading) -> Results:
    """One element for all is a scalar that is broadcast, as XLA has it."""
    array = op.literal("value")
    if isinstance(array, ElidedArray) or any(array.strides) or not array.size or not array.ndim:
        return op.result("constant", literal=array)
    scalar = op.emit("constant", literal=array[(0,) * array.ndim], wanted="constant")
    return op.result("broadcast", scalar, sizes=op.array_shape.dims, dimensions=())


@rule(*both("iota"))
def iota(op: Reading) -> Results:
    return op.result("iota", shape=op.array_shape, iota_dimension=op.integer("iota_dimension"))


@rule(*both("broadcast_in_dim"))
def broadcast_in_dim(op: Reading) -> Results:
    """XLA's broadcast adds dimensions alone: dimensions of one element are dropped before it where they grow."""
    (operand,), dims = op.wants(1), op.integers("broadcast_dimensions")
    target, shape = op.array_shape, operand.shape
    if not isinstance(shape, Shape) or len(dims) != shape.rank or not _grows(shape, target, dims):
        return op.result("broadcast", operand, sizes=target.dims, dimensions=dims)
    kept = [n for n, dim in enumerate(dims) if shape.dims[n] == target.dims[dim]]
    dense = op.emit("reshape", operand, new_sizes=tuple([shape.dims[n] for n in kept]))
    return op.result("broadcast", dense, sizes=target.dims, dimensions=tuple([dims[n] for n in kept]))


def _grows(shape: Shape, target: Shape, dims: tuple[int, ...]) -> bool:
    """Whether a dimension of one element becomes one of several."""
    if not all(0 <= dim < target.rank for dim in dims):
        return False
    pairs = [(size, target.dims[dim]) for size, dim in zip(shape.dims, dims, strict=True)]
    return any(size == 1 and wanted != 1 for size, wanted in pairs)


@rule(*both("broadcast"))
def broadcast(op: Reading) -> Results:
    (operand,), sizes = op.wants(1), op.integers("broadcast_sizes")
    dims = tuple(range(len(sizes), op.array_shape.rank))
    return op.result("broadcast", operand, sizes=(*sizes, *getattr(operand.shape, "dims", ())), dimensions=dims)


@rule(*both("reshape"))
def reshape(op: Reading) -> Results:
    return op.result("reshape", *op.wants(1), new_sizes=op.array_shape.dims)


def bounded_reshape(op: Reading) -> Results:
    """A dynamic_reshape to extents with bounds; HLO has each of the sizes as an operand of its own."""
    operand, sizes = op.wants(2)
    shape = op.array_shape
    found = []
    for dim in range(shape.rank):
        one = op.emit("slice", sizes, start_indices=(dim,), limit_indices=(dim + 1,))
        found.append(op.emit("reshape", one, new_sizes=()))
    return op.result(
        "dynamic_reshape", operand, tuple(found), new_size_bounds=shape.dims, dims_are_dynamic=shape.dynamic
    )


@rule(*both("transpose"))
def transpose(op: Reading) -> Results:
    return op.result("transpose", *op.wants(1), permutation=op.integers("permutation"))


@rule(*both("reverse"))
def reverse(op: Reading) -> Results:
    return op.result("reverse", *op.wants(1), dimensions=op.integers("dimensions"))


@rule(*both("concatenate"))
def concatenate(op: Reading) -> Results:
    return op.result("concatenate", op.operands, dimension=op.integer("dimension"))


@rule(*both("pad"))
def pad(op: Reading) -> Results:
    amounts = [op.integers(key) for key in ("edge_padding_low", "edge_padding_high", "interior_padding")]
    if len(set(map(len, amounts))) != 1:
        op.fail("invalid_attribute", "low, high and interior padding are of one length")
    return op.result("pad", *op.wants(2), padding=tuple(zip(*amounts, strict=True)))


@rule(*both("get_dimension_size"))
def get_dimension_size(op: Reading) -> Results:
    return op.result("get_dimension_size", *op.wants(1), dimension=op.integer("dimension"))


@rule(*both("set_dimension_size"))
def set_dimension_size(op: Reading) -> Results:
    return op.result("set_dimension_size", *op.wants(2), dimension=op.integer("dimension"))


@rule(*both("slice"))
def slice_(op: Reading) -> Results:
    starts, limits, strides = (op.integers(key) for key in ("start_indices", "limit_indices", "strides"))
    strides = () if set(strides) <= {1} and len(strides) == len(starts) else strides
    return op.result("slice", *op.wants(1), start_indices=starts, limit_indices=limits, strides=strides)


@rule(*both("dynamic_slice"))
def dynamic_slice(op: Reading) -> Results:
    if not op.operands:
        op.wants(1)
    return op.result("dynamic_slice", op.operands[0], op.operands[1:], dynamic_slice_sizes=op.integers("slice_sizes"))


@rule(*both("dynamic_update_slice"))
def dynamic_update_slice(op: Reading) -> Results:
    if len(op.operands) < 2:
        op.wants(2)
    return op.result("dynamic_update_slice", *op.operands[:2], op.operands[2:])
