"""Rules of products: dot, dot_general, convolution, triangular solves, factorizations and transforms."""

from __future__ import annotations

import re
from typing import Any

from shape_inference import Shape
from shape_inference.convolutions import ConvolutionDimensionNumbers
from shape_inference.dims import wider
from shape_inference.windows import WindowDimension

from ...core.graph import Instruction
from ...text.spelling.notes import Raw
from ..reading.operation import Reading
from ..reading.rules import Results, both, rule
from ..spelling.choices import PRECISIONS_READ
from ..syntax.attributes import Record

_ROLES = re.compile(r"\[([^\]]*)\]\s*x\s*\[([^\]]*)\]\s*->\s*\[([^\]]*)\]")
_ROLE = re.compile(r"[bfio]|\d{1,3}", re.ASCII)


@rule(*both("dot_general"))
def dot_general(op: Reading) -> Results:
    lhs, rhs = op.wants(2)
    fields = op.fields("dot_dimension_numbers")
    dims = {
        "lhs_contracting_dims": integers_of(op, fields, "lhs_contracting_dimensions"),
        "rhs_contracting_dims": integers_of(op, fields, "rhs_contracting_dimensions"),
        "lhs_batch_dims": integers_of(op, fields, "lhs_batching_dimensions"),
        "rhs_batch_dims": integers_of(op, fields, "rhs_batching_dimensions"),
    }
    made = op.result("dot", lhs, rhs, **dims, **precision(op), **preferred(op, lhs, rhs))
    algorithm = op.get("algorithm", None)
    if isinstance(algorithm, Record):
        op.note(made, algorithm=Raw(_algorithm(algorithm)))
    return made


@rule(*both("dot"))
def dot(op: Reading) -> Results:
    """The last dimension of the first operand with the first one of the second."""
    lhs, rhs = op.wants(2)
    last = max(getattr(lhs.shape, "rank", 1) - 1, 0)
    dims = {"lhs_contracting_dims": (last,), "rhs_contracting_dims": (0,)}
    return op.result("dot", lhs, rhs, **dims, **precision(op), **preferred(op, lhs, rhs))


def integers_of(op: Reading, fields: Any, key: str) -> tuple[int, ...]:
    found = fields.get(key, ())
    if not isinstance(found, tuple) or not all(type(each) is int for each in found):
        op.fail("invalid_attribute", f"{key}: a list of integers is wanted")
    return found


def precision(op: Reading) -> dict[str, Any]:
    """The precision of each operand, unless all are the default."""
    words = op.words("precision_config")
    for word in words:
        if word not in PRECISIONS_READ:
            op.fail("invalid_attribute", f"{word!r} is no precision; there are {', '.join(PRECISIONS_READ)}")
    found = tuple(PRECISIONS_READ[word] for word in words)
    return {"operand_precision": found} if set(found) - {"default"} else {}


def preferred(op: Reading, lhs: Instruction, rhs: Instruction) -> dict[str, Any]:
    """The element type of the result where the operands alone would give another."""
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


def _algorithm(record: Record) -> str:
    """XLA's name of an algorithm."""
    fields = record.fields
    types = [str(fields.get(f"{key}_type", "")) for key in ("lhs_precision", "rhs_precision", "accumulation")]
    key = (*types, fields.get("num_primitive_operations", 1))
    return _ALGORITHMS.get(key, "dot_any_f8_any_f8_f32" if types[0].startswith("f8") else "unset")


def dimension_numbers(op: Reading) -> ConvolutionDimensionNumbers:
    """The roles of the dimensions of a convolution, as `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]` says."""
    found = op.get("dimension_numbers")
    text = found.text if isinstance(found, Record) else ""
    parts = _ROLES.fullmatch(text.strip())
    if not parts:
        op.fail("invalid_attribute", "dimension_numbers are written as [b, 0, f]x[0, i, o]->[b, 0, f]")
    lhs, rhs, out = (_ROLE.findall(part) for part in parts.groups())
    try:
        (b, f, spatial), (i, o, kernel), (ob, of, output) = _roles(lhs, "bf"), _roles(rhs, "io"), _roles(out, "bf")
    except ValueError as error:
        op.fail("invalid_attribute", f"dimension_numbers: {error}")
    return ConvolutionDimensionNumbers(b, f, spatial, i, o, kernel, ob, of, output)


