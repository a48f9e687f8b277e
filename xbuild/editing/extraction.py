"""Extraction of a computation, or of the neighbourhood of an instruction, into a separate module."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from shape_inference import Shape, TokenShape, TupleShape, leaves

from ..core.graph import NOTHING, Computation, Instruction, Module
from ..core.op import OPS
from ..properties.effects import DONE_OF, START_OF
from .draft import ComputationDraft, ModuleDrafts
from .editor import Target
from .rebuild import Unchanged, module_of, revise_computation

_ALONE = frozenset({"constant", "iota"})  # extracted with every user
_ENDS = _ALONE | {"parameter"}  # paths between neighbours do not pass through these
_KEPT = ("frontend_attributes", "stack_tables")


def extract(
    program: Module | Computation, around: Target | None = None, radius: int = 2, *, computation: str | None = None
) -> Module:
    """Return a computation (default: the entry), or the neighbourhood of an instruction in it, as a module.

    Neighbours are operands, users and control predecessors at a distance of at most `radius`; paths do not pass through
    constants and parameters. Operands outside the neighbourhood become parameters of the same names, and tokens become
    after-all. Constants are extracted too, and so are the matching starts, dones and transfers in the same computation.
    The root is the value that has users outside the neighbourhood, or the tuple of these values. Raises BuildError if
    the instruction does not exist.

    >>> import xbuild as xb
    >>> module = xb.parse_hlo("ENTRY e { x = f32[2] parameter(0) a = tanh(x) b = negate(a) c = add(b, a) d = abs(c) }")
    >>> print(xb.extract(module, around="b", radius=1).entry)
    ENTRY e {
      x = f32[2] parameter(0)
      a = f32[2] tanh(x)
      b = f32[2] negate(a)
      ROOT c = f32[2] add(b, a)
    }
    """
    module = module_of(program)
    drafts = ModuleDrafts(module)
    draft = drafts.find_draft(computation)
    if around is None:
        return _module(module, draft.computation.name, draft.computation)
    draft, centre = drafts.find(around, draft)
    members = _with_halves(draft, _neighbours(draft, centre, radius))
    part = _Part(draft, centre, _without_elements(draft, centre, members))
    return _module(module, centre.name, revise_computation(draft.computation.name, part, {}))


def _module(module: Module, name: str, entry: Computation) -> Module:
    return Module(
        name,
        entry,
        num_replicas=module.num_replicas,
        num_partitions=module.num_partitions,
        is_scheduled=module.is_scheduled,
        annotations={key: module.annotations[key] for key in _KEPT if key in module.annotations},
    )


def _near(draft: ComputationDraft, key: Instruction) -> Iterator[Instruction]:
    yield from key.operands
    yield from key.control
    yield from draft.users(key)


def _neighbours(draft: ComputationDraft, centre: Instruction, radius: int) -> set[Instruction]:
    steps = {centre: 0}
    queue = deque([centre])
    while queue:
        each = queue.popleft()
        if steps[each] == radius or (each.opcode in _ENDS and each is not centre):
            continue
        for near in _near(draft, each):
            if near not in steps:
                steps[near] = steps[each] + 1
                queue.append(near)
    return set(steps)


def _with_halves(draft: ComputationDraft, members: set[Instruction]) -> set[Instruction]:
    """The members, the starts and dones that belong to them, and all transfers of their channels."""
    transfers: dict[int, list[Instruction]] = {}
    for each in draft.computation.instructions:
        if each.opcode.startswith(("send", "recv")):
            transfers.setdefault(each.attributes.channel_id, []).append(each)
    found: set[Instruction] = set()
    stack = list(members)
    while stack:
        each = stack.pop()
        if each in found:
            continue
        found.add(each)
        if _is_end(each):
            stack += filter(_is_start, each.operands[:1])
        if _is_start(each):
            stack += filter(_is_end, draft.users(each))
        if each.opcode.startswith(("send", "recv")):
            stack += transfers.get(each.attributes.channel_id, [])
    return found


def _is_start(instruction: Instruction) -> bool:
    return instruction.opcode in DONE_OF or instruction.opcode == "async_update"


def _is_end(instruction: Instruction) -> bool:
    return instruction.opcode in START_OF or instruction.opcode == "async_update"


def _without_elements(draft: ComputationDraft, centre: Instruction, members: set[Instruction]) -> set[Instruction]:
    """The members without elements of outside tuples, so that parameters are elements instead of tuples."""
    kept = set(members)
    for each in draft.computation.instructions:
        if each in kept and each.opcode == "get_tuple_element" and each is not centre and each.operands[0] not in kept:
            kept.remove(each)
    return kept


class _Part(Unchanged):
    """The extracted computation: the members, the instructions that replace operands outside, and the root."""

    def __init__(self, draft: ComputationDraft, centre: Instruction, members: set[Instruction]) -> None:
        super().__init__(draft.computation)
        needed = {operand for each in members for operand in each.operands}
        given = [each for each in self.instructions if each in members or each in needed]
        self.stand_ins: dict[Instruction, Instruction] = {}
        inputs = [
            each for each in given if each.opcode == "parameter" or not (each in members or each.opcode in _ALONE)
        ]
        for each in inputs:
            self.stand_ins[each] = _stand_in(each, sum(i.opcode == "parameter" for i in self.stand_ins.values()))
        self.members = {each for each in given if each not in self.stand_ins}
        results = self._results(draft, members) or [centre]
        instructions = [*inputs, *(each for each in given if each in self.members)]
        self.root = results[0] if len(results) == 1 else _tuple(results, {each.name for each in instructions})
        self.instructions = tuple(dict.fromkeys((*instructions, self.root)))

    def _results(self, draft: ComputationDraft, members: set[Instruction]) -> list[Instruction]:
        """The members with users outside, or that are the root."""
        return [
            each
            for each in draft.computation.instructions
            if each in members
            and each.opcode not in _ENDS
            and any(isinstance(leaf, Shape) for leaf in leaves(each.shape))
            and (each is self.root or any(user not in members and each in user.operands for user in draft.users(each)))
        ]

    def current(self, key: Instruction) -> Instruction:
        return self.stand_ins.get(key, key)

    def operands(self, key: Instruction) -> tuple[Instruction, ...]:
        return () if key in self.stand_ins else key.operands

    def control(self, key: Instruction) -> tuple[Instruction, ...]:
        return () if key in self.stand_ins else tuple([each for each in key.control if each in self.members])


def _stand_in(operand: Instruction, number: int) -> Instruction:
    """A parameter with the name and shape of an operand outside; for a token, an after-all."""
    if isinstance(operand.shape, TokenShape) and operand.opcode != "parameter":
        return Instruction(
            opcode="after_all", name=operand.name, shape=operand.shape, segments=(0,), where=operand.where
        )
    notes = {"sharding": operand.annotations["sharding"]} if "sharding" in operand.annotations else NOTHING
    return Instruction(
        opcode="parameter",
        name=operand.name,
        shape=operand.shape,
        attributes=OPS["parameter"].read({"number": number, "shape": operand.shape.plain()}),
        where=operand.where,
        annotations=operand.annotations if operand.opcode == "parameter" else notes,
    )


def _tuple(results: list[Instruction], taken: set[str]) -> Instruction:
    shape = TupleShape(each.shape for each in results)
    name = next(name for name in ("tuple", *(f"tuple.{n}" for n in range(1, len(taken) + 2))) if name not in taken)
    return Instruction(opcode="tuple", name=name, shape=shape, operands=tuple(results), segments=(len(results),))
