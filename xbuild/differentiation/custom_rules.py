"""Rules of the user: the cotangents of the operands of a custom call, by its target."""

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
    """A decorator: the function gives the cotangents of the operands of each custom call of this target.

    It is called as rule(ct, result, *operands) when a derivative is made, with values of the program that is recorded,
    and returns a cotangent for each operand, of its shape, or None for zeros: one alone where there is one operand,
    else a tuple. A later rule for the same target takes the place of an earlier one.
    Raises, when a derivative is made: not_differentiable where the rule gives another number of cotangents, or other
    shapes than the operands have.

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
        raise TypeError(f"custom_vjp: {target!r} is no target; a string is wanted, as custom_call has it")

    def register(rule: Rule) -> Rule:
        _RULES[target] = rule
        return rule

    return register


def rule_of(target: str) -> Callable[[Pullback, Sequence[Value]], Sequence[Any]] | None:
    """The rule of a target, on what rules of ops are given; None where there is none."""
    rule = _RULES.get(target)
    return None if rule is None else lambda back, operands: _cotangents(rule, back, operands)


def _cotangents(rule: Rule, back: Pullback, operands: Sequence[Value]) -> Sequence[Any]:
    given = rule(back.ct, back.result, *operands)
    found = (given,) if len(operands) == 1 and not isinstance(given, tuple | list) else given
    if not isinstance(found, tuple | list) or len(found) != len(operands):
        number = len(found) if isinstance(found, tuple | list) else 1
        refuse_derivative(
            f"its custom_vjp gives {number} cotangents, and {len(operands)} are wanted: one, or None, for each operand"
        )
    for n, (each, operand) in enumerate(zip(found, operands, strict=True)):
        _check(n, each, operand)
    return found


def _check(n: int, cotangent: Any, operand: Value) -> None:
    if cotangent is None or not isinstance(operand.shape, Shape):
        return
    if not isinstance(cotangent, Value):
        raise BuildError(
            "invalid_operand", f"custom_vjp: cotangent {n} is {cotangent!r}, and a value or None is wanted"
        )
    if not isinstance(cotangent.shape, Shape) or cotangent.shape.dims != operand.shape.dims:
        given, wanted = cotangent.shape, operand.shape
        refuse_derivative(f"its custom_vjp gives a cotangent {given} for operand {n}, which is {wanted}")
