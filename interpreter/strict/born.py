"""Strict rules that find where NaN and infinity arise: in a result element none of whose contributors has one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from shape_inference.ops.elementwise import BINARY, UNARY
from xbuild.core.attributes import Array

from ..kernels.folds import fold
from ..kernels.lifting import widened
from ..kernels.sliding import fold_windows
from ..rules.region import Region
from ..rules.tables import compute
from .table import Evaluation, Spotted, at_elements, first, named, strict

Test: TypeAlias = Callable[[Array], Array]
Touched: TypeAlias = Callable[[Evaluation, Test], Any]
"""A function that returns the mask of result elements that have a contributor for which the test holds."""


def is_nan(value: Any) -> Array:
    return _tested(np.isnan, value)


def is_infinite(value: Any) -> Array:
    return _tested(np.isinf, value)


def _tested(test: np.ufunc, value: Any) -> Array:
    array = widened(np.asarray(value))
    return np.asarray(test(array)) if array.dtype.kind in "fc" else np.zeros(array.shape, bool)


BIRTHS: tuple[tuple[str, Test], ...] = (("nan_born", is_nan), ("inf_born", is_infinite))


def _is_finite(value: Any) -> bool:
    array = widened(np.asarray(value))
    return array.dtype.kind not in "fc" or bool(np.isfinite(array).all())


def elementwise(it: Evaluation) -> Iterator[Spotted]:
    """Find NaN result elements without a NaN operand at the same index, and likewise infinite ones."""
    if _is_finite(it.result):
        return
    for kind, test in BIRTHS:
        mask = test(it.result)
        for _, operand in named(it):
            mask = mask & ~test(operand)
        yield from at_elements(it, kind, np.broadcast_to(mask, np.shape(it.result)), "gives {result}")


def born_unless(touched: Touched, shown: Callable[[Evaluation, tuple[int, ...]], Any] | None = None) -> Any:
    """The rule of an op with many contributors per element; `touched` marks elements with a NaN or inf contributor."""

    def rule(it: Evaluation) -> Iterator[Spotted]:
        for part, result in enumerate(_arrays(it.result)):
            if not _is_finite(result):
                yield from _births(it, part, result, touched, shown or _whole)

    return rule


def _arrays(value: Any) -> Iterator[Any]:
    """The leaves of a value, without tokens."""
    if isinstance(value, tuple):
        for each in value:
            yield from _arrays(each)
    elif value is not None:
        yield value


def _births(it: Evaluation, part: int, result: Any, touched: Touched, shown: Any) -> Iterator[Spotted]:
    for kind, test in BIRTHS:
        mask = test(result)
        if mask.any() and (found := first(mask & ~np.asarray(touched(it, test)))):
            index, further = found
            yield Spotted(kind, f"gives {np.asarray(result)[index]}", index, tuple(shown(it, index)), further, part)


def _whole(it: Evaluation, index: tuple[int, ...]) -> Iterator[tuple[str, Any]]:
    return ((name, operand) for name, operand in named(it) if isinstance(operand, np.ndarray | np.generic))


@cache
def _any() -> Region:
    """The region of logical or, with which marks are folded."""
    from shape_inference.types import pred
    from xbuild.core.builder import Builder
    from xbuild.ops.elementwise import maximum
    from xbuild.ops.leaves import parameter

    builder = Builder("any")
    return Region.of(builder.build(maximum(*(parameter(builder, number=n, shape=pred[()]) for n in (0, 1)))))


def _marks(test: Test, value: Any) -> Array:
    return test(value).astype(np.float32)


def _bilinear(it: Evaluation, test: Test) -> Any:
    """The op applied to the marks of one operand and ones for the other: result elements with a marked contributor."""
    rule, given = compute[it.instruction.opcode], it.instruction.attribute_values() | {"preferred_element_type": None}
    lhs, rhs = (_marks(test, each) for each in it.operands[:2])
    rest = it.operands[2:]
    return rule(lhs, np.ones_like(rhs), *rest, **given) + rule(np.ones_like(lhs), rhs, *rest, **given) > 0


def _contracted(it: Evaluation, index: tuple[int, ...]) -> Iterator[tuple[str, Any]]:
    """The row of lhs and the column of rhs whose inner product is an element of a dot."""
    a, (lhs, rhs) = it.attributes, it.operands
    batch = len(a.lhs_batch_dims)
    lhs_free = lhs.ndim - batch - len(a.lhs_contracting_dims)
    yield "lhs", _line(lhs, a.lhs_batch_dims, a.lhs_contracting_dims, index[: batch + lhs_free])
    yield "rhs", _line(rhs, a.rhs_batch_dims, a.rhs_contracting_dims, index[:batch] + index[batch + lhs_free :])


def _line(array: Array, batch: Any, contracted: Any, index: tuple[int, ...]) -> Array:
    free = [dim for dim in range(array.ndim) if dim not in (*batch, *contracted)]
    place: dict[int, Any] = dict(zip((*batch, *free), index, strict=True))
    return np.asarray(array[tuple(place.get(dim, slice(None)) for dim in range(array.ndim))])


def _is_known(it: Evaluation, role: str = "to_apply") -> bool:
    """Whether the op folds with one known op; the instructions of any other region are checked inside the region."""
    return Region.of(getattr(it.attributes, role)).opcode is not None


def _folded(it: Evaluation, test: Test) -> Any:
    (operand,), (init,) = it.operands
    if not _is_known(it):
        return True
    return fold(_any(), (test(operand),), (test(init),), tuple(sorted(it.attributes.dimensions)))[0]


def _reduced(it: Evaluation, index: tuple[int, ...]) -> Iterator[tuple[str, Any]]:
    (operand,), (init,) = it.operands
    kept = iter(index)
    dims = range(np.ndim(operand))
    place = tuple(slice(None) if dim in it.attributes.dimensions else next(kept) for dim in dims)
    yield from (("operand", np.asarray(operand)[place]), ("init_value", init))


def _slid(it: Evaluation, test: Test) -> Any:
    (operand,), (init,) = it.operands
    return not _is_known(it) or fold_windows(_any(), (test(operand),), (test(init),), it.attributes.window)[0]


def _scattered(it: Evaluation, test: Test) -> Any:
    (operand,), indices, (update,) = it.operands
    given = it.instruction.attribute_values() | {"to_apply": _any()}
    return not _is_known(it) or compute["scatter"]((test(operand),), indices, (test(update),), **given)


def _selected(it: Evaluation, test: Test) -> Any:
    if not _is_known(it, "scatter"):
        return True
    operand, source, init = it.operands
    given = {"select": Region.of(it.attributes.select), "scatter": _any(), "window": it.attributes.window}
    marks = [test(each).astype(operand.dtype) for each in (source, init)]
    return compute["select_and_scatter"](operand, *marks, **given) != 0


def _within(axes: Callable[[Evaluation, Array], Any]) -> Touched:
    """The test of an op whose result elements depend on all operand elements along `axes`."""

    def touched(it: Evaluation, test: Test) -> Any:
        return np.any([np.any(test(each), axes(it, each), keepdims=True) for each in it.operands], 0)

    return touched


def _anywhere(it: Evaluation, test: Test) -> bool:
    return any(test(operand).any() for operand in _arrays(it.operands))


def single(rule: Any) -> Any:
    """The rule, applied only if the op folds one array; a region that folds several arrays is checked inside."""

    def checked(it: Evaluation) -> Iterator[Spotted]:
        if len(it.operands[0]) == 1:
            yield from rule(it)

    return checked


_OF_INTEGERS_TOO = frozenset({
    "divide", "power", "remainder", "shift_left", "shift_right_arithmetic", "shift_right_logical",
})  # fmt: skip

for _opcode in sorted((UNARY.keys() | BINARY.keys()) - _OF_INTEGERS_TOO):
    strict.enter(_opcode, elementwise)


@strict
def map(it: Evaluation) -> Iterator[Spotted]:
    if _is_known(it):
        yield from elementwise(it)


scatter_births = single(born_unless(_scattered))

for _opcode, _rule in {
    "dot": born_unless(_bilinear, _contracted),
    "ragged_dot": born_unless(_bilinear),
    "scaled_dot": born_unless(_anywhere),
    "convolution": born_unless(_bilinear),
    "reduce": single(born_unless(_folded, _reduced)),
    "reduce_window": single(born_unless(_slid)),
    "select_and_scatter": born_unless(_selected),
    "cholesky": born_unless(_within(lambda it, each: (-2, -1))),
    "triangular_solve": born_unless(_within(lambda it, each: (-2, -1))),
    "fft": born_unless(_within(lambda it, each: tuple(range(-len(it.attributes.fft_length), 0)))),
    "batch_norm_training": born_unless(_anywhere),
    "batch_norm_inference": born_unless(_anywhere),
    "batch_norm_grad": born_unless(_anywhere),
    "iota": born_unless(_anywhere),
    "rng": born_unless(_anywhere),
    "custom_call": born_unless(_anywhere),
}.items():
    strict.enter(_opcode, _rule)


def members(it: Evaluation) -> Iterator[Spotted]:
    """Find NaN and infinity that arise in a reducing collective, whose contributors are the operands of all members."""
    results = it.result if isinstance(it.result, tuple) else (it.result,)
    columns: Sequence[Any] = list(zip(*it.operands, strict=True))
    for part, (result, column) in enumerate(zip(results, columns, strict=True)):
        for kind, test in BIRTHS:
            mask = test(result)
            for brought in column:
                mask = mask & ~test(brought)
            if found := first(mask):
                index, further = found
                values = tuple((f"member {n}", np.asarray(each)[index]) for n, each in enumerate(column))
                yield Spotted(kind, f"gives {np.asarray(result)[index]}", index, values, further, part)


OF_FLOATS = frozenset(strict.values())
"""The rules of this module, which find nothing in results without floats."""

strict.enter("all_reduce", members)
strict.enter("reduce_scatter", members)
