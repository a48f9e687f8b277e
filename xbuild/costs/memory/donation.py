"""Which results of an entry lie in the memory of which arguments, as the header of a module states."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shape_inference import Dims

from ...core.graph import Module
from .parts import is_alike, parts_of, place_of

_ALIAS = re.compile(r"\{([\d,\s]*)\}\s*:\s*\(\s*(\d+)\s*,\s*\{([\d,\s]*)\}[^()]*\)")
_DONOR = re.compile(r"\(\s*(\d+)\s*,\s*\{([\d,\s]*)\}\s*\)")


def aliases_of(module: Module) -> dict[int, int]:
    """For parts of the result the part of the arguments, counted over all parameters, in whose memory each is written.

    Those of `input_output_alias`; then each argument of `buffer_donor` with the first result that is like it.
    """
    text = str(module.annotations.get("input_output_alias", ""))
    found: dict[int, int] = {}
    for match in _ALIAS.finditer(text):
        output = place_of(module.entry.root.shape, _dims(match[1]))
        argument = _argument(module, int(match[2]), _dims(match[3]))
        if output is not None and argument is not None:
            found[output] = argument
    for argument in _donors(module):
        if argument not in found.values():
            found.update(_matched(module, argument, found))
    return found


def _donors(module: Module) -> Iterator[int]:
    for match in _DONOR.finditer(str(module.annotations.get("buffer_donor", ""))):
        argument = _argument(module, int(match[1]), _dims(match[2]))
        if argument is not None:
            yield argument


def _matched(module: Module, argument: int, taken: dict[int, int]) -> dict[int, int]:
    given = [shape for each in module.entry.parameters for _, shape in parts_of(each.shape)][argument]
    for output, (_, shape) in enumerate(parts_of(module.entry.root.shape)):
        if output not in taken and is_alike(given, shape):
            return {output: argument}
    return {}


def _argument(module: Module, number: int, index: Dims) -> int | None:
    parameters = module.entry.parameters
    place = place_of(parameters[number].shape, index) if number < len(parameters) else None
    return None if place is None else place + sum(len(parts_of(each.shape)) for each in parameters[:number])


def _dims(text: str) -> Dims:
    return tuple(map(int, re.findall(r"\d+", text)))
