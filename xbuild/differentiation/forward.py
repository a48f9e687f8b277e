"""Forward mode: each instruction is copied, and its tangent is recorded by transposing its rule for cotangents.

Sections:

    Collectives and casts on a mesh
    The tangent of the result of an op
    The walk
    Ops that call computations
    Transfers
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import define, evolve, field

from shape_inference import TupleShape
from shape_inference.rules import RuleTable

from .. import ops
from ..core.builder import Value
from ..core.graph import Computation, Instruction
from ..properties.effects import origin
from ..properties.order import ordered
from ..properties.rewriting import rewired
from ..variance.types import cast_of, mark_of
from . import trees
from .branches import SidesOfZero, find_sides_of_zero
from .loops import tuple_elements
from .recorder import Copies, DerivativeRecorder, pack
from .rules import FACTORS, SIDES, ZERO, activities, full
from .walk import CotangentWalk, apply_rule

# ----------------------------------------------------------------------------
# Collectives and casts on a mesh
#
# All but maximum and minimum are linear, so they apply to tangents unchanged.

_NOT_LINEAR = ("pmax", "pmin", "axis_index")


def is_linear(context: Any, instruction: Instruction) -> bool:
    """Whether an instruction is a collective or a cast on the mesh that is linear in its operand."""
    mark = (mark_of(instruction) or cast_of(instruction)) if context.region is not None else None
    return mark is not None and mark.op not in _NOT_LINEAR


def record_on_tangents(
    context: Any, recorder: DerivativeRecorder, instruction: Instruction, tangents: Sequence[Any]
) -> Any:
    """The tangents of the results of a linear instruction: the same instruction on the tangents of its operands."""
    arrays = len(instruction.shape.elements) if isinstance(instruction.shape, TupleShape) else 1
    arrays_of_tangents = [
        tangent if tangent is not None else full(recorder, 0, operand.shape.plain())
        for operand, tangent in zip(instruction.operands[:arrays], tangents[:arrays], strict=True)
    ]
    result = recorder.append(_with_operands(context, recorder, instruction, arrays_of_tangents))
    if not isinstance(instruction.shape, TupleShape):
        return result
    return tuple([ops.get_tuple_element(result, index=n) for n in range(arrays)])


def _with_operands(
    context: Any, recorder: DerivativeRecorder, instruction: Instruction, arrays: Sequence[Value]
) -> Instruction:
    """The instruction on different arrays, on a channel of its own if it has a channel."""
    operands = (*(value.instruction for value in arrays), *instruction.operands[len(arrays) :])
    attributes = instruction.attributes
    if getattr(attributes, "channel_id", None):
        attributes = evolve(attributes, channel_id=context.collective_channel(attributes.channel_id))
    name = recorder.unique(f"{instruction.name}.{recorder.mode}")
    return evolve(instruction, name=name, operands=operands, attributes=attributes, control=())


# ----------------------------------------------------------------------------
# The tangent of the result of an op
#
# The rule is linear in the cotangent; transposing it gives the tangent.


def transpose_rule(
    context: Any,
    recorder: DerivativeRecorder,
    instruction: Instruction,
    tangents: Sequence[Any],
    memory: dict[Any, Any],
) -> Any:
    """The tree of tangents of an instruction's result, from the tangents of its operands (None if there is none)."""
    stand_ins = trees.map_leaves(lambda leaf: _stand_in(recorder, leaf), instruction.shape)
    varies = [_varies(operand, tangent) for operand, tangent in zip(instruction.operands, tangents, strict=True)]
    with recorder.recording_aside() as first, recorder.deriving(instruction):
        parts = apply_rule(context, recorder, instruction, stand_ins, varies, memory)
    leaves = [leaf.instruction for leaf in trees.flatten(stand_ins) if leaf is not None]
    seeds = [pair for part, tangent in zip(parts, tangents, strict=True) for pair in _pairs(part, tangent)]
    active = context.activity.varying_leaves_among(first, dict.fromkeys(leaves, True))
    with recorder.recording_aside() as second:
        cotangents = CotangentWalk(context, recorder, active, instruction).walk(first, seeds)
    tangent_leaves = trees.map_leaves(in_leaf_order(leaves, cotangents), instruction.shape)
    return _record_needed(recorder, [*first, *second], tangent_leaves)


