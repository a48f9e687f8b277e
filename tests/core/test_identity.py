"""Values and programs by identity: values are keys of dicts and sets, programs their own copies, never pickled."""

from __future__ import annotations

import copy
import pickle
import weakref

import pytest

import xbuild as xb


def test_a_value_is_a_key_and_nothing_is_recorded() -> None:
    """No two values have one hash, and dicts and sets compare keys of one hash alone."""
    builder = xb.Builder("b")
    values = [xb.parameter(builder, number=n, shape=xb.f32[()]) for n in range(3000)]
    places = {value: n for n, value in enumerate(values)}
    assert [places[value] for value in values] == list(range(3000))
    assert len({*values, *values}) == len({hash(value) for value in values}) == 3000
    assert set(values[:10]) & set(values[5:15]) == set(values[5:10])
    assert weakref.ref(values[0])() is values[0]
    assert len(builder._instructions) == 3000


def test_programs_are_their_own_copies_and_equal_by_identity() -> None:
    def built() -> xb.Module:
        return xb.Module("m", xb.computation(xb.f32[3])(lambda x: x + 1.0))

    module, other = built(), built()
    for thing in (module, module.entry, module.entry.root, xb.ModuleGroup({0: module})):
        assert copy.copy(thing) is copy.deepcopy(thing) is thing
        with pytest.raises(xb.ValueUseError, match=r"not_copied") as caught:
            pickle.dumps(thing)
        assert "xb.parse_hlo" in str(caught.value)
    assert module != other
    assert module.entry != other.entry
    assert xb.same_structure(module, other)
    assert xb.same_structure(module, xb.parse_hlo(module.to_hlo()))
