"""Which results of an entry lie in the memory of which arguments, as the header of a module states."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Hashable, Iterator
from itertools import accumulate

from shape_inference import AnyShape, Dims

from ...core.graph import Module
from .parts import likeness, parts_of, place_of

_ALIAS = re.compile(r"\{([\d,\s]*)\}\s*:\s*\(\s*(\d+)\s*,\s*\{([\d,\s]*)\}[^()]*\)")
_DONOR = re.compile(r"\(\s*(\d+)\s*,\s*\{([\d,\s]*)\}\s*\)")


def aliases_of(module: Module) -> dict[int, int]:
    """For parts of the result the part of the arguments, counted over all parameters, in whose memory each is written.

    Those of `input_output_alias`; then each argument of `buffer_donor` with the first result that is like it.
    """
    shapes = [each.shape for each in module.entry.parameters]
    ends = [0, *accumulate(len(parts_of(shape)) for shape in shapes)]

    def argument(number: str, index: str) -> int | None:
        place = place_of(shapes[int(number)], _dims(index)) if int(number) < len(shapes) else None
        return None if place is None else place + ends[int(number)]

    found: dict[int, int] = {}
    for output, number, index in _ALIAS.findall(str(module.annotations.get("input_output_alias", ""))):
        result, given = place_of(module.entry.root.shape, _dims(output)), argument(number, index)
        if result is not None and given is not None:
            found[result] = given
    donors = (argument(*each) for each in _DONOR.findall(str(module.annotations.get("buffer_donor", ""))))
    parts = [shape for each in shapes for _, shape in parts_of(each)]
    return {**found, **dict(_matched(module, found, {donor: parts[donor] for donor in donors if donor is not None}))}


def _matched(module: Module, found: dict[int, int], donors: dict[int, AnyShape]) -> Iterator[tuple[int, int]]:
    """Donors that are no alias yet with results that have none, where both are alike."""
    free: dict[Hashable, deque[int]] = {}
    for output, (_, shape) in enumerate(parts_of(module.entry.root.shape)):
        if output not in found:
            free.setdefault(likeness(shape), deque()).append(output)
    taken = set(found.values())
    for donor, shape in donors.items():
        outputs = free.get(likeness(shape))
        if outputs and donor not in taken:
            yield outputs.popleft(), donor


def _dims(text: str) -> Dims:
    return tuple(map(int, re.findall(r"\d+", text)))
