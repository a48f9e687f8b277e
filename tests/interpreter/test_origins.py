"""Provenance: elements of the operands that are not named do not matter to an element of the result, the others do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import evaluate
from interpreter.provenance import origins_of

Build = Callable[..., xb.Value]


def _dot(x: xb.Value, y: xb.Value) -> xb.Value:
    return xb.ops.dot(
        x, y, lhs_batch_dims=(1,), rhs_batch_dims=(2,), lhs_contracting_dims=(0,), rhs_contracting_dims=(1,)
    )


def _convolution(**attributes: Any) -> Build:
    return lambda x, w: xb.ops.convolution(x, w, **attributes)


def _windows(x: xb.Value) -> xb.Value:
    zero = xb.constant(x.builder, literal=np.float32(0))
    return xb.ops.reduce_window(
        (x,), (zero,), to_apply=xb.add, window="size=2x3 stride=1x2 pad=1_0x0_2 lhs_dilate=2x1 rhs_dilate=1x2"
    )


def _gathered(x: xb.Value, rows: xb.Value) -> xb.Value:
    return xb.ops.gather(
        x, rows, offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,), index_vector_dim=1,
        slice_sizes=(1, 3),
    )  # fmt: skip


def _scattered(region: Any) -> Build:
    return lambda x, rows, u: xb.ops.scatter(
        (x,), rows, (u,), to_apply=region, update_window_dims=(0,), inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,), index_vector_dim=1,
    )  # fmt: skip


def _last(_: xb.Value, new: xb.Value) -> xb.Value:
    return new


CASES: dict[str, tuple[Build, list[Any]]] = {
    "add": (lambda x, y: xb.ops.add(x, y), [(2, 3), (2, 3)]),
    "bitcast_convert to narrower": (lambda x: xb.bitcast_convert(x, xb.u8), [(2, 3)]),
    "bitcast_convert to wider": (lambda x: xb.bitcast_convert(x, xb.u16), [np.array([[1, 2], [3, 4]], np.uint8)]),
    "bitcast_convert of preds": (lambda x: xb.bitcast_convert(x, xb.u16), [np.array([[1, 0], [1, 1]], bool)]),
    "bitcast_convert to preds": (lambda x: xb.bitcast_convert(x, xb.pred), [np.array([0x00FF, 0xFF00], np.uint16)]),
    "clamp": (lambda x: xb.clamp(-0.5, x, 0.5), [(4,)]),
    "select": (lambda p, x, y: xb.ops.select(p, x, y), [np.array([True, False, True]), (3,), (3,)]),
    "broadcast": (lambda x: xb.ops.broadcast(x, sizes=(2, 3, 4), dimensions=(2, 0)), [(4, 2)]),
    "transpose": (lambda x: xb.transpose(x, (2, 0, 1)), [(2, 3, 4)]),
    "reshape": (lambda x: xb.reshape(x, (4, 3)), [(2, 6)]),
    "reverse": (lambda x: xb.ops.reverse(x, dimensions=(1,)), [(2, 3)]),
    "slice": (lambda x: xb.ops.slice(x, start_indices=(1, 0), limit_indices=(4, 5), strides=(2, 3)), [(4, 5)]),
    "pad": (lambda x, v: xb.ops.pad(x, v, padding=((1, -1, 2), (0, 2, 0))), [(3, 2), ()]),
    "concatenate": (lambda *xs: xb.ops.concatenate(xs, dimension=1), [(2, 1), (2, 3), (2, 2)]),
    "gather": (_gathered, [(5, 3), np.array([4, -3, 9, 1], np.int32)]),
    "dynamic_slice": (
        lambda x, i: xb.ops.dynamic_slice(x, (i,), dynamic_slice_sizes=(3,)),
        [(6,), np.int32(5)],
    ),
    "dynamic_update_slice": (lambda x, u, i: xb.ops.dynamic_update_slice(x, u, (i,)), [(6,), (2,), np.int32(3)]),
    "scatter": (_scattered(xb.add), [(4, 3), np.array([2, -1, 0, 2], np.int32), (2, 4)]),
    "scatter that replaces": (_scattered(_last), [(4, 3), np.array([2, 9, 0, 2], np.int32), (2, 4)]),
    "reduce": (lambda x: xb.reduce(x, 0.0, xb.add, (0, 2)), [(2, 3, 4)]),
    "dot": (_dot, [(3, 2, 4), (5, 3, 2)]),
    "reduce_window": (_windows, [(3, 7)]),
    "convolution": (
        _convolution(
            window="size=2x3 stride=2x1 pad=1_1x0_-1 lhs_dilate=1x2 rhs_dilate=2x1 rhs_reversal=1x0",
            dimension_numbers="b01f_01io->bf01",
        ),
        [(2, 4, 4, 2), (2, 3, 2, 3)],
    ),
    "convolution of feature groups": (
        _convolution(window="size=2", dimension_numbers="b0f_0io->b0f", feature_group_count=2),
        [(2, 4, 4), (2, 2, 4)],
    ),
    "convolution of batch groups": (
        _convolution(window="size=2", dimension_numbers="b0f_0io->b0f", batch_group_count=2),
        [(4, 4, 2), (2, 2, 4)],
    ),
}


def _arguments(given: list[Any], generator: np.random.Generator) -> list[Any]:
    return [
        np.asarray(generator.standard_normal(each), np.float32) if isinstance(each, tuple) else each for each in given
    ]


def _is_data(name: str, given: Any) -> bool:
    """Whether an argument is numbers that the op moves or computes with, not what chooses among them."""
    return isinstance(given, tuple) or name.startswith("bitcast_convert")


def _other(array: Any) -> Any:
    """Other numbers of the same type, each different from what it was, in every byte of an integer."""
    return array + np.float32(3) if array.dtype.kind == "f" else ~array


def _instruction(build: Build, arguments: list[Any]) -> tuple[xb.Computation, xb.Instruction]:
    shapes = [xb.primitive_type(np.asarray(each).dtype)[np.shape(each)] for each in arguments]
    computation = xb.computation(*shapes)(build)
    return computation, computation.root


@pytest.mark.parametrize("name", CASES)
def test_what_is_not_named_does_not_matter(name: str) -> None:
    build, given = CASES[name]
    generator = np.random.default_rng(0)
    arguments = _arguments(given, generator)
    computation, root = _instruction(build, arguments)
    result = np.asarray(evaluate(computation, *arguments))
    tables, count = _tables(root, arguments), 0
    for number in generator.permutation(result.size)[:12]:
        changed = []
        for place, each in enumerate(arguments):
            array = np.asarray(each)
            other = _other(array).reshape(-1) if place in tables and _is_data(name, given[place]) else array.reshape(-1)
            named = tables[place][number] if place in tables else np.arange(0)
            named = named[named >= 0]
            count += int(np.count_nonzero(np.delete(other != array.reshape(-1), named)))
            other[named] = array.reshape(-1)[named]
            changed.append(other.reshape(array.shape))
        again = np.asarray(evaluate(computation, *changed))
        np.testing.assert_array_equal(again.reshape(-1)[number], result.reshape(-1)[number])
    assert count, "elements that are not named were changed"


@pytest.mark.parametrize("name", CASES)
def test_what_is_named_matters(name: str) -> None:
    """Every number that is named changes the result, but one that clamp moves to a bound."""
    build, given = CASES[name]
    generator = np.random.default_rng(1)
    arguments = _arguments(given, generator)
    computation, root = _instruction(build, arguments)
    result = np.asarray(evaluate(computation, *arguments)).reshape(-1)
    count = 0
    for place, table in _tables(root, arguments).items():
        for number in generator.permutation(len(table))[:6] if _is_data(name, given[place]) else ():
            if name == "clamp" and abs(result[number]) == np.float32(0.5):
                continue
            for element in np.unique(table[number][table[number] >= 0])[:6]:
                changed = [np.array(each) for each in arguments]
                changed[place].reshape(-1)[element] = _other(changed[place]).reshape(-1)[element]
                assert np.asarray(evaluate(computation, *changed)).reshape(-1)[number] != result[number]
                count += 1
    assert count, "elements that are named were changed"


def _tables(root: xb.Instruction, arguments: list[Any]) -> dict[int, Any]:
    """The table of each argument that is an operand of the root."""
    number_of = [operand.attributes.number if operand.opcode == "parameter" else None for operand in root.operands]
    values = [
        arguments[number] if number is not None else np.zeros(operand.shape.dims, operand.shape.dtype.dtype)  # type: ignore[union-attr]
        for number, operand in zip(number_of, root.operands, strict=True)
    ]
    found = origins_of(root, values)
    assert found is not None
    return {
        number: table
        for number, table in zip(number_of, found, strict=True)
        if number is not None and table is not None
    }


@pytest.mark.parametrize(
    ("name", "place", "number", "wanted"),
    [
        ("gather", 1, 4, [1]),
        ("gather", 1, 11, [3]),
        ("dynamic_slice", 1, 2, [0]),
        ("dynamic_update_slice", 2, 5, [0]),
        ("scatter", 1, 7, [0, 3]),
        ("scatter", 2, 7, [4, 7]),
        ("scatter", 1, 2, []),
        ("scatter that replaces", 0, 7, []),
        ("scatter that replaces", 1, 7, [3]),
        ("scatter that replaces", 2, 7, [7]),
        ("scatter that replaces", 0, 4, [4]),
    ],
)
def test_which_indices_chose_an_element(name: str, place: int, number: int, wanted: list[int]) -> None:
    build, given = CASES[name]
    arguments = _arguments(given, np.random.default_rng(0))
    row = _tables(_instruction(build, arguments)[1], arguments)[place][number]
    assert row[row >= 0].tolist() == wanted


def test_of_what_is_too_large_or_of_tuples_nothing_is_said() -> None:
    builder = xb.Builder("b")
    x = xb.parameter(builder, number=0, shape=xb.f32[1 << 17])
    assert origins_of(xb.negate(x).instruction, [np.zeros(1 << 17, np.float32)]) is None
    assert origins_of(xb.tuple_((x, x)).instruction, [np.zeros(1 << 17, np.float32)] * 2) is None
