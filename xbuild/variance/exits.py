"""What a region promises of its results: each has to be of the type that its out_spec states."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NoReturn

from shape_inference import AnyShape, Shape, refuse

from ..properties.mesh import Mesh
from ..properties.variances import Type, Variance
from .rules.site import told
from .specs import P, Specs, mapped


def checked(mesh: Mesh, specs: Specs, shape: AnyShape, given: Type, free: Sequence[bool] = ()) -> Type:
    """The types that results are cast to; refuses a result that is not what its spec promises.

    `free` tells of each leaf whether it is a cotangent that is zero, which is of any type.
    """
    types = itertools.zip_longest(_leaves(given), free)

    def leaf(spec: P, part: Shape, path: str) -> Variance:
        spec.check(mesh, path)
        spec.whole(mesh, part, path)
        found, is_free = next(types)
        return spec.variance if is_free else _checked(mesh, spec, path, found)

    return mapped(leaf, specs, shape, "out_specs")


def _leaves(given: Type) -> list[Variance]:
    return [each for part in given for each in _leaves(part)] if isinstance(given, tuple) else [given]


def _checked(mesh: Mesh, spec: P, path: str, found: Variance) -> Variance:
    wanted = spec.variance
    lacking = mesh.ordered(found.varying - wanted.varying)
    hidden = mesh.ordered(axis for axis in found.unreduced if wanted.state(axis) == "invarying")
    if lacking or hidden:
        _refuse_variation(mesh, spec, path, found, lacking or hidden)
    for axis in mesh.axes:
        states = found.state(axis), wanted.state(axis)
        if states[0] != states[1] and states != ("invarying", "varying"):
            _refuse_state(mesh, spec, path, found, axis)
    return wanted


def _refuse_variation(mesh: Mesh, spec: P, path: str, found: Variance, axes: tuple[str, ...]) -> NoReturn:
    named = ", ".join(map(repr, axes))
    promised = "is one value along" if not found.unreduced & {*axes} else "is no part of a sum along"
    ways = {
        True: ("sum it", f"xb.mesh.psum(..., {axes[0]!r})"),
        False: ("make it one value", f"xb.mesh.psum, xb.mesh.pmax or xb.mesh.all_gather_invariant over {named}"),
    }[bool(found.unreduced & {*axes})]
    refuse(
        "out_spec_not_replicated",
        f"on {mesh} {path} is {spec}, which promises that the result {promised} mesh "
        f"axis {named}; inferred is {told(found, mesh)}",
        f"if it differs, say so: an out_spec that mentions {named}"
        + (f", or unreduced={{{named}}}" if found.unreduced & {*axes} else ""),
        f"if it must not, {ways[0]}: {ways[1]}",
    )


def _refuse_state(mesh: Mesh, spec: P, path: str, found: Variance, axis: str) -> NoReturn:
    wanted, came = spec.variance.state(axis), found.state(axis)
    refuse(
        "state_mismatch",
        f"on {mesh} {path} is {spec}, which promises that the result is {wanted} along mesh "
        f"axis {axis!r}; inferred is {told(found, mesh)}, {came}",
        "an out_spec for what it is, or a cast: xb.mesh.pcast",
    )
