"""The MLIR function that gives each device of the reference interpreter its arguments, and takes the results.

Arrays go in and out in element types that NumPy has: complex numbers by their parts, small types in larger ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from attrs import define, field, frozen

from xbuild.stablehlo.spelling.element_types import TYPES_BY_NAME

_TENSOR = re.compile(r"tensor<((?:\d+x)*)([a-z]\w*(?:<\w+>)?)>\Z")
_PARTS = {"complex<f32>": "f32", "complex<f64>": "f64"}

# The element type that carries another one, and the op that leads there and back without loss.
_CARRIERS = {
    "bf16": ("ui16", "bitcast_convert"),
    **dict.fromkeys(("i2", "i4"), ("i8", "convert")),
    **dict.fromkeys(("ui2", "ui4"), ("ui8", "convert")),
    **dict.fromkeys(("f4E2M1FN", "f6E2M3FN", "f6E3M2FN"), ("f32", "convert")),
}

TOKEN = "!stablehlo.token"


class WireError(ValueError):
    """A value of this type cannot be given to the reference interpreter, or taken from it."""


@frozen
class Wire:
    """How arrays of one tensor type go in and out."""

    dims: str
    element: str

    @property
    def type(self) -> str:
        return f"tensor<{self.dims}{self.element}>"

    @property
    def carrier(self) -> tuple[str, str]:
        """The element type in which an array, or a part of it, goes in and out, and the op that leads there."""
        if self.element in _PARTS:
            return _PARTS[self.element], ""
        if self.element.startswith("f8"):
            return "ui8", "bitcast_convert"
        return _CARRIERS.get(self.element, (self.element, ""))

    @property
    def carried(self) -> str:
        return f"tensor<{self.dims}{self.carrier[0]}>"

    def parts(self, array: Any) -> Iterator[Any]:
        """The arrays that stand for an array."""
        if self.element in _PARTS:
            yield from (array.real, array.imag)
        else:
            yield self._as(array, self.carrier[0])

    def whole(self, parts: Iterator[Any]) -> Any:
        """The array that the next parts stand for."""
        first = next(parts)
        if self.element not in _PARTS:
            return self._as(first, self.element)
        whole = np.empty(first.shape, TYPES_BY_NAME[self.element].dtype)
        whole.real, whole.imag = first, next(parts)
        return whole

    def _as(self, array: Any, element: str) -> Any:
        dtype = TYPES_BY_NAME[element].dtype
        return (
            array.astype(dtype)
            if self.carrier[1] == "convert"
            else np.ascontiguousarray(array).view(dtype).reshape(array.shape)
        )


def wire_of(type_: str) -> Wire | None:
    """The wire of a type in MLIR's spelling; None of a token, which has no array."""
    if type_ == TOKEN:
        return None
    found = _TENSOR.match(type_)
    if found is None or found[2] not in TYPES_BY_NAME:
        raise WireError(f"{type_}: the reference interpreter is given arrays of static shapes alone")
    return Wire(found[1], found[2])


@define
class Function:
    """The text of the function `main`, which runs the program of each device, and how its arguments go in and out."""

    inputs: list[Wire] = field(factory=list)
    outputs: list[Wire] = field(factory=list)
    _parameters: list[str] = field(factory=list)
    _lines: list[str] = field(factory=list)
    _results: list[tuple[str, str]] = field(factory=list)
    _count: int = 0

    def text(self, programs: Sequence[Sequence[str]], signatures: Sequence[tuple[list[str], list[str]]]) -> str:
        """The module with `main` and the declarations that it refers to; signatures are those of all devices."""
        operands = [self._given(type_) for takes, _ in signatures for type_ in takes]
        types = [type_ for takes, _ in signatures for type_ in takes]
        gives = [type_ for _, results in signatures for type_ in results]
        grid = ", ".join(f"[{', '.join(f'@{name}' for name in row)}]" for row in programs)
        head = f"%run:{len(gives)} = " if gives else ""
        self._lines.append(
            f'{head}"interpreter.run_parallel"({", ".join(operands)}) {{programs = [{grid}]}} : '
            f"({', '.join(types)}) -> ({', '.join(gives)})"
        )
        for number, type_ in enumerate(gives):
            self._taken(f"%run#{number}", type_)
        names, kinds = [name for name, _ in self._results], [kind for _, kind in self._results]
        body = [*self._lines, f"return {', '.join(names)} : {', '.join(kinds)}" if names else "return"]
        declared = dict(zip((name for row in programs for name in row), signatures, strict=True))
        stubs = [
            f"func.func private @{name}({', '.join(takes)}) -> ({', '.join(results)})"
            for name, (takes, results) in declared.items()
        ]
        main = f"func.func @main({', '.join(self._parameters)}) -> ({', '.join(kinds)}) {{"
        return "\n".join([*stubs, main, *body, "}"])

    def _new(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def _parameter(self, wire: Wire) -> str:
        name = self._new()
        self._parameters.append(f"{name}: {wire.carried}")
        return name

    def _op(self, op: str, operands: str, takes: str, gives: str) -> str:
        name = self._new()
        self._lines.append(f'{name} = "stablehlo.{op}"({operands}) : ({takes}) -> {gives}')
        return name

    def _given(self, type_: str) -> str:
        """The value of a program's parameter, made of parameters of `main`."""
        wire = wire_of(type_)
        if wire is None:
            raise WireError("a parameter is a token, and there is no value that could be given for it")
        self.inputs.append(wire)
        first = self._parameter(wire)
        if wire.element in _PARTS:
            second = self._parameter(wire)
            return self._op("complex", f"{first}, {second}", f"{wire.carried}, {wire.carried}", wire.type)
        op = wire.carrier[1]
        return self._op(op, first, wire.carried, wire.type) if op else first

    def _taken(self, value: str, type_: str) -> None:
        """Give the value of a program's result back, in results of `main`."""
        wire = wire_of(type_)
        if wire is None:
            return
        self.outputs.append(wire)
        op = wire.carrier[1]
        if wire.element in _PARTS:
            parts = [self._op(part, value, wire.type, wire.carried) for part in ("real", "imag")]
        else:
            parts = [self._op(op, value, wire.type, wire.carried) if op else value]
        self._results += [(part, wire.carried) for part in parts]
