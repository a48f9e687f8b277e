"""The buffers of a computation: the arrays of each value, where each is made and last read, what it may overwrite.

Sections:

    Arrays of a value
    Operands of a fusion that its results may overwrite
    Origins: where the parts of a result are
    Values of a computation: where each is made and last read
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import accumulate, chain
from typing import Literal, TypeAlias

from attrs import define, field, frozen

from shape_inference import AnyShape, Dims, Shape, TupleShape, refuse
from shape_inference.rules import RuleTable
from shape_inference.trees import paths

from ..core.graph import Computation, Instruction
from ..core.memos import remembered
from ..core.op import OPS, opcodes
from ..process.progress import over
from ..properties.order import ordered, users_of
from ..properties.placement import is_annotation, is_move_to_host

# ----------------------------------------------------------------------------
# Arrays of a value: a tuple is the list of its parts, and only its arrays take memory

HOST = "S(5)"
"""How a layout states that an array is in host memory."""

_PACKED = re.compile(r"E\((\d+)\)")

Parts: TypeAlias = tuple[tuple[Dims, AnyShape], ...]


@functools.lru_cache(maxsize=4096)
def parts_of(shape: AnyShape) -> Parts:
    """The arrays and tokens of a shape in order, each with its index in nested tuples."""
    return (*paths(shape),)


@functools.lru_cache(maxsize=4096)
def part_ends(shape: TupleShape) -> tuple[int, ...]:
    """Where in the list of parts those of each element of a tuple end, after a leading 0."""
    return (0, *accumulate(len(parts_of(each)) for each in shape.elements))


def place_of(shape: AnyShape, path: Dims) -> int | None:
    """The place of a part in the list, by its index in nested tuples; None if there is none."""
    return _places(shape).get(path)


@functools.lru_cache(maxsize=4096)
def _places(shape: AnyShape) -> dict[Dims, int]:
    return {path: place for place, (path, _) in enumerate(parts_of(shape))}


@functools.lru_cache(maxsize=4096)
def stored_bytes(shape: Shape) -> int:
    """The bytes of the elements as the layout stores them: with `E(4)` an element takes 4 bits, not a byte."""
    packed = _PACKED.search(shape.layout.suffix) if shape.layout is not None and shape.layout.suffix else None
    return shape.bytes if packed is None else -(-shape.size * int(packed[1]) // 8)


@functools.lru_cache(maxsize=4096)
def bytes_of(shape: AnyShape) -> int:
    """The bytes that an array takes on the device; 0 for tokens and for arrays in host memory."""
    return stored_bytes(shape) if isinstance(shape, Shape) and not is_on_host(shape) else 0


def is_on_host(shape: AnyShape) -> bool:
    """Whether a layout puts an array into host memory."""
    return isinstance(shape, Shape) and shape.layout is not None and HOST in shape.layout.suffix


def has_equal_memory(a: AnyShape, b: AnyShape) -> bool:
    """Whether an array can take over the memory of another: the same extents, bytes and order."""
    return isinstance(a, Shape) and isinstance(b, Shape) and a.dims == b.dims and memory_key(a) == memory_key(b)


@functools.lru_cache(maxsize=4096)
def memory_key(shape: AnyShape) -> Hashable:
    """A key that arrays share if one can take over the memory of the other; a token shares it with none."""
    return (shape.dims, bytes_of(shape), order_of(shape)) if isinstance(shape, Shape) else id(shape)


def order_of(shape: Shape) -> Dims:
    """The dimensions from minor to major."""
    return shape.layout.minor_to_major if shape.layout is not None else tuple(range(shape.rank - 1, -1, -1))


# ----------------------------------------------------------------------------
# Operands of a fusion that its results may overwrite

ELEMENTWISE = opcodes(lambda op: op.elements == "same_place" and op.calls in ("nothing", "elements"))
"""Ops that may write each element of the result over the element of an operand that they have read."""

_IN_PLACE = frozenset({"bitcast", "reshape", "copy", "convert"})
_UPDATES = frozenset({"dynamic_update_slice", "scatter"})
_Masks: TypeAlias = dict[Instruction, tuple[int, int]]


@remembered
def overwritable(body: Computation) -> tuple[tuple[int, ...], ...]:
    """For each result of a fusion's computation the numbers of the parameters whose memory it may overwrite.

    Such a parameter is read element by element on every path to the results, or is the array that a slice or scatter
    at the root updates.
    """
    roots = body.root.operands if body.root.opcode == "tuple" else (body.root,)
    masks = _masks(body)
    moved = 0
    for root in roots:
        moved |= masks[root][1]
    users = users_of(body)
    return tuple(
        (*_updated_parameter(root, users), *_elementwise_parameters(root, masks[root][0] & ~moved, body))
        for root in roots
    )


def _elementwise_parameters(root: Instruction, mask: int, body: Computation) -> list[int]:
    return [n for n, each in enumerate(body.parameters) if mask >> n & 1 and has_equal_memory(each.shape, root.shape)]


def _masks(body: Computation) -> _Masks:
    """For each instruction the parameters that it reads at the same place, and those that it reads elsewhere."""
    found: _Masks = {}
    for instruction in ordered(body):
        if instruction.opcode == "parameter":
            found[instruction] = (1 << instruction.attributes.number, 0)
            continue
        same = moved = 0
        is_elementwise = instruction.opcode in ELEMENTWISE or instruction.opcode == "tuple"
        for operand in instruction.operands:
            s, m = found[operand]
            is_same = is_elementwise and (instruction.opcode == "tuple" or _at_same_place(operand, instruction))
            same, moved = (same | s, moved | m) if is_same else (same, moved | m | s)
        found[instruction] = (same, moved)
    return found


def _at_same_place(operand: Instruction, user: Instruction) -> bool:
    return getattr(operand.shape, "dims", None) == getattr(user.shape, "dims", ())


def _updated_parameter(root: Instruction, users: Mapping[Instruction, Sequence[Instruction]]) -> list[int]:
    """The parameter that a slice or scatter at the root updates, if nothing else is read of it but slices as large as
    the update, which XLA fuses if they are at the same place."""
    update = _skip_in_place(root)
    if update.opcode not in _UPDATES:
        return []
    array = _skip_in_place(update.operands[0])
    if array.opcode != "parameter" or not has_equal_memory(array.shape, root.shape):
        return []
    others = (user for user in users[array] if user.opcode not in _IN_PLACE and user is not update)
    return [array.attributes.number] if all(_is_slice_like(user, update.operands[1]) for user in others) else []


def _is_slice_like(user: Instruction, update: Instruction) -> bool:
    return user.opcode in ("dynamic_slice", "slice") and _at_same_place(user, update)


def _skip_in_place(instruction: Instruction) -> Instruction:
    while instruction.opcode in _IN_PLACE:
        (instruction,) = instruction.operands
    return instruction


# ----------------------------------------------------------------------------
# Origins: where the parts of a result are, in memory of operands, in memory to take over, or in new memory

Origin: TypeAlias = int | tuple[int, ...]
"""The value that a part of a result is; else the values that it may overwrite, the best first."""

Operands: TypeAlias = Sequence[tuple[int, ...]]
"""The values of the parts of each operand."""

NEW: Origin = ()

origin_rules = RuleTable("origins of parts")
"""opcode -> rule(instruction, operands): an Origin for each part of the result."""


def origins(instruction: Instruction, operands: Operands) -> Sequence[Origin]:
    """An Origin for each part of the result of an instruction that only calls functions of elements."""
    opcode = instruction.opcode
    if opcode in origin_rules:
        return origin_rules[opcode](instruction, operands)  # type: ignore[no-any-return]
    if opcode in ELEMENTWISE:
        return (_equal_operands(instruction, operands),)
    return (NEW,) * len(parts_of(instruction.shape))


def _equal_operands(instruction: Instruction, operands: Operands) -> Origin:
    pairs = zip(instruction.operands, operands, strict=True)
    return tuple(values[0] for each, values in pairs if has_equal_memory(each.shape, instruction.shape))


def _first_operand(instruction: Instruction, operands: Operands) -> Sequence[Origin]:
    return operands[0]


def _operand_by_operand(instruction: Instruction, operands: Operands) -> Sequence[Origin]:
    """Each part of the result may overwrite the operand of the same number."""
    return tuple((operands[n][0],) for n in range(len(parts_of(instruction.shape))))


origin_rules.enter("get_tuple_element", lambda each, operands: operands[0][slice(*_element_range(each))])
origin_rules.enter("tuple", lambda each, operands: tuple(chain.from_iterable(operands)))
for _opcode in ("bitcast", "opt_barrier", "domain", "add_dependency", "all_reduce_done", "async_update"):
    origin_rules.enter(_opcode, _first_operand)
for _opcode in ("dynamic_update_slice", "scatter", "sort", "all_reduce_start"):
    origin_rules.enter(_opcode, _operand_by_operand)


def _element_range(instruction: Instruction) -> tuple[int, int]:
    index = instruction.attributes.index
    ends = part_ends(instruction.operands[0].shape)
    return ends[index], ends[index + 1]


@origin_rules
def reshape(instruction: Instruction, operands: Operands) -> Sequence[Origin]:
    """The operand, if both are in their default order; a compiler makes it a bitcast."""
    (operand,) = instruction.operands
    shapes = [each for each in (operand.shape, instruction.shape) if isinstance(each, Shape)]
    return operands[0] if all(order_of(shape) == order_of(shape.plain()) for shape in shapes) else (NEW,)


@origin_rules
def bitcast_convert(instruction: Instruction, operands: Operands) -> Sequence[Origin]:
    return (_equal_operands(instruction, operands),)


@origin_rules
def triangular_solve(instruction: Instruction, operands: Operands) -> Sequence[Origin]:
    return (operands[1],)


@origin_rules
def fusion(instruction: Instruction, operands: Operands) -> Sequence[Origin]:
    """The origins that the computation allows, and those that a compiler has noted."""
    found: list[Origin] = [NEW] * len(parts_of(instruction.shape))
    numbers = overwritable(instruction.attributes.calls)
    if len(numbers) == len(found):
        found = [tuple(operands[n][0] for n in each) for each in numbers]
    return _with_stated_aliases(instruction, operands, found)


@origin_rules
def custom_call(instruction: Instruction, operands: Operands) -> Sequence[Origin]:
    """The operand of a sharding annotation; else the origins that a compiler has noted."""
    if is_annotation(instruction):
        return operands[0]
    return _with_stated_aliases(instruction, operands, [NEW] * len(parts_of(instruction.shape)))


def _with_stated_aliases(instruction: Instruction, operands: Operands, found: list[Origin]) -> Sequence[Origin]:
    """With the aliases that `output_to_operand_aliasing` states."""
    for output, number, index in instruction.attributes.output_to_operand_aliasing:
        place = place_of(instruction.shape, output)
        other = place_of(instruction.operands[number].shape, index) if number < len(operands) else None
        if place is not None and other is not None:
            found[place] = (operands[number][other],)
    return found


def _start_rule(first: int) -> Callable[[Instruction, Operands], Sequence[Origin]]:
    """The rule of a start whose result holds its operands beside new memory, from part `first` on."""

    def rule(instruction: Instruction, operands: Operands) -> Sequence[Origin]:
        found: list[Origin] = [NEW] * len(parts_of(instruction.shape))
        given = tuple(chain.from_iterable(operands))[: len(found) - first]
        found[first : first + len(given)] = given
        return found

    return rule


for _opcode in ("all_gather_start", "collective_permute_start", "async_start", "send"):
    origin_rules.enter(_opcode, _start_rule(0))
origin_rules.enter("copy_start", _start_rule(1))


def _done_rule(number: int) -> Callable[[Instruction, Operands], Sequence[Origin]]:
    """The rule of a done, whose result is an element of its start's; new memory for anything more (a token)."""

    def rule(instruction: Instruction, operands: Operands) -> Sequence[Origin]:
        ends = part_ends(instruction.operands[0].shape)
        count = len(parts_of(instruction.shape))
        found = operands[0][ends[number] : ends[number + 1]][:count]
        return (*found, *(NEW,) * (count - len(found)))

    return rule


