"""The flow of a program: its arrays as tensors, and the nodes along which shardings propagate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from attrs import define, field

from shape_inference import TupleShape

from ...core.graph import Computation, Instruction, Module
from ...core.op import OPS
from ..factors import Factor, ShardingRule
from ..regions import INTO, target_of
from ..rules import rule_of
from ..stored import SHARDING
from .flattening import flows_into, running_in
from .nodes import Node, NodeKind
from .tensors import Tensor
from .values import Value, fresh, fresh_of, identify, leaf_range, merge, of_one, used

_KINDS: dict[str, NodeKind] = {
    "reshape": "alike", "transpose": "alike", "dynamic_slice": "slice", "dynamic_update_slice": "slice",
    "broadcast": "broadcast",
}  # fmt: skip
"""The turn of ops that are not elementwise; all others come with those that have any rule."""


@define(eq=False)
class Flow:
    """The arrays and nodes of a program in the order in which they run, and the leaves of each instruction.

    `results` are tensors of their own for the leaves of the entry's root, where the program states their shardings;
    `copies` those of constants for each use; `entrances` the operands of manual regions as these want them.
    """

    module: Module
    leaves: dict[Instruction, tuple[Value, ...]] = field(factory=dict)
    nodes: list[Node] = field(factory=list)
    results: list[Tensor] = field(factory=list)
    copies: dict[Instruction, list[Tensor]] = field(factory=dict)
    entrances: dict[Instruction, tuple[Tensor, ...]] = field(factory=dict)

    def tensors_of(self, instruction: Instruction) -> tuple[Tensor, ...]:
        """The tensors of an instruction's leaves."""
        return tuple(of_one(value.found().tensor) for value in self.leaves[instruction])

    def tensors(self) -> dict[Tensor, None]:
        """Every tensor once."""
        found = {tensor: None for each in self.leaves for tensor in self.tensors_of(each)}
        return found | dict.fromkeys(of_one(t) for node in self.nodes for t in node.tensors)


def flow_of(module: Module) -> Flow:
    """The flow of a module in which each computation is called once."""
    flow = Flow(module)
    inner: dict[Computation, list[Node]] = {}
    running = running_in(module.entry)
    for computation in module.entry.reachable():
        if computation not in running:
            continue
        inner[computation] = _Reader(flow, inner).read(computation)
    flow.nodes = inner[module.entry]
    for value in flow.leaves[module.entry.root]:
        value.found().uses += 1
    return flow


def settle(flow: Flow) -> None:
    """Number the nodes, and give them the tensors that theirs were made one with; names of the entry come first."""
    entry = frozenset(flow.module.entry.instructions)
    for tensor in flow.tensors():
        tensor.names.sort(key=lambda name: name[0] not in entry)
    for number, node in enumerate(flow.nodes):
        node.number, node.tensors = number, tuple(map(of_one, node.tensors))


def identity(dims: Sequence[int], count: int) -> ShardingRule:
    """The rule of `count` arrays that are the same as one more."""
    own = tuple((dim,) for dim in range(len(dims)))
    return ShardingRule(tuple(map(Factor, dims)), (own,) * count, (own,))


