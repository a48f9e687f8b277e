"""Second derivatives through collectives and transfers: forward over reverse, and reverse over reverse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import execute

from .test_collectives import CASES, STEP, Collective, V, arguments_of, first_stage, pipeline, second_stage


def check_twice(program: Any, modules: Sequence[xb.Module]) -> None:
    """Both second derivatives of the total loss along one direction."""
    chance = np.random.default_rng(0)
    arguments, direction = arguments_of(modules, chance), arguments_of(modules, chance)
    first = xb.grad(program, tuple(range(max(len(m.entry.parameters) for m in modules))))
    tangents = execute(xb.jvp(first), [[*x, *v] for x, v in zip(arguments, direction, strict=True)])

    def at(step: float) -> Any:
        pairs = zip(arguments, direction, strict=True)
        return execute(first, [[x + step * v for x, v in zip(*each, strict=True)] for each in pairs])

    for found, above, below in zip(tangents, at(STEP), at(-STEP), strict=True):
        for tangent, a, b in zip(found, above, below, strict=True):
            np.testing.assert_allclose(tangent, (a - b) / (2 * STEP), rtol=1e-5, atol=1e-6)
    cotangents = [[chance.normal(size=np.shape(each)) for each in found] for found in tangents]
    back = execute(xb.vjp(first), [[*x, *t] for x, t in zip(arguments, cotangents, strict=True)])
    np.testing.assert_allclose(product(cotangents, tangents), product(back, direction), rtol=1e-9)


def product(one: Any, other: Any) -> float:
    """The inner product over all devices."""
    return float(sum(np.sum(a * b) for x, y in zip(one, other, strict=True) for a, b in zip(x, y, strict=True)))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_of_one_program(case: Collective) -> None:
    module = case.module()
    check_twice(module, [module] * module.num_devices)


def test_of_a_group_of_programs() -> None:
    group = pipeline({0: xb.computation(V)(first_stage), 1: xb.computation(V, V)(second_stage)})
    check_twice(group, list(group.modules.values()))
