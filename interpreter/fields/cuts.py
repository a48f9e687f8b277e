"""Cuts: values that both programs compute, replaced by new variables, so that degrees start again from there.

If v and v' are values of the two programs that are the same function of the inputs, and the programs are the same
function of the inputs and of any number in place of v and v', then they are the same function of the inputs. So
programs of many layers are compared in parts: at each cut the values are compared, and both runs go on with the same
random numbers. With several cuts, each value is compared as a function of the inputs and of the cuts before it.

A cut never makes programs equal that differ. It may make equal programs differ, if one of them computes a result in a
way that does not go through the cut; then the comparison is as without cuts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from attrs import define, field, frozen

from shape_inference import Dims, Shape
from shape_inference.types import f64
from xbuild.core.attributes import Array

from ..compiler.lines import Path
from . import draws
from .degrees import Degrees
from .run import Trips
from .value_matching import Key, ObservedValue, ValueMatching, place_key, tile_slices, tiles_of_devices

DEGREES = (1 << 8, 1 << 12)
"""The degrees above which values are cut. The second is tried if the programs differ with cuts above the first."""

Part: TypeAlias = tuple[int, tuple[slice, ...]]
"""The number of a cut, and the part of its array."""
Places: TypeAlias = dict[Key, dict[int, Part]]
"""For each value that is cut, what each device has of it."""


@frozen(eq=False)
class Cuts:
    """The shapes of the arrays that are cut, and where both programs have them."""

    shapes: Mapping[int, Dims]
    one: Places
    other: Places


@define(eq=False)
class CutChooser:
    """The cuts of two programs, chosen in a run of the first one: where degrees exceed a number.

    An array can be cut if the other program has it, in full or in parts, and all its elements differ. Equal arrays are
    one cut.
    """

    matching: ValueMatching
    degrees: Degrees
    above: int
    parts: Places = field(factory=dict, init=False)
    chosen: set[int] = field(factory=set, init=False)

    def __attrs_post_init__(self) -> None:
        for key, others in self.matching.found.items():
            kept = self.matching.one.kept[key]
            if others and kept.is_float and all(map(_is_distinct, kept.values.values())):
                self.parts[key] = {device: (kept.digest(device), _full(v)) for device, v in kept.values.items()}

    def observe(self, device: int, path: Path, trips: Trips, value: Any) -> None:
        """Take the degree of a value, and cut it if that is too high."""
        self.degrees.observe(device, path, trips, value)
        parts = self.parts.get(place_key(path, trips))
        if parts is not None and self.degrees.exceeds(self.above, device, path):
            self.chosen.add(parts[device][0])
            self.degrees.restart(device, path)

    def cuts(self) -> Cuts:
        """The cuts chosen, and the values of the other program that are made of them."""
        one = {key: parts for key, parts in self.parts.items() if {n for n, _ in parts.values()} <= self.chosen}
        shapes: dict[int, Dims] = {}
        other: Places = {}
        for key in one:
            kept = self.matching.one.kept[key]
            shapes |= {kept.digest(device): value.shape for device, value in kept.values.items()}
            for there in self.matching.found[key]:
                other[there] = _parts_of(kept, self.matching.other.kept[there])
        return Cuts(shapes, one, other)


def _is_distinct(value: Array) -> bool:
    return value.size > 1 and value.dtype == np.uint64 and len(np.unique(value)) == value.size


def _parts_of(whole: ObservedValue, parts: ObservedValue) -> dict[int, Part]:
    """What each device has of a value that is the same on these devices, or whole on one."""
    first = min(whole.values)
    if len(whole.values) > 1:
        return {device: (whole.digest(device), _full(value)) for device, value in parts.values.items()}
    array, number = whole.values[first], whole.digest(first)
    tiles = tiles_of_devices(array, parts.values)
    return {d: (number, tile_slices(array.shape, value.shape, min(tiles[d]))) for d, value in parts.values.items()}


def _full(value: Array) -> tuple[slice, ...]:
    return tuple(slice(0, n) for n in value.shape)


@define(eq=False)
class CutRun:
    """One draw with cuts. `differs`: whether the programs have computed different values at a cut."""

    cuts: Cuts
    random: np.random.Generator
    values: dict[int, Array] = field(factory=dict, init=False)
    variables: dict[int, Array] = field(factory=dict, init=False)
    differs: bool = field(default=False, init=False)

    def observer(self, places: Places, degrees: Degrees | None) -> Any:
        """An observer of a run that replaces the values at these places, and takes degrees if there are any."""

        def observe(device: int, path: Path, trips: Trips, value: Any) -> Any:
            parts = places.get(place_key(path, trips))
            new = None if parts is None else self._replace(parts[device], value)
            if degrees is not None:
                degrees.observe(device, path, trips, value if new is None else new)
                if new is not None:
                    degrees.restart(device, path)
            return new

        return observe

    def _replace(self, part: Part, value: Array) -> Array:
        number, place = part
        if number not in self.variables:  # the first program has it first, and in full
            self.values[number] = value
            self.variables[number] = draws.field_array(Shape(f64, self.cuts.shapes[number]), self.random)
        before, new = self.values[number][place], self.variables[number][place]
        if not (np.array_equal(value, before) or np.array_equal(value, new)):
            self.differs = True
        return new
