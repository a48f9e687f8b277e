"""XLA's operations on scalars and vectors, in Python's numbers: what the model computes its decisions with."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

COMMUNICATES = frozenset({
    "all-reduce", "all-gather", "all-to-all", "reduce-scatter", "collective-permute", "collective-broadcast",
    "all-reduce-start", "all-reduce-done", "all-gather-start", "all-gather-done", "collective-permute-start",
    "collective-permute-done", "async-start", "async-done", "send", "recv", "send-done", "recv-done", "infeed",
})  # fmt: skip

WIDTHS = {"pred": 1, "s8": 8, "u8": 8, "s16": 16, "u16": 16, "s32": 32, "u32": 32, "s64": 64, "u64": 64}


def wrapped(number: int, to: str) -> int:
    """A number in the bits of an integer type."""
    bits = WIDTHS[to]
    number &= (1 << bits) - 1
    return number - (1 << bits) if to[0] == "s" and number >> (bits - 1) else number


def rounded(number: float) -> float:
    """The nearest number of f32."""
    try:
        return struct.unpack("f", struct.pack("f", number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)


def converted(number: Any, to: str) -> Any:
    """Towards zero and into the range from floats, modulo 2^n from integers."""
    if to == "f32":
        return rounded(float(number))
    if to == "pred":
        return int(number != 0)
    if isinstance(number, float):
        if number != number:
            return 0
        least = -(1 << (WIDTHS[to] - 1)) if to[0] == "s" else 0
        most = least + (1 << WIDTHS[to]) - 1
        return int(min(max(number, least), most)) if abs(number) < 2.0**70 else (most if number > 0 else least)
    return wrapped(number, to)


def _unsigned(number: int, of: str) -> int:
    return number & ((1 << WIDTHS[of]) - 1)


def _divided(a: Any, b: Any, of: str) -> Any:
    if of == "f32":
        return rounded(a / b) if b else (math.nan if not a or a != a else math.copysign(math.inf, a))
    if b == 0:
        return wrapped(-1, of)
    return wrapped(abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1), of)


def _remainder(a: int, b: int, of: str) -> int:
    return a if b == 0 else wrapped(abs(a) % abs(b) * (-1 if a < 0 else 1), of)


def _power(a: int, b: int, of: str) -> int:
    if b >= 0:
        return wrapped(pow(a, b, 1 << WIDTHS[of]), of)
    return {1: 1, -1: -1 if b % 2 else 1}.get(a, 0)


def _shifted(a: int, b: int, of: str, way: str) -> int:
    bits, by = WIDTHS[of], _unsigned(b, of)
    if way == "left":
        return wrapped(a << by, of) if by < bits else 0
    if way == "logical":
        return wrapped(_unsigned(a, of) >> by, of) if by < bits else 0
    signed = wrapped(a, f"s{bits}")
    return wrapped(signed >> min(by, bits - 1), of)


def _plain(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any, str], Any]:
    return lambda a, b, of: rounded(function(a, b)) if of == "f32" else wrapped(function(a, b), of)


BINARY: dict[str, Callable[[Any, Any, str], Any]] = {
    "add": lambda a, b, of: a | b if of == "pred" else _plain(lambda a, b: a + b)(a, b, of),
    "subtract": _plain(lambda a, b: a - b),
    "multiply": lambda a, b, of: a & b if of == "pred" else _plain(lambda a, b: a * b)(a, b, of),
    "and": lambda a, b, of: a & b,
    "or": lambda a, b, of: a | b,
    "xor": lambda a, b, of: wrapped(a ^ b, of),
    "maximum": lambda a, b, of: max(a, b),
    "minimum": lambda a, b, of: min(a, b),
    "divide": _divided,
    "remainder": _remainder,
    "power": _power,
    "shift-left": lambda a, b, of: _shifted(a, b, of, "left"),
    "shift-right-logical": lambda a, b, of: _shifted(a, b, of, "logical"),
    "shift-right-arithmetic": lambda a, b, of: _shifted(a, b, of, "arithmetic"),
}

UNARY: dict[str, Callable[[Any, str], Any]] = {
    "not": lambda a, of: 1 - a if of == "pred" else wrapped(~a, of),
    "negate": lambda a, of: -a if of == "f32" else wrapped(-a, of),
    "abs": lambda a, of: abs(a) if of == "f32" else wrapped(abs(a), of),
    "sign": lambda a, of: converted((a > 0) - (a < 0), of),
    "popcnt": lambda a, of: _unsigned(a, of).bit_count(),
    "count-leading-zeros": lambda a, of: WIDTHS[of] - _unsigned(a, of).bit_length(),
    "copy": lambda a, of: a,
    "floor": lambda a, of: float(math.floor(a)),
    "ceil": lambda a, of: float(math.ceil(a)),
    "round-nearest-even": lambda a, of: float(round(a)),
    "sqrt": lambda a, of: rounded(math.sqrt(a)),
}

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "EQ": lambda a, b: a == b,
    "NE": lambda a, b: a != b,
    "LT": lambda a, b: a < b,
    "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b,
    "GE": lambda a, b: a >= b,
}


def each(function: Callable[..., Any], *operands: Any) -> Any:
    """A function of numbers on numbers, or element by element on vectors."""
    if isinstance(operands[0], tuple):
        return tuple(function(*row) for row in zip(*operands, strict=True))
    return function(*operands)


def bits(number: Any, of: str, to: str) -> Any:
    """The same bits read as another type of the same width."""
    if of == "f32":
        return struct.unpack("i" if to[0] == "s" else "I", struct.pack("f", number))[0]
    if to == "f32":
        return struct.unpack("f", struct.pack("I", _unsigned(number, of)))[0]
    return wrapped(number, to)


def folded(opcode: str, of: str, numbers: tuple[Any, ...]) -> Any:
    """A reduction by a binary op."""
    total = numbers[0]
    for number in numbers[1:]:
        total = each(lambda a, b: BINARY[opcode](a, b, of), total, number)
    return total


def clamped(start: int, most: int) -> int:
    return min(max(start, 0), most)
