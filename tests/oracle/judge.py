"""Comparison of an instance with real XLA: equal, different for a known reason, or different."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from attrs import evolve, frozen

import xbuild as xb
from interpreter.rules.denormals import Denormals
from shape_inference import primitive_type
from tests.support.compare import distance, is_float

from . import Failure, Oracle
from .chance import flushed
from .deviations import apart
from .instance import Batch, Instance, batch, leaves, mapped
from .tolerances import EXACT, Tolerance, tolerance

Array = np.ndarray[Any, Any]


@frozen(eq=False)
class Finding:
    """What came of one instance: `equal`, `apart` (with the name of the reason), `different` or `failure`."""

    instance: Instance
    kind: str
    words: str = ""

    @property
    def is_explained(self) -> bool:
        return self.kind in ("equal", "apart") or self.is_harm

    @property
    def is_harm(self) -> bool:
        """Whether XLA:CPU failed where it writes past its buffers: with two bits, and below a byte between devices."""
        return self.kind == "failure" and self.instance.dtype.bits < (8 if self.instance.devices > 1 else 4)

    def __str__(self) -> str:
        return f"{self.kind}: {self.words}\n{self.instance}"


def findings(variants: Sequence[Sequence[Instance]], oracle: Oracle) -> Iterator[Finding]:
    """One for each instance; each variant has the same shapes and attributes, and other values, for the same module.

    Where XLA refuses the module, or dies of it, its halves are tried.
    """
    try:
        whole = batch(variants[0])
    except xb.XbuildError as error:
        yield from _halved(variants, oracle, f"refused here: {error}")
        return
    for number, instances in enumerate(variants):
        fed = whole.fed(instances)
        outcome = oracle.run(fed.job)
        if isinstance(outcome, Failure):
            yield from _halved(variants[number:], oracle, outcome.message)
            return
        yield from _judged(instances, fed, outcome, is_first=number == 0)


def _halved(variants: Sequence[Sequence[Instance]], oracle: Oracle, message: str) -> Iterator[Finding]:
    middle = len(variants[0]) // 2
    if middle == 0:
        yield Finding(variants[0][0], "failure", message)
        return
    for part in (slice(middle), slice(middle, None)):
        yield from findings([instances[part] for instances in variants], oracle)


def _judged(instances: Sequence[Instance], fed: Batch, outcome: Any, *, is_first: bool) -> Iterator[Finding]:
    """What has no operands is judged once only: other values would be the same instance."""
    results = zip(instances, fed.shared_out(fed.ours()), fed.shared_out(outcome), strict=True)
    for instance, ours, theirs in results:
        if is_first or instance.operands:
            yield judged(instance, ours, theirs)


def judged(instance: Instance, ours: Sequence[Array], theirs: Sequence[Array]) -> Finding:
    theirs = [_shrunk(b, a) for a, b in zip(ours, theirs, strict=True)]
    wrong = [_wrong(instance, a, b) for a, b in zip(ours, theirs, strict=True)]
    if not any(each.any() for each in wrong):
        return Finding(instance, "equal")
    if all(_is_zero_for_subnormal(instance, a, b) for a, b in zip(_all_flushed(instance, ours), theirs, strict=True)):
        return Finding(instance, "apart", "subnormals")
    if reason := apart(instance, ours, theirs, wrong):
        return Finding(instance, "apart", reason)
    return Finding(instance, "different", _words(instance, ours, theirs, wrong))


def _shrunk(theirs: Array, ours: Array) -> Array:
    """Of an array with dynamic dimensions XLA gives all that is allotted; the part that is there."""
    if theirs.ndim != ours.ndim or any(n < m for n, m in zip(theirs.shape, ours.shape, strict=True)):
        return theirs
    return theirs[tuple(map(slice, ours.shape))] if theirs.shape != ours.shape else theirs


def _wrong(instance: Instance, ours: Array, theirs: Array) -> Array:
    """Which elements are farther apart than the op's tolerance."""
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return np.ones((), bool)
    allowed = tolerance(instance, primitive_type(ours.dtype))
    if ours.dtype.kind != "c" and not (allowed.is_of_largest and is_float(ours.dtype)):
        return np.asarray(distance(ours, theirs) > allowed.ulps)
    if allowed == EXACT:
        return np.asarray(distance(ours, theirs) > 0)
    return _far(ours, theirs, allowed, _size(instance, theirs) if allowed.is_of_largest else None)


