"""Entries whose derivative is another than JAX's, or is refused, each with the reason."""

from __future__ import annotations

DIFFERENT = {
    "stop_gradient": "the mark is JAX's alone: nothing of it is in HLO, where the value is one with its other uses",
    "sign of complex": "JAX states zero, though z / |z| turns with z: here it has its derivative",
    "min to rows outside, clip": "JAX gathers with the index that was given, not with the clipped one, and gets -inf",
}

TWICE = {
    **DIFFERENT,
    "max to rows outside, clip": DIFFERENT["min to rows outside, clip"],
}

REFUSED: dict[str, str] = {}


def settled(name: str, verdict: str, times: int = 1) -> str:
    """The verdict by its first word, `unexplained` where it is none that was stated."""
    kind = verdict.partition(":")[0]
    stated = "different" if name in (TWICE if times == 2 else DIFFERENT) else "refused" if name in REFUSED else "equal"
    return kind if kind == stated else "unexplained"
