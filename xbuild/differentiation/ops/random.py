"""Ops that draw random numbers, which have no derivative."""

from __future__ import annotations

from ..rules import no_derivative, zero_derivative

zero_derivative("rng_bit_generator", "rng_get_and_update_state")
no_derivative(
    "rng",
    reason="the numbers drawn are not a function of the bounds (or mean and deviation): draw with constants, then "
    "scale and shift the numbers",
)
