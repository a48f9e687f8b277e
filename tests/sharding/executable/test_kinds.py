"""Executable tests in the manner of Shardy's, for each kind of op and of collective."""

from __future__ import annotations

import pytest

from tests.conformance.shardy import failure

from . import lookups, moved, placed, products, rest, stated
from .kinds import Kind, text_of

KINDS = [
    *stated.COLLECTIVES, *placed.DEVICES, *moved.RESHAPES, *moved.MOVED, *products.PRODUCTS, *products.CONVOLUTIONS,
    *lookups.GATHERS, *lookups.SCATTERS, *rest.REDUCTIONS, *rest.ORDERS, *rest.CALLS,
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name.replace(" ", "_"))
def test_devices_get_their_parts_of_the_global_result(kind: Kind) -> None:
    assert failure(text_of(kind), kind.name) is None


def test_a_wrong_expectation_is_told() -> None:
    text = text_of(moved.RESHAPES[0])
    wrong = text.replace("%w0 = stablehlo.constant dense<[[0", "%w0 = stablehlo.constant dense<[[1")
    assert "found" in str(failure(wrong, "wrong"))


def test_parts_of_other_names_renamed_by_other_words_in_a_module() -> None:
    text = text_of(moved.RESHAPES[0]).replace("@parallel_f", "@before_f", 1)
    head, _, rest = text.partition("//--- part1.mlir\n")
    body, _, main = rest.partition("//--- part2.mlir\n")
    given = (
        f"{head}// RUN: sdy_opt | sed 's|before_|parallel_|g'\n//--- a.mlir\nmodule {{\n{body}}}\n//--- b.mlir\n{main}"
    )
    assert failure(given, "renamed") is None
