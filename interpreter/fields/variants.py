"""Other forms of a program, for runs in floating point: fewer elements, floats of another type, other literals.

Sections:

    Smaller extents, for runs that would take too long
    Floats that are integers, because they are computed from integers
    Floats of one type
    Literals moved within their rounding
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from attrs import evolve

from shape_inference import Shape, XbuildError
from shape_inference.types import primitive_type
from xbuild.core.graph import Computation, Instruction, Module, ModuleGroup
from xbuild.properties.effects import LOOPS
from xbuild.properties.sites import reached
from xbuild.text.reader import parse_hlo

from .rules.literals import LiteralReading

if TYPE_CHECKING:
    from .run import Subject

# ----------------------------------------------------------------------------
# Smaller extents, for runs that would take too long.

FACTORS = (16, 8, 4, 2)
"""The factors by which extents are divided; the first one that yields a program is used."""
LEAST = 32
"""The smallest extent that is divided."""

_SHAPE = re.compile(r"(?<=[a-z0-9]\[)(\d+(?:,\d+)*)(?=\])")
_SLICE = re.compile(r"\b(slice=\{)([^}]*)(?=\})")
_SIZES = re.compile(r"\b((?:dynamic_slice_sizes|slice_sizes)=\{)([\d,]*)(?=\})")
_NUMBER = re.compile(r"\d+")


def with_smaller_extents(program: Module | ModuleGroup, factor: int) -> Module | None:
    """The program with each large extent divided by a factor if it is a multiple; None if the result is not a program.

    This is a different function, and two equal programs are not always equal at smaller extents: means may divide by
    numbers in literals. It serves for a search whose finds are tested at the original extents.

    >>> import xbuild as xb
    >>> text = xb.Module("m", xb.computation(xb.f32[64, 3])(lambda x: xb.reduce(x, 0.0, xb.add, (0,))))
    >>> [str(each.shape) for each in with_smaller_extents(text, 16).entry.parameters]
    ['f32[4,3]']
    """
    if isinstance(program, ModuleGroup):
        return None

    def of_number(match: re.Match[str]) -> str:
        number = int(match[0])
        return str(number // factor) if number >= LEAST and number % factor == 0 else match[0]

    text = _SHAPE.sub(lambda match: _NUMBER.sub(of_number, match[0]), program.to_hlo())
    for pattern in (_SLICE, _SIZES):
        text = pattern.sub(lambda match: match[1] + _NUMBER.sub(of_number, match[2]), text)
    try:
        found = parse_hlo(text)
    except XbuildError:
        return None
    return evolve(found, num_replicas=program.num_replicas, num_partitions=program.num_partitions)


# ----------------------------------------------------------------------------
# Floats that are integers, because they are computed from integers; their types may not hold these.

_KEEP_INTEGERS = frozenset({
    "add", "subtract", "multiply", "negate", "abs", "sign", "maximum", "minimum", "clamp", "select", "dot",
    "convolution", "reduce", "broadcast", "reshape", "transpose", "slice", "reverse", "concatenate", "pad", "copy",
    "convert", "floor", "ceil", "round_nearest_even", "round_nearest_afz", "dynamic_slice", "gather",
})  # fmt: skip
"""Ops whose results are integers if the operands are."""


def converts_integers(subject: Subject) -> bool:
    """Whether a program converts integers to floats."""
    return any(map(_is_conversion, subject.instructions()))


def has_loops(subject: Subject) -> bool:
    """Whether a program has loops, of which an integer may be the number of trips."""
    return any(instruction.opcode in LOOPS for instruction in subject.instructions())


def integers_as_floats(program: Module) -> Iterator[Instruction]:
    """The instructions whose floats are integers because they are computed only from integers.

    >>> import xbuild as xb
    >>> program = xb.computation(xb.s32[2], xb.f32[2])(lambda n, x: n.astype(xb.f32) * 2.0 + x)
    >>> [each.opcode for each in integers_as_floats(xb.Module("m", program))]
    ['convert', 'broadcast', 'multiply']
    """
    for computation in reached(program.entry):
        yield from _of_integers(computation)


def _of_integers(computation: Computation) -> Iterator[Instruction]:
    found: set[Instruction] = set()
    for instruction in computation.instructions:
        if instruction.opcode == "constant":
            if _is_whole(instruction):
                found.add(instruction)
        elif _is_float(instruction) and (
            _is_conversion(instruction)
            or (
                instruction.opcode in _KEEP_INTEGERS
                and all(o in found or not _is_float(o) for o in instruction.operands)
            )
        ):
            found.add(instruction)
            yield instruction


def _is_conversion(instruction: Instruction) -> bool:
    if instruction.opcode != "convert" or not _is_float(instruction):
        return False
    source = instruction.operands[0].shape
    return isinstance(source, Shape) and source.dtype.is_integer


def _is_float(instruction: Instruction) -> bool:
    return isinstance(instruction.shape, Shape) and instruction.shape.dtype.is_float


def _is_whole(constant: Instruction) -> bool:
    literal = constant.attributes.literal
    if not isinstance(literal, np.ndarray | np.generic) or not _is_float(constant):
        return False
    wide = np.asarray(literal).astype(np.float64)
    return bool((np.isfinite(wide) & (wide == np.trunc(wide))).all())


# ----------------------------------------------------------------------------
# Floats of one type.

_FLOATS = re.compile(r"\b(bf16|f16|f32|f64|c64|c128|f8\w+|f4\w+)(?=\[)")
_LAPACK = re.compile(r"(?<=lapack_)[sdcz](?=\w+_ffi)")
_ROUTINE = {"f64": {"s": "d", "c": "z"}, "f32": {"d": "s", "z": "c"}}
_OF_BITS = frozenset({"bitcast_convert", "reduce_precision", "stochastic_convert"})


def with_float_type(
    subject: Subject, types: str, move: Callable[[str], str] = str, *, rounds_integers: bool = False
) -> Module | None:
    """The program with all floats of one type, "f64" or "f32"; None where it then is none, or has bits of floats.

    `move` changes its text before. `rounds_integers`: floats that are computed from integers alone are rounded to the
    types that they have in the program.
    """
    program = subject.program
    if isinstance(program, ModuleGroup) or any(
        instruction.opcode in _OF_BITS for instruction in subject.instructions()
    ):
        return None
    pairs = "c128" if types == "f64" else "c64"
    text = _FLOATS.sub(lambda match: pairs if match[1].startswith("c") else types, move(program.to_hlo()))
    if rounds_integers:
        own = {instruction.name: instruction.shape.dtype.name for instruction in integers_as_floats(program)}  # type: ignore[union-attr]
        text = _LINE.sub(lambda match: _round_to_own_type(match, own), text)
    try:
        found = parse_hlo(_LAPACK.sub(lambda match: _ROUTINE[types].get(match[0], match[0]), text))
    except XbuildError:
        return None
    return evolve(found, num_replicas=program.num_replicas, num_partitions=program.num_partitions)


_LINE = re.compile(r"^( *)(ROOT )?([\w.-]+)( = )(\w+)(\[[\d,]*\])(\S*)( .*)$", re.MULTILINE)


def _round_to_own_type(line: re.Match[str], own: dict[str, str]) -> str:
    """The line of an instruction; if `own` has a type for it, its value is converted to that type and back."""
    space, root, name, equals, dtype, dims, layout, rest = line.groups()
    if name not in own:
        return line[0]
    shape, short = f"{dtype}{dims}{layout}", f"{own[name]}{dims}{layout}"
    return (
        f"{space}{name}.exact{equals}{shape}{rest}\n"
        f"{space}{name}.own{equals}{short} convert({name}.exact)\n"
        f"{space}{root or ''}{name}{equals}{shape} convert({name}.own)"
    )


# ----------------------------------------------------------------------------
# Literals moved within their rounding.

_CONSTANT = re.compile(r"(= (\w+)\[[\d,]*\](?:\{[^}]*\})? constant\()([^)]*)(?=\))")
_LITERAL = re.compile(r"-?\d[\d.]*(?:e[-+]?\d+)?", re.IGNORECASE)
_DIGITS = {"f64": 53, "c128": 53, "f32": 24, "c64": 24, "f16": 11, "bf16": 8}


def move_literals(text: str, by: np.random.Generator | LiteralReading) -> str:
    """The text of a program with each float literal changed to a number that rounds to it, a random or a read one.

    Literals of few binary digits, such as 0.5 and 3, stay: these are what they say.
    """

    def of_line(match: re.Match[str]) -> str:
        digits = _DIGITS.get(match[2], 4 if match[2].startswith("f") else 0)
        if not digits:
            return match[0]
        return match[1] + _LITERAL.sub(lambda number: _move_literal(number[0], digits, match[2], by), match[3])

    return _CONSTANT.sub(of_line, text)


def _move_literal(number: str, digits: int, types: str, by: np.random.Generator | LiteralReading) -> str:
    value = float(number)
    fraction, exponent = np.frexp(value)
    few = np.ldexp(fraction, 2 * digits // 3)
    if few == np.trunc(few) or not np.isfinite(value):
        return number
    if isinstance(by, LiteralReading):
        return number if types.startswith("c") else repr(float(by.fraction(value, primitive_type(types).dtype)))
    random = by
    mantissa = np.rint(np.ldexp(fraction, digits)) + random.uniform(-0.5, 0.5)
    return repr(float(np.ldexp(mantissa, exponent - digits)))
