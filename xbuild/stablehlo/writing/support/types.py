"""Types of values in MLIR text."""

from __future__ import annotations

from shape_inference import AnyShape, PrimitiveType, Shape, TokenShape, TupleShape, leaves

from ...spelling.element_types import TYPE_NAMES
from .refusals import refuse_type

TOKEN = "!stablehlo.token"


def element_type(dtype: PrimitiveType) -> str:
    return TYPE_NAMES.get(dtype) or refuse_type(dtype)


def type_text(shape: AnyShape) -> str:
    """The type of a value; a dimension that is only bounded is `?`, with its bound in the encoding.

    >>> import xbuild as xb
    >>> type_text(xb.f32[2, 3]), type_text(xb.parse_shape("s8[4,<=3]")), type_text(xb.TupleShape((xb.pred[()],)))
    ('tensor<2x3xf32>', 'tensor<4x?xi8, #stablehlo.bounds<?, 3>>', 'tuple<tensor<i1>>')
    """
    if isinstance(shape, TokenShape):
        return TOKEN
    if isinstance(shape, TupleShape):
        return f"tuple<{', '.join(map(type_text, shape.elements))}>"
    if not shape.is_dynamic:
        return f"tensor<{''.join([f'{n}x' for n in shape.dims])}{element_type(shape.dtype)}>"
    return _bounded(shape)


def _bounded(shape: Shape) -> str:
    sizes = zip(shape.dims, shape.dynamic, strict=True)
    extents = "".join(["?x" if is_bound else f"{n}x" for n, is_bound in sizes])
    bounds = ", ".join([str(n) if is_bound else "?" for n, is_bound in zip(shape.dims, shape.dynamic, strict=True)])
    return f"tensor<{extents}{element_type(shape.dtype)}, #stablehlo.bounds<{bounds}>>"


def leaf_types(shape: AnyShape) -> list[str]:
    """The types of the arrays and tokens of a value, with tuples dissolved."""
    return [type_text(leaf) for leaf in leaves(shape)]


def several(types: list[str]) -> str:
    """The types of results: one stands alone."""
    return types[0] if len(types) == 1 else f"({', '.join(types)})"
