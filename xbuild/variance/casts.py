"""Casts between the states of an axis that a program states; no data moves."""

from __future__ import annotations

from typing import Any, Literal

from shape_inference import refuse

from ..derived.support.dressing import dressed
from .named import AxisNames, bound, cast, each

_TO = ("varying", "reduced", "unreduced")


@dressed
def pcast(operand: Any, axis_name: AxisNames, *, to: Literal["varying", "reduced", "unreduced"]) -> Any:
    """The value itself in another state along the axes.

    There are four: invarying to varying, invarying to reduced, reduced to varying, varying to unreduced.
    Raises: unbound_axis; invalid_attribute for another `to`; unsupported_cast for to='invarying'; unsupported_cast or
    already_varying for another state that the operand is in; mixed_axis_state.

    >>> import xbuild as xb
    >>> program = xb.shard_map(lambda w: xb.mesh.pcast(w, "i", to="reduced"), xb.Mesh(i=2), xb.P(), xb.P(reduced="i"))
    >>> program(xb.f32[2]).result
    'f32[2]{R:i}'

    Source: JAX, jax.lax.pcast.
    """
    if to == "invarying":  # type: ignore[comparison-overlap]
        refuse(
            "unsupported_cast",
            "there is no cast to invarying, which is a promise that devices hold one value",
            "xb.mesh.psum, xb.mesh.pmax and xb.mesh.all_gather_invariant make one value of several",
        )
    if to not in _TO:
        refuse("invalid_attribute", f"to={to!r} is no state to cast to; there are {', '.join(_TO)}")
    region, axes = bound("pcast", axis_name)
    return each(lambda x: cast(x, f"to_{to}", axes), operand, region)


@dressed
def pvary(operand: Any, axis_name: AxisNames) -> Any:
    """An invarying value as one that may vary along the axes; its transpose is psum.

    Raises: unbound_axis; already_varying; unsupported_cast; mixed_axis_state.

    >>> import xbuild as xb
    >>> program = xb.shard_map(lambda w: xb.mesh.pvary(w, "i"), xb.Mesh(i=2), xb.P(), xb.P("i"))
    >>> program(xb.f32[2]).result
    'f32[2]{V:i}'

    Source: JAX, jax.lax.pvary.
    """
    region, axes = bound("pvary", axis_name)
    return each(lambda x: cast(x, "pvary", axes), operand, region)
