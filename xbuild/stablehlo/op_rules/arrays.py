"""Reading rules for ops on arrays.

Sections:

    Constants, shapes and slices
    Elementwise ops, comparisons and conversions, and CHLO ops that are one HLO op
    Reductions, windows, sorts, gathers and scatters
    Products: dot, dot_general, convolution; linear algebra, Fourier transforms, batch normalization
"""

from __future__ import annotations

import re
from typing import Any

from shape_inference import Shape, pred
from shape_inference.convolutions import ConvolutionDimensionNumbers
from shape_inference.dims import wider
from shape_inference.elided import ElidedArray
from shape_inference.windows import WindowDimension

from ...core.graph import Instruction
from ...core.op import OPS
from ...text.annotations import Raw
from ...text.spelling import converted_operands
from ..reading.operation import OperationReading, attribute_text
from ..reading.rules import Results, hlo_names, rule
from ..spelling import COMPARE_TYPES, DIRECTIONS, OPCODES, PRECISIONS_READ
from ..syntax.trees import Record

# ----------------------------------------------------------------------------
# Constants, shapes and slices


@rule(*hlo_names("constant"), "sdy.constant", "chlo.constant")
def constant(op: OperationReading) -> Results:
    """A splat is a broadcast scalar, as in XLA's conversion."""
    array = op.literal("value")
    if isinstance(array, ElidedArray) or any(array.strides) or not array.size or not array.ndim:
        return op.record_result("constant", literal=array)
    scalar = op.emit("constant", literal=array[(0,) * array.ndim], wanted="constant")
    return op.record_result("broadcast", scalar, sizes=op.array_shape.dims, dimensions=())


@rule(*hlo_names("iota"))
def iota(op: OperationReading) -> Results:
    return op.record_result("iota", shape=op.array_shape, iota_dimension=op.integer("iota_dimension"))


@rule(*hlo_names("broadcast_in_dim"))
def broadcast_in_dim(op: OperationReading) -> Results:
    """HLO's broadcast only adds dimensions, so a reshape first drops dimensions of extent 1 that grow."""
    (operand,), dims = op.expect_operands(1), op.integers("broadcast_dimensions")
    target, shape = op.array_shape, operand.shape
    if not isinstance(shape, Shape) or len(dims) != shape.rank or not _expands_ones(shape, target, dims):
        return op.record_result("broadcast", operand, sizes=target.dims, dimensions=dims)
    kept = [n for n, dim in enumerate(dims) if shape.dims[n] == target.dims[dim]]
    dense = op.emit("reshape", operand, new_sizes=tuple([shape.dims[n] for n in kept]))
    return op.record_result("broadcast", dense, sizes=target.dims, dimensions=tuple([dims[n] for n in kept]))


def _expands_ones(shape: Shape, target: Shape, dims: tuple[int, ...]) -> bool:
    """Whether a dimension of extent 1 gets a larger extent."""
    if not all(0 <= dim < target.rank for dim in dims):
        return False
    pairs = [(size, target.dims[dim]) for size, dim in zip(shape.dims, dims, strict=True)]
    return any(size == 1 and wanted != 1 for size, wanted in pairs)


@rule(*hlo_names("broadcast"))
def broadcast(op: OperationReading) -> Results:
    (operand,), sizes = op.expect_operands(1), op.integers("broadcast_sizes")
    dims = tuple(range(len(sizes), op.array_shape.rank))
    return op.record_result("broadcast", operand, sizes=(*sizes, *getattr(operand.shape, "dims", ())), dimensions=dims)


@rule(*hlo_names("reshape"))
def reshape(op: OperationReading) -> Results:
    return op.record_result("reshape", *op.expect_operands(1), new_sizes=op.array_shape.dims)


def bounded_reshape(op: OperationReading) -> Results:
    """A dynamic_reshape to bounded extents; in HLO each size is a separate operand."""
    operand, sizes = op.expect_operands(2)
    shape = op.array_shape
    found = []
    for dim in range(shape.rank):
        one = op.emit("slice", sizes, start_indices=(dim,), limit_indices=(dim + 1,))
        found.append(op.emit("reshape", one, new_sizes=()))
    return op.record_result(
        "dynamic_reshape", operand, tuple(found), new_size_bounds=shape.dims, dims_are_dynamic=shape.dynamic
    )


@rule(*hlo_names("transpose"))
def transpose(op: OperationReading) -> Results:
    return op.record_result("transpose", *op.expect_operands(1), permutation=op.integers("permutation"))