def in_leaf_order(leaves: Sequence[Instruction], cotangents: dict[Instruction, Any]) -> Any:
    """A function from the leaves of a shape, in order, to the cotangents of their stand-ins."""
    in_order = iter(leaves)
    return lambda leaf: cotangents.get(next(in_order)) if trees.is_differentiable(leaf) else None


def _stand_in(recorder: DerivativeRecorder, shape: Any) -> Value | None:
    """A placeholder for a cotangent, which disappears when the rule is transposed."""
    if not trees.is_differentiable(shape):
        return None
    return recorder.value(Instruction("parameter", "cotangent", shape.plain()))


def _varies(operand: Instruction, tangent: Any) -> Any:
    return trees.map_paths(lambda path, _: trees.at(tangent, path) is not None, operand.shape)


def _pairs(part: Any, tangent: Any) -> list[tuple[Instruction, Any]]:
    """The leaves of a cotangent, each paired with the tangent that becomes its cotangent."""
    if part is None or tangent is None:
        return []
    if isinstance(part, Value):
        return [(part.instruction, tangent)]
    return [pair for inner, below in zip(part, tangent, strict=True) for pair in _pairs(inner, below)]


def _record_needed(recorder: DerivativeRecorder, instructions: Sequence[Instruction], tree: Any) -> Any:
    """Record the set-aside instructions that the values of a tree need; returns the tree of the recorded values."""
    needed = _find_needed({*instructions}, tree)
    now: dict[Instruction, Instruction] = {}
    for instruction in instructions:
        if instruction in needed:
            now[instruction] = recorder.append(rewired(instruction, now)).instruction

    def current(leaf: Value | None) -> Value | None:
        return recorder.value(now.get(leaf.instruction, leaf.instruction)) if leaf is not None else None

    return trees.map_leaves(current, tree)


def _find_needed(known: set[Instruction], tree: Any) -> set[Instruction]:
    stack = [leaf.instruction for leaf in trees.flatten(tree) if leaf is not None]
    needed: set[Instruction] = set()
    while stack:
        instruction = stack.pop()
        assert instruction.name != "cotangent", "a rule for cotangents is not linear in them"
        if instruction in known and instruction not in needed:
            needed.add(instruction)
            stack += instruction.operands
    return needed


# ----------------------------------------------------------------------------
# The walk
#
# Each instruction is copied, then the tangent of its result is recorded.

jvp_rules = RuleTable("jvp")
"""opcode -> rule(walk, instruction, tangents): value and tangents, for ops that are not transposed."""


