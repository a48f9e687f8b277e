"""Cotangents of ops that slide windows: each goes by the same window the other way."""

from __future__ import annotations

from shape_inference import PrimitiveType
from shape_inference.convolutions import ConvolutionDimensionNumbers
from shape_inference.windows import Window, WindowDimension

from ... import ops
from ...core.builder import Value, Values
from ...core.graph import Computation
from ..forms.arrays import array_of, compared, in_type, like, selected
from ..forms.convolutions import Convolution, input_cotangent, kernel_cotangent, mirrored
from ..forms.regions import applied, cotangents, element, folds, is_identity
from ..forms.winners import Preference, added_at, read_at, winners
from ..regions.folds import Windows, of_others
from ..rules import Cotangents, Pullback, full, refuse_derivative, vjp
from ..support import broadcast_to, total


def at_least(first: Value, second: Value) -> Value:
    return compared(first, second, "GE")


def at_most(first: Value, second: Value) -> Value:
    return compared(first, second, "LE")


_PREFERENCES = {"maximum": at_least, "minimum": at_most}
_WAY_OUT = "xb.custom_vjp(target) gives a custom_call a rule of your own"


@vjp
def reduce_window(
    back: Pullback, operands: Values, init_values: Values, *, to_apply: Computation, window: Window
) -> Cotangents:
    """Each operand by itself, where no fold reads the elements of another."""
    count = len(operands)
    found: list[Value | None] = [None] * (2 * count)
    for number, (fold, ct) in enumerate(zip(folds(to_apply, count), cotangents(back, count), strict=True)):
        wants = back.wants(number), back.wants(count + number)
        if ct is None or not any(wants):
            continue
        part = Windows(operands[number], init_values[number], ct, wants, window)
        if fold in ("add", *_PREFERENCES):
            row = _folded(fold, part, element(back, number, count))
        else:
            row = of_others(back, to_apply, fold, count, part)
        found[number], found[count + number] = row
    return tuple(found)


def _folded(fold: str, part: Windows, result: Value) -> tuple[Value | None, Value | None]:
    """The cotangents of an operand and of its init value, which is one more element of each window."""
    operand, init, ct = part.operand, part.init, part.ct
    rest, from_init = ct, ct
    if fold in _PREFERENCES and not is_identity(init, fold):
        is_init = compared(result, broadcast_to(in_type(init, array_of(ct).dtype), array_of(ct).dims), "EQ")
        rest, from_init = selected(ops.not_(is_init), ct), selected(is_init, ct)
    init_ct = like(total(from_init), init) if part.wants[1] else None
    if not part.wants[0] or not array_of(operand).size or not array_of(ct).size:
        return None, init_ct
    if fold == "add":
        return like(_summed_back(rest, operand, part.window), operand), init_ct
    return like(_to_the_best(rest, operand, part.window, _PREFERENCES[fold]), operand), init_ct


def _summed_back(ct: Value, operand: Value, window: Window) -> Value:
    """For each element the sum of the cotangents of the windows that cover it."""
    extents = zip(window, array_of(operand).dims, array_of(ct).dims, strict=True)
    zero = full(ct.builder, 0, array_of(ct).dtype[()])
    back = tuple(mirrored(*each) for each in extents)
    return ops.reduce_window((ct,), (zero,), to_apply=ops.add, window=back)


def _to_the_best(ct: Value, operand: Value, window: Window, prefers: Preference) -> Value:
    """The cotangent of each window to its first greatest (or least) element."""
    operand = in_type(operand, array_of(ct).dtype)
    if any(dim.window_dilation > 1 or dim.base_dilation > 1 for dim in window):
        return added_at(ct, winners(operand, window, prefers), array_of(operand))
    zero = full(ct.builder, 0, array_of(ct).dtype[()])
    return ops.select_and_scatter(operand, ct, zero, select=prefers, scatter=ops.add, window=window)


@vjp
def select_and_scatter(
    back: Pullback,
    operand: Value,
    source: Value,
    init_value: Value,
    *,
    select: Computation,
    scatter: Computation,
    window: Window,
) -> Cotangents:
    """A source's cotangent is that of the element which its window selected; which one that is has no derivative."""
    if not (back.wants(1) or back.wants(2)):
        return None, None, None
    if folds(scatter, 1) != ("add",):
        refuse_derivative("only values that are added to what their window selects have a derivative here", _WAY_OUT)
    init_ct = total(back.ct) if back.wants(2) else None
    if not back.wants(1) or not array_of(operand).size or not array_of(source).size:
        return None, None, init_ct
    places = winners(operand, window, lambda first, second: applied(select, (first, second)))
    return None, read_at(back.ct, places, not any(map(_may_miss, window))), init_ct


def _may_miss(dim: WindowDimension) -> bool:
    """Whether a place of the window may cover padding and holes alone."""
    return dim.padding_low > 0 or dim.padding_high > 0 or dim.base_dilation > 1


@vjp
def convolution(
    back: Pullback,
    lhs: Value,
    rhs: Value,
    *,
    window: Window,
    dimension_numbers: ConvolutionDimensionNumbers,
    feature_group_count: int,
    batch_group_count: int,
    operand_precision: tuple[str, ...],
    preferred_element_type: PrimitiveType | None,
) -> Cotangents:
    if not all(array_of(each).size for each in (lhs, rhs, back.ct)):
        return None, None
    given = Convolution(lhs, rhs, window, dimension_numbers, feature_group_count, batch_group_count, operand_precision)
    return (
        input_cotangent(given, back.ct) if back.wants(0) else None,
        kernel_cotangent(given, back.ct) if back.wants(1) else None,
    )