@rule(*hlo_names("reverse"))
def reverse(op: OperationReading) -> Results:
    return op.record_result("reverse", *op.expect_operands(1), dimensions=op.integers("dimensions"))


@rule(*hlo_names("concatenate"))
def concatenate(op: OperationReading) -> Results:
    return op.record_result("concatenate", op.operands, dimension=op.integer("dimension"))


@rule(*hlo_names("pad"))
def pad(op: OperationReading) -> Results:
    amounts = [op.integers(key) for key in ("edge_padding_low", "edge_padding_high", "interior_padding")]
    if len(set(map(len, amounts))) != 1:
        op.fail(
            "invalid_attribute", "edge_padding_low, edge_padding_high and interior_padding must have the same length"
        )
    return op.record_result("pad", *op.expect_operands(2), padding=tuple(zip(*amounts, strict=True)))


@rule(*hlo_names("get_dimension_size"))
def get_dimension_size(op: OperationReading) -> Results:
    return op.record_result("get_dimension_size", *op.expect_operands(1), dimension=op.integer("dimension"))


@rule(*hlo_names("set_dimension_size"))
def set_dimension_size(op: OperationReading) -> Results:
    return op.record_result("set_dimension_size", *op.expect_operands(2), dimension=op.integer("dimension"))


@rule(*hlo_names("slice"))
def slice_(op: OperationReading) -> Results:
    starts, limits, strides = (op.integers(key) for key in ("start_indices", "limit_indices", "strides"))
    strides = () if set(strides) <= {1} and len(strides) == len(starts) else strides
    return op.record_result(
        "slice", *op.expect_operands(1), start_indices=starts, limit_indices=limits, strides=strides
    )


@rule(*hlo_names("dynamic_slice"))
def dynamic_slice(op: OperationReading) -> Results:
    if not op.operands:
        op.expect_operands(1)
    return op.record_result(
        "dynamic_slice", op.operands[0], op.operands[1:], dynamic_slice_sizes=op.integers("slice_sizes")
    )


@rule(*hlo_names("dynamic_update_slice"))
def dynamic_update_slice(op: OperationReading) -> Results:
    if len(op.operands) < 2:
        op.expect_operands(2)
    return op.record_result("dynamic_update_slice", *op.operands[:2], op.operands[2:])


# ----------------------------------------------------------------------------
# Rules of elementwise ops, of comparisons and of conversions.

PLAIN = tuple(
    name
    for name, opcode in OPCODES.items()
    if OPS[opcode].is_flat and not OPS[opcode].names and OPS[opcode].properties.elements == "same_place"
)
"""The MLIR ops that are elementwise and have no attributes."""


@rule(*PLAIN, *(f"mhlo.{name.partition('.')[2]}" for name in PLAIN))
def elementwise(op: OperationReading) -> Results:
    op.ignore("result_accuracy")
    opcode = op.operation.name.partition(".")[2]
    made = op.record_result(opcode, *op.expect_operands(len(OPS[opcode].operands)))
    accuracy = op.attributes.get("result_accuracy")
    if isinstance(accuracy, Record) and accuracy.fields:
        op.annotate(made, result_accuracy=Raw(_accuracy_text(accuracy)))
    return made


def _accuracy_text(record: Record) -> str:
    """The text that XLA has for an accuracy: a mode, or tolerances."""
    words = {key: getattr(value, "word", value) for key, value in record.fields.items()}
    mode = str(words.get("mode", "TOLERANCE")).lower()
    if mode != "tolerance":
        return f"{{mode={mode}}}"
    tolerances = [f"{key}={attribute_text(words[key])}" for key in ("atol", "rtol", "ulps") if key in words]
    return f"{{tolerance={{{', '.join(tolerances)}}}}}"


@rule(*hlo_names("compare"))
def compare(op: OperationReading) -> Results:
    direction, type_ = op.word("comparison_direction"), op.word("compare_type", None)
    if direction not in DIRECTIONS:
        op.fail("invalid_attribute", f"unknown direction {direction!r}; expected one of {', '.join(DIRECTIONS)}")
    if type_ not in (None, "NOTYPE", *COMPARE_TYPES):
        op.fail("invalid_attribute", f"unknown compare_type {type_!r}; expected one of {', '.join(COMPARE_TYPES)}")
    return op.record_result(
        "compare", *op.expect_operands(2), direction=direction, type=None if type_ == "NOTYPE" else type_
    )