@define(eq=False)
class TangentWalk:
    """A walk that copies the instructions of a computation and records the tangents of their results."""

    context: Any
    recorder: DerivativeRecorder
    values: dict[Instruction, Any] = field(factory=dict, init=False)
    tangents: dict[Instruction, Any] = field(factory=dict, init=False)
    of_odd: dict[Instruction, Any] = field(factory=dict, init=False)  # of even values, in odd products
    beside: dict[Instruction, Value] = field(factory=dict, init=False)
    memory: dict[Any, Any] = field(factory=dict, init=False)
    sides: SidesOfZero = field(factory=lambda: SidesOfZero({}), init=False)

    def walk(self, computation: Computation, parameters: Sequence[Any], tangents: Sequence[Any]) -> tuple[Value, Any]:
        """The result and its tangents, for parameters (values or trees of values) and their tangents."""
        self.sides = find_sides_of_zero(computation)
        for parameter, value, tangent in zip(computation.parameters, parameters, tangents, strict=True):
            self.values[parameter], self.tangents[parameter] = value, tangent
        for instruction in ordered(computation):
            if instruction.opcode != "parameter":
                self._step(instruction)
        return self.value(computation.root), self.tangents[computation.root]

    def value(self, instruction: Instruction) -> Value:
        value = self.values[instruction]
        if isinstance(value, tuple):
            value = self.values[instruction] = pack(self.recorder, value)
        return value  # type: ignore[no-any-return]

    def operands(self, instruction: Instruction) -> list[Value]:
        """The copies of the operands."""
        return [self.value(operand) for operand in instruction.operands]

    def copied(self, instruction: Instruction) -> Value:
        """Copy the instruction itself."""
        operands = tuple([value.instruction for value in self.operands(instruction)])
        control = tuple([self.value(before).instruction for before in instruction.control])
        if operands != instruction.operands or control != instruction.control:
            instruction = evolve(instruction, operands=operands, control=control)
        return self.recorder.append(instruction)

    def _step(self, instruction: Instruction) -> None:
        tangents = self._tangents(instruction, instruction in self.sides.odd)
        if instruction.opcode == "get_tuple_element":
            self._element(instruction, tangents[0])
        elif instruction.opcode in jvp_rules and (any(map(trees.has_any, tangents)) or instruction.opcode in ALWAYS):
            with self.recorder.deriving(instruction):
                self.values[instruction], self.tangents[instruction] = jvp_rules[instruction.opcode](
                    self, instruction, tangents
                )
        else:
            value = self.values[instruction] = self.copied(instruction)
            self.tangents[instruction] = None
            if instruction.opcode in ZERO or not (any(map(trees.has_any, tangents)) or instruction in self.sides.even):
                return
            if is_linear(self.context, instruction):
                self.tangents[instruction] = record_on_tangents(
                    self.context, self.recorder, value.instruction, tangents
                )
                return
            if instruction in self.sides.even:
                self.of_odd[instruction] = self._transposed(
                    instruction, self._tangents(instruction, True), self.sides.of_odd
                )
            if instruction not in self.sides.even or instruction in self.sides.shared:
                sides = self.sides.of_odd if instruction in self.sides.odd else self.sides.of
                self.tangents[instruction] = self._transposed(instruction, tangents, sides)

    def _tangents(self, instruction: Instruction, is_in_odd: bool) -> list[Any]:
        """The tangents of the operands, in an odd product or elsewhere."""
        known = self.of_odd if is_in_odd else {}
        return [known[operand] if operand in known else self.tangents[operand] for operand in instruction.operands]

    def _transposed(self, instruction: Instruction, tangents: Sequence[Any], sides: Mapping[Instruction, int]) -> Any:
        """The tangent of the result from those of the operands."""
        made = self.value(instruction).instruction
        with self.recorder.deriving(instruction):
            factors = self.sides.factors_beside_zero(instruction, self.value, self.beside)
        pairs = [*zip(instruction.operands, made.operands, strict=True)]
        memory = {
            SIDES: {now: sides[o] for o, now in pairs if o in sides},
            FACTORS: {now: factors[o] for o, now in [*pairs, (instruction, made)] if o in factors},
        }
        return transpose_rule(self.context, self.recorder, made, tangents, memory)

    def _element(self, instruction: Instruction, tangent: Any) -> None:
        whole, index = self.values[instruction.operands[0]], instruction.attributes.index
        self.values[instruction] = whole[index] if isinstance(whole, tuple) else self.copied(instruction)
        self.tangents[instruction] = tangent[index] if tangent is not None else None


ALWAYS = frozenset({"recv", "recv_done", "send", "send_done"})
"""Opcodes whose rule runs although no operand has a tangent."""


def push_forward(
    context: Any, recorder: DerivativeRecorder, region: Computation, parameters: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Value, Any]:
    """Record the result of a computation and its tangents."""
    return TangentWalk(context, recorder).walk(region, parameters, tangents)