for _opcode, _number in {
    "all_gather_done": 1, "collective_permute_done": 1, "async_done": 1, "copy_done": 0, "recv_done": 0,
}.items():  # fmt: skip
    origin_rules.enter(_opcode, _done_rule(_number))


# ----------------------------------------------------------------------------
# Values of a computation: where each is made and last read, and what it may overwrite

Role: TypeAlias = Literal["entry", "once", "loop"]
"""How a computation runs: as the entry, as a callee whose result its caller holds, or as the body of a while."""

_NAMING = opcodes(lambda op: op.is_identity) - {"copy"} | {"get_tuple_element", "tuple", "bitcast", "parameter"}
"""Ops that rename values and read none."""


@frozen
class Callee:
    """The summary of a computation for callers: the bytes at its peak beyond those that the caller holds, and for each
    part of its result the part of its parameters that it is (`is_same`) or may overwrite."""

    peak: int
    origins: tuple[tuple[int, bool] | None, ...]


Callees: TypeAlias = Mapping[tuple[Computation, Role], Callee]

NO_CALLEE = Callee(0, ())


def calls_of(instruction: Instruction) -> list[tuple[Computation, Role]]:
    """The computations whose values take memory while an instruction runs, each with its role."""
    if instruction.opcode == "while":
        attributes = instruction.attributes
        return [(attributes.condition, "once"), (attributes.body, "loop")]
    calling = OPS[instruction.opcode].properties.calls
    if calling in ("once", "branch", "loop", "wrapped") and instruction.opcode != "fusion":
        return [(called, "once") for called in instruction.called]
    return []


