"""Mutated StableHLO texts: those of the tests of the reader, programs as StableHLO, open and quantized ones."""

from __future__ import annotations

from contextlib import suppress

import xbuild as xb
from tests.fuzzing.mutations import Mutator, corpus, one_of_each
from tests.fuzzing.verdict import refused_well
from tests.stablehlo.programs import PAIRS
from tests.stablehlo.test_decompositions import AXIS, NARROW, ROWS, Q, quantized
from tests.stablehlo.test_names_and_places import LOCATED
from tests.stablehlo.test_sizes import TEXT as OPEN

NAME = "fuzzed.hlo"
SIZES = {"b": 2}
LARGEST = 6000


def texts() -> list[str]:
    """StableHLO texts of many forms, in a fixed order."""
    found = [*(pair.text for pair in PAIRS), LOCATED, OPEN, *(row[0] for row in ROWS)]
    found += [quantized(element, "add %q, %q", dims) for element, dims in ((Q, "3"), (AXIS, "2x2"), (NARROW, "3"))]
    for text in (*corpus(), *one_of_each()):
        with suppress(xb.XbuildError, ValueError):
            found.append(xb.parse_hlo(text).to_stablehlo())
    return [text for text in found if len(text) <= LARGEST]


def mutant(seed: int, seeds: list[str]) -> str | bytes:
    return Mutator(seed, seeds).text()


def verdict(text: str | bytes) -> str:
    """`read` or the kind of the refusal; AssertionError, or what else came, where the text is neither."""
    given = text.decode(errors="replace") if isinstance(text, bytes) else text
    try:
        module = xb.parse_stablehlo(text, NAME, shapes=SIZES if "jax.global_constant" in given else None)
    except xb.HloParseError as refusal:
        refused_well(refusal, text)
        return refusal.kind
    printed = module.to_hlo()
    assert xb.parse_hlo(printed).to_hlo() == printed, "its HLO does not read as the same"
    xb.check(module)
    return "read"
