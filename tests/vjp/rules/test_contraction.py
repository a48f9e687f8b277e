"""Rules of products: dimensions in every order and role, types that differ, runs of groups, scales of blocks."""

from __future__ import annotations

from typing import Any

import pytest

import xbuild as xb

from ..numeric import Case, check


def dot(name: str, lhs: tuple[int, ...], rhs: tuple[int, ...], dtype: Any = xb.f64, **attributes: Any) -> Case:
    short = {"lc": "lhs_contracting_dims", "rc": "rhs_contracting_dims", "lb": "lhs_batch_dims", "rb": "rhs_batch_dims"}
    named = {short.get(key, key): value for key, value in attributes.items()}
    return Case(name, lambda a, b: xb.ops.dot(a, b, **named), [dtype[lhs], dtype[rhs]])


def ragged(name: str, shapes: list[Any], sizes: Any, contracting: Any, batch: Any, where: int, group: Any) -> Case:
    def function(lhs: Any, rhs: Any, counts: Any) -> Any:
        return xb.ragged_dot(lhs, rhs, counts, (contracting, batch), (where,), group)

    return Case(name, function, shapes, {2: sizes})


def scaled(name: str, lhs: Any, rhs: Any, lhs_scale: Any, rhs_scale: Any) -> Case:
    function = lambda a, b, s, t: xb.scaled_dot(a, b, s, t, ((1,), (1,)))  # noqa: E731
    return Case(name, function, [lhs, rhs, lhs_scale, rhs_scale])


CASES = [
    dot("matrices", (3, 4), (4, 5), lc=(1,), rc=(0,)),
    dot("both transposed", (4, 3), (5, 4), lc=(0,), rc=(1,)),
    dot("vectors", (4,), (4,), lc=(0,), rc=(0,)),
    dot("outer", (3,), (4,)),
    dot("scalar and array", (), (2, 3)),
    dot("batch first", (2, 3, 4), (2, 4, 5), lc=(2,), rc=(1,), lb=(0,), rb=(0,)),
    dot("batch last of one", (2, 3, 4), (4, 5, 2), lc=(2,), rc=(0,), lb=(0,), rb=(2,)),
    dot("two batch dimensions crossed", (2, 3, 4, 5), (3, 5, 2, 6), lc=(3,), rc=(1,), lb=(0, 1), rb=(2, 0)),
    dot("two contracted, crossed", (2, 3, 4), (4, 2, 5), lc=(2, 0), rc=(0, 1)),
    dot("two free on each side", (2, 3, 4), (5, 4, 6), lc=(1 + 1,), rc=(1,)),
    dot("all roles", (2, 3, 4, 5), (5, 2, 6, 7, 3), lc=(3, 1), rc=(0, 4), lb=(0,), rb=(1,)),
    dot("nothing contracted, extent 0", (0, 4), (4, 5), lc=(1,), rc=(0,)),
    dot("nothing to sum", (3, 0), (0, 5), lc=(1,), rc=(0,)),
    dot("extents of 1", (1, 4), (4, 1), lc=(1,), rc=(0,)),
    dot("complex", (3, 4), (4, 2), xb.c128, lc=(1,), rc=(0,)),
    dot("complex preferred", (3, 4), (4, 2), lc=(1,), rc=(0,), preferred_element_type=xb.c128),
    dot("with precision", (3, 4), (4, 2), lc=(1,), rc=(0,), operand_precision=("high", "highest")),
    ragged("runs of free rows", [xb.f64[5, 2], xb.f64[3, 2, 4], xb.s32[3]], [2, 0, 2], ((1,), (1,)), ((), ()), 0, (0,)),
    ragged(
        "runs for each batch index",
        [xb.f64[2, 5, 3], xb.f64[3, 2, 3, 4], xb.s32[2, 3]],
        [[2, 1, 2], [0, 4, 1]],
        ((2,), (2,)),
        ((0,), (1,)),
        1,
        (0,),
    ),
    ragged(
        "runs for each free row before",
        [xb.f64[2, 5, 3], xb.f64[3, 4, 3], xb.s32[2, 3]],
        [[2, 1, 2], [0, 4, 1]],
        ((2,), (2,)),
        ((), ()),
        1,
        (0,),
    ),
    ragged(
        "group dimension last", [xb.f64[5, 2], xb.f64[2, 4, 3], xb.s32[3]], [1, 2, 2], ((1,), (0,)), ((), ()), 0, (2,)
    ),
    ragged("contracted runs", [xb.f64[4, 5], xb.f64[5, 3], xb.s32[2]], [2, 2], ((1,), (0,)), ((), ()), 1, ()),
    ragged(
        "contracted runs for each batch index",
        [xb.f64[2, 4, 5], xb.f64[5, 2, 3], xb.s32[2, 2]],
        [[2, 2], [5, 0]],
        ((2,), (0,)),
        ((0,), (1,)),
        2,
        (),
    ),
    ragged(
        "contracted runs for each other contracted index",
        [xb.f64[3, 2, 5], xb.f64[5, 2, 4], xb.s32[2, 2]],
        [[2, 2], [5, 0]],
        ((1, 2), (1, 0)),
        ((), ()),
        2,
        (),
    ),
    ragged("runs of a batch", [xb.f64[5, 2], xb.f64[5, 2], xb.s32[2]], [2, 2], ((1,), (1,)), ((0,), (0,)), 0, ()),
    scaled("scales of blocks", xb.f64[2, 4], xb.f64[3, 4], xb.f64[2, 2], xb.f64[1, 4]),
    scaled("one scale and none of blocks", xb.f64[2, 4], xb.f64[3, 4], xb.f64[()], xb.f64[3, 4]),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_cotangents_are_those_of_numeric_derivatives(case: Case) -> None:
    check(case)


def test_a_product_is_differentiated_by_two_products_and_nothing_else() -> None:
    """The order of the operands is the one that needs no transposition."""
    shapes = xb.f64[2, 3, 4], xb.f64[2, 4, 5]
    program = xb.computation(*shapes)(lambda a, b: xb.dot_general(a, b, [2], [1], [0], [0]))
    opcodes = [i.opcode for i in xb.vjp(program).instructions]
    assert sorted(opcodes) == ["dot", "dot", "parameter", "parameter", "parameter", "tuple"]


def test_types_of_operands_are_those_of_their_cotangents() -> None:
    program = xb.computation(xb.bf16[3, 4], xb.f32[4, 5])(xb.dot)
    assert str(xb.vjp(program).root.shape) == "(bf16[3,4], f32[4,5])"
