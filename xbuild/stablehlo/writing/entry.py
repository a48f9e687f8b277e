"""Attributes of a module, and of the arguments and results of its entry: counts, shardings, aliases."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shape_inference import AnyShape, Dims, TupleShape, leaves
from shape_inference.escaping import mlir_string

from ...core.graph import Instruction, Module
from ...text.spelling.notes import read_frontend_text
from .support.notes import FRONTEND, SHARDING, frontend_text, notes_of
from .support.words import dictionary, integers, listed

_ALIAS = re.compile(r"\{([\d,\s]*)\}\s*:\s*\(\s*(\d+)\s*,\s*\{([\d,\s]*)\}\s*(?:,\s*(may|must)-alias\s*)?\)")
_DONOR = re.compile(r"\(\s*(\d+)\s*,\s*\{([\d,\s]*)\}\s*\)")


def module_attributes(module: Module) -> Iterator[tuple[str, str]]:
    kept = module.annotations
    if given := kept.get("frontend_attributes"):
        yield FRONTEND, frontend_text(read_frontend_text(given))
    if aliases := [*_aliases(module)]:
        yield "mhlo.input_output_alias", listed(aliases)
    if module.is_scheduled:
        yield "mhlo.is_scheduled", "true"
    yield "mhlo.num_partitions", f"{module.num_partitions} : i32"
    yield "mhlo.num_replicas", f"{module.num_replicas} : i32"


def _aliases(module: Module) -> Iterator[str]:
    """Entries of input_output_alias, by the numbers that arguments and results have when tuples are dissolved."""
    root = module.entry.root.shape
    alone = sum(1 for _ in leaves(root)) == 1
    for found in _ALIAS.finditer(str(module.annotations.get("input_output_alias", ""))):
        output, number, index, kind = _dims(found[1]), int(found[2]), _dims(found[3]), found[4] or "may"
        place = [] if alone else [_leaf(root, output)]
        parameter = _argument(module, number, index)
        alias = f'kind = "{kind}_alias", parameter_index = array<i64>, parameter_number = {parameter} : i64'
        yield f"{{alias = {{{alias}}}, output_index = {integers(place)}}}"


def _dims(text: str) -> Dims:
    return tuple(map(int, re.findall(r"\d+", text)))


def _leaf(shape: AnyShape, index: Dims) -> int:
    """How many arrays and tokens stand before a part of a value."""
    before = 0
    for each in index:
        assert isinstance(shape, TupleShape)
        before += sum(1 for part in shape.elements[:each] for _ in leaves(part))
        shape = shape.elements[each]
    return before


def _argument(module: Module, number: int, index: Dims) -> int:
    parameters = module.entry.parameters
    before = sum(1 for p in parameters[:number] for _ in leaves(p.shape))
    return before + _leaf(parameters[number].shape, index)


def argument_notes(module: Module) -> dict[int, str]:
    """The dictionary of each argument of the entry that has one, with a blank before it."""
    donors = {
        _argument(module, int(found[1]), _dims(found[2]))
        for found in _DONOR.finditer(str(module.annotations.get("buffer_donor", "")))
    }
    found: dict[int, str] = {}
    number = 0
    for parameter in module.entry.parameters:
        count = sum(1 for _ in leaves(parameter.shape))
        for part, entries in enumerate(_shared(parameter, count)):
            if number + part in donors:
                entries.append(("jax.buffer_donor", "true"))
            if entries:
                found[number + part] = f" {dictionary(sorted(entries))}"
        number += count
    return found


def result_notes(module: Module | None, root: Instruction) -> list[str]:
    """The same for each result: the sharding of a root that is no op of its own."""
    count = sum(1 for _ in leaves(root.shape))
    if module is None or root.opcode not in ("tuple", "parameter"):
        return [""] * count
    found = ([entry for entry in entries if entry[0] == SHARDING] for entries in _shared(root, count))
    return [f" {dictionary(entries)}" if entries else "" for entries in found]


def _shared(instruction: Instruction, count: int) -> list[list[tuple[str, str]]]:
    """The annotations of a value for each of its parts: a sharding of a tuple has one for each."""
    entries = [*notes_of(instruction)]
    if not isinstance(instruction.shape, TupleShape):
        return [entries] * count
    others = [entry for entry in entries if entry[0] != SHARDING]
    parts = _split(str(instruction.annotations.get("sharding", "")))
    if len(parts) != count:
        return [list(others) for _ in range(count)]
    return [[*others, (SHARDING, mlir_string(part))] for part in parts]


def _split(sharding: str) -> list[str]:
    """The shardings in the braces of one for a tuple."""
    found, depth, begin = [], 0, 0
    for place, letter in enumerate(sharding):
        if letter == "{":
            depth += 1
            begin = place if depth == 2 else begin
        elif letter == "}":
            found += [sharding[begin : place + 1]] * (depth == 2)
            depth -= 1
    return found
