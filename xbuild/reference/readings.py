"""What the readings of an op say: its names elsewhere, derivative, cost, corner cases, and an index picture.

Sections:

    Functions of jax.lax that lower to an op
    The example of an op's declaration
    Corner cases of elementwise ops
    Index pictures
    All readings of an op
"""

from __future__ import annotations

import ast
import doctest
import inspect
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from attrs import frozen

from shape_inference import MissingRule, PrimitiveType, Shape, XbuildError

from .. import ops, running
from ..core.attributes import Array
from ..core.builder import Builder
from ..core.diagnostics import operand_labels
from ..core.graph import Computation, Instruction, Module, ModuleGroup
from ..core.op import OPS
from ..costs import cost
from ..costs.report import short
from ..differentiation.programs import vjp
from ..differentiation.rules import REASONS, ZERO, all_rules
from ..running import shared_evaluator
from ..sharding.rules import rule_of
from ..stablehlo.spelling import OP_NAMES
from ..stablehlo.writing import module as _lines
from ..stablehlo.writing.writer import REFUSED
from ..traces import Trace
from .op_names import NAMES

__all__ = ["picture", "rows"]


# ----------------------------------------------------------------------------
# Functions of jax.lax that lower to an op

_SAME = """
abs acos acosh add asin asinh atan2 atanh cbrt ceil clamp complex concatenate cosh dynamic_slice dynamic_update_slice
erf fft floor gather imag iota is_finite log logistic mulhi pad real reduce reduce_precision reduce_window reshape
rng_bit_generator rsqrt scatter shift_left shift_right_arithmetic shift_right_logical sign sinh slice sort sqrt tan tanh
transpose all_gather all_to_all ragged_all_to_all ragged_dot scaled_dot after_all
"""

_OTHERS = """
all_reduce: psum pmax pmin
reduce_scatter: psum_scatter
collective_permute: ppermute
collective_broadcast: pbroadcast
while: while_loop fori_loop
conditional: cond switch
convert: convert_element_type
bitcast_convert: bitcast_convert_type
broadcast: broadcast broadcast_in_dim
cosine: cos
count_leading_zeros: clz
exponential: exp
exponential_minus_one: expm1
log_plus_one: log1p
negate: neg
not: bitwise_not
popcnt: population_count
round_nearest_afz: round
round_nearest_even: round
sine: sin
and: bitwise_and
divide: div
maximum: max
minimum: min
multiply: mul
or: bitwise_or
power: pow
remainder: rem
subtract: sub
xor: bitwise_xor
compare: eq ne lt le gt ge
select: select select_n
dot: dot_general
convolution: conv_general_dilated
reverse: rev
topk: top_k
partition_id: axis_index
opt_barrier: optimization_barrier
cholesky: linalg.cholesky
triangular_solve: linalg.triangular_solve
"""

JAX_NAMES: dict[str, str] = {name: name for name in _SAME.split()} | {
    opcode: names.strip() for opcode, _, names in (line.partition(":") for line in _OTHERS.strip().splitlines())
}
"""By opcode the names under `jax.lax`, parted by blanks; ops that no function of it gives are left out."""


# ----------------------------------------------------------------------------
# The example of an op's declaration
#
# Run and kept: an instruction of the op with the values on all devices.

_RUNS = ("evaluate", "execute")


@frozen(eq=False)
class OpExample:
    """A run of the example of an op, and the number of the event of its instruction."""

    trace: Trace
    event: int

    @property
    def instruction(self) -> Instruction:
        """The instruction of the op."""
        return self.trace[self.event].instruction


@cache
def op_example(opcode: str) -> OpExample | None:
    """The example of an op; None where its docstring runs no program that has the op.

    >>> op_example("gather").instruction.shape
    f32[2,2]
    """
    call = _call(opcode)
    if call is None:
        return None
    try:
        trace = running.trace(*call, origins=True)
    except (MissingRule, XbuildError, TypeError, ValueError):  # of a refusal, or of an op that has no value rule yet
        return None
    events = [n for n in range(len(trace)) if trace[n].instruction.opcode == opcode]
    return OpExample(trace, events[0]) if events else None


