"""The flow of a program: its arrays as tensors, and the nodes along which shardings propagate between them.

Sections:

    FlowNode: a rule along which shardings propagate
    copy_callees: a module in which each callee has one call
    FlowValue: which instructions share one array, and how often it is used
    Flow: the arrays of a program as tensors, and the nodes between them
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, TypeAlias

from attrs import define, evolve, field

from shape_inference import Shape, TupleShape, leaves, refuse

from ...core.graph import Computation, Instruction, Module
from ...core.op import OPS
from ...properties.placement import CONSTRAINT, MEMORIES
from ...properties.rewriting import rewired
from ..manual_regions import INTO, target_of
from ..rules import Factor, ShardingRule, rule_of
from ..stated_shardings import SHARDING
from .tensors import Tensor

# ----------------------------------------------------------------------------
# FlowNode: a rule along which shardings propagate
#
# It belongs to an instruction, or to an edge of the data flow.

Direction: TypeAlias = Literal["none", "forward", "backward", "both"]

NodeKind: TypeAlias = Literal["alike", "slice", "broadcast", "other"]
"""Decides when a node propagates: `alike` nodes (elementwise ops, reshapes, transposes, edges) first."""


@define(eq=False)
class FlowNode:
    """A rule with the arrays that it relates, operands first, and what decides when it propagates.

    `what` is the opcode of an instruction, or the kind of an edge.
    """

    rule: ShardingRule
    tensors: tuple[Tensor, ...]
    num_operands: int
    kind: NodeKind
    instruction: Instruction
    what: str
    is_elementwise: bool = False
    is_single_use: bool = True
    number: int = 0
    seen: tuple[object, ...] = ()

    @property
    def maps(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        return self.rule.operands + self.rule.results

    def directions(self, level: int) -> tuple[Direction, ...]:
        """The direction in which each factor's axes may go at a level of op priorities.

        0: elementwise ops, reshapes, transposes and edges, for values with one use; dynamic slices and updates of these
        forward, from operands to all arrays; 1: the same with any number of uses; 2: pass-through factors of all ops,
        but broadcasts only backward; 3: all factors, but broadcasts only backward; 4: everything.

        Source: Shardy, op priority propagation.
        """
        early: Direction = "none"
        if self.kind in ("alike", "slice") and (level >= 1 or self.is_single_use):
            early = "both" if self.kind == "alike" else "forward"
        late: Direction = "backward" if self.kind == "broadcast" and level < 4 else "both"
        return tuple(
            "none" if factor.is_blocked else
            late if level >= 3 or (level == 2 and factor.kind == "pass_through") else early
            for factor in self.rule.factors
        )  # fmt: skip


# ----------------------------------------------------------------------------
# copy_callees: a module in which each callee has one call

MOST_INSTRUCTIONS = 1_000_000
"""The largest program that copies of callees may make."""

_RUN = ("once", "loop", "branch")


def flows_into(instruction: Instruction) -> tuple[Computation, ...]:
    """The computations that an instruction runs on arrays, not on elements: those of calls, loops and branches."""
    return instruction.called if OPS[instruction.opcode].properties.calls in _RUN else ()


def running_in(entry: Computation) -> set[Computation]:
    """The computations that run on arrays, with the entry; reducers and comparators run on elements."""
    running, waiting = {entry}, [entry]
    while waiting:
        for instruction in waiting.pop().instructions:
            waiting += (new := [each for each in flows_into(instruction) if each not in running])
            running.update(new)
    return running


def copy_callees(module: Module) -> Module:
    """The module with a copy of a callee for each further call of it; the module itself if there are none.

    Raises overflow if this makes more than MOST_INSTRUCTIONS instructions.
    """
    calls: Counter[Computation] = Counter()
    for computation in module.entry.reachable():
        for instruction in computation.instructions:
            calls.update(flows_into(instruction))
    if all(count == 1 for count in calls.values()):
        return module
    _check_size(module)
    copier = _Copier()
    entry = copier.copy(module.entry)
    return evolve(module, entry=entry, computations=())


def _check_size(module: Module) -> None:
    """Refuse a program that copies of callees would make too large, before they are made."""
    sizes: dict[Computation, int] = {}
    for computation in module.entry.reachable():
        inner = (sizes[each] for i in computation.instructions for each in flows_into(i))
        sizes[computation] = len(computation.instructions) + sum(inner)
    if sizes[module.entry] > MOST_INSTRUCTIONS:
        refuse(
            "overflow",
            f"module {module.name} has {sizes[module.entry]} instructions when each call gets its own copy of the "
            f"callee; at most {MOST_INSTRUCTIONS} are allowed",
        )


class _Copier:
    """Copies computations; the first keeps its name, others are numbered."""

    def __init__(self) -> None:
        self._names: Counter[str] = Counter()

    def copy(self, computation: Computation) -> Computation:
        number = self._names[computation.name]
        self._names[computation.name] += 1
        made: dict[Instruction, Instruction] = {}
        for each in computation.instructions:
            made[each] = self._copy_instruction(each, made, is_new=number > 0)
        if not number and all(one is other for one, other in made.items()):
            return computation
        name = f"{computation.name}.call_{number}" if number else computation.name
        return Computation(name, tuple(made.values()), made[computation.root])

    def _copy_instruction(
        self, instruction: Instruction, made: dict[Instruction, Instruction], *, is_new: bool
    ) -> Instruction:
        copies = map(self.copy, instruction.called) if flows_into(instruction) else None
        copied = rewired(instruction, made, copies)
        return evolve(instruction) if is_new and copied is instruction else copied


# ----------------------------------------------------------------------------
# FlowValue: which instructions share one array, and how often it is used


@define(eq=False)
class FlowValue:
    """A leaf of an instruction's value, and its number of uses; `same` is the value it was identified with."""

    tensor: Tensor
    uses: int = 0
    same: FlowValue | None = None

    def resolve(self) -> FlowValue:
        """The value that represents all that were identified with this one."""
        value = self
        while value.same is not None:
            value = value.same
        return value


