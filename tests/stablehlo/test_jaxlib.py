"""Real XLA on texts that are written: they are parsed, verified, and mean the same as HLO."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.stablehlo_writing import failure, programs
from tests.support.converter import Converter

pytestmark = pytest.mark.oracle
NOT_WRITTEN = {"rng_get_and_update_state", "stochastic_convert"}
LEFT_OUT = ("s1", "u1", "whole-rows", "whole-columns")
"""Types that MLIR lacks, and updates of dynamic slices whose types jaxlib states otherwise than XLA infers them."""


@pytest.fixture(scope="module")
def converter() -> Iterator[Converter]:
    pytest.importorskip("jaxlib")
    with Converter() as found:
        yield found


def test_one_case_of_each_op_gives_the_same(converter: Converter) -> None:
    """The first case of each op; other ops in it are those that the case needs."""
    seen = set(NOT_WRITTEN)
    wrong = {}
    for name, module, rows in programs("cases"):
        opcodes = {i.opcode for c in module.computations for i in c.instructions}
        if opcodes - seen and not opcodes & NOT_WRITTEN and not name.endswith(LEFT_OUT):
            seen |= opcodes
            if (found := failure(converter, module, rows)) and "jaxlib expands" not in found:
                wrong[name] = found
    assert wrong == {}
