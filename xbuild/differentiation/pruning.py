"""Dead code: instructions that nothing needs, and elements of a loop's state that nothing needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from attrs import evolve, frozen

from shape_inference import TupleShape

from ..core.graph import Computation, Instruction
from ..core.op import OPS
from ..properties.effects import has_effect
from ..properties.order import live_instructions
from ..properties.rewriting import rewired


def find_live(instructions: Iterable[Instruction], root: Instruction, is_left_out: Any = None) -> set[Instruction]:
    """Find what the root and effects need, and the parameters; effects for which `is_left_out` holds do not count."""

    def is_kept(instruction: Instruction) -> bool:
        return instruction.opcode == "parameter" or (
            has_effect(instruction) and not (is_left_out and is_left_out(instruction))
        )

    return live_instructions(instructions, root, is_kept=is_kept)


def prune(name: str, instructions: Sequence[Instruction], root: Instruction, is_left_out: Any = None) -> Computation:
    """The computation of the needed instructions, whose loops carry only needed elements."""
    while True:
        kept = find_live(instructions, root, is_left_out)
        instructions = [instruction for instruction in instructions if instruction in kept]
        loops = _find_dead_elements(instructions, root)
        if not loops:
            return Computation(name, instructions, root)
        instructions, root = _shrink_loops(instructions, root, loops)


def _elements_read(computation: Computation) -> dict[Instruction, int] | None:
    """The instructions that read an element of the one parameter, with its index; None if it has other users."""
    (parameter,) = computation.parameters
    indices = {}
    for instruction in computation.instructions:
        if parameter in instruction.operands:
            if instruction.opcode != "get_tuple_element":
                return None
            indices[instruction] = instruction.attributes.index
    return None if computation.root is parameter else indices


def _find_dead_elements(instructions: Sequence[Instruction], root: Instruction) -> dict[Instruction, list[int]]:
    """Find loops with elements that nothing needs; maps each to the indices of the needed ones."""
    indices = {}
    for instruction in instructions:
        needed = _needed_elements(instruction, instructions, root) if instruction.opcode == "while" else None
        if needed is not None:
            indices[instruction] = needed
    return indices


def _needed_elements(loop: Instruction, instructions: Sequence[Instruction], root: Instruction) -> list[int] | None:
    """The indices of a loop's state that something needs; None if all are needed or the uses are unknown."""
    body, test = loop.attributes.body, loop.attributes.condition
    if not isinstance(loop.shape, TupleShape) or body.root.opcode != "tuple" or loop is root:
        return None
    in_body, in_test = _elements_read(body), _elements_read(test)
    users = [instruction for instruction in instructions if loop in instruction.operands or loop in instruction.control]
    if in_body is None or in_test is None or any(instruction.opcode != "get_tuple_element" for instruction in users):
        return None
    needed = {instruction.attributes.index for instruction in users} | set(in_test.values())
    needed |= _elements_behind([instruction for instruction in body.instructions if has_effect(instruction)], in_body)
    while True:
        more = needed | _elements_behind([body.root.operands[n] for n in needed], in_body)
        if more == needed:
            return sorted(needed) if len(needed) < len(loop.shape) else None
        needed = more


def _elements_behind(values: Iterable[Instruction], elements: dict[Instruction, int]) -> set[int]:
    """The indices of the elements from which values are computed."""
    stack, seen, indices = list(values), set(), set()
    while stack:
        instruction = stack.pop()
        if instruction in elements:
            indices.add(elements[instruction])
        elif instruction not in seen:
            seen.add(instruction)
            stack += [*instruction.operands, *instruction.control]
    return indices


@frozen
class _SmallerState:
    """A loop state of which some elements are kept."""

    kept: list[int]
    shape: TupleShape

    def computation(self, computation: Computation, is_body: bool) -> Computation:
        """A loop body or condition on the smaller state."""
        now: dict[Instruction, Instruction] = {}
        root = computation.root
        instructions = []
        needed = find_live(computation.instructions, self._tuple(root) if is_body else root)
        for instruction in computation.instructions:
            if instruction is root or instruction in needed:
                version = self._tuple(instruction) if instruction is root and is_body else instruction
                now[instruction] = self._rewire(version, now)
                instructions.append(now[instruction])
        return Computation(computation.name, instructions, now[root])

    def _tuple(self, root: Instruction) -> Instruction:
        operands = tuple([root.operands[n] for n in self.kept])
        return evolve(root, operands=operands, shape=self.shape, segments=(len(operands),))

    def _rewire(self, instruction: Instruction, now: dict[Instruction, Instruction]) -> Instruction:
        if instruction.opcode == "parameter":
            record = OPS["parameter"].read({"number": 0, "shape": self.shape})
            return evolve(instruction, shape=self.shape, attributes=record)
        rewritten = rewired(instruction, now)
        if instruction.opcode == "get_tuple_element" and instruction.operands[0].opcode == "parameter":
            return self.element(rewritten)
        return rewritten

    def element(self, instruction: Instruction) -> Instruction:
        """A get_tuple_element with its new index."""
        index = self.kept.index(instruction.attributes.index)
        return evolve(instruction, attributes=OPS["get_tuple_element"].read({"index": index}))


def _shrink_loops(
    instructions: Sequence[Instruction], root: Instruction, loops: dict[Instruction, list[int]]
) -> tuple[list[Instruction], Instruction]:
    """The instructions with smaller states in these loops, and the new root."""
    now: dict[Instruction, Instruction] = {}
    fewer: dict[Instruction, _SmallerState] = {}
    shrunk: list[Instruction] = []
    for instruction in instructions:
        rewritten = rewired(instruction, now)
        if instruction in loops:
            kept = loops[instruction]
            smaller = fewer[instruction] = _SmallerState(kept, TupleShape(instruction.shape.elements[n] for n in kept))  # type: ignore[union-attr]
            init = _shrink_init(rewritten.operands[0], smaller, shrunk)
            attributes = evolve(
                instruction.attributes,
                condition=smaller.computation(instruction.attributes.condition, False),
                body=smaller.computation(instruction.attributes.body, True),
            )
            rewritten = evolve(rewritten, operands=(init,), shape=smaller.shape, attributes=attributes)
        elif instruction.opcode == "get_tuple_element" and instruction.operands[0] in fewer:
            rewritten = fewer[instruction.operands[0]].element(rewritten)
        if rewritten is not instruction:
            now[instruction] = rewritten
        shrunk.append(rewritten)
    return shrunk, now.get(root, root)


def _shrink_init(init: Instruction, smaller: _SmallerState, instructions: list[Instruction]) -> Instruction:
    """The kept elements of an init value, as a tuple."""
    if init.opcode == "tuple":
        operands = [init.operands[n] for n in smaller.kept]
    else:
        operands = []
        for n in smaller.kept:
            record = OPS["get_tuple_element"].read({"index": n})
            shape = init.shape.elements[n]  # type: ignore[union-attr]
            operands.append(Instruction("get_tuple_element", f"{init.name}.{n}", shape, (init,), None, record))
        instructions += operands
    packed = Instruction(
        "tuple", f"{init.name}.kept", smaller.shape, tuple(operands), (len(operands),), None, init.where
    )
    packed = evolve(packed, annotations=init.annotations)
    instructions.append(packed)
    return packed
