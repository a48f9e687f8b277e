"""Why results of ops on tuples and of ops that call computations have their shapes."""

from __future__ import annotations

from shape_inference import TupleShape

from ...core.graph import Instruction
from .table import Lines, entered, reasons


@reasons
def tuple(instruction: Instruction) -> Lines:
    yield f"an element for each of the {len(instruction.operands)} operands"


@reasons
def get_tuple_element(instruction: Instruction) -> Lines:
    whole, index = instruction.operands[0], instruction.attributes.index
    assert isinstance(whole.shape, TupleShape)
    yield f"element {index} of {whole.name}, a tuple of {len(whole.shape.elements)}"


@entered(("call", "fusion"))
def called(instruction: Instruction) -> Lines:
    (region,) = instruction.called
    yield f"the result of {region.name}, which is its root {region.root.name}"


@entered(("while",))
def loop(instruction: Instruction) -> Lines:
    init = instruction.operands[0]
    yield f"the shape of {init.name}: condition and body take a value of this shape, and the body gives one"


@reasons
def conditional(instruction: Instruction) -> Lines:
    names = ", ".join(region.root.name for region in instruction.called)
    yield f"the result of each branch (roots {names}), which are of one shape"


@reasons
def scan(instruction: Instruction) -> Lines:
    given, (region,) = instruction.attributes, instruction.called
    root = region.root.shape
    yield f"the result of {region.name}, {root}"
    yield f"of its carries ({given.num_carries}) the last ones"
    yield f"of its other results one for each trip, stacked along dimension {given.dimension}"


@reasons
def rng_bit_generator(instruction: Instruction) -> Lines:
    state = instruction.operands[0]
    yield f"a tuple of the next state, as {state.name} ({state.shape}), and the bits, which the attribute shape states"
