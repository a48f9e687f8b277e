"""Whether the types that a program states hold: each is derived again from those of the operands, op by op.

A program that was written by shard_map holds by construction; one that was edited, or read from text, may not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import define, field, frozen

from shape_inference import AnyShape, RuleTable, TupleShape, XbuildError

from ..core.graph import Computation, Instruction, Module
from ..properties.device_groups import groups_of
from ..properties.effects import COLLECTIVES, STARTS, base_of
from ..properties.mesh import Mesh, mesh_of
from ..properties.variances import Axes, Type, declared, read_type
from .coordinates import is_coordinate
from .rules.marks import Mark, mark_of

differences = RuleTable("difference")
"""opcode -> rule(check, instruction, *operands): along which axes the leaves of the result may differ."""

_GATHERING = ("all_reduce", "all_gather")
_OUTSIDE = frozenset({
    "rng", "rng_get_and_update_state", "infeed", "outfeed", "recv", "recv_done", "send", "send_done", "custom_call",
})  # fmt: skip


@frozen
class Breach:
    """A type that does not hold: the instruction, what it states, and the axes along which its value may differ."""

    instruction: Instruction
    stated: str
    axes: tuple[str, ...]
    why: str

    def __str__(self) -> str:
        if not self.axes:
            return f"{self.instruction.name} is stated to be {self.stated}, and {self.why}"
        axes = ", ".join(self.axes)
        return f"{self.instruction.name} is stated to be {self.stated}, one value along {axes}, and {self.why}"


def breaches(module: Module) -> list[Breach]:
    """The types of a module on a mesh that do not hold; nothing of a module that states no mesh.

    Raises: invalid_attribute where the mesh or a type is none.
    """
    mesh = mesh_of(module)
    if mesh is None:
        return []
    if mesh.num_devices != module.num_devices:
        why = f"the mesh {mesh} has {mesh.num_devices} devices, and the program {module.num_devices}"
        return [Breach(module.entry.root, "on that mesh", mesh.axes, why)]
    check = Check(module, mesh)
    check.computation(module.entry, [check.stated(parameter) for parameter in module.entry.parameters])
    return check.found


@define(eq=False)
class Check:
    """The check of one module; `found` are its breaches. A type of differences is nested as the shape is."""

    module: Module
    mesh: Mesh
    found: list[Breach] = field(factory=list)
    _known: dict[Any, Any] = field(factory=dict)

    @property
    def everywhere(self) -> Axes:
        return frozenset(self.mesh.axes)

    def stated(self, instruction: Instruction) -> Any:
        """Along which axes an instruction states that it may differ; all, where it states nothing."""
        text = declared(instruction)
        if text is None:
            return constant(instruction.shape, self.everywhere)
        found = _differing(read_type(text))
        return found if _fits(found, instruction.shape) else constant(instruction.shape, self.everywhere)

    def computation(self, computation: Computation, parameters: Sequence[Any]) -> Any:
        """How the root may differ, with parameters that may differ like this."""
        key = computation, tuple(parameters)
        if key not in self._known:
            self._known[key] = self._run(computation, parameters)
        return self._known[key]

    def _run(self, computation: Computation, parameters: Sequence[Any]) -> Any:
        found: dict[Instruction, Any] = {}
        for instruction in computation.instructions:
            if instruction.opcode == "parameter":
                given = parameters[instruction.attributes.number]
            else:
                given = self._of(instruction, [found[each] for each in instruction.operands])
            found[instruction] = self._compared(instruction, given)
        return found[computation.root]

    def _of(self, instruction: Instruction, operands: list[Any]) -> Any:
        if instruction.opcode not in differences:
            return _joined(self, instruction, *operands)
        return differences[instruction.opcode](self, instruction, *operands)

    def _compared(self, instruction: Instruction, given: Any) -> Any:
        """What holds: what was derived; where less is stated, a breach."""
        text = declared(instruction)
        if text is None:
            return given
        try:
            stated = _differing(read_type(text))
        except XbuildError:
            stated = None
        if stated is None or not _fits(stated, instruction.shape):
            self.found.append(Breach(instruction, text, (), "that is no type of its shape"))
            return given
        lacking = frozenset[str]().union(*(a - b for a, b in zip(leaves(given), leaves(stated), strict=True)))
        if lacking:
            axes = self.mesh.ordered(lacking) or tuple(lacking)
            self.found.append(Breach(instruction, text, axes, "what it is computed from may differ along them"))
        return joined(given, stated)


def known_mark(mesh: Mesh, instruction: Instruction) -> Mark | None:
    """The mark of an instruction, where the mesh has its axes."""
    mark = mark_of(instruction)
    return mark if mark is not None and {*mark.axes} <= {*mesh.axes} else None


def _fits(given: Any, shape: AnyShape) -> bool:
    """Whether a type is nested as a shape is."""
    if not isinstance(shape, TupleShape):
        return not isinstance(given, tuple)
    whole = isinstance(given, tuple) and len(given) == len(shape.elements)
    return whole and all(map(_fits, given, shape.elements))


def leaves(given: Any) -> list[Axes]:
    return [leaf for each in given for leaf in leaves(each)] if isinstance(given, tuple) else [given]


def constant(shape: Any, axes: Axes) -> Any:
    return tuple(constant(each, axes) for each in shape.elements) if isinstance(shape, TupleShape) else axes


def joined(a: Any, b: Any) -> Any:
    """Leaf by leaf the axes of both."""
    return tuple(map(joined, a, b)) if isinstance(a, tuple) else a | b


def _differing(given: Type) -> Any:
    """The axes along which devices may hold different numbers: varying, or parts of a sum."""
    return tuple(map(_differing, given)) if isinstance(given, tuple) else given.varying | given.unreduced


def _all(operands: Sequence[Any]) -> Axes:
    return frozenset[str]().union(*(leaf for each in operands for leaf in leaves(each)))


def _joined(check: Check, instruction: Instruction, *operands: Any) -> Any:
    """An op that computes: as its operands together; what comes from outside differs everywhere."""
    mark = known_mark(check.mesh, instruction)
    if instruction.opcode in _OUTSIDE:
        return constant(instruction.shape, check.everywhere)
    if mark is not None and mark.op == "axis_index" and is_coordinate(check.mesh, mark.axes, instruction):
        return frozenset(mark.axes)
    return constant(instruction.shape, _all(operands))


def _collective(check: Check, instruction: Instruction, *operands: Any) -> Any:
    """What reduces or gathers gives one value in each group; what else meets may differ along the axes of groups."""
    groups = groups_of(instruction, check.module.num_replicas, check.module.num_partitions)
    axes = check.mesh.spanned(groups)
    given = _all(operands)
    if axes is None:
        return constant(instruction.shape, check.everywhere)
    if base_of(instruction) in _GATHERING:
        return constant(instruction.shape, given - frozenset(axes))
    if base_of(instruction) == "collective_permute":
        return constant(instruction.shape, check.everywhere)
    return constant(instruction.shape, given | frozenset(axes))


for _opcode in (*COLLECTIVES, *STARTS):
    if _opcode != "collective_permute":
        differences.enter(_opcode, _collective)


@differences
def collective_permute(check: Check, instruction: Instruction, operand: Any) -> Any:
    """Along the axes of its mark, where its pairs stay in their groups; else anywhere."""
    mark = known_mark(check.mesh, instruction)
    pairs = instruction.attributes.source_target_pairs
    stays = mark is not None and all(_differ_in(check.mesh, *pair) <= {*mark.axes} for pair in pairs)
    return operand | frozenset(mark.axes if stays and mark is not None else check.mesh.axes)


def _differ_in(mesh: Mesh, source: int, target: int) -> set[str]:
    a, b = mesh.coordinates(source), mesh.coordinates(target)
    return {axis for axis in mesh.axes if a[axis] != b[axis]}


@differences
def partition_id(check: Check, instruction: Instruction) -> Any:
    return check.everywhere if check.module.num_partitions > 1 else frozenset()


@differences
def replica_id(check: Check, instruction: Instruction) -> Any:
    return check.everywhere if check.module.num_replicas > 1 else frozenset()


@differences
def tuple_(check: Check, instruction: Instruction, *operands: Any) -> Any:
    return operands


@differences
def get_tuple_element(check: Check, instruction: Instruction, operand: Any) -> Any:
    return operand[instruction.attributes.index]


@differences
def opt_barrier(check: Check, instruction: Instruction, operand: Any) -> Any:
    return operand


def _called(check: Check, instruction: Instruction, *operands: Any) -> Any:
    (callee,) = instruction.called
    return check.computation(callee, operands)


differences.enter("call", _called)
differences.enter("fusion", _called)


@differences
def while_(check: Check, instruction: Instruction, init: Any) -> Any:
    """What init, every trip and the condition make of the state."""
    a, carry = instruction.attributes, init
    while True:
        test, after = check.computation(a.condition, (carry,)), check.computation(a.body, (carry,))
        grown = joined(joined(carry, after), constant(instruction.shape, test))
        if grown == carry:
            return carry
        carry = grown


@differences
def conditional(check: Check, instruction: Instruction, index: Any, *operands: Any) -> Any:
    found = constant(instruction.shape, index)
    for branch, operand in zip(instruction.attributes.branch_computations, operands, strict=True):
        found = joined(found, check.computation(branch, (operand,)))
    return found


@differences
def scan(check: Check, instruction: Instruction, *operands: Any) -> Any:
    """What every trip makes of the carries, and the outputs of a trip that is given these."""
    (callee,) = instruction.called
    count = len(operands) - instruction.attributes.num_carries
    carries = operands[count:]
    while True:
        root = check.computation(callee, (*operands[:count], *carries))
        results = root if isinstance(root, tuple) else (root,)
        outputs, after = results[: len(results) - len(carries)], results[len(results) - len(carries) :]
        grown = joined(carries, after)
        if grown == carries:
            return (*outputs, *carries) if isinstance(root, tuple) else carries[0]
        carries = grown