def varying_leaves(varies: Any, tangent: Any) -> list[Any]:
    """The tangents at the varying leaves, None for missing ones."""
    return [trees.at(tangent, path) for path, leaf in trees.paths(varies) if leaf]


def varying_shapes(varies: Any, shape: Any) -> list[Any]:
    """The shapes of the varying leaves."""
    return [trees.at(shape, path).plain() for path, leaf in trees.paths(varies) if leaf]


def dense_tangents(recorder: DerivativeRecorder, varies: Any, tangent: Any, shape: Any) -> list[Value]:
    """The tangents at the varying leaves, zeros for missing ones."""
    pairs = zip(varying_leaves(varies, tangent), varying_shapes(varies, shape), strict=True)
    return [value if value is not None else full(recorder, 0, instruction) for value, instruction in pairs]


def tangent_tree(varies: Any, leaves: Sequence[Any]) -> Any:
    """The tree of tangents from those of the varying leaves."""
    in_order = iter(leaves)
    return trees.map_leaves(lambda leaf: next(in_order) if leaf else None, varies)


# ----------------------------------------------------------------------------
# Ops that call computations
#
# The called computation takes and returns tangents besides its values.


def _region_varies(instruction: Instruction, tangents: Sequence[Any]) -> tuple[Any, ...]:
    """Which leaves of the operands have a tangent."""
    shapes = [operand.shape for operand in instruction.operands]
    return trees.map_shapes(shapes, lambda n, path: trees.at(tangents[n], path) is not None)


def _joint_region(
    walk: TangentWalk, instruction: Instruction, region: Computation, varies: Sequence[Any], result: Any
) -> Computation:
    """A region that takes tangents after its parameters and returns its result and the result's tangents."""
    body = walk.context.inline(region)
    inner = walk.recorder.inner(f"{region.name}.jvp", instruction)
    values = [ops.parameter(inner, number=n, shape=p.shape.plain()) for n, p in enumerate(body.parameters)]
    shapes = [s for v, p in zip(varies, body.parameters, strict=True) for s in varying_shapes(v, p.shape)]
    in_order = iter([ops.parameter(inner, number=len(values) + n, shape=shape) for n, shape in enumerate(shapes)])
    tangents = [trees.map_leaves(lambda leaf: next(in_order) if leaf else None, v) for v in varies]
    root, tangent = push_forward(walk.context, inner, body, values, tangents)
    return inner.build_computation(ops.tuple_((root, *dense_tangents(inner, result, tangent, body.root.shape))))


def _push_call(walk: TangentWalk, instruction: Instruction, tangents: Sequence[Any]) -> tuple[Any, Any]:
    """A call or fusion of the region that takes and returns tangents."""
    (region,) = instruction.called
    varies = _region_varies(instruction, tangents)
    result = walk.context.activity.root_leaves(walk.context.inline(region), varies)
    key = "jvp", region, varies
    known = walk.context.known
    if key not in known:
        known[key] = _joint_region(walk, instruction, region, varies, result)
    more = [leaf for seen, tree in zip(varies, tangents, strict=True) for leaf in varying_leaves(seen, tree)]
    operands = [*walk.operands(instruction), *more]
    if instruction.opcode == "fusion":
        value = ops.fusion(tuple(operands), kind=instruction.attributes.kind, calls=known[key], builder=walk.recorder)
    else:
        value = ops.call(tuple(operands), to_apply=known[key], builder=walk.recorder)
    root, *leaves = tuple_elements(value)
    return root, tangent_tree(result, leaves)


jvp_rules.enter("call", _push_call)
jvp_rules.enter("fusion", _push_call)


