"""Element types, shapes of arrays, tuples and tokens, and signatures of computations."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from attrs import field, frozen

from .tokens import TokenShape as TokenShape
from .tuple_sizes import DEEPEST_TUPLE, MOST_LEAVES, refuse_size

Dims: TypeAlias = tuple[int, ...]


@frozen(eq=False, repr=False)
class PrimitiveType:
    """An element type of XLA; indexing an element type gives an array shape.

    >>> f32[2, 3], f32[()], f32.bits
    (f32[2,3], f32[], 32)

    Source: xla_data.proto, PrimitiveType.
    """

    name: str
    kind: str
    bits: int
    dtype: np.dtype[Any]

    def __getitem__(self, dims: int | Sequence[int]) -> Shape:
        return array_shape(self, (dims,) if isinstance(dims, int) else tuple(dims))

    def __repr__(self) -> str:
        return self.name

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        return self.kind in ("signed", "unsigned")

    @property
    def bit_width(self) -> int:
        """The bits of an element in a bitcast to another type; 8 for pred, which is stored in a byte."""
        return 8 if self.kind == "pred" else self.bits

    @property
    def is_native(self) -> bool:
        """Whether the type is one of NumPy itself, not of ml_dtypes."""
        return self.dtype.isbuiltin == 1


def _primitive(name: str, kind: str, bits: int, dtype: Any) -> PrimitiveType:
    return PrimitiveType(name, kind, bits, np.dtype(dtype))


pred = _primitive("pred", "pred", 1, np.bool_)
s1 = _primitive("s1", "signed", 1, ml_dtypes.int1)
s2 = _primitive("s2", "signed", 2, ml_dtypes.int2)
s4 = _primitive("s4", "signed", 4, ml_dtypes.int4)
s8 = _primitive("s8", "signed", 8, np.int8)
s16 = _primitive("s16", "signed", 16, np.int16)
s32 = _primitive("s32", "signed", 32, np.int32)
s64 = _primitive("s64", "signed", 64, np.int64)
u1 = _primitive("u1", "unsigned", 1, ml_dtypes.uint1)
u2 = _primitive("u2", "unsigned", 2, ml_dtypes.uint2)
u4 = _primitive("u4", "unsigned", 4, ml_dtypes.uint4)
u8 = _primitive("u8", "unsigned", 8, np.uint8)
u16 = _primitive("u16", "unsigned", 16, np.uint16)
u32 = _primitive("u32", "unsigned", 32, np.uint32)
u64 = _primitive("u64", "unsigned", 64, np.uint64)
f4e2m1fn = _primitive("f4e2m1fn", "float", 4, ml_dtypes.float4_e2m1fn)
f6e2m3fn = _primitive("f6e2m3fn", "float", 6, ml_dtypes.float6_e2m3fn)
f6e3m2fn = _primitive("f6e3m2fn", "float", 6, ml_dtypes.float6_e3m2fn)
f8e3m4 = _primitive("f8e3m4", "float", 8, ml_dtypes.float8_e3m4)
f8e4m3 = _primitive("f8e4m3", "float", 8, ml_dtypes.float8_e4m3)
f8e4m3fn = _primitive("f8e4m3fn", "float", 8, ml_dtypes.float8_e4m3fn)
f8e4m3b11fnuz = _primitive("f8e4m3b11fnuz", "float", 8, ml_dtypes.float8_e4m3b11fnuz)
f8e4m3fnuz = _primitive("f8e4m3fnuz", "float", 8, ml_dtypes.float8_e4m3fnuz)
f8e5m2 = _primitive("f8e5m2", "float", 8, ml_dtypes.float8_e5m2)
f8e5m2fnuz = _primitive("f8e5m2fnuz", "float", 8, ml_dtypes.float8_e5m2fnuz)
f8e8m0fnu = _primitive("f8e8m0fnu", "float", 8, ml_dtypes.float8_e8m0fnu)
bf16 = _primitive("bf16", "float", 16, ml_dtypes.bfloat16)
f16 = _primitive("f16", "float", 16, np.float16)
f32 = _primitive("f32", "float", 32, np.float32)
f64 = _primitive("f64", "float", 64, np.float64)
c64 = _primitive("c64", "complex", 64, np.complex64)
c128 = _primitive("c128", "complex", 128, np.complex128)

PRIMITIVES: dict[str, PrimitiveType] = {
    t.name: t
    for t in (
        pred, s1, s2, s4, s8, s16, s32, s64, u1, u2, u4, u8, u16, u32, u64, f4e2m1fn, f6e2m3fn, f6e3m2fn, f8e3m4,
        f8e4m3, f8e4m3fn, f8e4m3b11fnuz, f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f8e8m0fnu, bf16, f16, f32, f64, c64, c128,
    )
}  # fmt: skip
_BY_DTYPE = {t.dtype: t for t in PRIMITIVES.values()}

COMPONENT = {c64: f32, c128: f64}
COMPLEX_OF = {f32: c64, f64: c128}


def primitive_type(dtype: Any) -> PrimitiveType:
    """The element type of an HLO name, a NumPy dtype or a dtype-like object; raises TypeError where XLA has none."""
    if isinstance(dtype, PrimitiveType):
        return dtype
    if isinstance(dtype, str) and dtype in PRIMITIVES:
        return PRIMITIVES[dtype]
    try:
        return _BY_DTYPE[np.dtype(dtype)]
    except (KeyError, TypeError):
        raise TypeError(f"no element type of XLA is {dtype!r}; there are {', '.join(PRIMITIVES)}") from None


@frozen(repr=False, cache_hash=True)
class Layout:
    """The minor-to-major order of the dimensions in memory, and the text of the tiling; values do not depend on it."""

    minor_to_major: Dims
    suffix: str = ""

    def __repr__(self) -> str:
        return f"{{{','.join(map(str, self.minor_to_major))}{':' * bool(self.suffix)}{self.suffix}}}"


def _extents(values: Iterable[int]) -> Dims:
    return tuple(map(operator.index, values))


def _shapes(values: Iterable[AnyShape]) -> tuple[AnyShape, ...]:
    return tuple(values)


@frozen(repr=False, cache_hash=True)
class Shape:
    """The shape of an array: element type, extents, which extents are bounds, and the layout, which no rule compares.

    >>> Shape(f32, (2, 3)), Shape(s8, (4,), dynamic=(True,)), Shape(f32, (2, 3), layout=Layout((1, 0)))
    (f32[2,3], s8[<=4], f32[2,3]{1,0})

    Source: xla_data.proto, ShapeProto.
    """

    dtype: PrimitiveType = field(converter=primitive_type)
    dims: Dims = field(default=(), converter=_extents)
    dynamic: tuple[bool, ...] = ()
    layout: Layout | None = None

    @property
    def rank(self) -> int:
        return len(self.dims)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.dims)

    @property
    def bytes(self) -> int:
        """The bytes of the elements in NumPy, where a type of less than 8 bits takes one byte."""
        return self.size * self.dtype.dtype.itemsize

    @property
    def is_dynamic(self) -> bool:
        return any(self.dynamic)

    def plain(self) -> Shape:
        """The same shape without layout."""
        return self if self.layout is None else Shape(self.dtype, self.dims, self.dynamic)

    def with_dtype(self, dtype: PrimitiveType) -> Shape:
        return Shape(dtype, self.dims, self.dynamic) if self.dynamic else array_shape(dtype, self.dims)

    def bound(self, dim: int) -> str:
        """The extent of a dimension in HLO text: `4`, or `<=4` where 4 is only a bound."""
        return f"{'<=' * (bool(self.dynamic) and self.dynamic[dim])}{self.dims[dim]}"

    def __repr__(self) -> str:
        extents = ",".join(map(self.bound, range(self.rank)))
        return f"{self.dtype}[{extents}]{'' if self.layout is None else self.layout}"


@functools.lru_cache(maxsize=8192)
def array_shape(dtype: PrimitiveType, dims: Dims) -> Shape:
    """The static array shape of these extents; it is cached, so that equal shapes are mostly one object."""
    return Shape(dtype, dims)


@frozen(repr=False, cache_hash=True)
class TupleShape:
    """The shape of a tuple of values.

    Raises ShapeError (tuple_too_large) where the tuple would have more than MOST_LEAVES arrays and tokens, or more
    than DEEPEST_TUPLE levels of nested tuples.

    >>> TupleShape((f32[2], s32[()]))
    (f32[2], s32[])
    """

    elements: tuple[AnyShape, ...] = field(default=(), converter=_shapes)
    _size: tuple[int, int] = field(init=False, eq=False)

    def __attrs_post_init__(self) -> None:
        count, depth = len(self.elements), 1
        for each in self.elements:
            if type(each) is TupleShape:
                inner, levels = each._size
                count += inner - 1
                if levels >= depth:
                    depth = levels + 1
        if count > MOST_LEAVES or depth > DEEPEST_TUPLE:
            refuse_size(count, depth)
        object.__setattr__(self, "_size", (count, depth))

    @property
    def count(self) -> int:
        """The number of arrays and tokens in the tuple, at any depth."""
        return self._size[0]

    @property
    def depth(self) -> int:
        """The nesting depth of the tuple, itself included."""
        return self._size[1]

    def __repr__(self) -> str:
        return f"({', '.join(map(repr, self.elements))})"

    def __len__(self) -> int:
        return len(self.elements)

    @property
    def bytes(self) -> int:
        return sum(element.bytes for element in self.elements)

    def plain(self) -> TupleShape:
        return TupleShape(element.plain() for element in self.elements)


token = TokenShape()

AnyShape: TypeAlias = Shape | TupleShape | TokenShape


@frozen(repr=False, cache_hash=True)
class ProgramShape:
    """The signature of a computation; shape rules take the signature of each region.

    >>> ProgramShape((f32[()], f32[()]), f32[()])
    (f32[], f32[]) -> f32[]
    """

    parameters: tuple[AnyShape, ...] = field(converter=_shapes)
    result: AnyShape

    def plain(self) -> ProgramShape:
        return ProgramShape((parameter.plain() for parameter in self.parameters), self.result.plain())

    def __repr__(self) -> str:
        return f"({', '.join(map(repr, self.parameters))}) -> {self.result!r}"


def leaves(shape: AnyShape) -> Iterator[Shape | TokenShape]:
    """The arrays and tokens of a shape in order, with tuples flattened."""
    if isinstance(shape, TupleShape):
        for element in shape.elements:
            yield from leaves(element)
    else:
        yield shape


def compatible(a: AnyShape, b: AnyShape) -> bool:
    """Whether two shapes are equal except for their layouts."""
    return a is b or a == b or a.plain() == b.plain()


def of_one_width(a: AnyShape, b: AnyShape) -> bool:
    """Whether two shapes are equal except for layouts and for element types of the same number of bits."""
    if isinstance(a, TupleShape) and isinstance(b, TupleShape):
        return len(a) == len(b) and all(map(of_one_width, a.elements, b.elements))
    if not isinstance(a, Shape) or not isinstance(b, Shape):
        return a is b
    return a.dtype.bits == b.dtype.bits and compatible(a.with_dtype(b.dtype), b)
