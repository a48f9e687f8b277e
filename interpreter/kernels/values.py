"""Conversion of arguments into arrays of the declared shapes, and of results into arrays that the caller owns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from shape_inference import AnyShape, Shape, TokenShape, TupleShape, XbuildError, f32
from shape_inference.trees import flatten, map_leaves
from xbuild.core.graph import Computation


class ArgumentError(XbuildError):
    """Raised if an argument does not fit its parameter, or if an item does not fit the infeed that reads it."""


def read(value: Any, shape: AnyShape, name: str) -> Any:
    """The argument in the form that a plan takes: arrays, NumPy scalars for rank 0, tuples of these, None for a token.

    Python numbers and lists take the declared element type, and so do NumPy values of the type that NumPy gives Python
    numbers; other NumPy values must have it.
    """
    if isinstance(shape, TokenShape):
        return None
    if isinstance(shape, TupleShape):
        return _read_tuple(value, shape, name)
    array = _as_array(value, shape, name)
    if array.dtype == shape.dtype.dtype:
        array = array.view(shape.dtype.dtype)  # an unpickled array's dtype equals the native one but is not it
    else:
        problem = f"is {array.dtype}, but {shape} requires {shape.dtype.dtype}"
        _mismatch(name, problem, f".astype(xb.{shape.dtype}.dtype) converts it", *_hint_of_floats(array, shape))
    if not _fits(array.shape, shape):
        one_deep = isinstance(value, list | tuple) and len(value) == 1 and _fits(array.shape[1:], shape)
        hints = ["pass each argument separately: evaluate(computation, x, y)"] if one_deep else []
        _mismatch(name, f"has shape {list(array.shape)}, but {shape} requires {list(shape.dims)}", *hints)
    return array if array.ndim else array[()]


def _hint_of_floats(array: np.ndarray[Any, Any], shape: Shape) -> list[str]:
    """The hint for floats in place of integers, whose fractions a conversion would lose."""
    if array.dtype.kind != "f" or not shape.dtype.is_integer:
        return []
    return [f"the conversion drops fractions; a parameter of shape {shape.with_dtype(f32)} keeps them"]


def _read_tuple(value: Any, shape: TupleShape, name: str) -> tuple[Any, ...]:
    if not isinstance(value, tuple | list) or len(value) != len(shape):
        _mismatch(name, f"is {_short(value)}, but {shape} requires a tuple of {len(shape)}")
    return tuple(
        read(part, element, f"{name}[{n}]") for n, (part, element) in enumerate(zip(value, shape.elements, strict=True))
    )


def _as_array(value: Any, shape: Shape, name: str) -> np.ndarray[Any, Any]:
    if isinstance(value, np.ndarray | np.generic):
        given = np.asarray(value)
        return _from_default(given, shape, name) if given.dtype in _DEFAULTS else given
    try:
        natural = np.asarray(value)
    except (ValueError, TypeError, OverflowError) as error:
        _mismatch(name, f"is not an array: {error}")
    if natural.dtype == shape.dtype.dtype:  # also a JAX array whose type NumPy lacks
        return natural
    if not _may_become(natural.dtype, shape):
        _mismatch(name, f"is {_short(value)}, which {shape.dtype} cannot hold")
    return _converted(natural, shape, name, _short(value))


_DEFAULTS = frozenset(map(np.dtype, (np.float64, np.int64, np.complex128)))
"""The types that NumPy gives arrays of Python's numbers."""


def _from_default(array: np.ndarray[Any, Any], shape: Shape, name: str) -> np.ndarray[Any, Any]:
    """An array of NumPy's default type in the declared type; unchanged, and refused next, where the kinds differ."""
    if array.dtype == shape.dtype.dtype or not _may_become(array.dtype, shape):
        return array
    return _converted(array, shape, name, f"an array of {array.dtype}")


def _converted(natural: np.ndarray[Any, Any], shape: Shape, name: str, shown: str) -> np.ndarray[Any, Any]:
    """Numbers in the declared type: floats may be rounded; an integer that would change, or an overflow, is refused."""
    with np.errstate(all="ignore"):
        array = natural.astype(shape.dtype.dtype)
        changed = _changed(natural, array)
    if changed.any():
        first = natural[changed].flat[0]
        lost = f"{shape.dtype} cannot hold {first}" if natural.dtype.kind in "iu" else f"{first} becomes infinite"
        _mismatch(name, f"is {shown} for {shape}: {lost}", f".astype(xb.{shape.dtype}.dtype) converts it anyway")
    return array


