"""`equivalent`: whether two programs compute the same function, whatever the rounding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import evolve

from xbuild.checking.model.program import runnable
from xbuild.core.graph import Module, ModuleGroup
from xbuild.properties.effects import communicates

from ..rules.limits import Limits
from ..runtime.run import Refused
from .comparison import Comparison
from .laying import Layouts, laid, own, stated
from .run import Subject
from .verdict import Equivalence

MOST_TRIPS = 10_000
"""The trips of a loop after which a run stops where no limits are given: a loop may converge in floats alone."""


def equivalent(
    one: Any,
    other: Any,
    *,
    inputs: Layouts = None,
    outputs: Layouts = None,
    arguments: Mapping[int, Any] | None = None,
    values: Mapping[str, tuple[str, Any]] | None = None,
    seed: int = 0,
    limits: Limits | None = None,
) -> Equivalence:
    """Say whether two programs compute the same function, whatever the rounding.

    `one` and `other`: a Computation, a Module, a ModuleGroup, or an object with a `module`. Both have as many devices,
    which are given the same inputs; or `one` has one device and `other` any number, whose devices hold parts of each
    array. `inputs` and `outputs` say for each array, in the order of parameters and of results, how it lies there: a
    `Sharding`, or for each device a tuple of slices of the global array, or None where the shapes say it (equal shapes
    are whole on each device). Where `other` has `in_shardings` and `out_shardings`, or specs as the program of a
    shard_map, it is these.
    `arguments`: values for parameters of `one`, by number, where random ones would not do (counts of trips, indices).
    `limits`: those of each run; by default a loop may make 10,000 trips.

    `values`: for names of instructions of `one` the name of that of `other` which is to have the same value, and how it
    lies there, as for an input; where the programs differ, the first of these that does is named.

    Both programs are evaluated on random inputs over two prime fields of 31 bits at once, without rounding: floats are
    residues, integers and truth values are themselves. Functions such as exp are random functions of their operands,
    maxima and sorts go by a fixed random order. The bool of the verdict is whether they are equal; docs/equivalence.md
    says what is decided, and what is assumed.

    Raises TypeError for what is no program; invalid_attribute where numbers of devices, shapes and layouts do not fit
    each other; ArgumentError for an argument that does not fit; and what `execute` raises where `one` itself is refused
    or stops.

    >>> import xbuild as xb
    >>> spec = xb.f32[8]
    >>> left = xb.computation(spec, spec)(lambda x, y: (x + y) * (x - y))
    >>> right = xb.computation(spec, spec)(lambda x, y: x * x - y * y)
    >>> bool(xb.equivalent(left, right))
    True
    >>> xb.equivalent(left, xb.computation(spec, spec)(lambda x, y: x * x + y * y)).kind
    'different'

    Source: Schwartz, Fast probabilistic algorithms for verification of polynomial identities (1980); Zippel (1979).
    """
    inputs = own(other, "in") if inputs is None else inputs
    outputs = own(other, "out") if outputs is None else outputs
    first = _first(_program(one), is_laid=inputs is not None or outputs is not None)
    try:
        second = Subject(_program(other))
    except Refused as error:
        return Equivalence(kind="different", reason=f"the check refuses the other program: {error.verdict.kind}")
    if inputs is None and outputs is None:
        inputs, outputs = stated(first, second)
        first = _first(first.program, is_laid=True) if inputs is not None else first
    layouts = laid(first, second, inputs, outputs)
    limits = limits or Limits(trips=MOST_TRIPS)
    comparison = Comparison(first, second, layouts, arguments or {}, values or {}, seed, limits)
    return comparison.verdict()


def _first(program: Module | ModuleGroup, *, is_laid: bool) -> Subject:
    return Subject(_alone(program) if is_laid else program)


def _alone(program: Module | ModuleGroup) -> Module | ModuleGroup:
    """A program of which layouts are given as that of one device: a global program may count partitions already."""
    if isinstance(program, ModuleGroup) or program.num_devices == 1 or communicates(program.entry):
        return program
    return evolve(program, num_replicas=1, num_partitions=1)


def _program(given: Any) -> Module | ModuleGroup:
    program = runnable(getattr(given, "module", given))
    if not isinstance(program, Module | ModuleGroup):
        raise TypeError(f"equivalent: {given!r} is no program; a Computation, a Module or a ModuleGroup is one")
    return program
