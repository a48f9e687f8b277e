"""What a case of an op is: one list for each family, read by the tests of shape, value, text, oracle and errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from attrs import field, frozen

import xbuild as xb
from shape_inference import AnyShape, PrimitiveType, parse_shape, primitive_type


@frozen
class Case:
    """A call of an op on parameters of these arguments, and the value that it gives (a tuple of arrays for a tuple).

    `tolerance` is in units in the last place of the result's type; 0 means bit for bit (a NaN equals a NaN).
    `source` cites the document and section that says so; `oracle` is False where real XLA:CPU cannot run it.
    """

    id: str
    call: Callable[..., xb.Value]
    arguments: tuple[np.ndarray[Any, Any], ...] = field(converter=lambda a: tuple(map(np.asarray, a)))
    result: Any
    attributes: Mapping[str, Any] = {}
    tolerance: int = 0
    source: str = ""
    oracle: bool = True

    def computation(self) -> xb.Computation:
        builder = xb.Builder("case")
        parameters = _parameters(builder, (primitive_type(a.dtype)[a.shape] for a in self.arguments))
        return builder.build(self.call(*parameters, **self.attributes))


@frozen
class Inferred:
    """A call on values of these shapes (HLO spelling), and the very shape that it gives.

    It is for the shapes that no array has: dynamic bounds, layouts, huge extents, element types that mix.
    """

    id: str
    call: Callable[..., xb.Value]
    operands: tuple[AnyShape, ...] = field(converter=lambda texts: tuple(map(parse_shape, texts)))
    result: str
    source: str

    def shape(self) -> AnyShape:
        return self.call(*_parameters(xb.Builder("inferred"), self.operands)).shape


@frozen
class Refusal:
    """A call on values of these shapes (HLO spelling) that must be refused with this kind, naming these facts."""

    id: str
    call: Callable[..., Any]
    operands: tuple[AnyShape, ...] = field(converter=lambda texts: tuple(map(parse_shape, texts)))
    kind: str
    names: tuple[str, ...] = ()
    attributes: Mapping[str, Any] = {}

    def attempt(self) -> None:
        self.call(*_parameters(xb.Builder("refusal"), self.operands), **self.attributes)


def _parameters(builder: xb.Builder, shapes: Iterable[AnyShape]) -> list[xb.Value]:
    return [xb.parameter(builder, number=n, shape=shape) for n, shape in enumerate(shapes)]


def is_run_by_xla(dtype: PrimitiveType) -> bool:
    """Whether real XLA:CPU runs the type in every op: not in 1 and 2 bits, and in 6 it only reads and prints them."""
    return dtype.kind == "pred" or dtype.bits not in (1, 2, 6)