@define
class Values:
    """The arrays that the instructions of a computation make, each under a number, in the order of the instructions.

    `born` and `last` are positions in `order`; `of` lists the numbers of an instruction's parts, `arguments` those of
    the parameters' parts.
    """

    order: tuple[Instruction, ...]
    result: tuple[int, ...] = ()
    makers: list[Instruction] = field(factory=list)
    paths: list[Dims] = field(factory=list)
    shapes: list[AnyShape] = field(factory=list)
    sizes: list[int] = field(factory=list)
    born: list[int] = field(factory=list)
    last: list[int] = field(factory=list)
    sharing: list[tuple[int, ...]] = field(factory=list)
    of: dict[Instruction, tuple[int, ...]] = field(factory=dict)
    arguments: list[int] = field(factory=list)

    def enter(self, instruction: Instruction, position: int, found: Sequence[Origin]) -> None:
        """Enter the parts of an instruction: existing values, and new ones."""
        parts = parts_of(instruction.shape)
        self.of[instruction] = tuple(
            origin if isinstance(origin, int) else self._new(instruction, path, shape, position, origin)
            for (path, shape), origin in zip(parts, found, strict=True)
        )

    def _new(self, maker: Instruction, path: Dims, shape: AnyShape, position: int, sharing: tuple[int, ...]) -> int:
        self.makers.append(maker)
        self.paths.append(path)
        self.shapes.append(shape)
        self.sizes.append(0 if _takes_no_memory(maker) else bytes_of(shape))
        self.born.append(position)
        self.last.append(position)
        self.sharing.append(sharing)
        return len(self.born) - 1

    def read(self, instruction: Instruction, position: int) -> None:
        """Enter that an instruction reads its operands, unless it only renames them."""
        if instruction.opcode not in _NAMING and not is_annotation(instruction):
            for operand in instruction.operands:
                for value in self.of[operand]:
                    self.last[value] = position


