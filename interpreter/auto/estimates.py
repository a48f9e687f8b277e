"""Estimates, from shapes and trip counts: the seconds of a run in the interpreter, and those of compiling a part.

The rates are those of one core of a server. An estimate decides only when to measure; measured runs decide the rest.
"""

from __future__ import annotations

from shape_inference import Shape
from xbuild.core.graph import Computation, Module
from xbuild.core.memos import remembered
from xbuild.costs.analysis import CostAnalysis

_CALL, _SCALAR = 1e-6, 2e-7  # seconds for an instruction on arrays, and on numbers
_PRODUCTS, _OPERATIONS, _FUNCTIONS, _BYTES = 4e10, 2e9, 2e8, 5e9  # in a second
_BY_PRODUCTS = frozenset({"dot", "convolution"})


@remembered
def seconds_in_interpreter(entry: Computation) -> float:
    """The seconds that the interpreter is expected to need for a run; a loop of unknown length counts as one trip."""
    total = 0.0
    for row in CostAnalysis(entry).rows():
        instruction = row.instruction
        if instruction.called and instruction.opcode in ("call", "fusion", "while", "conditional"):
            continue
        shape = instruction.shape
        rate = _PRODUCTS if instruction.opcode in _BY_PRODUCTS else _OPERATIONS
        each = _SCALAR if isinstance(shape, Shape) and not shape.dims else _CALL
        each += row.work.flops / rate + row.work.transcendentals / _FUNCTIONS + row.bytes / _BYTES
        total += row.times * each
    return total


def is_bounded(entry: Computation) -> bool:
    """Whether the trips of all loops of a computation are known."""
    return all(row.is_known for row in CostAnalysis(entry).rows())


_FIRST, _EACH = 0.03, 0.0012  # seconds to compile a part, and an instruction of it
_LONGER = {"convolution": 0.03, "select_and_scatter": 0.6, "sort": 0.1, "scatter": 0.03, "dot": 0.005}


def seconds_to_compile(module: Module) -> float:
    """The seconds that compiling a part is expected to take."""
    every = [each.opcode for computation in module.computations for each in computation.instructions]
    return _FIRST + sum(_EACH + _LONGER.get(opcode, 0.0) for opcode in every)