@jvp_rules
def map_(walk: TangentWalk, instruction: Instruction, tangents: Sequence[Any]) -> tuple[Any, Any]:
    """The map itself, and a second map that computes only the tangent."""
    value, varies = walk.copied(instruction), _region_varies(instruction, tangents)
    region = walk.context.inline(instruction.attributes.to_apply)
    inner = walk.recorder.inner(f"{region.name}.jvp", instruction)
    count = len(region.parameters)
    parameters = [ops.parameter(inner, number=n, shape=p.shape.plain()) for n, p in enumerate(region.parameters)]
    chosen = [n for n in range(count) if varies[n]]
    shapes = [p.shape.plain() for p in region.parameters]
    tangent_parameters = {n: ops.parameter(inner, number=count + k, shape=shapes[n]) for k, n in enumerate(chosen)}
    tangent = push_forward(walk.context, inner, region, parameters, [tangent_parameters.get(n) for n in range(count)])[
        1
    ]
    if tangent is None:
        return value, None
    operands = (*walk.operands(instruction), *(tangents[n] for n in chosen))
    dimensions = instruction.attributes.dimensions
    return value, ops.map(operands, to_apply=inner.build_computation(tangent), dimensions=dimensions)


@jvp_rules
def conditional(walk: TangentWalk, instruction: Instruction, tangents: Sequence[Any]) -> tuple[Any, Any]:
    _, *varies = _region_varies(instruction, tangents)
    result = activities["conditional"](walk.context.activity, instruction, False, *varies)
    index, *values = walk.operands(instruction)
    operands, branches = [], []
    rows = zip(instruction.attributes.branch_computations, values, varies, tangents[1:], strict=True)
    for region, value, seen, tangent in rows:
        operand = ops.tuple_((value, *varying_leaves(seen, tangent)), builder=walk.recorder)
        operands.append(operand)
        branches.append(_branch(walk, instruction, region, seen, operand.shape, result))
    value = ops.conditional(index, tuple(operands), branch_computations=tuple(branches))
    root, *leaves = tuple_elements(value)
    return root, tangent_tree(result, leaves)


def _branch(
    walk: TangentWalk, instruction: Instruction, region: Computation, seen: Any, shape: Any, result: Any
) -> Computation:
    inner = walk.recorder.inner(f"{region.name}.jvp", instruction)
    value, *leaves = tuple_elements(ops.parameter(inner, number=0, shape=shape))
    root, tangent = push_forward(
        walk.context, inner, walk.context.inline(region), [value], [tangent_tree(seen, leaves)]
    )
    return inner.build_computation(ops.tuple_((root, *dense_tangents(inner, result, tangent, region.root.shape))))


@jvp_rules
def while_(walk: TangentWalk, instruction: Instruction, tangents: Sequence[Any]) -> tuple[Any, Any]:
    """The state gains a tangent for each varying leaf; this works for any loop."""
    varies = activities["while"](walk.context.activity, instruction, _region_varies(instruction, tangents)[0])
    recorder, (init,) = walk.recorder, walk.operands(instruction)
    is_tuple = isinstance(instruction.shape, TupleShape)
    own = tuple_elements(init) if is_tuple else (init,)
    state = ops.tuple_((*own, *dense_tangents(recorder, varies, tangents[0], instruction.shape)), builder=recorder)
    count = len(own)
    body = recorder.inner(f"{instruction.attributes.body.name}.jvp", instruction)
    values = tuple_elements(ops.parameter(body, number=0, shape=state.shape))
    before = values[:count] if is_tuple else values[0]
    tangent = tangent_tree(varies, values[count:])
    root, after = push_forward(
        walk.context, body, walk.context.inline(instruction.attributes.body), [before], [tangent]
    )
    results = tuple_elements(root) if is_tuple else (root,)
    made = body.build_computation(
        ops.tuple_((*results, *dense_tangents(body, varies, after, instruction.shape)), builder=body)
    )
    test = _condition(recorder, instruction, state.shape, count, is_tuple)
    value = tuple_elements(ops.while_(state, condition=test, body=made))
    state_values = value[:count] if is_tuple else value[0]
    return state_values, tangent_tree(varies, value[count:])