def make_values(instruction: Instruction) -> tuple[FlowValue, ...]:
    """A value with a tensor of its own for each leaf."""
    made = []
    for number, leaf in enumerate(leaves(instruction.shape)):
        made.append(FlowValue(Tensor(leaf.dims if isinstance(leaf, Shape) else (), names=[(instruction, number)])))
    return tuple(made)


def copy_values(values: Sequence[FlowValue]) -> tuple[FlowValue, ...]:
    """Values with tensors of their own, which have the extents and names of others."""
    return tuple(FlowValue(Tensor(value.tensor.dims, names=list(value.tensor.names[:1]))) for value in values)


def leaf_range(shape: TupleShape, index: int) -> slice:
    """The range of an element's leaves among those of a tuple."""
    counts = [sum(1 for _ in leaves(each)) for each in shape.elements[: index + 1]]
    return slice(sum(counts[:-1]), sum(counts))


def identify(one: Sequence[FlowValue], other: Sequence[FlowValue]) -> None:
    """Identify the values of two lists, pair by pair; their uses are added."""
    for left, right in zip(one, other, strict=True):
        kept, gone = left.resolve(), right.resolve()
        if kept is not gone:
            kept.uses += gone.uses
            merge(of_one(kept.tensor), of_one(gone.tensor))
            gone.same = kept


def merge(kept: Tensor, gone: Tensor) -> None:
    """Merge two tensors into `kept`; if both have a stated sharding, that of `kept` counts."""
    if kept is gone:
        return
    kept.names += gone.names
    kept.stated = kept.stated if kept.stated is not None else gone.stated
    kept.is_fixed |= gone.is_fixed
    gone.merged_into = kept


def of_one(tensor: Tensor) -> Tensor:
    """The tensor into which a tensor was merged."""
    while tensor.merged_into is not None:
        tensor = tensor.merged_into
    return tensor


def count_use(values: Iterable[FlowValue]) -> None:
    """Count one more use of each value."""
    for value in values:
        value.resolve().uses += 1


# ----------------------------------------------------------------------------
# Flow: the arrays of a program as tensors, and the nodes between them

