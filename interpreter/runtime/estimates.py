"""Refusals before a run, from shapes only: by a lower bound on its time, and by the bytes of its values.

The rates exceed those of any machine of today, and only instructions that are certain to be executed count, so that no
run that could end within its limit is refused.
"""

from __future__ import annotations

from math import prod

from shape_inference import Shape, leaves
from shape_inference.ops.elementwise import BINARY, UNARY
from xbuild.core.graph import Computation, Instruction, Module
from xbuild.core.memos import remembered
from xbuild.core.op import opcodes

from ..compiler.facts import MOST_BYTES, largest_buffer, largest_value, live
from ..rules.limits import Limits
from ..rules.region import AppliedComputation
from .report import Report, Stopped, too_large

ELEMENTS = 1e11  # elements that are touched in a second
PRODUCTS = 1e13  # products that a matrix product sums in a second
STEPS = 1e8  # instructions that are executed in a second
YEAR = 3.2e7

_TOUCHES_RESULT = frozenset({
    *UNARY, *BINARY, "clamp", "compare", "concatenate", "gather", "pad", "reduce_precision", "scatter", "select",
    "select_and_scatter", "sort",
})  # fmt: skip
_CALLS = opcodes(lambda op: op.calls in ("once", "wrapped"))
_APPLIES = opcodes(lambda op: op.calls == "elements")


def check_time(module: Module, limits: Limits) -> None:
    """Stop a program, before the run, that cannot end within the limit of seconds; the default limit is a year."""
    limit = YEAR if limits.seconds is None else limits.seconds
    seconds = least_seconds(module.entry)
    if seconds > limit:
        instruction = max(live(module.entry), key=_seconds)
        source = f" at {instruction.source}" if instruction.source else ""
        message = (
            f"the run would take at least {_duration_text(seconds)}, but the limit is {limit:g} seconds; most of "
            f"the time goes to %{instruction.name} = {instruction.shape} "
            f"{instruction.opcode.replace('_', '-')}{source}"
        )
        raise Stopped(Report("limit_seconds", message))


def check_bytes(module: Module, limits: Limits) -> None:
    """Stop a program, before the run, one of whose values exceeds the limit of bytes."""
    instruction = largest_buffer(module.entry)
    if limits.bytes is not None and instruction.shape.bytes > limits.bytes:
        raise Stopped(too_large(instruction, limits.bytes))
    view = largest_value(module.entry)
    if view.shape.bytes > MOST_BYTES:
        raise Stopped(too_large(view, MOST_BYTES))


@remembered
def least_seconds(computation: Computation) -> float:
    """A lower bound on the seconds that a run of a computation takes, with every call counted."""
    return sum(map(_seconds, live(computation)))


def _seconds(instruction: Instruction) -> float:
    opcode, called = instruction.opcode, instruction.called
    seconds = 1 / STEPS + _work(instruction)
    if opcode in _CALLS:
        return seconds + sum(map(least_seconds, called))
    if opcode == "conditional":
        return seconds + min(map(least_seconds, called))
    if opcode == "while":
        return seconds + least_seconds(instruction.attributes.condition)
    if opcode in _APPLIES and _elements(instruction.operands[0]) > (opcode != "map"):
        return seconds + sum(least_seconds(callee) for callee in called if AppliedComputation.of(callee).opcode is None)
    return seconds


def _work(instruction: Instruction) -> float:
    """The least seconds for the elements that an op touches; 0 for ops that may return a view of their operand."""
    opcode = instruction.opcode
    if opcode in _TOUCHES_RESULT:
        return _elements(instruction) / ELEMENTS
    if opcode == "reduce":
        return _elements(instruction.operands[0]) / ELEMENTS
    return _elements(instruction) * _terms(instruction) / PRODUCTS if opcode == "dot" else 0.0


def _elements(instruction: Instruction) -> int:
    return sum(leaf.size for leaf in leaves(instruction.shape) if isinstance(leaf, Shape))


def _terms(dot: Instruction) -> int:
    """The number of products that a dot sums for one element."""
    shape = dot.operands[0].shape
    assert isinstance(shape, Shape)
    return prod(shape.dims[d] for d in dot.attributes.lhs_contracting_dims)


def _duration_text(seconds: float) -> str:
    """The text of a duration: `40 seconds`, `about 10^3 years`."""
    if seconds < YEAR:
        return f"{seconds:,.0f} seconds"
    return f"{seconds / YEAR:,.0f} years" if seconds < 1e3 * YEAR else f"about {seconds / YEAR:.0e} years"