@rule(*hlo_names("convert"))
def convert(op: OperationReading) -> Results:
    (operand,), dtype = op.expect_operands(1), op.array_shape.dtype
    if dtype is pred and isinstance(operand.shape, Shape) and operand.shape.dtype.kind == "complex":
        operand = op.emit("real", operand)  # HLO's convert tests the complex number itself
    return op.record_result("convert", operand, new_element_type=dtype)


@rule(*hlo_names("bitcast_convert"))
def bitcast_convert(op: OperationReading) -> Results:
    return op.record_result("bitcast_convert", *op.expect_operands(1), new_element_type=op.array_shape.dtype)


@rule(*hlo_names("reduce_precision"))
def reduce_precision(op: OperationReading) -> Results:
    bits = {key: op.integer(key) for key in ("exponent_bits", "mantissa_bits")}
    return op.record_result("reduce_precision", *op.expect_operands(1), **bits)


# ----------------------------------------------------------------------------
# Rules of CHLO ops that are one HLO op.


@rule("chlo.tan")
def tan(op: OperationReading) -> Results:
    op.ignore("result_accuracy")
    return op.record_result("tan", *op.expect_operands(1))


@rule("chlo.ragged_dot")
def ragged_dot(op: OperationReading) -> Results:
    lhs, rhs, sizes = product_operands(op, 3)
    fields = op.fields("ragged_dot_dimension_numbers")
    dims = {
        hlo_name: read_dimensions(op, fields, mlir_name)
        for hlo_name, mlir_name in (
            ("lhs_batch_dims", "lhs_batching_dimensions"),
            ("rhs_batch_dims", "rhs_batching_dimensions"),
            ("lhs_contracting_dims", "lhs_contracting_dimensions"),
            ("rhs_contracting_dims", "rhs_contracting_dimensions"),
            ("lhs_ragged_dims", "lhs_ragged_dimensions"),
            ("rhs_group_dims", "rhs_group_dimensions"),
        )
    }
    return op.record_result("ragged_dot", lhs, rhs, sizes, **dims, **read_precision(op), **result_type(op, lhs, rhs))


@rule("chlo.scan")
def scan(op: OperationReading) -> Results:
    """Operands are the arrays, then the initial carries; results are the outputs, then the final carries."""
    arrays, carried = op.integers("operandSegmentSizes")
    op.ignore("resultSegmentSizes")
    attributes = {
        "dimension": op.integer("dimension"),
        "num_carries": carried,
        "is_reverse": op.flag("is_reverse", False),
        "is_associative": op.flag("is_associative", False),
        "to_apply": op.region(0, "body", len(op.operands)),
    }
    outputs = op.shapes[: len(op.shapes) - carried]
    if not arrays and outputs and isinstance(outputs[0], Shape):
        attributes["length"] = outputs[0].dims[attributes["dimension"]]
    return op.one_or_elements(op.record_result("scan", op.operands, **attributes))


@rule("chlo.top_k")
def top_k(op: OperationReading) -> Results:
    """HLO's topk, which is stable here and so satisfies any `is_stable`."""
    op.ignore("is_stable")
    return op.elements(op.record_result(OPCODES["chlo.top_k"], *op.expect_operands(1), k=op.integer("k")))


# ----------------------------------------------------------------------------
# Reductions, windows, sorts, gathers and scatters


def split_inits(op: OperationReading) -> tuple[tuple[Instruction, ...], tuple[Instruction, ...]]:
    """The operands of a reduction and their initial values."""
    count, odd = divmod(len(op.operands), 2)
    if odd or not count:
        op.fail(
            "arity_mismatch", f"expected one initial value for each array, got {len(op.operands)} operands in total"
        )
    return op.operands[:count], op.operands[count:]


@rule(*hlo_names("reduce"))
def reduce(op: OperationReading) -> Results:
    operands, inits = split_inits(op)
    region = op.region(0, "reducer", 2 * len(operands))
    made = op.record_result("reduce", operands, inits, to_apply=region, dimensions=op.integers("dimensions"))
    return op.one_or_elements(made)


@rule(*hlo_names("reduce_window"))
def reduce_window(op: OperationReading) -> Results:
    operands, inits = split_inits(op)
    region = op.region(0, "reducer", 2 * len(operands))
    window = read_window(op, op.integers("window_dimensions"), "base_dilations", "window_dilations")
    return op.one_or_elements(op.record_result("reduce_window", operands, inits, to_apply=region, window=window))


