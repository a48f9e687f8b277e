"""Ops drawn by chance, as for the comparison with real XLA, whose cotangents must be those of numeric derivatives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import xbuild as xb
from tests.oracle.chance import Chance
from tests.oracle.draw import DRAWS
from tests.oracle.instance import Instance

from .numeric import compare, is_smooth

OPCODES = (
    "dot", "ragged_dot", "convolution", "reduce_window", "select_and_scatter", "gather", "scatter", "sort", "topk",
    "fft", "batch_norm_training", "batch_norm_inference", "batch_norm_grad",
)  # fmt: skip
MOST_ELEMENTS = 200  # among more are two that a step brings into another order


def verdicts(seed: int, count: int) -> Iterator[tuple[str, str, str]]:
    """For so many draws of each op the opcode, `equal`, `refused`, or what is wrong, and the instance in words."""
    for opcode in OPCODES:
        for number in range(seed, seed + count):
            dtype = xb.c128 if opcode == "fft" or number % 7 == 0 else xb.f64
            try:
                instance = DRAWS[opcode](Chance(number, OPCODES.index(opcode)), dtype)
            except (KeyError, IndexError):  # not drawn in this type
                continue
            yield opcode, _judged(instance, np.random.default_rng(number)), str(instance)


def _judged(instance: Instance, chance: np.random.Generator) -> str:
    leaves = [*_leaves(instance.operands)]
    if sum(leaf.size for leaf in leaves) > MOST_ELEMENTS:
        return "large"
    shapes = [xb.Shape(leaf.dtype, leaf.shape) for leaf in leaves]
    if any(is_smooth(shape) and shape.dtype not in (xb.f64, xb.c128) for shape in shapes):
        return "coarse"
    given = {n: leaf for n, leaf in enumerate(leaves) if not is_smooth(shapes[n])}
    for n in (n for n, shape in enumerate(shapes) if instance.opcode.startswith("batch_norm") and shape.rank == 1):
        given[n] = np.abs(chance.normal(size=shapes[n].dims)) + 0.5

    def function(*values: Any) -> Any:
        return instance.value(values[0].builder, _tree(instance.operands, iter(values)))

    try:
        program = xb.computation(*shapes)(function)
    except xb.XbuildError as error:
        return f"unbuilt: {error.kind}"
    try:
        compare(program, given)
    except xb.XbuildError as error:
        return "refused" if error.kind == "not_differentiable" else f"wrong: {error}"
    except AssertionError as error:
        return f"wrong: {error}"
    return "equal"


def _leaves(tree: Any) -> Iterator[Any]:
    if isinstance(tree, tuple | list):
        for each in tree:
            yield from _leaves(each)
    else:
        yield np.asarray(tree)


def _tree(tree: Any, values: Iterator[Any]) -> Any:
    if isinstance(tree, tuple | list):
        return type(tree)([_tree(each, values) for each in tree])
    return next(values)
