"""StableHLO text becomes the module that HLO text of the same program becomes."""

from __future__ import annotations

import numpy as np
import pytest

import xbuild as xb
from shape_inference import Shape
from tests.stablehlo.programs import PAIRS, Pair


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.id)
def test_structure_is_that_of_the_hlo_text(pair: Pair) -> None:
    read, wanted = xb.parse_stablehlo(pair.text), xb.parse_hlo(pair.hlo)
    assert xb.same_structure(read, wanted), xb.diff(read, wanted)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.id)
def test_results_are_those_of_the_hlo_text(pair: Pair) -> None:
    read, wanted = xb.parse_stablehlo(pair.text), xb.parse_hlo(pair.hlo)
    arguments = [_drawn(each.shape) for each in wanted.entry.parameters]
    found, expected = xb.evaluate(read.entry, *arguments), xb.evaluate(wanted.entry, *arguments)
    for one, other in zip(_listed(found), _listed(expected), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.id)
def test_printed_as_hlo_it_is_read_again(pair: Pair) -> None:
    read = xb.parse_stablehlo(pair.text)
    text = read.to_hlo()
    assert xb.parse_hlo(text).to_hlo() == text
    assert len({each.name for each in read.computations}) == len(read.computations)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.id)
def test_either_reader_is_chosen_by_what_the_text_says(pair: Pair) -> None:
    assert xb.same_structure(xb.parse(pair.text), xb.parse(pair.hlo))
    assert xb.same_structure(xb.parse(f"// a comment\nmodule @m {{\n{pair.text}}}"), xb.parse(pair.hlo))


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, tuple) else [value]


def _drawn(shape: object) -> np.ndarray:  # type: ignore[type-arg]
    assert isinstance(shape, Shape)
    numbers = np.random.default_rng(len(shape.dims)).integers(1, 4, shape.dims)
    return np.asarray(numbers).astype(shape.dtype.dtype)