def _changed(natural: np.ndarray[Any, Any], array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Where a conversion changed an integer, or made a finite number infinite."""
    real = array.real if array.dtype.kind == "c" and natural.dtype.kind != "c" else array
    back: np.ndarray[Any, Any] = real.astype(natural.dtype)
    found: np.ndarray[Any, Any]
    if natural.dtype.kind in "iu":
        found = np.not_equal(back, natural) | np.not_equal(real < 0, natural < 0)
    else:
        found = np.isfinite(natural) & ~np.isfinite(back)
    return found


_RANK = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}


def _may_become(dtype: np.dtype[Any], shape: Shape) -> bool:
    """Whether Python numbers of this kind may be converted to elements of the shape; an empty list always may."""
    wanted = {"pred": 0, "signed": 1, "unsigned": 1, "float": 2, "complex": 3}[shape.dtype.kind]
    have = _RANK.get(dtype.kind, 4)
    return shape.size == 0 or have == wanted or 0 < have < wanted


def _fits(extents: tuple[int, ...], shape: Shape) -> bool:
    if not shape.dynamic:
        return extents == shape.dims
    pairs = zip(extents, shape.dims, shape.dynamic, strict=False)
    return len(extents) == shape.rank and all(have == most or (free and have < most) for have, most, free in pairs)


def _mismatch(name: str, problem: str, *hints: str) -> NoReturn:
    lines = "".join(f"\n  hint: {hint}" for hint in hints)
    raise ArgumentError("argument_mismatch", f"{name} {problem} [argument_mismatch]{lines}", hints)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


class NativeMemory:
    """Memory of a native library with one array in it, which nothing else uses; `np.asarray` makes the array.

    `owner` is what keeps the memory.
    """

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, owner: Any, address: int, dims: tuple[int, ...], dtype: str) -> None:
        self.owner = owner
        self.__array_interface__ = {"data": (address, False), "shape": dims, "typestr": dtype, "version": 3}


class Given:
    """Results handed to the caller: no result array shares memory with an input, a constant or another result.

    An array that several devices share remains one array and becomes read-only.
    """

    def __init__(self, inputs: Any = ()) -> None:
        self._foreign = {id(array) for array in flatten(inputs)}
        self._given: dict[int, tuple[Any, Any]] = {}

    def out(self, value: Any) -> Any:
        """The result of one device, with arrays copied where their memory is shared."""
        taken: set[int] = set()
        return map_leaves(lambda leaf: self._out(leaf, taken), value)

    def _out(self, value: Any, taken: set[int]) -> Any:
        if not isinstance(value, np.ndarray):
            return value
        if id(value) in taken:
            return value.copy()
        taken.add(id(value))
        if id(value) in self._given:
            shared = self._given[id(value)][1]
            shared.flags.writeable = False
            return shared
        given = value.copy() if self._is_foreign(value) else value
        self._given[id(value)] = value, given
        return given

    def _is_foreign(self, array: np.ndarray[Any, Any]) -> bool:
        """Whether the array's memory has another owner: the array is a view, a constant (read-only) or an input."""
        is_view = array.base is not None and not isinstance(array.base, NativeMemory)
        return is_view or not array.flags.writeable or id(array) in self._foreign


def zeros(shape: AnyShape) -> Any:
    """A value of this shape whose elements are all zero."""
    if isinstance(shape, Shape):
        array = np.zeros(shape.dims, shape.dtype.dtype)
        return array if shape.dims else array[()]
    return map_leaves(zeros, shape) if isinstance(shape, TupleShape) else None


def by_device(inputs: Any, counts: Sequence[int]) -> list[tuple[Any, ...]]:
    """The arguments of each device, from a list over devices or a mapping by device; each needs `counts` of them."""
    devices = len(counts)
    rows = [inputs.get(device, ()) for device in range(devices)] if isinstance(inputs, Mapping) else list(inputs)
    if len(rows) != devices:
        raise ArgumentError(
            "argument_mismatch",
            f"got inputs for {len(rows)} device{'s' * (len(rows) != 1)}, but the program has {devices} "
            "[argument_mismatch]"
            f"\n  hint: {_by_device(devices)}",
        )
    return [_row(row, number, counts) for number, row in enumerate(rows)]


def _row(row: Any, number: int, counts: Sequence[int]) -> tuple[Any, ...]:
    """The arguments of a device; an array in their place is refused unless it has one row for each argument."""
    holds = isinstance(row, np.ndarray) and row.ndim > 1 and len(row) == counts[number]
    if not holds and isinstance(row, np.ndarray | np.generic | float | int | complex):
        shown = f"array of {list(row.shape)}" if isinstance(row, np.ndarray) else "number"
        raise ArgumentError(
            "argument_mismatch",
            f"inputs[{number}] is one {shown}; expected a list of the arguments of device {number} [argument_mismatch]"
            f"\n  hint: {_by_device(len(counts))}",
        )
    return tuple(row)


def _by_device(devices: int) -> str:
    """How to pass inputs to this number of devices, with one argument x each."""
    lists = ", ".join(f"[x{n}]" for n in range(min(devices, 3))) if devices > 1 else "[x]"
    return f"inputs takes a list of arguments for each device: [{lists}{', ...' * (devices > 3)}]"


def wrong_count(entry: Computation, count: int, device: int) -> ArgumentError:
    """The error for a device with too many or too few arguments."""
    signature = entry.program_shape
    arguments, parameters = _counted(count, "argument"), _counted(len(signature.parameters), "parameter")
    missing = [f"%{p.name} ({p.shape})" for p in entry.parameters[count:]]
    hint = f"missing, in this order: {', '.join(missing)}" if missing else "pass one argument for each parameter"
    return ArgumentError(
        "argument_mismatch",
        f"{arguments} for device {device}, but %{entry.name} has {parameters}: {signature} [argument_mismatch]\n"
        f"  hint: {hint}",
        (hint,),
    )


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def feeds_by_device(
    infeed: Mapping[int, Iterable[Any]] | Iterable[Iterable[Any]] | None, devices: int
) -> dict[int, Iterator[Any]]:
    """The items of the infeed of each device, as an iterator."""
    items = dict(infeed) if isinstance(infeed, Mapping) else dict(enumerate(infeed or ()))
    if unknown := set(items) - set(range(devices)):
        raise ArgumentError(
            "argument_mismatch",
            f"infeed items are given for device {min(unknown)}, but the program has {devices} devices",
        )
    return {device: iter(items.get(device, ())) for device in range(devices)}


def scalars(value: Any, shape: AnyShape) -> Any:
    """The value with its rank-0 arrays converted to NumPy scalars."""
    return map_leaves(lambda leaf, each: each if isinstance(leaf, TokenShape) or leaf.dims else each[()], shape, value)
