"""What `xbuild explain OP` tells beside the docstring: names elsewhere, derivative, cost, index picture."""

from __future__ import annotations

import pytest

from xbuild.core.op import OPS
from xbuild.reference import readings
from xbuild.reference.readings import JAX_NAMES, op_example

DRAWN = (
    "gather", "scatter", "reduce_window", "select_and_scatter", "convolution", "dot", "all_to_all", "reduce_scatter",
)  # fmt: skip


@pytest.mark.parametrize("opcode", OPS)
def test_every_op_has_its_rows(opcode: str) -> None:
    found = dict(readings.rows(opcode))
    assert found["in StableHLO"]
    assert found["derivative"]
    example = op_example(opcode)
    assert example is None or example.instruction.opcode == opcode


def test_most_ops_have_an_example_that_runs() -> None:
    assert sum(op_example(opcode) is not None for opcode in OPS) > 110


@pytest.mark.parametrize("opcode", DRAWN)
def test_the_hard_ops_have_a_picture(opcode: str) -> None:
    drawn = readings.picture(opcode)
    assert drawn is not None
    assert "[" in drawn


def test_a_picture_marks_the_elements_that_count() -> None:
    assert (readings.picture("reduce_scatter") or "").splitlines()[2:] == [
        "result    device 0    device 1",
        "[11]      [1]  2      [10]  20",
    ]


@pytest.mark.oracle
def test_the_names_of_jax_exist() -> None:
    lax = pytest.importorskip("jax.lax")
    for opcode, names in JAX_NAMES.items():
        assert opcode in OPS
        for name in names.split():
            owner = lax
            for part in name.split("."):
                owner = getattr(owner, part)
            assert callable(owner), name