_KINDS: dict[str, NodeKind] = {
    "reshape": "alike", "transpose": "alike", "dynamic_slice": "slice", "dynamic_update_slice": "slice",
    "broadcast": "broadcast",
}  # fmt: skip
"""The kinds of ops that are not elementwise; all others are `other`."""


@define(eq=False)
class Flow:
    """The arrays and nodes of a program in the order in which they run, and the leaves of each instruction.

    `results` are separate tensors for the leaves of the entry's root if the program states their shardings; `copies`
    are tensors of constants for each use; `entrances` are the operands of manual regions in the shardings they state.
    """

    module: Module
    leaves: dict[Instruction, tuple[FlowValue, ...]] = field(factory=dict)
    nodes: list[FlowNode] = field(factory=list)
    results: list[Tensor] = field(factory=list)
    copies: dict[Instruction, list[Tensor]] = field(factory=dict)
    entrances: dict[Instruction, tuple[Tensor, ...]] = field(factory=dict)

    def tensors_of(self, instruction: Instruction) -> tuple[Tensor, ...]:
        """The tensors of an instruction's leaves."""
        return tuple(of_one(value.resolve().tensor) for value in self.leaves[instruction])

    def tensors(self) -> dict[Tensor, None]:
        """Every tensor once."""
        found = {tensor: None for each in self.leaves for tensor in self.tensors_of(each)}
        return found | dict.fromkeys(of_one(t) for node in self.nodes for t in node.tensors)


def flow_of(module: Module) -> Flow:
    """The flow of a module in which each computation is called once."""
    flow = Flow(module)
    inner: dict[Computation, list[FlowNode]] = {}
    running = running_in(module.entry)
    for computation in module.entry.reachable():
        if computation not in running:
            continue
        inner[computation] = _Reader(flow, inner).read(computation)
    flow.nodes = inner[module.entry]
    for value in flow.leaves[module.entry.root]:
        value.resolve().uses += 1
    return flow


def number_nodes(flow: Flow) -> None:
    """Number the nodes, and resolve their merged tensors; names of the entry come first."""
    entry = frozenset(flow.module.entry.instructions)
    for tensor in flow.tensors():
        tensor.names.sort(key=lambda name: name[0] not in entry)
    for number, node in enumerate(flow.nodes):
        node.number, node.tensors = number, tuple(map(of_one, node.tensors))


def identity_rule(dims: Sequence[int], count: int) -> ShardingRule:
    """The rule by which `count` operands and one result have the same sharding."""
    own = tuple((dim,) for dim in range(len(dims)))
    return ShardingRule(tuple(map(Factor, dims)), (own,) * count, (own,))


