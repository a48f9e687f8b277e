"""Sharding rules: for each op which dimensions of its operands and results are cut together."""

from . import (
    calls,
    collectives,
    contraction,
    elementwise,
    indexing,
    leaves,
    linear_algebra,
    ordering,
    reduction,
    scattering,
    shaping,
    slicing,
    windows,
)
from .table import role_of, rule_of, sharding_rule

__all__ = [
    "calls", "collectives", "contraction", "elementwise", "indexing", "leaves", "linear_algebra", "ordering",
    "reduction", "role_of", "rule_of", "scattering", "shaping", "sharding_rule", "slicing", "windows",
]  # fmt: skip