def _takes_no_memory(maker: Instruction) -> bool:
    """Whether a value takes no memory on the device during the run: it is a literal, or is moved to the host."""
    return maker.opcode == "constant" or is_move_to_host(maker)


def values_of(computation: Computation, callees: Callees) -> Values:
    """The values of a computation whose callees are known."""
    values = Values(ordered(computation))
    _refuse_foreign_operands(values.order)
    for position, instruction in enumerate(over(values.order, "laying out memory", "instructions")):
        values.read(instruction, position)
        operands = [values.of[operand] for operand in instruction.operands]
        called = [callees[each] for each in calls_of(instruction)]
        found = _through_callees(instruction, operands, called) if called else None
        values.enter(instruction, position, origins(instruction, operands) if found is None else found)
    for value in values.of[computation.root]:
        values.last[value] = len(values.order) - 1
    values.result = values.of[computation.root]
    for parameter in computation.parameters:
        values.arguments.extend(values.of[parameter])
    return values


def _refuse_foreign_operands(order: tuple[Instruction, ...]) -> None:
    known = set(order)
    for instruction in order:
        for operand in instruction.operands:
            if operand not in known:
                refuse(
                    "foreign_value",
                    f"memory: operand %{operand.name} of %{instruction.name} is not an instruction of its computation",
                    "xb.check(program) lists all errors of this kind",
                )


def _through_callees(instruction: Instruction, operands: Operands, called: Sequence[Callee]) -> Sequence[Origin] | None:
    """The origins of the result of a caller, from those of its callees; None if the op itself determines them."""
    if instruction.opcode == "while":
        return _loop_origins(operands[0], called[1])
    if instruction.opcode == "call":
        return _call_origins(tuple(chain.from_iterable(operands)), called[0])
    if instruction.opcode == "conditional":
        return _branch_origins(operands[1:], called)
    return None


def _loop_origins(state: tuple[int, ...], body: Callee) -> list[Origin]:
    """The state, in the memory of the initial state if nothing else reads that; elements that no trip changes stay."""
    return [
        value if origin is not None and origin == (place, True) else (value,)
        for place, (value, origin) in enumerate(zip(state, body.origins, strict=True))
    ]


def _call_origins(given: tuple[int, ...], callee: Callee) -> list[Origin]:
    found: list[Origin] = []
    for origin in callee.origins:
        if origin is None:
            found.append(NEW)
        else:
            place, is_same = origin
            found.append(given[place] if is_same else (given[place],))
    return found


def _branch_origins(operands: Operands, branches: Sequence[Callee]) -> list[Origin]:
    """New memory for each part, or that of an operand that every branch may overwrite or returns."""
    found: list[Origin] = []
    for origins_of_part in zip(*(branch.origins for branch in branches), strict=True):
        given = {operands[n][origin[0]] if origin is not None else None for n, origin in enumerate(origins_of_part)}
        value = given.pop()
        found.append(NEW if given or value is None else (value,))
    return found