def _call(opcode: str) -> tuple[Any, Any] | None:
    """The program and the inputs that the last call of evaluate or execute in the docstring is given."""
    space: dict[str, Any] = {}
    found = None
    parser = doctest.DocTestParser()
    for each in parser.get_examples(inspect.cleandoc(OPS[opcode].declaration.__doc__ or "")):
        statement = ast.parse(each.source).body[0]
        run = next((node for node in ast.walk(statement) if _is_run(node)), None)
        if run is not None and isinstance(statement, ast.Expr):
            found = _given(run, space) or found
        elif each.exc_msg is None:
            exec(compile(each.source, "example", "exec"), space)
    return found


def _is_run(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _name(node.func) in _RUNS


def _name(function: ast.expr) -> str:
    """`evaluate` of `xb.evaluate` and of `evaluate`."""
    return getattr(function, "attr", getattr(function, "id", ""))


def _given(run: Any, space: dict[str, Any]) -> tuple[Any, Any] | None:
    """The program and the inputs for each device; None where the call has options, such as an infeed."""
    if run.keywords or not run.args:
        return None
    values = [eval(compile(ast.Expression(each), "example", "eval"), space) for each in run.args]
    if not isinstance(values[0], Computation | Module | ModuleGroup):
        return None
    return (values[0], [values[1:]]) if _name(run.func) == "evaluate" else (values[0], values[1])


# ----------------------------------------------------------------------------
# Corner cases of elementwise ops
#
# Results for zeros, infinities, NaN, the largest integers and wide shifts.

_INF, _NAN = float("inf"), float("nan")
_FLOATS: dict[int, list[tuple[float, ...]]] = {
    1: [(-_INF,), (-1.0,), (-0.0,), (0.0,), (_INF,), (_NAN,)],
    2: [(1.0, 0.0), (-1.0, 0.0), (0.0, 0.0), (_INF, _INF), (_INF, 0.0), (_NAN, 1.0)],
}


def corner_cases(opcode: str) -> tuple[Computation, list[Any], Any] | None:
    """The op on its corner cases: a program of arrays, their values, and the result; None for ops that have none.

    >>> program, (lhs, rhs), result = corner_cases("divide")
    >>> dict(zip(zip(lhs.tolist(), rhs.tolist()), result.tolist()))[1, 0]
    -1
    """
    example = op_example(opcode)
    if example is None or OPS[opcode].properties.elements != "same_place" or example.instruction.called:
        return None
    shapes = [operand.shape for operand in example.instruction.operands]
    types = [each.dtype for each in shapes if isinstance(each, Shape)]
    if len(types) < len(shapes) or len(set(types)) != 1:
        return None
    values = _values(types[0], len(types))
    if not values:
        return None
    try:
        program = _program(opcode, types, len(values[0]), example.instruction.attribute_values())
        return program, values, running.evaluate(program, *values)
    except (XbuildError, TypeError):  # of operands that must agree in more than their type
        return None


def _values(element: PrimitiveType, count: int) -> list[Any]:
    """An array of corner values for each operand; none for types that have no list."""
    rows: Sequence[tuple[float, ...]] = ()
    if element.is_float and element.bits >= 16:
        rows = _FLOATS.get(count, ())
    elif element.is_integer and element.bits >= 8 and count in (1, 2):
        info = np.iinfo(element.dtype)
        rows = _integers(int(info.min), int(info.max), int(info.bits), count)
    return [np.asarray(column, element.dtype) for column in zip(*rows, strict=True)]


def _integers(least: int, most: int, bits: int, count: int) -> list[tuple[int, ...]]:
    if count == 1:
        return [(least,), (0,), (1,), (most,)] if least == 0 else [(least,), (-1,), (0,), (1,), (most,)]
    pairs: list[tuple[int, ...]] = [(1, 0), (7, 2), (most, 1), (1, bits), (1, bits - 1)]
    return pairs if least == 0 else [*pairs, (-7, 2), (least, -1)]


def _program(opcode: str, types: Sequence[PrimitiveType], size: int, attributes: dict[str, Any]) -> Computation:
    builder = Builder("corners")
    operands = [ops.parameter(builder, number=n, shape=Shape(each, (size,))) for n, each in enumerate(types)]
    return builder.build(getattr(ops, NAMES[opcode].name)(*operands, **attributes))


def told(opcode: str) -> str | None:
    """The corner cases in one line.

    >>> told("is_finite")
    'of f32: -inf gives false, -1 true, -0 true, 0 true, inf false, nan false'
    """
    found = corner_cases(opcode)
    if found is None:
        return None
    program, values, result = found
    lines = [_line([each[n] for each in values], result[n]) for n in range(len(values[0]))]
    first, *rest = lines
    element = program.parameters[0].shape.dtype  # type: ignore[union-attr]
    return f"of {element}: {' gives '.join(first)}, {', '.join(map(' '.join, rest))}"


def _line(given: list[Any], result: Any) -> tuple[str, str]:
    words = ", ".join(map(_shown, given))
    return (f"({words})" if len(given) > 1 else words), _shown(result)


def _shown(value: Any) -> str:
    """A number as it is typed; the sign of a zero is kept."""
    if isinstance(value, np.bool_):
        return "true" if value else "false"
    if isinstance(value, np.integer):
        return str(int(value))
    if isinstance(value, complex | np.complexfloating):
        return str(value)
    return f"{float(value):g}"


# ----------------------------------------------------------------------------
# Index pictures
#
# One element of a result, and the elements of the operands from which it was computed, in brackets.

Block: TypeAlias = tuple[str, Array, list[int]]
"""A title, an array, and the numbers of the elements in brackets."""

_MOST = 64
"""The largest number of elements of an array that is drawn whole."""


def index_picture(example: OpExample) -> str | None:
    """The picture of an example; None where no elements are traced, or arrays are large.

    >>> from xbuild.reference.readings import op_example
    >>> print(index_picture(op_example("gather")))
    one element of the result, and what it was computed from, in brackets
    <BLANKLINE>
    result     operand    start_indices
     3   4      1   2      1  [9]
     5  [6]     3   4
                5  [6]
    """
    trace, event, instruction = example.trace, example.event, example.instruction
    shape = instruction.shape
    result = trace.values.get(event)
    if not isinstance(shape, Shape) or not shape.size or shape.size > _MOST or result is None:
        return None
    blocks = _received(example) if event in trace.across else _own(example)
    if blocks is None:
        return None
    device = f" on device {trace[event].device}" if event in trace.across else ""
    head = f"one element of the result{device}, and what it was computed from, in brackets"
    rows: list[Block] = [("result", np.asarray(result), [_bracketed(shape)]), *blocks]
    return "\n".join([head, "", *_beside([_drawn(*row) for row in rows])])


def _bracketed(shape: Shape) -> int:
    """The element of the result that is shown: one near the middle."""
    return int(np.ravel_multi_index([extent // 2 for extent in shape.dims], shape.dims)) if shape.dims else 0


def _own(example: OpExample) -> list[Block] | None:
    instruction, trace = example.instruction, example.trace
    tables = trace.origins.get(example.event) or _influence(example)
    if tables is None:
        return None
    labels = operand_labels(OPS[instruction.opcode], len(instruction.operands), instruction.segments)
    element = _bracketed(instruction.shape)  # type: ignore[arg-type]
    found = []
    for label, number, table in zip(labels, trace.operands(example.event), tables, strict=True):
        value = None if number is None else _array(trace, number)
        if value is not None and 0 < value.size <= _MOST:
            found.append((label, value, [] if table is None else _used(table[element])))
    return found or None


def _influence(example: OpExample) -> list[Array | None] | None:
    """For an op without traced elements: the elements of each operand whose change, by one, changes the element."""
    trace, instruction = example.trace, example.instruction
    values = [array for n in trace.operands(example.event) if n is not None and (array := _array(trace, n)) is not None]
    evaluator, shown = shared_evaluator(), _bracketed(instruction.shape)  # type: ignore[arg-type]
    if len(values) < len(instruction.operands) or any(each.size > _MOST for each in values):
        return None
    if not evaluator.is_pure(instruction):
        return None

    def result(operands: list[Array]) -> Any:
        found = evaluator.value(instruction, operands, (0, 0))
        return None if found is None else np.asarray(found).reshape(-1)[shown]

    def changes(place: int, number: int) -> bool:
        operands = [*values[:place], _bumped(values[place], number), *values[place + 1 :]]
        return bool(result(operands) != before)

    before = result(values)
    if before is None:
        return None
    return [_rows(shown, [n for n in range(each.size) if changes(place, n)]) for place, each in enumerate(values)]


def _bumped(value: Any, number: int) -> Array:
    """The array with one more in one element."""
    found: Array = value.copy()
    found.reshape(-1)[number] += 1
    return found


def _rows(shown: int, elements: list[int]) -> Array | None:
    """A table of which only the row of the element that is shown is filled."""
    return np.tile(np.asarray(elements), (shown + 1, 1)) if elements else None


def _received(example: OpExample) -> list[Block] | None:
    """The operands of the devices from which the element came."""
    trace, instruction = example.trace, example.instruction
    across = next((each for each in trace.across[example.event] if each.part in (None, 0)), None)
    if across is None:
        return None
    element = _bracketed(instruction.shape)  # type: ignore[arg-type]
    devices, elements = across.device[element], across.element[element]
    found = []
    for device in range(trace.num_devices):
        operand = _operand_on(example, device)
        if operand is not None and 0 < operand.size <= _MOST:
            found.append((f"device {device}", operand, _used(elements[devices == device])))
    return found or None


def _operand_on(example: OpExample, device: int) -> Array | None:
    """The first operand that a device brought to the same collective."""
    trace = example.trace
    for number in range(len(trace)):
        if trace[number].device == device and trace[number].instruction is example.instruction:
            operand = next(iter(trace.operands(number)), None)
            return None if operand is None else _array(trace, operand)
    return None


def _array(trace: Trace, number: int) -> Array | None:
    """The value of an event, where it is one array that was kept."""
    value = trace.values.get(number)
    return None if value is None or isinstance(value, tuple) else np.asarray(value)


def _used(row: Array) -> list[int]:
    return sorted({int(each) for each in np.atleast_1d(row) if each >= 0})


def _drawn(label: str, value: Array, marked: list[int]) -> list[str]:
    """A title, and the array in rows; of more dimensions than two, one matrix below the other."""
    words = [f"{each:g}" if value.dtype.kind == "f" else str(each) for each in value.ravel().tolist()]
    words = [f"[{word}]" if n in marked else f" {word} " for n, word in enumerate(words)]
    width = max(map(len, words))
    columns = value.shape[-1] if value.ndim else 1
    lines = [" ".join(word.rjust(width) for word in words[n : n + columns]) for n in range(0, len(words), columns)]
    rows = value.shape[-2] if value.ndim > 2 else len(lines)
    return [label, *_parted(lines, rows)]


def _parted(lines: list[str], rows: int) -> Iterator[str]:
    for number, line in enumerate(lines):
        if number and number % rows == 0:
            yield ""
        yield line


def _beside(blocks: list[list[str]]) -> Iterator[str]:
    """Blocks of lines side by side."""
    widths = [max(map(len, block)) for block in blocks]
    for number in range(max(map(len, blocks))):
        cells = (block[number] if number < len(block) else "" for block in blocks)
        yield "    ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


# ----------------------------------------------------------------------------
# All readings of an op
#
# Its names elsewhere, its derivative, its cost, and an index picture.

_entered = _lines
_PLAIN = ("parameter", "constant", "tuple", "get-tuple-element")


def rows(opcode: str) -> Iterator[tuple[str, str]]:
    """What other readings say of an op: a word for the reading, and a sentence.

    >>> dict(rows("dot"))["in JAX"]
    'jax.lax.dot_general'
    """
    yield "in StableHLO", _stablehlo(opcode)
    if JAX_NAMES.get(opcode):
        yield "in JAX", ", ".join(f"jax.lax.{name}" for name in JAX_NAMES[opcode].split())
    yield "derivative", _derivative(opcode)
    found = (("corner cases", told(opcode)), ("cost", _cost(opcode)), ("sharding rule", _sharding(opcode)))
    yield from ((word, text) for word, text in found if text)


def picture(opcode: str) -> str | None:
    """The index picture of the op's example, where there is one."""
    found = op_example(opcode)
    return None if found is None else index_picture(found)


def _stablehlo(opcode: str) -> str:
    if opcode in REFUSED:
        return "no form"
    is_dissolved = opcode in ("tuple", "get_tuple_element") or opcode not in OP_NAMES
    return "no op of its own: see docs/stablehlo.md" if is_dissolved else OP_NAMES[opcode]


def _derivative(opcode: str) -> str:
    """The ops of which the way back of the example is made, or why there is none."""
    all_rules()
    if opcode in REASONS:
        return f"none: {REASONS[opcode]}"
    if opcode in ZERO:
        return "zero: the result has no cotangent"
    found = op_example(opcode)
    made = () if found is None else _made(found)
    return f"of the example by {', '.join(made)}" if made else "there is one: xb.grad and xb.vjp go through the op"


def _made(example: OpExample) -> tuple[str, ...]:
    """The ops that the derivative of an example has beside those of the example itself."""
    try:
        back = vjp(example.trace.program)
    except (XbuildError, TypeError, ValueError):  # an example of integers, or one whose context has no derivative
        return ()
    module = getattr(back, "entry", back)
    names = (i.opcode.replace("_", "-") for i in module.instructions if ".vjp" in i.name)
    return tuple(dict.fromkeys(name for name in names if name not in _PLAIN))


def _cost(opcode: str) -> str | None:
    """What the example of the op costs, by the rules of `xb.cost`."""
    found = op_example(opcode)
    if found is None:
        return None
    row = next((row for row in cost(found.trace.program).rows if row.instruction is found.instruction), None)
    if row is None:
        return None
    parts = [short(row.work.flops, "FLOP") if row.work.flops else "0 FLOP"]
    if row.work.transcendentals:
        parts.append(f"{row.work.transcendentals} transcendental{'s' * (row.work.transcendentals != 1)}")
    parts.append(f"{short(row.bytes_read + row.bytes_written, 'B')} read and written")
    if row.collective is not None:
        parts.append(f"{short(row.collective.link_bytes, 'B')} on a link")
    return f"of the example {', '.join(parts)}"


def _sharding(opcode: str) -> str | None:
    """The factors of the example: which dimensions are cut together, and what a cut then needs."""
    found = op_example(opcode)
    rule = None if found is None else rule_of(found.instruction)
    return None if rule is None else f"of the example {rule}"


def spelled(opcode: str) -> str:
    """All of this as text.

    >>> print(spelled("all_gather").splitlines()[0])
    in StableHLO  stablehlo.all_gather
    """
    found = [*rows(opcode)]
    width = max(len(word) for word, _ in found)
    lines = [f"{word:<{width}}  {text}" for word, text in found]
    drawn = picture(opcode)
    return "\n".join([*lines, *(["", drawn] if drawn else [])])
