"""Entries whose derivative is another than JAX's, or is refused, each with the reason."""

from __future__ import annotations

DIFFERENT = {
    "stop_gradient": "the mark is JAX's alone: nothing of it is in HLO, where the value is one with its other uses",
    "abs at 0": "the middle of both slopes, 0, where JAX's rule takes that of the right side",
    "sign of complex": "JAX states zero, though z / |z| turns with z: here it has its derivative",
    "min to rows outside, clip": "JAX gathers with the index that was given, not with the clipped one, and gets -inf",
}

_COUNTED = "zeros among the factors are counted, and a count has no derivative: the second one is NaN there"
_NOT_IN_JAX = "JAX has no second derivative of ragged_dot"
TWICE = {
    **DIFFERENT,
    "max to rows outside, clip": DIFFERENT["min to rows outside, clip"],
    "scatter of products, repeated": _COUNTED,
    **dict.fromkeys(("ragged_dot", "ragged_dot with a rest", "experts in runs"), _NOT_IN_JAX),
}

REFUSED: dict[str, str] = {}


def settled(name: str, verdict: str, times: int = 1) -> str:
    """The verdict by its first word, `unexplained` where it is none that was stated."""
    kind = verdict.partition(":")[0]
    if times == 2:
        return "stated" if name in TWICE and kind != "equal" else kind if kind == "equal" else "unexplained"
    stated = "different" if name in DIFFERENT else "refused" if name in REFUSED else "equal"
    return kind if kind == stated else "unexplained"