class _Reader:
    """Reads one computation after those that it calls."""

    def __init__(self, flow: Flow, inner: dict[Computation, list[FlowNode]]) -> None:
        self._flow, self._inner = flow, inner
        self._leaves = flow.leaves
        self._constants: set[Instruction] = set()
        self._nodes: list[FlowNode] = []
        self._waiting: list[tuple[FlowNode, list[FlowValue]]] = []
        self._uses: dict[Instruction, int] = {}

    def read(self, computation: Computation) -> list[FlowNode]:
        for instruction in computation.instructions:
            for operand in instruction.operands:
                self._uses[operand] = self._uses.get(operand, 0) + 1
        for instruction in computation.instructions:
            self._read(instruction)
        for node, values in self._waiting:
            node.is_single_use = all(value.resolve().uses <= 1 for value in values)
        return self._nodes

    def _read(self, instruction: Instruction) -> None:
        opcode = instruction.opcode
        if opcode == "tuple":
            self._leaves[instruction] = self._operands(instruction)
        elif opcode == "get_tuple_element":
            (operand,) = instruction.operands
            assert isinstance(operand.shape, TupleShape)
            self._leaves[instruction] = self._leaves[operand][leaf_range(operand.shape, instruction.attributes.index)]
        elif opcode in _EDGES:
            _EDGES[opcode](self, instruction)
        else:
            self._read_by_rule(instruction)
        if "shard_" in str(instruction.annotations.get(SHARDING, "")):
            count_use(self._leaves[instruction])  # its group is a use, as Shardy counts
        for number, value in enumerate(self._leaves[instruction]):
            name = (instruction, number)
            if name not in value.resolve().tensor.names[:1]:
                value.resolve().tensor.names.append(name)

    def _operands(self, instruction: Instruction) -> tuple[FlowValue, ...]:
        return tuple(value for operand in instruction.operands for value in self._leaves[operand])

    def _read_by_rule(self, instruction: Instruction) -> None:
        """Add the node of an instruction that has a rule; constants get a copy for each use."""
        made = self._leaves[instruction] = make_values(instruction)
        is_constant = self._is_constant(instruction)
        if is_constant:
            self._constants.add(instruction)
        for called in flows_into(instruction):
            self._nodes += self._inner[called]
        operands = self._operands(instruction) if is_constant else self._copy_constants(instruction)
        count_use(operands)
        if is_entrance(instruction):
            entering = copy_values(operands)
            self._flow.entrances[instruction] = tuple(value.tensor for value in entering)
            for source, value in zip(operands, entering, strict=True):
                self.add_edge(instruction, "manual region", [[source]], value)
        rule = rule_of(instruction)
        if rule is None or not any(rule.operands):
            return
        properties = OPS[instruction.opcode].properties
        is_elementwise = properties.elements == "same_place" or _is_constraint(instruction)
        kind: NodeKind = "alike" if is_elementwise else _KINDS.get(instruction.opcode, "other")
        tensors = tuple(value.tensor for value in (*operands, *made))
        node = FlowNode(rule, tensors, len(operands), kind, instruction, instruction.opcode, is_elementwise)
        self._nodes.append(node)
        self._waiting.append((node, [value for value in operands if value.tensor.dims]))

    def _copy_constants(self, instruction: Instruction) -> tuple[FlowValue, ...]:
        """The operands, with a copy of each constant that also has other uses."""
        values: list[FlowValue] = []
        for operand in instruction.operands:
            if operand in self._constants and self._uses[operand] > 1 and "sharding" not in operand.annotations:
                copies = make_values(operand)
                self._flow.copies.setdefault(operand, []).extend(copy.tensor for copy in copies)
                values += copies
            else:
                values += self._leaves[operand]
        return tuple(values)

    def _is_constant(self, instruction: Instruction) -> bool:
        """Whether a value is computed from constants only, or is a broadcast scalar."""
        properties = OPS[instruction.opcode].properties
        if properties.elements == "made" and properties.depends_on == "operands":
            return not instruction.operands
        if instruction.opcode == "broadcast" and instruction.operands[0].shape.rank == 0:  # type: ignore[union-attr]
            return True
        is_plain = properties.elements in ("same_place", "moved") and properties.needs == "nobody"
        return is_plain and bool(instruction.operands) and all(each in self._constants for each in instruction.operands)

    def add_edge(
        self, instruction: Instruction, what: str, sources: Sequence[Sequence[FlowValue]], target: FlowValue
    ) -> None:
        """Add an edge from the leaves of several values to one with the same sharding."""
        tensors = tuple(value.tensor for source in sources for value in source)
        rule = identity_rule(target.tensor.dims, len(tensors))
        self._nodes.append(FlowNode(rule, (*tensors, target.tensor), len(tensors), "alike", instruction, what))

    def _add_nodes_of(self, called: Iterable[Computation]) -> None:
        for each in called:
            self._nodes += self._inner[each]

    def read_call(self, instruction: Instruction) -> None:
        """Identify the parameters of the callee with the operands, and its root with the result."""
        (called,) = flows_into(instruction)
        for operand, parameter in zip(instruction.operands, called.parameters, strict=True):
            identify(self._leaves[operand], self._leaves[parameter])
        self._add_nodes_of((called,))
        self._leaves[instruction] = self._leaves[called.root]

    def read_loop(self, instruction: Instruction) -> None:
        """Connect the initial state and the next one to the result, which is one array with the parameters."""
        body, condition = instruction.attributes.body, instruction.attributes.condition
        made = self._leaves[instruction] = make_values(instruction)
        (init,) = instruction.operands
        for called in (condition, body):
            for value, parameter in zip(made, self._leaves[called.parameters[0]], strict=True):
                merge(value.tensor, of_one(parameter.resolve().tensor))
        self._add_nodes_of((condition, body))
        count_use(self._leaves[init])
        count_use(self._leaves[body.root])
        for number, value in enumerate(made):
            self.add_edge(instruction, "loop", [[self._leaves[init][number]], [self._leaves[body.root][number]]], value)

    def read_conditional(self, instruction: Instruction) -> None:
        """Connect the roots of the branches to the result; identify their parameters with the operands."""
        made = self._leaves[instruction] = make_values(instruction)
        branches = flows_into(instruction)
        for operand, branch in zip(instruction.operands[1:], branches, strict=True):
            identify(self._leaves[operand], self._leaves[branch.parameters[0]])
        self._add_nodes_of(branches)
        for branch in branches:
            count_use(self._leaves[branch.root])
        for number, value in enumerate(made):
            self.add_edge(instruction, "branch", [[self._leaves[each.root][number]] for each in branches], value)

    def read_barrier(self, instruction: Instruction) -> None:
        made = self._leaves[instruction] = make_values(instruction)
        given = self._operands(instruction)
        count_use(given)
        for source, value in zip(given, made, strict=True):
            self.add_edge(instruction, "barrier", [[source]], value)

    def read_first(self, instruction: Instruction) -> None:
        """The value of the first operand."""
        self._leaves[instruction] = self._leaves[instruction.operands[0]]

    def read_scan(self, instruction: Instruction) -> None:
        """Connect carries as in a loop, and inputs and outputs with their slices, which lack the scanned dimension."""
        attributes, (body,) = instruction.attributes, flows_into(instruction)
        made = self._leaves[instruction] = make_values(instruction)
        given, parameters = self._operands(instruction), [v for p in body.parameters for v in self._leaves[p]]
        root = self._leaves[body.root]
        inputs, outputs = len(given) - attributes.num_carries, len(made) - attributes.num_carries
        count_use((*given, *root))
        for carry, parameter in zip(made[outputs:], parameters[inputs:], strict=True):
            merge(carry.tensor, of_one(parameter.resolve().tensor))
        self._add_nodes_of((body,))
        for array, part in zip(given[:inputs], parameters[:inputs], strict=True):
            self._connect_slice(instruction, array, part, is_input=True)
        for array, part in zip(made[:outputs], root[:outputs], strict=True):
            self._connect_slice(instruction, array, part, is_input=False)
        for number, carry in enumerate(made[outputs:]):
            self.add_edge(instruction, "loop", [[given[inputs + number]], [root[outputs + number]]], carry)

    def _connect_slice(self, instruction: Instruction, array: FlowValue, part: FlowValue, *, is_input: bool) -> None:
        dims, scanned = array.tensor.dims, instruction.attributes.dimension
        kept = [dim for dim in range(len(dims)) if dim != scanned]
        factors = tuple(Factor(size, is_blocked=dim == scanned) for dim, size in enumerate(dims))
        outer, inner = tuple((dim,) for dim in range(len(dims))), tuple((dim,) for dim in kept)
        rule = ShardingRule(factors, (outer if is_input else inner,), (inner if is_input else outer,))
        tensors = (array.tensor, part.tensor) if is_input else (part.tensor, array.tensor)
        self._nodes.append(FlowNode(rule, tensors, 1, "alike", instruction, "slice"))


_EDGES: dict[str, Callable[[_Reader, Instruction], None]] = {
    "call": _Reader.read_call,
    "fusion": _Reader.read_call,
    "while": _Reader.read_loop,
    "conditional": _Reader.read_conditional,
    "scan": _Reader.read_scan,
    "opt_barrier": _Reader.read_barrier,
    "add_dependency": _Reader.read_first,
    "domain": _Reader.read_first,
}
"""How ops without a rule pass shardings on; tuples and their elements are read with them."""


def is_entrance(instruction: Instruction) -> bool:
    """Whether an instruction takes global arrays into a manual region."""
    return target_of(instruction) == INTO


def _is_constraint(instruction: Instruction) -> bool:
    """Whether an instruction returns its operand, with a stated sharding or in another memory."""
    target = target_of(instruction)
    return target == CONSTRAINT or target in MEMORIES