def _roles(labels: list[str], words: str) -> tuple[int, int, tuple[int, ...]]:
    spatial = [str(number) for number in range(len(labels) - 2)]
    if sorted(labels) != sorted([*words, *spatial]):
        raise ValueError(f"[{', '.join(labels)}] must have each of {', '.join([*words, *spatial])} once")
    return labels.index(words[0]), labels.index(words[1]), tuple(labels.index(each) for each in spatial)


@rule(*both("convolution"))
def convolution(op: Reading) -> Results:
    lhs, rhs = op.wants(2)
    numbers = dimension_numbers(op)
    spatial = numbers.kernel_spatial_dimensions
    dims = getattr(rhs.shape, "dims", ())
    sizes = tuple(dims[dim] if dim < len(dims) else 1 for dim in spatial)
    return op.result(
        "convolution",
        lhs,
        rhs,
        window=window_of(op, sizes, "lhs_dilation", "rhs_dilation"),
        dimension_numbers=numbers,
        feature_group_count=op.integer("feature_group_count", 1),
        batch_group_count=op.integer("batch_group_count", 1),
        **precision(op),
        **preferred(op, lhs, rhs),
    )


def window_of(op: Reading, sizes: tuple[int, ...], base: str, dilation: str) -> tuple[WindowDimension, ...]:
    """The window of these sizes with the strides, padding and dilations that the attributes of these names say."""
    ones = (1,) * len(sizes)
    columns = {
        "stride": op.integers("window_strides", None) or ones,
        "base_dilation": op.integers(base, None) or ones,
        "window_dilation": op.integers(dilation, None) or ones,
        "window_reversal": op.flags("window_reversal", None) or (False,) * len(sizes),
    }
    padding = op.table("padding", None) or ((0, 0),) * len(sizes)
    for key, values in {**columns, "padding": padding}.items():
        if len(values) != len(sizes):
            op.fail(
                "invalid_attribute", f"{key} is given for {len(values)} dimensions, and the window has {len(sizes)}"
            )
    if any(len(pair) != 2 for pair in padding):
        op.fail("invalid_attribute", "padding is (low, high) for each dimension")
    return tuple(
        WindowDimension(
            size,
            *_at(columns, n, "stride"),
            *padding[n],
            *_at(columns, n, "window_dilation", "base_dilation", "window_reversal"),
        )
        for n, size in enumerate(sizes)
    )


def _at(columns: dict[str, Any], number: int, *keys: str) -> list[Any]:
    return [columns[key][number] for key in keys]


@rule(*both("triangular_solve"))
def triangular_solve(op: Reading) -> Results:
    flags = {key: op.flag(key) for key in ("left_side", "lower", "unit_diagonal")}
    return op.result("triangular_solve", *op.wants(2), **flags, transpose_a=op.word("transpose_a"))


@rule(*both("cholesky"))
def cholesky(op: Reading) -> Results:
    return op.result("cholesky", *op.wants(1), lower=op.flag("lower", False))


@rule(*both("fft"))
def fft(op: Reading) -> Results:
    return op.result("fft", *op.wants(1), fft_type=op.word("fft_type"), fft_length=op.integers("fft_length"))


@rule(*both("batch_norm_training", "batch_norm_inference", "batch_norm_grad"))
def batch_norm(op: Reading) -> Results:
    opcode = op.operation.name.partition(".")[2]
    numbers = {"epsilon": op.number("epsilon"), "feature_index": op.integer("feature_index")}
    made = op.result(opcode, *op.wants(3 if opcode == "batch_norm_training" else 5), **numbers)
    return op.one_or_elements(made)
