"""Ops that draw random numbers, which have no derivative."""

from __future__ import annotations

from ..rules import no_derivative, zero_derivative

zero_derivative("rng_bit_generator", "rng_get_and_update_state")
no_derivative(
    "rng",
    reason=(
        "the random numbers are not a differentiable function of the bounds (or of the mean and deviation): "
        "draw them with constants, then scale and shift them"
    ),
)