def _condition(
    recorder: DerivativeRecorder, instruction: Instruction, shape: Any, count: int, is_tuple: bool
) -> Computation:
    """The loop condition on a state with tangents."""
    test = instruction.attributes.condition
    inner = recorder.inner(f"{test.name}.jvp", instruction)
    values = tuple_elements(ops.parameter(inner, number=0, shape=shape))
    copies = Copies(inner, {test.parameters[0]: values[:count] if is_tuple else values[0]})
    copies.copy_all(test.instructions)
    return inner.build_computation(copies.value(test.root))


@jvp_rules
def scan(walk: TangentWalk, instruction: Instruction, tangents: Sequence[Any]) -> tuple[Any, Any]:
    attributes, seen = instruction.attributes, _region_varies(instruction, tangents)
    leaves = activities["scan"](walk.context.activity, instruction, *seen)
    is_tuple = isinstance(instruction.shape, TupleShape)
    results = list(leaves) if is_tuple else [leaves]
    carries = attributes.num_carries
    inputs, outputs = len(instruction.operands) - carries, len(results) - carries
    carried = results[outputs:]
    values = walk.operands(instruction)
    slices = [tangents[n] for n in range(inputs) if seen[n]]
    firsts = [
        value
        for n, varies in enumerate(carried)
        for value in dense_tangents(walk.recorder, varies, tangents[inputs + n], instruction.operands[inputs + n].shape)
    ]
    operands = (*values[:inputs], *slices, *values[inputs:], *firsts)
    region = _scan_step(walk, instruction, (*seen[:inputs], *carried), results, inputs)
    value: Value = ops.scan(
        operands,
        dimension=attributes.dimension,
        num_carries=carries + len(firsts),
        is_reverse=attributes.is_reverse,
        to_apply=region,
        length=attributes.length,
        builder=walk.recorder,
    )
    parts = tuple_elements(value) if isinstance(value.shape, TupleShape) else (value,)
    more = sum(map(bool, results[:outputs]))
    whole = (*parts[:outputs], *parts[outputs + more : outputs + more + carries])
    in_order = iter((*parts[outputs : outputs + more], *parts[outputs + more + carries :]))
    tree = tuple([next(in_order) if varies else None for varies in results])
    return (whole, tree) if is_tuple else (whole[0], tree[0])


def _scan_step(
    walk: TangentWalk, instruction: Instruction, varies: Sequence[Any], results: Sequence[Any], inputs: int
) -> Computation:
    """The region of a scan with tangents: slices and their tangents, then carries and their tangents."""
    body = walk.context.inline(instruction.attributes.to_apply)
    inner = walk.recorder.inner(f"{body.name}.jvp", instruction)
    count, carries = len(body.parameters), instruction.attributes.num_carries
    order = [*range(inputs), *(count + n for n in range(inputs) if varies[n])]
    order += [*range(inputs, count), *(count + n for n in range(inputs, count) if varies[n])]
    shapes = [p.shape.plain() for p in body.parameters]
    by_place = {place: ops.parameter(inner, number=n, shape=shapes[place % count]) for n, place in enumerate(order)}
    tangents = [by_place.get(count + n) for n in range(count)]
    root, tangent = push_forward(walk.context, inner, body, [by_place[n] for n in range(count)], tangents)
    is_tuple = isinstance(body.root.shape, TupleShape)
    parts = tuple_elements(root) if is_tuple else (root,)
    outputs = len(parts) - carries
    tangents_of_parts = [
        dense_tangents(inner, seen, tree, part.shape)
        for seen, tree, part in zip(results, _parts(tangent, len(parts), is_tuple), parts, strict=True)
    ]
    first = [value for part_tangents in tangents_of_parts[:outputs] for value in part_tangents]
    last = [value for part_tangents in tangents_of_parts[outputs:] for value in part_tangents]
    return inner.build_computation(ops.tuple_((*parts[:outputs], *first, *parts[outputs:], *last), builder=inner))


def _parts(tangent: Any, count: int, is_tuple: bool) -> Sequence[Any]:
    if not is_tuple:
        return [tangent]
    return tangent if tangent is not None else [None] * count


