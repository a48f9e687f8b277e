"""The user's derivative rules of custom calls, by target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from shape_inference import Shape

from ..core.builder import Value
from ..core.diagnostics import BuildError
from .rules import Pullback, refuse_derivative

Rule = Callable[..., Any]

_RULES: dict[str, Rule] = {}


def custom_vjp(target: str) -> Callable[[Rule], Rule]:
    """Decorate a function that computes the operands' cotangents for custom calls of this target.

    When a derivative is built, xbuild calls rule(ct, result, *operands) with values of the program being recorded. The
    rule returns a tuple with one cotangent for each operand; a cotangent has the operand's shape, or is None for zeros.
    If the call has one operand, the rule may return the cotangent itself. A later rule for the same target replaces an
    earlier rule.
    Raises, when a derivative is built: not_differentiable if the rule returns a different number of cotangents, or if
    their shapes differ from those of the operands.

    >>> import xbuild as xb
    >>> from interpreter import evaluate
    >>> @xb.custom_call_target("cubed")
    ... def _(x):
    ...     return x * x * x
    >>> @xb.custom_vjp("cubed")
    ... def _(ct, result, x):
    ...     return ct * 3.0 * x * x
    >>> cubed = xb.computation(xb.f32[()])(lambda x: xb.custom_call(x, "cubed", xb.f32[()]))
    >>> evaluate(xb.grad(cubed), 2.0)
    np.float32(12.0)

    Source: JAX, jax.custom_vjp.
    """
    if not isinstance(target, str):
        raise TypeError(f"custom_vjp: expected a string as the custom-call target, got {target!r}")

    def register(rule: Rule) -> Rule:
        _RULES[target] = rule
        return rule

    return register


def find_custom_rule(target: str) -> Callable[[Pullback, Sequence[Value]], Sequence[Any]] | None:
    """The rule of a target, with the arguments of an op's rule; None if the user registered none."""
    rule = _RULES.get(target)
    return None if rule is None else lambda back, operands: _apply_custom_rule(rule, back, operands)


def _apply_custom_rule(rule: Rule, back: Pullback, operands: Sequence[Value]) -> Sequence[Any]:
    returned = rule(back.ct, back.result, *operands)
    cotangents = (returned,) if len(operands) == 1 and not isinstance(returned, tuple | list) else returned
    if not isinstance(cotangents, tuple | list) or len(cotangents) != len(operands):
        number = len(cotangents) if isinstance(cotangents, tuple | list) else 1
        refuse_derivative(
            f"its custom_vjp returned {number} cotangents for {len(operands)} operands; return a cotangent or "
            "None for each operand"
        )
    for n, (cotangent, operand) in enumerate(zip(cotangents, operands, strict=True)):
        _check_cotangent(n, cotangent, operand)
    return cotangents


def _check_cotangent(n: int, cotangent: Any, operand: Value) -> None:
    if cotangent is None or not isinstance(operand.shape, Shape):
        return
    if not isinstance(cotangent, Value):
        raise BuildError("invalid_operand", f"custom_vjp: expected a value or None as cotangent {n}, got {cotangent!r}")
    if not isinstance(cotangent.shape, Shape) or cotangent.shape.dims != operand.shape.dims:
        refuse_derivative(
            f"its custom_vjp returned a cotangent of shape {cotangent.shape} for operand {n}, which is {operand.shape}"
        )
