"""The value of one instruction that does not communicate; None stands for numbers that decide nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from attrs import define

from .arithmetic import BINARY, COMPARE, UNARY, bits, clamped, converted, each, folded
from .program import Computation, Instruction

Place = tuple[int, int]
Rule = Callable[[Instruction, list[Any], Place], Any]
MOST_TRIPS = 200


class Endless(Exception):
    """A loop that runs for more trips than the model follows."""


def _elementwise(instruction: Instruction, operands: list[Any], place: Place) -> Any:
    opcode, of = instruction.opcode, instruction.operands[0].type
    if len(operands) == 1:
        return each(lambda a: UNARY[opcode](a, of), operands[0])
    return each(lambda a, b: BINARY[opcode](a, b, of), *operands)


def _while(instruction: Instruction, operands: list[Any], place: Place) -> Any:
    condition, body = instruction.inner
    state = operands[0]
    for _ in range(MOST_TRIPS):
        if not evaluate(condition, [state], place):
            return state
        state = evaluate(body, [state], place)
    raise Endless


def chosen(instruction: Instruction, index: Any) -> int:
    """The branch that an index or a predicate takes: out of range is the last."""
    if instruction.operands[0].type == "pred":
        return 0 if index else 1
    return index if 0 <= index < len(instruction.inner) else len(instruction.inner) - 1


def _conditional(instruction: Instruction, operands: list[Any], place: Place) -> Any:
    branch = chosen(instruction, operands[0])
    return evaluate(instruction.inner[branch], [operands[1 + branch]], place)


def _dynamic_slice(instruction: Instruction, operands: list[Any], place: Place) -> Any:
    size = instruction.given
    start = clamped(operands[1], len(operands[0]) - size)
    return operands[0][start : start + size]


def _gather(instruction: Instruction, operands: list[Any], place: Place) -> Any:
    return tuple(operands[0][clamped(number, len(operands[0]) - 1)] for number in operands[1])


def _reshape(instruction: Instruction, operands: list[Any], place: Place) -> Any:
    (value,) = operands
    if instruction.shape.endswith("[]"):
        return value[0] if isinstance(value, tuple) else value
    return value if isinstance(value, tuple) else (value,)


RULES: dict[str, Rule] = {
    **dict.fromkeys((*UNARY, *BINARY), _elementwise),
    "constant": lambda i, a, p: i.given,
    "replica-id": lambda i, a, p: p[0],
    "partition-id": lambda i, a, p: p[1],
    "convert": lambda i, a, p: each(lambda n: converted(n, i.type), a[0]),
    "bitcast-convert": lambda i, a, p: each(lambda n: bits(n, i.operands[0].type, i.type), a[0]),
    "compare": lambda i, a, p: each(lambda x, y: int(COMPARE[i.given](x, y)), *a),
    "select": lambda i, a, p: each(lambda q, x, y: x if q else y, *a),
    "clamp": lambda i, a, p: each(lambda low, x, high: min(max(low, x), high), *a),
    "broadcast": lambda i, a, p: (a[0],) * i.given,
    "iota": lambda i, a, p: tuple(range(i.given)),
    "reduce": lambda i, a, p: folded(i.given.opcode, i.type, (a[1], *a[0])),
    "concatenate": lambda i, a, p: sum(a, ()),
    "reverse": lambda i, a, p: a[0][::-1],
    "slice": lambda i, a, p: a[0][slice(*i.given)],
    "dynamic-slice": _dynamic_slice,
    "gather": _gather,
    "reshape": _reshape,
    "opt-barrier": lambda i, a, p: a[0],
    "tuple": lambda i, a, p: tuple(a),
    "get-tuple-element": lambda i, a, p: a[0][i.given],
    "after-all": lambda i, a, p: None,
    "fusion": lambda i, a, p: evaluate(i.inner[0], a, p),
    "call": lambda i, a, p: evaluate(i.inner[0], a, p),
    "while": _while,
    "conditional": _conditional,
}
Ready = Callable[[list[Any], Place], Any]
WHOLE = frozenset({"tuple", "get-tuple-element", "fusion", "call", "while", "conditional", "constant"})


@define(eq=False)
class Step:
    """An instruction made ready: where its operands and its result stand, what it does if it only computes."""

    instruction: Instruction
    index: int
    operands: tuple[int, ...]
    ready: Ready | None


@define(eq=False)
class Code:
    """A computation in one order; `parameters` are the places of its arguments by number."""

    size: int
    parameters: list[tuple[int, int]]
    steps: list[Step]
    root: int


def compiled(computation: Computation, order: Sequence[Instruction] | None = None) -> Code:
    """The steps of a computation in an order, or in its own, which is kept."""
    if order is None:
        if computation.code is None:
            computation.code = compiled(computation, computation.instructions)
        return computation.code
    assert computation.root is not None
    parameters = [(each.index, each.given) for each in order if each.opcode == "parameter"]
    return Code(len(order), parameters, [_step(i) for i in order if i.opcode != "parameter"], computation.root.index)


def _step(instruction: Instruction) -> Step:
    ready = None if instruction.effects else _ready(instruction)
    return Step(instruction, instruction.index, tuple(each.index for each in instruction.operands), ready)


def _ready(instruction: Instruction) -> Ready:
    """What it gives; nothing is known of what is made from numbers that decide nothing."""
    opcode = instruction.opcode
    if opcode in BINARY and instruction.shape.endswith("[]"):
        binary, of = BINARY[opcode], instruction.type
        return lambda a, place: None if None in a else binary(a[0], a[1], of)
    rule = RULES[opcode]
    if opcode in WHOLE:
        return lambda a, place: rule(instruction, a, place)
    return lambda a, place: None if None in a else rule(instruction, a, place)


def value(instruction: Instruction, operands: list[Any], place: Place) -> Any:
    """What an instruction gives that does not communicate."""
    return _ready(instruction)(operands, place)


def evaluate(computation: Computation, arguments: list[Any], place: Place) -> Any:
    """A computation that does not communicate."""
    code = compiled(computation)
    env: list[Any] = [None] * code.size
    for index, number in code.parameters:
        env[index] = arguments[number]
    for step in code.steps:
        assert step.ready is not None
        env[step.index] = step.ready([env[each] for each in step.operands], place)
    return env[code.root]