@jvp_rules
def async_start(walk: TangentWalk, instruction: Instruction, tangents: Sequence[Any]) -> tuple[Any, Any]:
    """The start itself; the tangents of the asynchronous computation are recorded synchronously."""
    value = walk.copied(instruction)
    region = walk.context.inline(instruction.attributes.calls)
    tangent = push_forward(walk.context, walk.recorder, region, walk.operands(instruction), tangents)[1]
    rest = [None] * (len(instruction.shape) - 2)  # type: ignore[arg-type]
    return value, (None, tangent, *rest)


# ----------------------------------------------------------------------------
# Transfers
#
# Each is accompanied by a transfer of the tangent on a channel of its own.


def _payload(start: Instruction) -> Any:
    return start.shape.elements[0]  # type: ignore[union-attr]


def _tangent_channel(walk: TangentWalk, start: Instruction) -> int | None:
    """The channel of the tangents; None if the transfer carries none."""
    attributes = start.attributes
    is_carried = not attributes.is_host_transfer and walk.context.activity.carries(attributes.channel_id)
    if not is_carried or not trees.has_any(trees.differentiable_leaves(_payload(start))):
        return None
    return walk.context.transfer_channel(attributes.channel_id)  # type: ignore[no-any-return]


def _transfer_start(half: Instruction) -> Instruction:
    start = origin(half)
    assert start is not None
    return start


@jvp_rules
def send(walk: TangentWalk, instruction: Instruction, tangents: Sequence[Any]) -> tuple[Any, Any]:
    value, channel = walk.copied(instruction), _tangent_channel(walk, instruction)
    if channel is not None:
        shape = _payload(instruction)
        leaves = dense_tangents(walk.recorder, trees.differentiable_leaves(shape), tangents[0], shape)
        payload = leaves[0] if len(leaves) == 1 else ops.tuple_(tuple(leaves))
        token = ops.after_all((), builder=walk.recorder)
        pairs = instruction.attributes.source_target_pairs
        walk.memory[instruction] = ops.send(payload, token, channel_id=channel, source_target_pairs=pairs)
    return value, None


@jvp_rules
def recv(walk: TangentWalk, instruction: Instruction, tangents: Sequence[Any]) -> tuple[Any, Any]:
    value, channel = walk.copied(instruction), _tangent_channel(walk, instruction)
    if channel is not None:
        whole = _payload(instruction)
        shapes = [shape.plain() for _, shape in trees.paths(whole) if trees.is_differentiable(shape)]
        shape = shapes[0] if len(shapes) == 1 else TupleShape(shapes)
        token = ops.after_all((), builder=walk.recorder)
        pairs = instruction.attributes.source_target_pairs
        walk.memory[instruction] = ops.recv(token, shape=shape, channel_id=channel, source_target_pairs=pairs)
    return value, None


@jvp_rules
def send_done(walk: TangentWalk, instruction: Instruction, tangents: Sequence[Any]) -> tuple[Any, Any]:
    value, start = walk.copied(instruction), _transfer_start(instruction)
    if start in walk.memory:
        ops.send_done(walk.memory[start], channel_id=_tangent_channel(walk, start))  # type: ignore[arg-type]
    return value, None


@jvp_rules
def recv_done(walk: TangentWalk, instruction: Instruction, tangents: Sequence[Any]) -> tuple[Any, Any]:
    value, start = walk.copied(instruction), _transfer_start(instruction)
    if start not in walk.memory:
        return value, None
    done = ops.recv_done(walk.memory[start], channel_id=_tangent_channel(walk, start))  # type: ignore[arg-type]
    received = ops.get_tuple_element(done, index=0)
    leaves: list[Value] = [received]
    if isinstance(received.shape, TupleShape):
        leaves = [ops.get_tuple_element(received, index=n) for n in range(len(received.shape))]
    return value, (tangent_tree(trees.differentiable_leaves(_payload(start)), leaves), None)
