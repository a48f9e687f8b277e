"""The corner cases that `xbuild explain OP` tells, against real XLA."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from tests.oracle import Failure, Job, Oracle
from xbuild.core.op import OPS
from xbuild.reference.readings import corner_cases, told

CASES = {opcode: found for opcode in OPS if (found := corner_cases(opcode)) is not None}

NOT_ON_CPU = {"acos", "acosh", "asin", "asinh", "atanh", "cosh", "mulhi", "sinh"}
"""Ops that XLA:CPU does not take from HLO text, all but mulhi before jaxlib 0.11."""


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    pytest.importorskip("jaxlib")
    with Oracle() as found:
        yield found


def test_elementwise_ops_have_corner_cases() -> None:
    assert len(CASES) > 45
    assert {"divide", "shift_left", "maximum", "abs", "power", "log", "compare", "convert"} <= {*CASES}


@pytest.mark.oracle
@pytest.mark.parametrize("opcode", CASES)
def test_xla_gives_the_same(opcode: str, oracle: Oracle) -> None:
    program, values, ours = CASES[opcode]
    outcome = oracle.run(Job(xb.Module(opcode, program).to_hlo(), [values], 1, 1, "cpu"))
    if opcode in NOT_ON_CPU and isinstance(outcome, Failure):
        return
    assert not isinstance(outcome, Failure), outcome
    theirs = outcome[0][0]
    assert _told(np.asarray(theirs)) == _told(ours)


def _told(values: Any) -> list[str]:
    """What the page shows: six figures of a float, with the sign of a zero."""
    return [f"{each:g}" if np.asarray(each).dtype.kind in "fV" else str(each) for each in values.tolist()]


@pytest.mark.slow
def test_the_line_of_an_op() -> None:
    assert told("abs") == "of s8: -128 gives -128, -1 1, 0 0, 1 1, 127 127"
    assert told("gather") is None