@rule(*hlo_names("select_and_scatter"))
def select_and_scatter(op: OperationReading) -> Results:
    operand, source, start = op.expect_operands(3)
    rank = getattr(operand.shape, "rank", 0)
    sizes = op.integers("window_dimensions", None) or (1,) * rank
    regions = {"select": op.region(0, "select", 2), "scatter": op.region(1, "scatter", 2)}
    window = read_window(op, sizes, "base_dilations", "window_dilations")
    return op.record_result("select_and_scatter", operand, source, start, **regions, window=window)


@rule(*hlo_names("sort"))
def sort(op: OperationReading) -> Results:
    rank = getattr(op.operands[0].shape, "rank", 1) if op.operands else 1
    dim = op.integer("dimension", -1)
    region = op.region(0, "comparator", 2 * len(op.operands))
    made = op.record_result(
        "sort", op.operands, to_apply=region, dimension=dim + rank * (dim < 0), is_stable=op.flag("is_stable", False)
    )
    return op.one_or_elements(made)


_GATHER_DIMENSIONS = (
    "offset_dims",
    "collapsed_slice_dims",
    "start_index_map",
    "operand_batching_dims",
    "start_indices_batching_dims",
)
_SCATTER_DIMENSIONS = (
    "update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims", "input_batching_dims",
    "scatter_indices_batching_dims",
)  # fmt: skip


def read_index_dimensions(op: OperationReading, key: str, names: tuple[str, ...]) -> dict[str, Any]:
    """The lists of dimensions of a gather or scatter, and index_vector_dim."""
    fields = op.fields(key)
    found: dict[str, Any] = {name: fields.get(name, ()) for name in names}
    found["index_vector_dim"] = fields.get("index_vector_dim", 0)
    for name, value in found.items():
        is_list = name != "index_vector_dim"
        if not isinstance(value, tuple) if is_list else type(value) is not int:
            expected = "a list of dimensions" if is_list else "an integer"
            op.fail(
                "invalid_attribute",
                f"{name}: expected {expected}, got {value!r}",
            )
    return found


@rule(*hlo_names("gather"))
def gather(op: OperationReading) -> Results:
    numbers = read_index_dimensions(op, "dimension_numbers", _GATHER_DIMENSIONS)
    sizes, is_sorted = op.integers("slice_sizes"), op.flag("indices_are_sorted", False)
    return op.record_result(
        "gather", *op.expect_operands(2), **numbers, slice_sizes=sizes, indices_are_sorted=is_sorted
    )


@rule(*hlo_names("scatter"))
def scatter(op: OperationReading) -> Results:
    count, rest = divmod(len(op.operands) - 1, 2)
    if rest or count < 1:
        op.fail(
            "arity_mismatch",
            f"expected arrays, indices and one update for each array, got {len(op.operands)} operands in total",
        )
    numbers = read_index_dimensions(op, "scatter_dimension_numbers", _SCATTER_DIMENSIONS)
    flags = {key: op.flag(key, False) for key in ("indices_are_sorted", "unique_indices")}
    region = op.region(0, "update", 2 * count)
    arrays, indices, updates = op.operands[:count], op.operands[count], op.operands[count + 1 :]
    return op.one_or_elements(
        op.record_result("scatter", arrays, indices, updates, to_apply=region, **numbers, **flags)
    )


# ----------------------------------------------------------------------------
# Products: dot, dot_general, convolution; linear algebra, Fourier transforms, batch normalization

_ROLES = re.compile(r"\[([^\]]*)\]\s*x\s*\[([^\]]*)\]\s*->\s*\[([^\]]*)\]")
_ROLE = re.compile(r"[bfio]|\d{1,3}", re.ASCII)


@rule(*hlo_names("dot_general"))
def dot_general(op: OperationReading) -> Results:
    lhs, rhs = product_operands(op)
    fields = op.fields("dot_dimension_numbers")
    dims = {
        "lhs_contracting_dims": read_dimensions(op, fields, "lhs_contracting_dimensions"),
        "rhs_contracting_dims": read_dimensions(op, fields, "rhs_contracting_dimensions"),
        "lhs_batch_dims": read_dimensions(op, fields, "lhs_batching_dimensions"),
        "rhs_batch_dims": read_dimensions(op, fields, "rhs_batching_dimensions"),
    }
    made = op.record_result("dot", lhs, rhs, **dims, **read_precision(op), **result_type(op, lhs, rhs))
    algorithm = op.get("algorithm", None)
    if isinstance(algorithm, Record):
        op.annotate(made, algorithm=Raw(_algorithm_name(algorithm)))
    return made


