"""The cotangent of what a computation folds, from what it makes of the elements before and after each one."""

from __future__ import annotations

from attrs import frozen

from shape_inference import Shape
from shape_inference.windows import Window

from ... import ops
from ...core.builder import Value
from ...core.graph import Computation
from ..forms.arrays import array_of, in_type, like, reshaped
from ..forms.patches import along_window, covered, elements, folds_of_others
from ..forms.regions import applied
from ..forms.winners import added_at
from ..recorder import Recorder
from ..rules import Pullback, full, refuse_derivative
from ..support import broadcast_to, total
from .calls import _parameters, recorder_of
from .halves import halves_of


def mapped(region: Computation, lhs: Value, rhs: Value) -> Value:
    """A fold of two scalars on the elements of two arrays."""
    return ops.map((lhs, rhs), to_apply=region, dimensions=tuple(range(array_of(lhs).rank)))


def slope_of(back: Pullback, region: Computation, before: Value, x: Value, after: Value) -> Value:
    """How f(f(before, x), after) moves with x, for each element of arrays."""
    key = "slope", region
    if key not in back.context.known:
        back.context.known[key] = _slope(back, recorder_of(back), region)
    rank = array_of(x).rank
    return ops.map((before, x, after), to_apply=back.context.known[key], dimensions=tuple(range(rank)))


def _slope(back: Pullback, recorder: Recorder, region: Computation) -> Computation:
    """The same of scalars, as a computation."""
    scalar = array_of_root(region)
    joint = recorder.inner(f"{region.name}.joint", back.instruction)
    first, x, last = _parameters(joint, [scalar] * 3)
    whole = joint.built(applied(region, (applied(region, (first, x)), last)))
    halves = halves_of(back.context, recorder, whole, (False, True, False), True, lambda leaf: True, True)
    inner = recorder.inner(f"{region.name}.slope", back.instruction)
    parameters = _parameters(inner, [scalar] * 3)
    return inner.built(halves.run_back(inner, [], parameters, [full(inner, 1, scalar)])[1])


def array_of_root(region: Computation) -> Shape:
    assert isinstance(region.root.shape, Shape), region
    return region.root.shape.plain()


@frozen(eq=False)
class Windows:
    """One operand of a reduce_window, its init value, which of them want a cotangent, and that of the result."""

    operand: Value
    init: Value
    ct: Value
    wants: tuple[bool, bool]
    window: Window

    @property
    def is_empty(self) -> bool:
        return not array_of(self.ct).size or not array_of(self.operand).size

    def init_cotangent(self, by_window: Value) -> Value | None:
        return like(total(by_window), self.init) if self.wants[1] else None


def of_others(
    back: Pullback, region: Computation, fold: str | None, count: int, part: Windows
) -> tuple[Value | None, Value | None]:
    """The cotangents of an operand and its init value: the windows are laid out, and the rest of each is folded."""
    _check(region, fold, count, part)
    if part.is_empty:
        return None, part.init_cotangent(part.ct)
    numbers = covered(part.ct.builder, array_of(part.operand).dims, array_of(part.ct).dims, part.window)
    if fold == "multiply":
        return _of_products(part, numbers)
    x = elements(part.operand, numbers, part.init)
    before, after = folds_of_others(x, lambda a, b: mapped(region, a, b), part.init)
    along = along_window(part.ct, array_of(x).dims[-1])
    share = ops.multiply(along, slope_of(back, region, before, x, after))
    return added_at(share, numbers, array_of(part.operand)), None


def _check(region: Computation, fold: str | None, count: int, part: Windows) -> None:
    """Refuse a fold of several operands together, of several types, or from an init value that varies."""
    scalar = array_of(part.init)
    is_plain = count == 1 and all(part.shape == scalar for part in (*region.parameters, region.root))
    if fold != "multiply" and (fold is not None or not is_plain or part.wants[1]):
        refuse_derivative(
            "only windows that are summed, multiplied, folded from its identity on by one associative function of two "
            "numbers, or of which the greatest or least element is taken, have a derivative",
            "write the windows with xb.slice, and fold these",
        )


def _of_products(part: Windows, numbers: Value) -> tuple[Value | None, Value | None]:
    """The product of all others, found without a division, so that zeros do not matter."""
    dtype = array_of(part.ct).dtype
    one = full(part.ct.builder, 1, dtype[()])
    x = elements(in_type(part.operand, dtype), numbers, one)
    before, after = folds_of_others(x, ops.multiply, one)
    others, sizes = ops.multiply(before, after), array_of(x).dims
    share = ops.multiply(along_window(part.ct, sizes[-1]), broadcast_to(in_type(part.init, dtype), sizes))
    share = ops.multiply(share, others)
    whole = ops.multiply(others, x)
    first = ops.slice(whole, start_indices=(0,) * len(sizes), limit_indices=(*sizes[:-1], 1), strides=(1,) * len(sizes))
    products = ops.multiply(part.ct, reshaped(first, sizes[:-1]))
    found = like(added_at(share, numbers, array_of(part.operand)), part.operand) if part.wants[0] else None
    return found, part.init_cotangent(products)
