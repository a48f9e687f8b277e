"""Printer of modules and computations: the header, the entry as @main, a function for each called computation."""

from __future__ import annotations

from ...core.graph import Computation, Module
from ...process.recursion_limit import room_for_calls
from . import ops as ops
from .entry import argument_notes, module_attributes, result_notes
from .support.blocks import named_parameters, returned, write_instructions
from .support.functions import MAIN, Functions
from .support.words import dictionary
from .support.words import symbol as symbol_text
from .support.writer import Writer


def stablehlo_text(program: Module | Computation, locations: bool = False) -> str:
    """A module, or a computation as the entry of one, as StableHLO text; with locations it names lines of the program.

    Raises StablehloError (not_in_stablehlo) where StableHLO has no form for an op, an element type or a constant.
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
    """A function; that of a module's entry is public, and its arguments and results have notes."""
    writer = Writer(functions, locations)
    arguments = []
    notes = argument_notes(module) if module else {}
    for parameter, (tree, typed) in zip(computation.parameters, named_parameters(writer, computation), strict=True):
        writer.names[parameter] = tree
        arguments += typed
    signature = ", ".join(f"{each}{notes.get(number, '')}" for number, each in enumerate(arguments))
    write_instructions(writer, computation)
    root = computation.root
    writer.line(returned(writer, writer.names[root], root, "return"))
    results = [f"{each}{note}" for each, note in zip(writer.types((root,)), result_notes(module, root), strict=True)]
    gives = f" -> ({', '.join(results)})" if len(results) != 1 or "{" in results[0] else f" -> {results[0]}"
    head = f"  func.func {'public' if module else 'private'} {symbol_text(symbol)}({signature}){gives} {{"
    return "\n".join((head, *writer.lines, "  }"))