@rule(*hlo_names("dot"))
def dot(op: OperationReading) -> Results:
    """A dot contracts the last dimension of the first operand with the first dimension of the second."""
    lhs, rhs = product_operands(op)
    last = max(getattr(lhs.shape, "rank", 1) - 1, 0)
    dims = {"lhs_contracting_dims": (last,), "rhs_contracting_dims": (0,)}
    return op.record_result("dot", lhs, rhs, **dims, **read_precision(op), **result_type(op, lhs, rhs))


def read_dimensions(op: OperationReading, fields: Any, key: str) -> tuple[int, ...]:
    found = fields.get(key, ())
    if not isinstance(found, tuple) or not all(type(each) is int for each in found):
        op.fail("invalid_attribute", f"attribute {key!r}: expected a list of integers")
    return found


def read_precision(op: OperationReading) -> dict[str, Any]:
    """The precision of each operand, unless all have the default."""
    words = op.words("precision_config")
    for word in words:
        if word not in PRECISIONS_READ:
            op.fail("invalid_attribute", f"unknown precision {word!r}; expected one of {', '.join(PRECISIONS_READ)}")
    found = tuple(PRECISIONS_READ[word] for word in words)
    return {"operand_precision": found} if set(found) - {"default"} else {}


def product_operands(op: OperationReading, count: int = 2) -> tuple[Instruction, ...]:
    """The operands of a product, converted to one kind of element type as XLA does.

    Source: StableHLO, dot_general; XLA, OperandUpcaster.
    """
    lhs, rhs, *others = op.expect_operands(count)
    if not isinstance(lhs.shape, Shape) or not isinstance(rhs.shape, Shape):
        return op.operands
    dtypes = converted_operands(lhs.shape.dtype, rhs.shape.dtype, op.array_shape.dtype)
    pairs = zip((lhs, rhs), dtypes, strict=True)
    made = [
        each if each.shape.dtype is dtype else op.emit("convert", each, new_element_type=dtype)  # type: ignore[union-attr]
        for each, dtype in pairs
    ]
    return (*made, *others)


def result_type(op: OperationReading, lhs: Instruction, rhs: Instruction) -> dict[str, Any]:
    """The element type of the result, if the operands imply a different one."""
    if not isinstance(lhs.shape, Shape) or not isinstance(rhs.shape, Shape):
        return {}
    first, second, found = lhs.shape.dtype, rhs.shape.dtype, op.array_shape.dtype
    usual = first if first is second else wider(first, second) if first.is_float and second.is_float else None
    return {} if found is usual else {"preferred_element_type": found}


_ALGORITHMS = {
    ("tf32", "tf32", "f32", 1): "dot_tf32_tf32_f32",
    ("tf32", "tf32", "f32", 3): "dot_tf32_tf32_f32_x3",
    ("bf16", "bf16", "bf16", 1): "dot_bf16_bf16_bf16",
    ("bf16", "bf16", "f32", 1): "dot_bf16_bf16_f32",
    ("bf16", "bf16", "f32", 3): "dot_bf16_bf16_f32_x3",
    ("bf16", "bf16", "f32", 6): "dot_bf16_bf16_f32_x6",
    ("bf16", "bf16", "f32", 9): "dot_bf16_bf16_f32_x9",
    ("f16", "f16", "f16", 1): "dot_f16_f16_f16",
    ("f16", "f16", "f32", 1): "dot_f16_f16_f32",
    ("f32", "f32", "f32", 1): "dot_f32_f32_f32",
    ("f64", "f64", "f64", 1): "dot_f64_f64_f64",
}


def _algorithm_name(record: Record) -> str:
    """The name that XLA has for an algorithm."""
    fields = record.fields
    types = [str(fields.get(f"{key}_type", "")) for key in ("lhs_precision", "rhs_precision", "accumulation")]
    key = (*types, fields.get("num_primitive_operations", 1))
    return _ALGORITHMS.get(key, "dot_any_f8_any_f8_f32" if types[0].startswith("f8") else "unset")