def _size(instance: Instance, theirs: Array) -> float:
    """The largest element; of a moment the square of the largest operand, too, since such were subtracted."""
    arrays = [theirs, *leaves(instance.operands)] if instance.opcode.startswith("batch_norm") else [theirs]
    sizes = [np.abs(np.where(np.isfinite(parts), parts, 0)).max(initial=0) for parts in map(_parts, arrays)]
    return float(max(sizes[0], *(size * size for size in sizes[1:]), 0))


def _far(ours: Array, theirs: Array, allowed: Tolerance, size: float | None) -> Array:
    """Farther apart than so many units in the last place of the larger part, or of a number of this size."""
    a, b = _parts(ours), _parts(theirs)
    with np.errstate(all="ignore"):
        sizes = np.abs(np.where(np.isfinite(b), b, 0)).max(axis=0) if size is None else size
        close = np.abs(a - b) <= allowed.ulps * float(ml_dtypes.finfo(ours.dtype).eps) * sizes
    same = close | (a == b) | (np.isnan(a) & np.isnan(b))
    return np.asarray(~same.all(axis=0))


def _parts(array: Array) -> Array:
    """Real numbers, or the two parts of complex ones, in double precision along a new first dimension."""
    parts = (array.real, array.imag) if array.dtype.kind == "c" else (array,)
    return np.stack([np.asarray(part).astype(np.float64) for part in parts])


def _all_flushed(instance: Instance, ours: Sequence[Array]) -> list[list[Array]]:
    """For each leaf what may come where subnormal numbers are zeros, in the operands or in the results, or are kept.

    They are kept where XLA leaves an op out, or gives its operand.
    """
    with np.errstate(all="ignore"):
        zeros = evolve(instance, operands=mapped(lambda a: flushed(np.asarray(a)), instance.operands))
        columns = [ours, _alone(zeros, "flush"), _alone(instance, "keep")]
    return [[a, flushed(a), b, flushed(b), c, flushed(a, at_most=True)] for a, b, c in zip(*columns, strict=True)]


def _alone(instance: Instance, denormals: Denormals) -> list[Array]:
    """The leaves of one instance."""
    only = batch([instance])
    (results,) = only.shared_out(only.ours(denormals))
    return results


def _is_zero_for_subnormal(instance: Instance, choices: list[Array], theirs: Array) -> bool:
    """Whether each element is one of the choices."""
    if any(choice.shape != theirs.shape for choice in choices):
        return False
    return bool(np.all(np.logical_and.reduce([_wrong(instance, choice, theirs) for choice in choices]) == 0))


def _words(instance: Instance, ours: Sequence[Array], theirs: Sequence[Array], wrong: Sequence[Array]) -> str:
    """What differs, where, and the elements of the operands at the same places."""
    rows = []
    for number, (a, b, mask) in enumerate(zip(ours, theirs, wrong, strict=True)):
        if a.shape != b.shape or a.dtype != b.dtype:
            rows.append(f"leaf {number}: ours {a.dtype}{a.shape}, XLA {b.dtype}{b.shape}")
        elif mask.any():
            where = [list(map(int, place)) for place in np.argwhere(mask)[:6]]
            rows.append(f"leaf {number} at {where}: ours {a[mask][:6]!r}, XLA {b[mask][:6]!r}")
            rows += [f"operand {o[mask][:6]!r}" for o in leaves(instance.operands) if o.shape == mask.shape]
    return "\n  ".join(rows)
