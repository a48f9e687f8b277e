"""Element types, shapes of arrays, tuples, tokens and buffers, and signatures of computations.

Sections:

    Token shape
    Extents of an array as a sequence
    Element types, array and tuple shapes, signatures of computations
    Buffer shape
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NoReturn, TypeAlias

import ml_dtypes
import numpy as np
from attrs import field, frozen

from .bounds import DEEPEST_TUPLE, MAX_ELEMENTS, MAX_RANK, MOST_LEAVES, check_array, refuse_tuple
from .rules import refuse

# ----------------------------------------------------------------------------
# Token shape


@frozen(repr=False)
class TokenShape:
    """The shape of a token, a value without elements that orders side effects."""

    def __repr__(self) -> str:
        return "token[]"

    @property
    def bytes(self) -> int:
        return 0

    def plain(self) -> TokenShape:
        return self


# ----------------------------------------------------------------------------
# Extents of an array as a sequence
#
# As NumPy's shape is one.


class Extents:
    """Base of Shape: length, iteration and indexing are those of its extents, if none is dynamic."""

    __slots__ = ()
    dims: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.dims)

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, dim: Any) -> Any:
        """The extent of a dimension, or those of a slice."""
        return self._known()[dim]

    def __iter__(self) -> Iterator[int]:
        return iter(self._known())

    def _known(self: Any) -> tuple[int, ...]:
        if self.is_dynamic:
            hint = "use x.shape.dims for its bounds, or xb.get_dimension_size(x, dimension) for the extent in a run"
            raise TypeError(f"{self} has a dynamic dimension; {hint}")
        return self.dims  # type: ignore[no-any-return]

    def __array__(self, *arguments: Any, **keywords: Any) -> Any:
        raise TypeError(f"{self} is a shape, not an array; use x.shape.dims to read its extents")


def comparable_with_extents(shape_class: Any) -> None:
    """Let `==` compare a shape with a tuple or list, which has no element type, by the extents; hashes stay."""
    same = shape_class.__eq__

    def equal(self: Any, other: Any) -> Any:
        if isinstance(other, tuple | list):
            return not self.is_dynamic and self.dims == tuple(other)
        return same(self, other)

    shape_class.__eq__ = equal


# ----------------------------------------------------------------------------
# Element types, array and tuple shapes, signatures of computations

Dims: TypeAlias = tuple[int, ...]


@frozen(eq=False, repr=False)
class PrimitiveType:
    """An element type of XLA. Indexing an element type returns an array shape.

    >>> f32[2, 3], f32[()], f32.bits
    (f32[2,3], f32[], 32)

    Source: xla_data.proto, PrimitiveType.
    """

    name: str
    kind: str
    bits: int
    dtype: np.dtype[Any]

    def __getitem__(self, dims: int | Sequence[int]) -> Shape:
        extents = tuple(dims) if isinstance(dims, Iterable) and not isinstance(dims, str) else (dims,)
        try:
            if not extents or min(extents) >= 0:
                return array_shape(self, extents)
        except TypeError:
            pass
        return _refuse_extents(self, extents)

    def __call__(self, *arguments: Any, **keywords: Any) -> NoReturn:
        raise TypeError(
            f"xb.{self} is an element type, not a function; use x.astype(xb.{self}) to convert a value, or "
            f"xb.{self}[2, 3] for the shape of an array (in x * 3, the number 3 takes the type of x)"
        )

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
        """The number of bits of an element in a bitcast: 8 for pred, which is stored in a byte."""
        return 8 if self.kind == "pred" else self.bits

    @property
    def is_native(self) -> bool:
        """Whether NumPy itself has the type; ml_dtypes has the others."""
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
    """Return the element type for an HLO name, a NumPy dtype or a dtype-like object.

    Raises TypeError if XLA has no such type.
    """
    if isinstance(dtype, PrimitiveType):
        return dtype
    if isinstance(dtype, str) and dtype in PRIMITIVES:
        return PRIMITIVES[dtype]
    try:
        return _BY_DTYPE[np.dtype(dtype)]
    except (KeyError, TypeError):
        raise TypeError(f"{dtype!r} is not an XLA element type; expected one of {', '.join(PRIMITIVES)}") from None


@frozen(repr=False, cache_hash=True)
class Layout:
    """The minor-to-major order of the dimensions in memory, and the tiling as text.

    Values do not depend on the layout.
    """

    minor_to_major: Dims
    suffix: str = ""

    def __repr__(self) -> str:
        return f"{{{','.join(map(str, self.minor_to_major))}{':' * bool(self.suffix)}{self.suffix}}}"


def index(value: Any) -> int:
    """The integer, as `operator.index`; attrs reads the signature of a Python function in less time."""
    return operator.index(value)


def _extents(values: Iterable[int]) -> Dims:
    return tuple(map(operator.index, values))


def _shapes(values: Iterable[AnyShape]) -> tuple[AnyShape, ...]:
    return tuple(values)


@frozen(repr=False, cache_hash=True)
class Shape(Extents):
    """The shape of an array: element type, extents, which extents are bounds, and layout.

    No rule compares layouts.

    >>> Shape(f32, (2, 3)), Shape(s8, (4,), dynamic=(True,)), Shape(f32, (2, 3), layout=Layout((1, 0)))
    (f32[2,3], s8[<=4], f32[2,3]{1,0})

    Like NumPy's shape, it acts as a sequence of extents: `rows, columns = shape`, `shape[0]`, `shape == (2, 3)`.
    Raises ShapeError (overflow) for more than 64 dimensions or 2^63-1 elements, or for an empty array of more than
    2^59-1 elements without its extents of 0, which NumPy cannot make in every type.

    Source: xla_data.proto, ShapeProto.
    """

    dtype: PrimitiveType = field(converter=primitive_type)
    dims: Dims = field(default=(), converter=_extents)
    dynamic: tuple[bool, ...] = ()
    layout: Layout | None = None

    def __attrs_post_init__(self) -> None:
        if len(self.dims) > MAX_RANK or math.prod(self.dims) > MAX_ELEMENTS or 0 in self.dims:
            check_array(self.dims)

    @property
    def rank(self) -> int:
        return len(self.dims)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.dims)

    @property
    def bytes(self) -> int:
        """The size in bytes of all elements as NumPy stores them; an element narrower than 8 bits takes one byte."""
        return self.size * self.dtype.dtype.itemsize

    @property
    def is_dynamic(self) -> bool:
        return any(self.dynamic)

    def plain(self) -> Shape:
        """Return the same shape without its layout."""
        return self if self.layout is None else Shape(self.dtype, self.dims, self.dynamic)

    def with_dtype(self, dtype: PrimitiveType) -> Shape:
        return Shape(dtype, self.dims, self.dynamic) if self.dynamic else array_shape(dtype, self.dims)

    def bound(self, dim: int) -> str:
        """Return the extent of a dimension in HLO text: `4`, or `<=4` if 4 is only a bound."""
        return f"{'<=' * (bool(self.dynamic) and self.dynamic[dim])}{self.dims[dim]}"

    def __repr__(self) -> str:
        extents = ",".join(map(self.bound, range(self.rank)))
        return f"{self.dtype}[{extents}]{'' if self.layout is None else self.layout}"


comparable_with_extents(Shape)


def _refuse_extents(dtype: PrimitiveType, extents: tuple[Any, ...]) -> NoReturn:
    """Refuse extents of which one is no integer, or negative."""
    shape = f"{dtype}[{', '.join(map(repr, extents))}]"
    for dim, extent in enumerate(extents):
        if not hasattr(extent, "__index__"):
            raise TypeError(
                f"{shape}: expected an integer as the extent of dimension {dim}, got {extent!r}; extents are fixed "
                "when a program is built, so write a number such as 2 and build one program for each size"
            )
        if operator.index(extent) < 0:
            refuse(
                "negative_size",
                f"{shape}: the extent of dimension {dim} must be at least 0, got {extent}",
                f"write every extent as a number, as in {dtype}[2]; only reshape infers an extent, as in x.reshape(-1)",
            )
    raise TypeError(f"{shape}: expected integers as extents")


@functools.lru_cache(maxsize=8192)
def array_shape(dtype: PrimitiveType, dims: Dims) -> Shape:
    """Return the static array shape with these extents. Shapes are cached, so equal shapes are usually the same
    object."""
    return Shape(dtype, dims)


@frozen(repr=False, cache_hash=True)
class TupleShape:
    """The shape of a tuple of values.

    Raises ShapeError (tuple_too_large) if the tuple would have more than MOST_LEAVES arrays, tokens and empty
    tuples, or more than DEEPEST_TUPLE levels of nested tuples.

    >>> TupleShape((f32[2], s32[()]))
    (f32[2], s32[])
    """

    elements: tuple[AnyShape, ...] = field(default=(), converter=_shapes)
    _size: tuple[int, int, int] = field(init=False, eq=False)

    def __attrs_post_init__(self) -> None:
        count, depth = len(self.elements), 1
        ends = count or 1  # of the tree: an empty tuple has no arrays, but is not free
        for each in self.elements:
            if type(each) is TupleShape:
                inner, levels, many = each._size
                count += inner - 1
                ends += many - 1
                if levels >= depth:
                    depth = levels + 1
        if ends > MOST_LEAVES or depth > DEEPEST_TUPLE:
            refuse_tuple(count, ends, depth)
        object.__setattr__(self, "_size", (count, depth, ends))

    @property
    def count(self) -> int:
        """The number of arrays and tokens in the tuple, at any depth."""
        return self._size[0]

    @property
    def depth(self) -> int:
        """The nesting depth of the tuple, including the tuple itself."""
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
    """The signature of a computation; shape rules take one for each region.

    >>> ProgramShape((f32[()], f32[()]), f32[()])
    (f32[], f32[]) -> f32[]
    """

    parameters: tuple[AnyShape, ...] = field(converter=_shapes)
    result: AnyShape

    def plain(self) -> ProgramShape:
        return ProgramShape((parameter.plain() for parameter in self.parameters), self.result.plain())

    def __repr__(self) -> str:
        return f"({', '.join(map(repr, self.parameters))}) -> {self.result!r}"


def compatible(a: AnyShape, b: AnyShape) -> bool:
    """Return whether two shapes are equal except for their layouts."""
    return a is b or a == b or a.plain() == b.plain()


def is_differentiable(shape: AnyShape) -> bool:
    """Whether it is the shape of an array of floats or complex numbers."""
    return isinstance(shape, Shape) and shape.dtype.kind in ("float", "complex")


def of_one_width(a: AnyShape, b: AnyShape) -> bool:
    """Whether two shapes are equal except for layouts and for element types of the same number of bits."""
    if isinstance(a, TupleShape) and isinstance(b, TupleShape):
        return len(a) == len(b) and all(map(of_one_width, a.elements, b.elements))
    if not isinstance(a, Shape) or not isinstance(b, Shape):
        return a is b
    return a.dtype.bits == b.dtype.bits and compatible(a.with_dtype(b.dtype), b)


# ----------------------------------------------------------------------------
# Buffer shape
#
# A buffer is an array that is written in place.


@frozen(repr=False, cache_hash=True)
class BufferShape(Shape):
    """The shape of a buffer: an array in memory that custom calls write in place. All other ops refuse buffers.

    >>> from shape_inference import f32
    >>> BufferShape(f32, (2,)), BufferShape(f32, (2,)) == Shape(f32, (2,))
    (b(f32[2]), False)

    Source: xla_data.proto, PrimitiveType BUFFER.
    """

    def plain(self) -> BufferShape:
        return self if self.layout is None else BufferShape(self.dtype, self.dims, self.dynamic)

    def with_dtype(self, dtype: PrimitiveType) -> BufferShape:
        return BufferShape(dtype, self.dims, self.dynamic)

    def __repr__(self) -> str:
        return f"b({super().__repr__()})"