def read_dimension_numbers(op: OperationReading) -> ConvolutionDimensionNumbers:
    """The roles of the dimensions of a convolution, as in `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`."""
    found = op.get("dimension_numbers")
    text = found.text if isinstance(found, Record) else ""
    parts = _ROLES.fullmatch(text.strip())
    if not parts:
        op.fail("invalid_attribute", "expected dimension_numbers such as [b, 0, f]x[0, i, o]->[b, 0, f]")
    lhs, rhs, out = (_ROLE.findall(part) for part in parts.groups())
    try:
        (b, f, spatial), (i, o, kernel), (ob, of, output) = _roles(lhs, "bf"), _roles(rhs, "io"), _roles(out, "bf")
    except ValueError as error:
        op.fail("invalid_attribute", f"dimension_numbers: {error}")
    return ConvolutionDimensionNumbers(b, f, spatial, i, o, kernel, ob, of, output)


def _roles(labels: list[str], words: str) -> tuple[int, int, tuple[int, ...]]:
    spatial = [str(number) for number in range(len(labels) - 2)]
    if sorted(labels) != sorted([*words, *spatial]):
        raise ValueError(f"[{', '.join(labels)}] must list each of {', '.join([*words, *spatial])} exactly once")
    return labels.index(words[0]), labels.index(words[1]), tuple(labels.index(each) for each in spatial)


@rule(*hlo_names("convolution"))
def convolution(op: OperationReading) -> Results:
    lhs, rhs = product_operands(op)
    numbers = read_dimension_numbers(op)
    spatial = numbers.kernel_spatial_dimensions
    dims = getattr(rhs.shape, "dims", ())
    sizes = tuple(dims[dim] if dim < len(dims) else 1 for dim in spatial)
    return op.record_result(
        "convolution",
        lhs,
        rhs,
        window=read_window(op, sizes, "lhs_dilation", "rhs_dilation"),
        dimension_numbers=numbers,
        feature_group_count=op.integer("feature_group_count", 1),
        batch_group_count=op.integer("batch_group_count", 1),
        **read_precision(op),
        **result_type(op, lhs, rhs),
    )


def read_window(op: OperationReading, sizes: tuple[int, ...], base: str, dilation: str) -> tuple[WindowDimension, ...]:
    """The window of these sizes, with strides, padding and the dilations of these names from the attributes."""
    ones = (1,) * len(sizes)
    columns = {
        "stride": op.integers("window_strides", None) or ones,
        "base_dilation": op.integers(base, None) or ones,
        "window_dilation": op.integers(dilation, None) or ones,
        "window_reversal": op.flags("window_reversal", None) or (False,) * len(sizes),
    }
    padding = op.rows("padding", None) or ((0, 0),) * len(sizes)
    for key, values in {**columns, "padding": padding}.items():
        if len(values) != len(sizes):
            op.fail("invalid_attribute", f"{key} has length {len(values)}, but the window has rank {len(sizes)}")
    if any(len(pair) != 2 for pair in padding):
        op.fail("invalid_attribute", "expected a padding pair (low, high) for each dimension")
    return tuple(
        WindowDimension(
            size,
            *_column_values(columns, n, "stride"),
            *padding[n],
            *_column_values(columns, n, "window_dilation", "base_dilation", "window_reversal"),
        )
        for n, size in enumerate(sizes)
    )


def _column_values(columns: dict[str, Any], number: int, *keys: str) -> list[Any]:
    return [columns[key][number] for key in keys]


@rule(*hlo_names("triangular_solve"))
def triangular_solve(op: OperationReading) -> Results:
    flags = {key: op.flag(key) for key in ("left_side", "lower", "unit_diagonal")}
    return op.record_result("triangular_solve", *op.expect_operands(2), **flags, transpose_a=op.word("transpose_a"))


@rule(*hlo_names("cholesky"))
def cholesky(op: OperationReading) -> Results:
    return op.record_result("cholesky", *op.expect_operands(1), lower=op.flag("lower", False))


@rule(*hlo_names("fft"))
def fft(op: OperationReading) -> Results:
    return op.record_result(
        "fft", *op.expect_operands(1), fft_type=op.word("fft_type"), fft_length=op.integers("fft_length")
    )


@rule(*hlo_names("batch_norm_training", "batch_norm_inference", "batch_norm_grad"))
def batch_norm(op: OperationReading) -> Results:
    opcode = op.operation.name.partition(".")[2]
    numbers = {"epsilon": op.number("epsilon"), "feature_index": op.integer("feature_index")}
    made = op.record_result(opcode, *op.expect_operands(3 if opcode == "batch_norm_training" else 5), **numbers)
    return op.one_or_elements(made)
