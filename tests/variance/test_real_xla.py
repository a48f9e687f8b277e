"""Programs on meshes, and their gradients, on real XLA: the collectives that names stand for are XLA's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import execute

from .gradient_programs import LINE, LOSSES, total

pytest.importorskip("jaxlib")

P = xb.P


def _agree(module: xb.Module, rows: list[Any]) -> None:
    from interpreter.engines import execute_on_xla

    for ours, theirs in zip(execute(module, rows), execute_on_xla(module, rows), strict=True):
        for a, b in zip(_leaves(ours), _leaves(theirs), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def _leaves(value: Any) -> list[Any]:
    return [leaf for each in value for leaf in _leaves(each)] if isinstance(value, tuple) else [value]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["branches by device", "loop with a collective", "attention"])
def test_gradients_on_real_xla(name: str) -> None:
    loss = next(each for each in LOSSES if each.name == name)
    arguments = loss.arguments()
    gradient = xb.value_and_grad(loss.program(), range(len(arguments)))
    _agree(gradient.module, gradient.arguments(*arguments))


def test_a_tuple_of_arguments_on_real_xla() -> None:
    program = xb.shard_map(lambda pair: total(pair[0] * pair[1], "i"), LINE, ((P("i"), P()),), P())
    given = np.arange(6.0), np.arange(3.0)
    made = program.program(xb.TupleShape([xb.f64[6], xb.f64[3]]))
    _agree(made.module, made.arguments(given))
