"""Mutants of the programs on meshes, judged: found by the verdict, or the same function by their values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from attrs import frozen

import xbuild as xb
from interpreter.fields.draws import float_array
from tests.equivalence.mutations import Mutant, mutants
from tests.equivalence.programs import Pair

NEAR = 1e-4


@frozen(eq=False)
class Changed:
    """A module in place of the one of a program on a mesh."""

    module: xb.Module
    mesh: Any
    in_specs: Any
    out_specs: Any


@frozen(eq=False)
class Judged:
    """A mutant, the verdict on it, and how far its results are from the right ones where it was accepted."""

    pair: str
    mutant: Mutant
    verdict: Any
    distance: float

    @property
    def is_missed(self) -> bool:
        """Whether another function was taken for the same."""
        return bool(self.verdict) and self.distance > NEAR


def judged(pair: Pair) -> Iterator[Judged]:
    """All mutants of a program."""
    cut = pair.cut
    for mutant in mutants(cut.module):
        verdict = xb.equivalent(pair.whole, Changed(mutant.module, cut.mesh, cut.in_specs, cut.out_specs))
        yield Judged(pair.name, mutant, verdict, distance(pair, mutant.module) if verdict else 0.0)


def distance(pair: Pair, module: xb.Module) -> float:
    """How far the results of a module are from those of the global program, by the size of the numbers."""
    random, cut = np.random.default_rng(0), pair.cut
    found = 0.0
    for _ in range(3):
        arrays = [float_array(shape, random) for shape in pair.shapes]
        wanted = xb.evaluate(pair.whole.entry, *arrays)
        given = cut.joined(xb.execute(module, cut.arguments(*arrays)))
        found = max(found, *map(apart, _arrays(wanted), _arrays(given)))
    return found


def _arrays(value: Any) -> list[Any]:
    return [np.asarray(each) for each in value] if isinstance(value, tuple) else [np.asarray(value)]


def apart(wanted: Any, given: Any) -> float:
    """How far two arrays are apart, by the size of the numbers."""
    if not np.array_equal(np.isfinite(wanted), np.isfinite(given)):
        return 1.0
    size = max(float(np.abs(wanted).max(initial=0.0)), 1e-30)
    return float(np.abs(wanted - given).max(initial=0.0)) / size
