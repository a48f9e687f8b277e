"""Sharding rules over all cases: every op has its role, every rule is valid, and what it says of tiles is true."""

from __future__ import annotations

import importlib
import math
import pkgutil
from collections import Counter
from typing import Any

import numpy as np
import pytest

import tests.cases
from shape_inference import Shape, leaves
from tests.sharding.rules.tiles import (
    Arrays,
    alone,
    combined,
    joined,
    local_attributes,
    neutral,
    tile,
    values_of,
)
from xbuild.core.graph import Instruction
from xbuild.core.op import OPS
from xbuild.properties.effects import COLLECTIVES
from xbuild.sharding.rules import ShardingRule, reducer_of, role_of, rule_of

FAMILIES = {
    info.name: importlib.import_module(f"tests.cases.{info.name}")
    for info in pkgutil.iter_modules(tests.cases.__path__)
    if info.name != "case"
}
EDGES = {"add_dependency", "after_all", "call", "conditional", "domain", "fusion", "get_tuple_element", "opt_barrier",
         "scan", "tuple", "while"}  # fmt: skip
OPAQUE = {"all_gather_done", "all_gather_start", "all_reduce_done", "all_reduce_start", "async_done", "async_start",
          "async_update", "collective_permute_done", "collective_permute_start", "copy_done", "copy_start", "infeed",
          "outfeed", "recv", "recv_done", "send", "send_done"}  # fmt: skip
CHOSEN = {"dynamic_update_slice", "gather", "scatter"}
"""Ops whose indices count places of the whole array: a device shifts them, and takes those that are its own."""
UNLIKE = {"rng", "rng_bit_generator", "rng_get_and_update_state", "iota", "constant", "custom_call"}
"""Ops whose tiles are not made by the op on tiles: random numbers and values that attributes state."""


def test_each_op_has_its_role() -> None:
    assert {opcode for opcode in OPS if role_of(opcode) == "edge"} == EDGES
    assert {opcode for opcode in OPS if role_of(opcode) == "opaque"} == OPAQUE
    assert {opcode for opcode in OPS if role_of(opcode) == "given"} == {"parameter"}
    assert sum(role_of(opcode) == "rule" for opcode in OPS) == len(OPS) - len(EDGES) - len(OPAQUE) - 1


@pytest.mark.parametrize("family", FAMILIES)
def test_rules_of_all_cases_are_valid(family: str) -> None:
    for case in FAMILIES[family].CASES:
        for computation in case.computation().reachable():
            for instruction in computation.instructions:
                rule = rule_of(instruction)
                if rule is not None:
                    check(instruction, rule)


def check(instruction: Instruction, rule: ShardingRule) -> None:
    """Every dimension has factors, each of its own array once; the product of their sizes is the extent."""
    given = [leaf for operand in instruction.operands for leaf in leaves(operand.shape)]
    for maps, shapes in ((rule.operands, given), (rule.results, leaves(instruction.shape))):
        for dims, shape in zip(maps, shapes, strict=True):
            extents = shape.dims if isinstance(shape, Shape) else ()
            assert len(dims) == len(extents), f"{instruction}: {rule}"
            counts = Counter(number for numbers in dims for number in numbers)
            assert set(counts.values()) <= {1}, f"{instruction}: {rule}"
            for numbers, extent in zip(dims, extents, strict=True):
                kinds = {rule.factors[number].kind for number in numbers}
                assert kinds, f"{instruction}: {rule}"
                if kinds <= {"pass_through", "reduction"}:
                    assert math.prod(rule.factors[n].size for n in numbers) == extent, f"{instruction}: {rule}"


@pytest.mark.parametrize("family", sorted(set(FAMILIES) - {"collectives", "transfer", "asynchronous", "tuples"}))
def test_tiles_along_a_factor_give_the_whole(family: str) -> None:
    """An instruction on tiles along a factor that passes gives the tiles of its value; along a reduction, its parts."""
    seen, checked = set(), 0
    for case in FAMILIES[family].CASES:
        computation = case.computation()
        if any(is_dynamic(each) for each in computation.instructions):
            continue
        for instruction, operands in values_of(computation, case.arguments):
            key = (instruction.opcode, str(instruction.attribute_values()), tuple((o.shape, o.dtype) for o in operands))
            rule = rule_of(instruction)
            if rule is None or key in seen or instruction.opcode in UNLIKE | COLLECTIVES:
                continue
            seen.add(key)
            checked += sum(follow(instruction, operands, rule, factor) for factor in range(len(rule.factors)))
    assert checked or family in ("leaves", "random")


def is_dynamic(instruction: Instruction) -> bool:
    return any(leaf.is_dynamic for leaf in leaves(instruction.shape) if isinstance(leaf, Shape))


def follow(instruction: Instruction, operands: Arrays, rule: ShardingRule, factor: int) -> bool:
    """Whether the law holds for a factor; False where it says nothing."""
    size, kind = rule.factors[factor].size, rule.factors[factor].kind
    count = next((n for n in range(2, size + 1) if size % n == 0), 1)
    if count == 1 or kind not in ("pass_through", "reduction") or not any(map(np.size, operands)):
        return False
    if instruction.opcode in CHOSEN and factor_is_chosen(rule, factor, instruction):
        return False
    whole = alone(instruction, operands)
    parts = []
    for part in range(count):
        given = [tile(o, dims, rule, factor, part, count) for o, dims in zip(operands, rule.operands, strict=True)]
        given = once(instruction, given, part, kind)
        parts.append(alone(instruction, given, **local_attributes(instruction, given, rule, factor, count)))
    many = isinstance(whole, tuple | list)
    for number, dims in enumerate(rule.results):
        own = [np.asarray(part[number] if many else part) for part in parts]
        made = joined(own, dims, rule, factor) if kind == "pass_through" else combined(instruction, own)
        if made is not None:
            same(np.asarray(whole[number] if many else whole), np.asarray(made), f"{instruction} {rule} {factor}")
    return True


def factor_is_chosen(rule: ShardingRule, factor: int, instruction: Instruction) -> bool:
    """Whether a factor cuts a dimension of the operand whose places indices choose."""
    opcode = instruction.opcode
    in_operand = any(factor in numbers for numbers in rule.operands[0])
    others = rule.operands[1:2] if opcode == "dynamic_update_slice" else rule.operands[-1:]
    others = rule.results if opcode == "gather" else others
    return in_operand and not any(factor in numbers for dims in others for numbers in dims)


def once(instruction: Instruction, given: Arrays, part: int, kind: str) -> Arrays:
    """The operands of a part, in which what enters a reduction beside its elements counts in the first part alone."""
    if kind != "reduction" or not part or instruction.opcode not in ("reduce", "scatter"):
        return given
    reducer = reducer_of(instruction.attributes.to_apply)
    if reducer is None:
        return given
    if instruction.opcode == "reduce":
        return [given[0], neutral(reducer, given[1])]
    return [neutral(reducer, given[0]), *given[1:]]


def same(whole: np.ndarray[Any, Any], made: np.ndarray[Any, Any], what: str) -> None:
    assert whole.shape == made.shape, what
    if whole.dtype.kind in "biu":
        assert (whole == made).all(), what
        return
    one, other = (np.asarray(each, np.complex128 if each.dtype.kind == "c" else np.float64) for each in (whole, made))
    loose = 2e-2 if whole.dtype.itemsize <= 2 else 1e-5
    np.testing.assert_allclose(one, other, rtol=loose, atol=loose, equal_nan=True, err_msg=what)
