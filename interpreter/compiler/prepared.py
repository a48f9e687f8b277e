"""Calls that are prepared when a plan is made: the text of an op whose shapes, axes and types are known by then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from shape_inference import Shape
from shape_inference.types import f32, f64
from xbuild.core.graph import Instruction

from ..kernels.dots import prepared_dot
from ..kernels.folds import reducer
from ..kernels.functions import chooser
from ..kernels.moving import broadcaster, slicer
from ..kernels.products import UNKNOWN, Settled
from ..rules.region import AppliedComputation
from .facts import product_facts
from .shortcuts import Shortcuts, native_type, static_shape

if TYPE_CHECKING:
    from .emit import Emitter


def prepared_text(
    emitter: Emitter, instruction: Instruction, operands: Sequence[str], shortcuts: Shortcuts
) -> str | None:
    """The op as a Python expression of its operands; None if the value rule must be called."""
    write = _TEXTS.get(instruction.opcode)
    if write is None or emitter.options.lifted or static_shape(instruction) is None:
        return None
    if any(static_shape(operand) is None for operand in instruction.operands):
        return None
    if instruction in shortcuts.products:
        return _product_text(emitter, shortcuts.products[instruction], operands, is_transposed=True)
    return write(emitter, instruction, operands)


def _reshape_text(emitter: Emitter, instruction: Instruction, operands: Sequence[str]) -> str | None:
    dims = instruction.shape.dims  # type: ignore[union-attr]
    return f"{operands[0]}.reshape({dims})" if dims else None


def _transpose_text(emitter: Emitter, instruction: Instruction, operands: Sequence[str]) -> str:
    return f"{operands[0]}.transpose({instruction.attributes.permutation})"


def _slice_text(emitter: Emitter, instruction: Instruction, operands: Sequence[str]) -> str | None:
    a = instruction.attributes
    steps = a.strides or (1,) * len(a.start_indices)
    parts = zip(a.start_indices, a.limit_indices, steps, strict=True)
    index = ", ".join(f"{start}:{limit}:{step}" if step != 1 else f"{start}:{limit}" for start, limit, step in parts)
    return f"{operands[0]}[{index}]" if index else None


def _broadcast_text(emitter: Emitter, instruction: Instruction, operands: Sequence[str]) -> str:
    operand: Any = instruction.operands[0].shape
    broadcast = broadcaster(operand.dims, instruction.shape.dims, instruction.attributes.dimensions)  # type: ignore[union-attr]
    return f"{emitter.bind('r', broadcast)}({operands[0]})"


def _convert_text(emitter: Emitter, instruction: Instruction, operands: Sequence[str]) -> str | None:
    source, target = instruction.operands[0].shape.dtype, instruction.shape.dtype  # type: ignore[union-attr]
    is_exact = source.kind in ("pred", "signed", "unsigned") and target.kind != "pred"
    is_rounded = source in (f32, f64) and target in (f32, f64)
    if source is target or not source.is_native or not target.is_native or not (is_exact or is_rounded):
        return None
    return f"{operands[0]}.astype({emitter.bind('k', target.dtype)})"


def _dynamic_slice_text(emitter: Emitter, instruction: Instruction, operands: Sequence[str]) -> str | None:
    dims, sizes = instruction.operands[0].shape.dims, instruction.attributes.dynamic_slice_sizes  # type: ignore[union-attr]
    if not dims or len(operands) != 1 + len(dims) or instruction.operands[1].shape.dims:  # type: ignore[union-attr]
        return None
    starts = [start for start, extent, size in zip(operands[1:], dims, sizes, strict=True) if extent != size]
    return f"{emitter.bind('r', slicer(dims, sizes))}({', '.join([operands[0], *starts])})"


def _reduce_text(emitter: Emitter, instruction: Instruction, operands: Sequence[str]) -> str | None:
    dimensions, dtype = instruction.attributes.dimensions, native_type(instruction)
    region = AppliedComputation.of(
        instruction.attributes.to_apply, emitter.options.sequential, flushed=emitter.options.flushed
    )
    if len(operands) != 2 or not region.reordering or not dimensions or dtype is None or region.types != (dtype,) * 2:
        return None
    reduce = reducer(region.reordering, dtype, tuple(sorted(dimensions)))
    return f"{emitter.bind('r', reduce)}({', '.join(operands)})" if reduce else None


def _select_text(emitter: Emitter, instruction: Instruction, operands: Sequence[str]) -> str | None:
    pred, on_true, on_false = (operand.shape for operand in instruction.operands)
    assert isinstance(pred, Shape)
    if not pred.dims or on_true.dtype is not on_false.dtype:  # type: ignore[union-attr]
        return None
    choose = chooser(on_true.dtype.dtype, pred.size)  # type: ignore[union-attr]
    return f"{emitter.bind('r', choose)}({', '.join(operands)})"


def _dot_text(emitter: Emitter, instruction: Instruction, operands: Sequence[str]) -> str:
    return _product_text(emitter, instruction, operands)


def _product_text(
    emitter: Emitter, instruction: Instruction, operands: Sequence[str], *, is_transposed: bool = False
) -> str:
    a, known = instruction.attributes, UNKNOWN
    if emitter.inside is not None:
        known = product_facts(
            instruction, emitter.inside, is_observed=emitter.options.watched or emitter.options.strict
        )
    lhs, rhs = (operand.shape for operand in instruction.operands)
    sides = [
        (lhs.dims, lhs.dtype.dtype, a.lhs_batch_dims, a.lhs_contracting_dims),  # type: ignore[union-attr]
        (rhs.dims, rhs.dtype.dtype, a.rhs_batch_dims, a.rhs_contracting_dims),  # type: ignore[union-attr]
    ]
    if is_transposed:
        sides.reverse()
        known = Settled(known.rhs, known.lhs, known.product)
    product = prepared_dot(*sides, a.preferred_element_type, known)
    return f"{emitter.bind('r', product)}({', '.join(operands)})"


_TEXTS: dict[str, Callable[[Emitter, Instruction, Sequence[str]], str | None]] = {
    "broadcast": _broadcast_text, "convert": _convert_text, "dot": _dot_text, "dynamic_slice": _dynamic_slice_text,
    "reduce": _reduce_text, "reshape": _reshape_text, "select": _select_text, "slice": _slice_text,
    "transpose": _transpose_text,
}  # fmt: skip
