"""Printer of modules and computations: the header, the entry as @main, a function for each called computation."""

from __future__ import annotations

from collections.abc import Iterator

from shape_inference import AnyShape, Dims, TupleShape, leaves
from shape_inference.escaping import mlir_string

from ...core.graph import Computation, Instruction, Module
from ...process.limits import room_for_calls
from ...properties.placement import SHARDY
from ...text.annotations import read_frontend_text
from ...text.header import Donor, stated_aliases, stated_donors
from ...text.scanner import Fault
from ...text.shardings import stated_sharding
from ..spelling import dictionary, listed
from ..spelling import symbol as symbol_text
from . import array_ops as array_ops
from . import computation_ops as computation_ops
from . import device_ops as device_ops
from .writer import (
    FRONTEND,
    MAIN,
    SHARDING,
    Functions,
    FunctionWriter,
    frontend_text,
    integers_text,
    name_parameters,
    notes_of,
    return_text,
    write_instructions,
)

# ----------------------------------------------------------------------------
# Attributes of a module, and of the arguments and results of its entry: counts, shardings, aliases.


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
    """Entries of input_output_alias, with the numbers of arguments and results after tuples are flattened."""
    root = module.entry.root.shape
    is_single = sum(1 for _ in leaves(root)) == 1
    for each in stated_aliases(module.annotations):
        kind = (each.kind or "may-alias").replace("-", "_")
        place = [] if is_single else [_leaf_number(root, each.output)]
        parameter = _argument_number(module.entry, each)
        alias = f'kind = "{kind}", parameter_index = array<i64>, parameter_number = {parameter} : i64'
        yield f"{{alias = {{{alias}}}, output_index = {integers_text(place)}}}"


def _leaf_number(shape: AnyShape, index: Dims) -> int:
    """The number of arrays and tokens before a part of a value."""
    before = 0
    for each in index:
        assert isinstance(shape, TupleShape)
        before += sum(1 for part in shape.elements[:each] for _ in leaves(part))
        shape = shape.elements[each]
    return before


def _argument_number(computation: Computation, given: Donor) -> int:
    parameters = computation.parameters
    before = sum(1 for p in parameters[: given.number] for _ in leaves(p.shape))
    return before + _leaf_number(parameters[given.number].shape, given.index)


def argument_notes(computation: Computation, module: Module | None) -> dict[int, str]:
    """The dictionary, after a blank, of each argument that has one; `module` is given for an entry."""
    donors = {_argument_number(computation, each) for each in stated_donors(module.annotations if module else {})}
    found: dict[int, str] = {}
    number = 0
    for parameter in computation.parameters:
        count = sum(1 for _ in leaves(parameter.shape))
        for part, entries in enumerate(_annotations_per_leaf(parameter, count)):
            if number + part in donors:
                entries.append(("jax.buffer_donor", "true"))
            if entries:
                found[number + part] = f" {dictionary(sorted(entries))}"
        number += count
    return found


def result_notes(root: Instruction) -> list[str]:
    """The same for each result: the annotations of a root that is not written as an op."""
    count = sum(1 for _ in leaves(root.shape))
    if root.opcode not in ("tuple", "parameter"):
        return [""] * count
    found = _annotations_per_leaf(root, count)
    if root.opcode == "parameter":
        found = [[entry for entry in entries if entry[0] == SHARDING] for entries in found]
    return [f" {dictionary(entries)}" if entries else "" for entries in found]


def _annotations_per_leaf(instruction: Instruction, count: int) -> list[list[tuple[str, str]]]:
    """The annotations of a value, for each of its parts: the sharding of a tuple has one per part."""
    if not isinstance(instruction.shape, TupleShape):
        return [[*notes_of(instruction)]] * count
    kept = instruction.annotations
    others = dict(kept.get("frontend_attributes", {}))
    each_sharding = _shardings(str(kept.get("sharding", "")))
    each_of_shardy = _split_shardings(others.pop(SHARDY, ""))
    found = []
    for number in range(count):
        given = dict(others)
        if len(each_of_shardy) == count:
            given[SHARDY] = f"#sdy.sharding{each_of_shardy[number]}"
        entries = [(FRONTEND, frontend_text(given))] if given else []
        entries += [(SHARDING, mlir_string(each_sharding[number]))] if len(each_sharding) == count else []
        found.append(entries)
    return found


def _shardings(text: str) -> list[str]:
    """The shardings of a tuple; none if the text does not state a tuple of shardings."""
    try:
        found = stated_sharding(text)
    except Fault:
        return []
    return [each.text for each in found] if isinstance(found, tuple) else []


def _split_shardings(text: str) -> list[str]:
    """The shardings in Shardy's text of several: the parts in nested angle brackets."""
    found, depth, begin = [], 0, 0
    for place, letter in enumerate(text):
        if letter == "<":
            depth += 1
            begin = place if depth == 2 else begin
        elif letter == ">":
            found += [text[begin : place + 1]] * (depth == 2)
            depth -= 1
    return found


# ----------------------------------------------------------------------------
# Modules and functions


def stablehlo_text(program: Module | Computation, locations: bool = False) -> str:
    """StableHLO text of a module, or of a computation as an entry; `locations` adds names and lines of the program.

    Raises StablehloError (not_in_stablehlo) if StableHLO cannot express an op, an element type or a constant.
    """
    module = program if isinstance(program, Module) else Module(program.name, program)
    functions = Functions()
    with room_for_calls((module.entry,)):
        blocks = [_function(module.entry, functions, MAIN, locations, module)]
        while functions.waiting:
            computation = functions.waiting.pop()
            blocks.append(_function(computation, functions, functions.symbols[computation], locations))
    attributes = dictionary(module_attributes(module))
    return "\n".join((f"module {symbol_text(module.name)} attributes {attributes} {{", *blocks, "}\n"))


def _function(
    computation: Computation, functions: Functions, symbol: str, locations: bool, module: Module | None = None
) -> str:
    """The text of a function; that of the entry is public, with aliases and donors of its arguments."""
    writer = FunctionWriter(functions, locations)
    arguments = []
    notes = argument_notes(computation, module)
    for parameter, (tree, typed) in zip(computation.parameters, name_parameters(writer, computation), strict=True):
        writer.names[parameter] = tree
        arguments += typed
    signature = ", ".join(f"{each}{notes.get(number, '')}" for number, each in enumerate(arguments))
    write_instructions(writer, computation)
    root = computation.root
    writer.line(return_text(writer, writer.names[root], root, "return"))
    results = [f"{each}{note}" for each, note in zip(writer.types((root,)), result_notes(root), strict=True)]
    returns = f" -> ({', '.join(results)})" if len(results) != 1 or "{" in results[0] else f" -> {results[0]}"
    head = f"  func.func {'public' if module else 'private'} {symbol_text(symbol)}({signature}){returns} {{"
    return "\n".join((head, *writer.lines, "  }"))
