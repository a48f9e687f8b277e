"""Loops without the elements of their state that nothing needs: no result, no test, no effect, no other element."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from attrs import evolve, frozen

from shape_inference import TupleShape

from ..core.graph import Computation, Instruction
from ..core.op import OPS
from ..editing.dead import needed_by
from ..properties.effects import has_effect


def live(instructions: Iterable[Instruction], root: Instruction, is_left_out: Any = None) -> set[Instruction]:
    """What the root, a parameter or an effect needs, but for effects that may be left out."""
    stack = [root]
    for each in instructions:
        if each.opcode == "parameter" or (has_effect(each) and not (is_left_out and is_left_out(each))):
            stack.append(each)
    return needed_by(stack)


def lean(name: str, instructions: Sequence[Instruction], root: Instruction, is_left_out: Any = None) -> Computation:
    """The computation of what is needed, its loops with what is needed of their states."""
    while True:
        kept = live(instructions, root, is_left_out)
        instructions = [each for each in instructions if each in kept]
        loops = _with_dead_elements(instructions, root)
        if not loops:
            return Computation(name, instructions, root)
        instructions, root = _rewritten(instructions, root, loops)


def _elements(computation: Computation) -> dict[Instruction, int] | None:
    """The elements of the one parameter by the instructions that take them; None where it is used as a whole."""
    (parameter,) = computation.parameters
    found = {}
    for each in computation.instructions:
        if parameter in each.operands:
            if each.opcode != "get_tuple_element":
                return None
            found[each] = each.attributes.index
    return None if computation.root is parameter else found


def _with_dead_elements(instructions: Sequence[Instruction], root: Instruction) -> dict[Instruction, list[int]]:
    """The loops that have elements that nothing needs, each with those that something does."""
    found = {}
    for each in instructions:
        needed = _needed(each, instructions, root) if each.opcode == "while" else None
        if needed is not None:
            found[each] = needed
    return found


def _needed(loop: Instruction, instructions: Sequence[Instruction], root: Instruction) -> list[int] | None:
    """The elements of a loop's state that something needs; None where all of them are, or it cannot be told."""
    body, test = loop.attributes.body, loop.attributes.condition
    if not isinstance(loop.shape, TupleShape) or body.root.opcode != "tuple" or loop is root:
        return None
    in_body, in_test = _elements(body), _elements(test)
    users = [each for each in instructions if loop in each.operands or loop in each.control]
    if in_body is None or in_test is None or any(each.opcode != "get_tuple_element" for each in users):
        return None
    needed = {each.attributes.index for each in users} | set(in_test.values())
    needed |= _read([each for each in body.instructions if has_effect(each)], in_body)
    while True:
        more = needed | _read([body.root.operands[n] for n in needed], in_body)
        if more == needed:
            return sorted(needed) if len(needed) < len(loop.shape) else None
        needed = more


def _read(values: Iterable[Instruction], elements: dict[Instruction, int]) -> set[int]:
    """The elements that values are computed from."""
    stack, seen, found = list(values), set(), set()
    while stack:
        each = stack.pop()
        if each in elements:
            found.add(elements[each])
        elif each not in seen:
            seen.add(each)
            stack += [*each.operands, *each.control]
    return found


@frozen
class _Fewer:
    """A state of which some elements are kept."""

    kept: list[int]
    shape: TupleShape

    def computation(self, computation: Computation, is_body: bool) -> Computation:
        """A body or a test on the smaller state."""
        now: dict[Instruction, Instruction] = {}
        root = computation.root
        found = []
        needed = live(computation.instructions, self._tuple(root) if is_body else root)
        for each in computation.instructions:
            if each is root or each in needed:
                version = self._tuple(each) if each is root and is_body else each
                now[each] = self._rewired(version, now)
                found.append(now[each])
        return Computation(computation.name, found, now[root])

    def _tuple(self, root: Instruction) -> Instruction:
        operands = tuple([root.operands[n] for n in self.kept])
        return evolve(root, operands=operands, shape=self.shape, segments=(len(operands),))

    def _rewired(self, each: Instruction, now: dict[Instruction, Instruction]) -> Instruction:
        if each.opcode == "parameter":
            record = OPS["parameter"].read({"number": 0, "shape": self.shape})
            return evolve(each, shape=self.shape, attributes=record)
        made = rewired(each, now)
        if each.opcode == "get_tuple_element" and each.operands[0].opcode == "parameter":
            return self.element(made)
        return made

    def element(self, each: Instruction) -> Instruction:
        """An element under its new number."""
        index = self.kept.index(each.attributes.index)
        return evolve(each, attributes=OPS["get_tuple_element"].read({"index": index}))


def rewired(each: Instruction, now: dict[Instruction, Instruction]) -> Instruction:
    """An instruction on what its operands have become."""
    operands = tuple([now.get(operand, operand) for operand in each.operands])
    control = tuple([now.get(before, before) for before in each.control])
    return (
        each
        if operands == each.operands and control == each.control
        else evolve(each, operands=operands, control=control)
    )


def _rewritten(
    instructions: Sequence[Instruction], root: Instruction, loops: dict[Instruction, list[int]]
) -> tuple[list[Instruction], Instruction]:
    """The instructions with smaller states in these loops."""
    now: dict[Instruction, Instruction] = {}
    fewer: dict[Instruction, _Fewer] = {}
    found: list[Instruction] = []
    for each in instructions:
        made = rewired(each, now)
        if each in loops:
            kept = loops[each]
            smaller = fewer[each] = _Fewer(kept, TupleShape(each.shape.elements[n] for n in kept))  # type: ignore[union-attr]
            init = _state(made.operands[0], smaller, found)
            attributes = evolve(
                each.attributes,
                condition=smaller.computation(each.attributes.condition, False),
                body=smaller.computation(each.attributes.body, True),
            )
            made = evolve(made, operands=(init,), shape=smaller.shape, attributes=attributes)
        elif each.opcode == "get_tuple_element" and each.operands[0] in fewer:
            made = fewer[each.operands[0]].element(made)
        if made is not each:
            now[each] = made
        found.append(made)
    return found, now.get(root, root)


def _state(init: Instruction, smaller: _Fewer, found: list[Instruction]) -> Instruction:
    """The elements of an init value that are kept, as a tuple."""
    if init.opcode == "tuple":
        operands = [init.operands[n] for n in smaller.kept]
    else:
        operands = []
        for n in smaller.kept:
            record = OPS["get_tuple_element"].read({"index": n})
            shape = init.shape.elements[n]  # type: ignore[union-attr]
            operands.append(Instruction("get_tuple_element", f"{init.name}.{n}", shape, (init,), None, record))
        found += operands
    made = Instruction("tuple", f"{init.name}.kept", smaller.shape, tuple(operands), (len(operands),), None, init.where)
    made = evolve(made, annotations=init.annotations)
    found.append(made)
    return made