class _Reader:
    """Reads one computation after those that it calls."""

    def __init__(self, flow: Flow, inner: dict[Computation, list[Node]]) -> None:
        self._flow, self._inner = flow, inner
        self._leaves = flow.leaves
        self._constants: set[Instruction] = set()
        self._nodes: list[Node] = []
        self._waiting: list[tuple[Node, list[Value]]] = []
        self._uses: dict[Instruction, int] = {}

    def read(self, computation: Computation) -> list[Node]:
        for instruction in computation.instructions:
            for operand in instruction.operands:
                self._uses[operand] = self._uses.get(operand, 0) + 1
        for instruction in computation.instructions:
            self._read(instruction)
        for node, values in self._waiting:
            node.is_single_use = all(value.found().uses <= 1 for value in values)
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
            self._by_rule(instruction)
        if "shard_" in str(instruction.annotations.get(SHARDING, "")):
            used(self._leaves[instruction])  # its group takes it, as Shardy counts uses
        for number, value in enumerate(self._leaves[instruction]):
            name = (instruction, number)
            if name not in value.found().tensor.names[:1]:
                value.found().tensor.names.append(name)

    def _operands(self, instruction: Instruction) -> tuple[Value, ...]:
        return tuple(value for operand in instruction.operands for value in self._leaves[operand])

    def _by_rule(self, instruction: Instruction) -> None:
        """A node by the rule of an instruction, if it has one; constants have copies for each use."""
        made = self._leaves[instruction] = fresh(instruction)
        is_constant = self._is_constant(instruction)
        if is_constant:
            self._constants.add(instruction)
        for called in flows_into(instruction):
            self._nodes += self._inner[called]
        given = self._operands(instruction) if is_constant else self._own(instruction)
        used(given)
        if is_entrance(instruction):
            wanted = fresh_of(given)
            self._flow.entrances[instruction] = tuple(value.tensor for value in wanted)
            for source, value in zip(given, wanted, strict=True):
                self.edge(instruction, "manual region", [[source]], value)
        rule = rule_of(instruction)
        if rule is None or not any(rule.operands):
            return
        properties = OPS[instruction.opcode].properties
        is_elementwise = properties.elements == "same_place" or _is_constraint(instruction)
        kind: NodeKind = "alike" if is_elementwise else _KINDS.get(instruction.opcode, "other")
        node = Node(rule, tuple(v.tensor for v in (*given, *made)), len(given), kind, instruction, instruction.opcode,
                    is_elementwise)  # fmt: skip
        self._nodes.append(node)
        self._waiting.append((node, [value for value in given if value.tensor.dims]))

    def _own(self, instruction: Instruction) -> tuple[Value, ...]:
        """The operands, with a copy of each constant that has other uses, too."""
        found: list[Value] = []
        for operand in instruction.operands:
            if operand in self._constants and self._uses[operand] > 1 and "sharding" not in operand.annotations:
                copies = fresh(operand)
                self._flow.copies.setdefault(operand, []).extend(copy.tensor for copy in copies)
                found += copies
            else:
                found += self._leaves[operand]
        return tuple(found)

    def _is_constant(self, instruction: Instruction) -> bool:
        """Whether a value is made of constants alone, or is a scalar that is broadcast."""
        properties = OPS[instruction.opcode].properties
        if properties.elements == "made" and properties.depends_on == "operands":
            return not instruction.operands
        if instruction.opcode == "broadcast" and instruction.operands[0].shape.rank == 0:  # type: ignore[union-attr]
            return True
        is_plain = properties.elements in ("same_place", "moved") and properties.needs == "nobody"
        return is_plain and bool(instruction.operands) and all(each in self._constants for each in instruction.operands)

    def edge(self, instruction: Instruction, what: str, sources: Sequence[Sequence[Value]], target: Value) -> None:
        """An edge from the leaves of several values to one that all of them are."""
        tensors = tuple(value.tensor for source in sources for value in source)
        rule = identity(target.tensor.dims, len(tensors))
        self._nodes.append(Node(rule, (*tensors, target.tensor), len(tensors), "alike", instruction, what))

    def _inside(self, called: Iterable[Computation]) -> None:
        for each in called:
            self._nodes += self._inner[each]

    def call(self, instruction: Instruction) -> None:
        """A call is what it calls: parameters are operands, and the result is the root."""
        (called,) = flows_into(instruction)
        for operand, parameter in zip(instruction.operands, called.parameters, strict=True):
            identify(self._leaves[operand], self._leaves[parameter])
        self._inside((called,))
        self._leaves[instruction] = self._leaves[called.root]

    def loop(self, instruction: Instruction) -> None:
        """What enters a loop and what a trip hands on meet; the result and the parameters are one array."""
        body, condition = instruction.attributes.body, instruction.attributes.condition
        made = self._leaves[instruction] = fresh(instruction)
        (init,) = instruction.operands
        for called in (condition, body):
            for value, parameter in zip(made, self._leaves[called.parameters[0]], strict=True):
                merge(value.tensor, of_one(parameter.found().tensor))
        self._inside((condition, body))
        used(self._leaves[init])
        used(self._leaves[body.root])
        for number, value in enumerate(made):
            self.edge(instruction, "loop", [[self._leaves[init][number]], [self._leaves[body.root][number]]], value)

    def conditional(self, instruction: Instruction) -> None:
        """The roots of the branches meet in the result; parameters of the branches are operands."""
        made = self._leaves[instruction] = fresh(instruction)
        branches = flows_into(instruction)
        for operand, branch in zip(instruction.operands[1:], branches, strict=True):
            identify(self._leaves[operand], self._leaves[branch.parameters[0]])
        self._inside(branches)
        for branch in branches:
            used(self._leaves[branch.root])
        for number, value in enumerate(made):
            self.edge(instruction, "branch", [[self._leaves[each.root][number]] for each in branches], value)

    def barrier(self, instruction: Instruction) -> None:
        made = self._leaves[instruction] = fresh(instruction)
        given = self._operands(instruction)
        used(given)
        for source, value in zip(given, made, strict=True):
            self.edge(instruction, "barrier", [[source]], value)

    def first(self, instruction: Instruction) -> None:
        """The value is that of the first operand."""
        self._leaves[instruction] = self._leaves[instruction.operands[0]]

    def scan(self, instruction: Instruction) -> None:
        """Carries as in a loop; slices are inputs and outputs without the dimension that is scanned."""
        attributes, (body,) = instruction.attributes, flows_into(instruction)
        made = self._leaves[instruction] = fresh(instruction)
        given, parameters = self._operands(instruction), [v for p in body.parameters for v in self._leaves[p]]
        root = self._leaves[body.root]
        inputs, outputs = len(given) - attributes.num_carries, len(made) - attributes.num_carries
        used((*given, *root))
        for carry, parameter in zip(made[outputs:], parameters[inputs:], strict=True):
            merge(carry.tensor, of_one(parameter.found().tensor))
        self._inside((body,))
        for whole, part in zip(given[:inputs], parameters[:inputs], strict=True):
            self._sliced(instruction, whole, part, is_input=True)
        for whole, part in zip(made[:outputs], root[:outputs], strict=True):
            self._sliced(instruction, whole, part, is_input=False)
        for number, carry in enumerate(made[outputs:]):
            self.edge(instruction, "loop", [[given[inputs + number]], [root[outputs + number]]], carry)

    def _sliced(self, instruction: Instruction, whole: Value, part: Value, *, is_input: bool) -> None:
        dims, scanned = whole.tensor.dims, instruction.attributes.dimension
        kept = [dim for dim in range(len(dims)) if dim != scanned]
        factors = tuple(Factor(size, is_blocked=dim == scanned) for dim, size in enumerate(dims))
        outer, inner = tuple((dim,) for dim in range(len(dims))), tuple((dim,) for dim in kept)
        rule = ShardingRule(factors, (outer if is_input else inner,), (inner if is_input else outer,))
        tensors = (whole.tensor, part.tensor) if is_input else (part.tensor, whole.tensor)
        self._nodes.append(Node(rule, tensors, 1, "alike", instruction, "slice"))


_EDGES: dict[str, Callable[[_Reader, Instruction], None]] = {
    "call": _Reader.call,
    "fusion": _Reader.call,
    "while": _Reader.loop,
    "conditional": _Reader.conditional,
    "scan": _Reader.scan,
    "opt_barrier": _Reader.barrier,
    "add_dependency": _Reader.first,
    "domain": _Reader.first,
}
"""How ops without a rule hand shardings on; tuples and their elements are read with them."""


def is_entrance(instruction: Instruction) -> bool:
    """Whether an instruction cuts global arrays for a manual region."""
    return target_of(instruction) == INTO


def _is_constraint(instruction: Instruction) -> bool:
    """Whether an instruction gives its operand, with the sharding that it states or on another memory."""
    is_call = instruction.opcode == "custom_call"
    return is_call and instruction.attributes.custom_call_target in ("Sharding", "MoveToDevice", "MoveToHost")
