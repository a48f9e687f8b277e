"""Two programs evaluated on the same random inputs, draw by draw, until the bound is reached or they differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
from attrs import define, field

from shape_inference import Dims, Shape, TupleShape
from xbuild.core.attributes import Array
from xbuild.properties.agreement import agreeing

from ..rules.limits import Limits
from ..runtime.report import Stopped
from . import draws, layouts
from .bound import BOUNDING, CHOOSING, LEAST, MOST, draws_wanted, log2_error
from .classes import classes_of
from .degrees import Degrees, watched
from .laying import Laid
from .levels import by_laws
from .matching import Keeper, Matching, first_difference
from .rules import residues
from .rules.places import drawing
from .rules.primes import PLAIN
from .rules.tables import Undecidable
from .run import Subject
from .verdict import Difference, Equivalence
from .witness import OVERFLOWS, apart, apart_as_they_are

Arrays: TypeAlias = list[list[Array]]
"""The arrays of each device."""


@define(eq=False)
class Comparison:
    """Two programs, how the arrays of one lie on the devices of the other, and what the runs so far have shown."""

    one: Subject
    other: Subject
    laid: Laid
    arguments: Mapping[int, Any]
    values: Mapping[str, tuple[str, Any]]
    seed: int
    limits: Limits
    degrees: tuple[Degrees, Degrees] = field(init=False)
    assumed: tuple[tuple[str, int], ...] = field(init=False)
    done: int = field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self.degrees = self.bounds()
        self.assumed = self.assumed_of()

    def bounds(self, *, by_laws: bool = False) -> tuple[Degrees, Degrees]:
        """The degrees of both programs, before anything is observed."""
        one, other = (Degrees(watched(dict.fromkeys(each.modules)), by_laws) for each in (self.one, self.other))
        return one, other

    def assumed_of(self, lawful: frozenset[str] = frozenset()) -> tuple[tuple[str, int], ...]:
        """The classes of instructions on which a verdict rests; ops that are read by laws have a class of their own."""
        modules = dict.fromkeys((*self.one.modules, *self.other.modules))
        return tuple(sorted(classes_of(modules, lawful).items()))

    @property
    def least(self) -> int:
        """How many draws there are at least."""
        return CHOOSING if any(name in ("order", "integers") for name, _ in self.assumed) else LEAST

    def verdict(self) -> Equivalence:
        """The verdict, after as many draws as the bound needs."""
        try:
            return self._verdict()
        except Undecidable as error:
            return self._open(error.reason)
        except Stopped as error:
            return self._open(f"a run stopped: {error.report.kind}")

    def _verdict(self) -> Equivalence:
        wanted = least = self.least
        depends = least == CHOOSING
        while self.done < wanted:
            found = self._draw(self.done)
            # Arithmetic that differs does so at every draw; at one alone a divisor was 0 by chance.
            if found is not None and (depends or self._draw(MOST + self.done) is not None):
                return self._different()
            self.done += 1
            wanted = max(least, draws_wanted(self.degrees, PLAIN.bits)) if self.done > BOUNDING else least
            if wanted > MOST:
                return self._open(f"arithmetic of degree {self._degree()}, for which the fields are too small")
        error = self.done * log2_error(self.degrees, PLAIN.bits)
        return Equivalence(kind="equal", draws=self.done, log2_error=error, degree=self._degree(), assumed=self.assumed)

    def _open(self, *reasons: str, told: str = "", difference: Difference | None = None) -> Equivalence:
        return Equivalence(
            kind="undecided",
            draws=self.done,
            degree=self._degree(),
            assumed=self.assumed,
            undecided=reasons,
            reason=told,
            difference=difference,
        )

    def _degree(self) -> int:
        return max(each.most for each in self.degrees)

    @contextmanager
    def _drawing(self, number: int) -> Iterator[tuple[Arrays, Arrays]]:
        """Inside, the random functions are those of a draw; gives the inputs of both programs."""
        with drawing(self.seed * 7919 + number, [*self.one.literals(), *self.other.literals()]):
            yield self.inputs(number)

    def _draw(self, number: int) -> tuple[int, int, Dims] | None:
        """The first output, device and place at which one draw differs; one draw also bounds degrees."""
        observers = [each.observe if number == BOUNDING else None for each in self.degrees]
        with self._drawing(number) as (arrays, cut):
            left = self.one.run(arrays, observers[0], self.limits)
            return self._compared(left, self.other.run(cut, observers[1], self.limits))

    def inputs(self, number: int, draw: Any = draws.array, *, exact: bool = False) -> tuple[Arrays, Arrays]:
        """The arrays that the devices of both programs are given: words, or where `exact` numbers."""
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
        return rows, [[column[device] for column in columns] for device in range(self.other.devices)]

    def _agreeing(self, rows: Arrays) -> Arrays:
        """The inputs, of which devices get one where a program states on its mesh that they hold one."""
        if any(isinstance(p.shape, TupleShape) for p in self.one.modules[0].entry.parameters):
            return rows
        return agreeing(self.other.program, agreeing(self.one.program, rows))

    def _compared(self, left: Arrays, right: Arrays) -> tuple[int, int, Dims] | None:
        for number in range(len(right[0])):
            found = first_difference(*self.pair(number, left, right))
            if found is not None:
                return number, *found
        return None

    def pair(self, number: int, left: Arrays, right: Arrays, *, exact: bool = False) -> tuple[list[Array], list[Array]]:
        """What each device is to give as an output, and what it gives."""
        given = [row[number] for row in right]
        if self.laid.outputs is None:
            return [row[number] for row in left], given
        layout = self.laid.outputs[number]
        expected = [left[0][number][part] for part in layout.parts]
        return expected, layouts.held(layout, given, np.add if exact else residues.add)

    def _different(self) -> Equivalence:
        """The verdict on programs that differ over the fields; where functions are random ones, numbers decide."""
        difference, self.done = self._located(self.done), self.done + 1
        if {name for name, _ in self.assumed} <= {"quotients", "integers"}:
            return self._refused("the arithmetic differs", difference)
        witness = apart(self)
        if witness.differs:
            return self._refused(f"in numbers the results are {witness}", difference)
        found = None if witness.distance is None else by_laws(self)
        if found is not None:
            return self._unless_overflowing(found, difference)
        reason = f"values differ where functions are taken as random ones, and in numbers the results {witness}"
        return self._open("laws of functions that are not arithmetic", told=reason, difference=difference)

    def _unless_overflowing(self, found: Equivalence, difference: Difference) -> Equivalence:
        """A verdict by laws, unless one of the programs overflows in its types where the other does not."""
        witness = apart_as_they_are(self)
        if witness.distance is not None and witness.distance < OVERFLOWS:
            return found
        return self._refused(f"equal by laws, but in the types of the programs the results are {witness}", difference)

    def _refused(self, reason: str, difference: Difference) -> Equivalence:
        return Equivalence(
            kind="different", reason=reason, draws=self.done, assumed=self.assumed, difference=difference
        )

    def _located(self, number: int) -> Difference:
        """Where the programs differ, with the first value of the one that the other lacks."""
        keepers = Keeper(), Keeper()
        with self._drawing(number) as (arrays, cut):
            left = self.one.run(arrays, keepers[0].observe, self.limits)
            found = self._compared(left, self.other.run(cut, keepers[1].observe, self.limits))
            assert found is not None
            if self.values:
                return self._among_values(*keepers) or Difference(*found)
            matching = Matching(*keepers)
            value = matching.first_unmatched(self.one.modules[0].entry)
            other = matching.first_suspect(self.other.modules[0].entry)
        return Difference(*found, value, other)

    def _among_values(self, one: Keeper, other: Keeper) -> Difference | None:
        """The first of the values that are to be the same in both programs, and are not."""
        others = other.by_name()
        for kept in one.by_name().values():
            name, given = self.values.get(kept.instruction.name, ("", None))
            if name not in others:
                continue
            there, left = others[name].values, kept.values[min(kept.values)]
            whole, local = (each.instruction.shape for each in (kept, others[name]))
            assert isinstance(whole, Shape)
            assert isinstance(local, Shape)
            layout = layouts.layout_of(given, whole, local, len(there), f"value %{name}")
            expected = [left[part] for part in layout.parts]
            found = first_difference(expected, layouts.held(layout, [there[n] for n in sorted(there)], residues.add))
            if found is not None:
                return Difference(None, *found, kept.instruction, others[name].instruction)
        return None
