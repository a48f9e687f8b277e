"""`equivalent`: two programs evaluated on the same random inputs over prime fields, and the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import ceil, log2
from typing import Any, TypeAlias

import numpy as np
from attrs import define, field, frozen

from shape_inference import Shape, TupleShape, refuse
from xbuild.checking.model.program import runnable
from xbuild.core.attributes import Array
from xbuild.core.graph import Module, ModuleGroup
from xbuild.properties.agreement import agreeing

from ..rules.limits import Limits
from ..runtime.report import Stopped
from ..runtime.run import Refused
from . import draws, layouts, residues
from .classes import classes_of
from .degrees import Degrees
from .layouts import Layout
from .matching import Keeper, Matching, first_difference
from .places import drawing
from .run import Subject, unobserved
from .tables import Undecidable
from .verdict import Difference, Equivalence
from .witness import apart

Layouts: TypeAlias = Sequence[Any] | None

ERROR = -60
"""The logarithm of the probability with which different arithmetic may be called equal, at most."""
LEAST, MOST = 3, 24
"""Of how many random inputs a verdict is made."""
CHOOSING = 8
"""Of how many at least where the order of numbers or integers take part, of which each draw shows one case."""


def equivalent(
    one: Any,
    other: Any,
    *,
    inputs: Layouts = None,
    outputs: Layouts = None,
    arguments: Mapping[int, Any] | None = None,
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
    inputs = _own(other, "in") if inputs is None else inputs
    outputs = _own(other, "out") if outputs is None else outputs
    first = Subject(_program(one))
    try:
        second = Subject(_program(other))
    except Refused as error:
        return Equivalence(kind="different", reason=f"the check refuses the other program: {error.verdict.kind}")
    comparison = Comparison(first, second, _laid(first, second, inputs, outputs), arguments or {}, seed, limits or Limits())
    return comparison.verdict()


def _program(given: Any) -> Module | ModuleGroup:
    program = runnable(given)
    if not isinstance(program, Module | ModuleGroup):
        raise TypeError(f"equivalent: {given!r} is no program; a Computation, a Module or a ModuleGroup is one")
    return program


def _own(given: Any, way: str) -> Layouts:
    """The layouts that an object with a module states: its in_shardings and out_shardings, or its specs on a mesh."""
    shardings, specs = getattr(given, f"{way}_shardings", None), getattr(given, f"{way}_specs", None)
    if shardings is not None:
        return [*_leaves(shardings)]
    return None if specs is None else layouts.of_specs(given.mesh, specs)


def _leaves(given: Any) -> Any:
    if isinstance(given, list | tuple):
        for each in given:
            yield from _leaves(each)
    else:
        yield given


@frozen(eq=False)
class Laid:
    """How the inputs and outputs of one program lie on the devices of the other; None where they are given alike."""

    inputs: tuple[Layout, ...] | None
    outputs: tuple[Layout, ...] | None


def _laid(one: Subject, other: Subject, inputs: Layouts, outputs: Layouts) -> Laid:
    if one.devices == other.devices and (one.devices > 1 or (inputs is None and outputs is None)):
        for device in range(one.devices):
            _check_alike(one, other, device)
        return Laid(None, None)
    if one.devices != 1:
        refuse("invalid_attribute", f"equivalent: the first program has {one.devices} devices and the second "
               f"{other.devices}; the first is to have one, or as many as the second and the same arrays")  # fmt: skip
    return Laid(
        _layouts(one.inputs(0), other.inputs(0), inputs, other.devices, "input"),
        _layouts(one.outputs(0), other.outputs(0), outputs, other.devices, "output"),
    )


def _check_alike(one: Subject, other: Subject, device: int) -> None:
    for name, left, right in (
        ("inputs", one.inputs(device), other.inputs(device)), ("outputs", one.outputs(device), other.outputs(device)),
    ):  # fmt: skip
        if [each.dims for each in left] != [each.dims for each in right]:
            refuse("invalid_attribute", f"equivalent: the {name} of device {device} are {_listed(left)} in one program "
                   f"and {_listed(right)} in the other")  # fmt: skip


def _listed(shapes: Sequence[Shape]) -> str:
    return f"({', '.join(map(str, shapes))})"


def _layouts(whole: list[Shape], local: list[Shape], given: Layouts, devices: int, name: str) -> tuple[Layout, ...]:
    layout = [None] * len(whole) if given is None else list(given)
    if not len(whole) == len(local) == len(layout):
        refuse("invalid_attribute", f"equivalent: {len(whole)} {name}s in one program, {len(local)} in the other, and "
               f"{len(layout)} layouts")  # fmt: skip
    rows = zip(layout, whole, local, strict=True)
    return tuple(layouts.layout_of(each, a, b, devices, f"{name} {n}") for n, (each, a, b) in enumerate(rows))


@define(eq=False)
class Comparison:
    """Two programs, how the arrays of one lie on the devices of the other, and what the runs so far have shown."""

    one: Subject
    other: Subject
    laid: Laid
    arguments: Mapping[int, Any]
    seed: int
    limits: Limits
    degrees: tuple[Degrees, Degrees] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.degrees = Degrees(self.one.devices), Degrees(self.other.devices)

    def verdict(self) -> Equivalence:
        """The verdict, after as many draws as the bound needs."""
        assumed = tuple(sorted(classes_of([*dict.fromkeys((*self.one.modules, *self.other.modules))]).items()))
        depends = any(name in ("order", "integers") for name, _ in assumed)  # else a difference shows at every draw
        least = CHOOSING if depends else LEAST
        wanted, done = least, 0
        try:
            while done < wanted:
                found = self._draw(done, is_first=done == 0)
                if found is not None and (depends or self._draw(MOST + done) is not None):
                    return self._different(done, assumed)
                done += 1
                wanted = max(least, self._wanted())
                if wanted > MOST:
                    return Equivalence(kind="undecided", draws=done, degree=self._degree(), assumed=assumed,
                                       undecided=(f"arithmetic of degree {self._degree()}, for which the fields are too small",))  # fmt: skip
        except Undecidable as error:
            return Equivalence(kind="undecided", draws=done, assumed=assumed, undecided=(error.reason,))
        except Stopped as error:
            return Equivalence(kind="undecided", draws=done, assumed=assumed, undecided=(f"a run stopped: {error.report.kind}",))
        return Equivalence(kind="equal", draws=done, log2_error=done * self._log2_error(), degree=self._degree(), assumed=assumed)

    def _degree(self) -> int:
        return max(each.most for each in self.degrees)

    def _log2_error(self) -> float:
        """The logarithm of the probability of one draw: a root or two arguments of a random function coincide."""
        variables: Counter[str] = Counter()
        for degrees in self.degrees:
            variables.update({name: count * degrees.devices for name, count in degrees.random.items()})
        pairs = sum(count * count // 2 for count in variables.values())
        return log2(1 + pairs) + 2 * log2(2 * self._degree()) - residues.BITS

    def _wanted(self) -> int:
        error = self._log2_error()
        return ceil(ERROR / error) + 1 if error < -1 else MOST + 1

    def _draw(self, number: int, *, is_first: bool = False) -> tuple[int, int, tuple[int, ...]] | None:
        """The first output, device and place at which one draw differs."""
        with drawing(self.seed * 7919 + number, [*self.one.literals(), *self.other.literals()]):
            arrays, cut = self._inputs(number)
            observers = [self._counted(each) if is_first else unobserved for each in self.degrees]
            left = self.one.run(arrays, observers[0], self.limits)
            right = self.other.run(cut, observers[1], self.limits)
            return self._compared(left, right)

    @staticmethod
    def _counted(degrees: Degrees) -> Any:
        return lambda device, path, trips, value: degrees.observe(path, trips, value) if device == 0 else None

    def _inputs(self, number: int, draw: Any = draws.array, *, exact: bool = False) -> tuple[list[list[Array]], list[list[Array]]]:
        """The arrays of both programs, for each device."""
        random = np.random.default_rng([self.seed, number])
        given = draws.given_arrays(self.one.modules[0].entry.parameters, self.arguments, exact=exact)
        rows = [
            [given.get(n, draw(shape, random)) for n, shape in enumerate(self.one.inputs(device))]
            for device in range(self.one.devices)
        ]
        if self.laid.inputs is None:
            rows = self._agreeing(rows)
            return rows, rows
        minus = np.subtract if exact else lambda a, b: residues.add(a, residues.negate(b))
        columns = [
            layouts.cut(layout, value, local, lambda shape: draw(shape, random), minus)
            for layout, value, local in zip(self.laid.inputs, rows[0], self.other.inputs(0), strict=True)
        ]
        return rows, [list(row) for row in zip(*columns, strict=True)] if columns else [[]] * self.other.devices

    def _agreeing(self, rows: list[list[Array]]) -> list[list[Array]]:
        if any(isinstance(p.shape, TupleShape) for p in self.one.modules[0].entry.parameters):
            return rows
        return agreeing(self.other.program, agreeing(self.one.program, rows))

    def _compared(self, left: list[list[Any]], right: list[list[Any]]) -> tuple[int, int, tuple[int, ...]] | None:
        for number in range(len(right[0])):
            expected, given = self._pair(number, left, right)
            found = first_difference(expected, given)
            if found is not None:
                return number, *found
        return None

    def _pair(self, number: int, left: list[list[Any]], right: list[list[Any]]) -> tuple[list[Array], list[Array]]:
        """What each device is to give as an output, and what it gives."""
        given = [row[number] for row in right]
        if self.laid.outputs is None:
            return [row[number] for row in left], given
        layout = self.laid.outputs[number]
        expected = [left[0][number][part] for part in layout.parts]
        own = [value[tuple(slice(0, n) for n in want.shape)] for value, want in zip(given, expected, strict=True)]
        return expected, layouts.summed(layout, own)

    def _different(self, done: int, assumed: tuple[tuple[str, int], ...]) -> Equivalence:
        """The verdict on programs that differ over the fields; where functions are random ones, numbers decide."""
        difference = self._located(done)
        if {name for name, _ in assumed} <= {"quotients", "integers"}:
            return Equivalence(kind="different", reason="the arithmetic differs", draws=done + 1, assumed=assumed, difference=difference)
        distance = apart(self)
        if distance is None or distance < _NEAR:
            told = "in numbers the results could not be compared" if distance is None else (
                f"in numbers the results agree to {distance:.1e}")  # fmt: skip
            reason = f"values differ where functions are taken as random ones, and {told}"
            return Equivalence(kind="undecided", reason=reason, draws=done + 1, assumed=assumed, difference=difference,
                               undecided=("laws of functions that are not arithmetic",))  # fmt: skip
        reason = f"in numbers the results are apart by {distance:.1e} of their size"
        return Equivalence(kind="different", reason=reason, draws=done + 1, assumed=assumed, difference=difference)

    def _located(self, number: int) -> Difference:
        """Where the programs differ, with the first value of the one that the other lacks."""
        keepers = Keeper(), Keeper()
        with drawing(self.seed * 7919 + number, [*self.one.literals(), *self.other.literals()]):
            arrays, cut = self._inputs(number)
            left = self.one.run(arrays, keepers[0].observe, self.limits)
            right = self.other.run(cut, keepers[1].observe, self.limits)
            found = self._compared(left, right)
            assert found is not None
            matching = Matching(*keepers)
            kept = matching.first_unmatched()
            other = None if kept is None else matching.counterpart(kept)
        return Difference(*found, kept and kept.instruction, other and other.instruction)


_NEAR = 1e-3
"""The distance of results in floating point from which on programs differ, whatever the rounding."""
