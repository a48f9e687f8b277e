"""The writer of a deadlock case: records its items, calls, loops and branches with a builder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import define, field

import xbuild as xb
from shape_inference import TokenShape, TupleShape, XbuildError, parse_shape
from tests.conformance.deadlock_cases.data import HOST, Case, Item
from tests.conformance.deadlock_cases.order import come_after, in_dependency_order
from tests.support.host_callbacks import host_callback
from xbuild.core.op import OPS

SHAPE = "f32[4]"


@define(eq=False)
class Writer:
    """Records the list of one computation; helpers (constants, tokens) stand before what they are for."""

    case: Case
    device: str
    number: int
    builder: xb.Builder
    slots: Mapping[int, int]
    data: xb.Value | None = None
    values: dict[str, xb.Value] = field(factory=dict)
    items: dict[str, Item] = field(factory=dict)
    groups: dict[str, list[xb.Instruction]] = field(factory=dict)
    current: str = ""

    def record(self, function: Any, *arguments: Any, **keywords: Any) -> xb.Value:
        """Call an op and keep what it records with the item at hand."""
        value: xb.Value = function(*arguments, **keywords)
        self.groups.setdefault(self.current, []).append(value.instruction)
        return value

    def computation(self, items: Sequence[Item], data: xb.Value, root: xb.Value | None = None) -> xb.Computation:
        """The items in their order, though they are recorded after what they need; the root last."""
        self.data = data
        late: list[tuple[str, str]] = []
        for item in in_dependency_order(items, late):
            self.current = item["name"]
            self.values[self.current] = _KINDS.get(item["op"], Writer._collective)(self, item)
            self.items[self.current] = item
        self.current = ""
        for name, needed in late:
            come_after(self.values[name].instruction, self.values[needed].instruction)
        last = self.number_constant(0) if root is None else root
        names = ["", *(item["name"] for item in items)]
        recorded = [
            instruction
            for name in names
            for instruction in self.groups.get(name, ())
            if instruction is not last.instruction
        ]
        return xb.Computation(self.builder.name, [*recorded, last.instruction], last.instruction)

    def inner(self, name: str) -> Writer:
        """The writer of a computation that this one calls."""
        return Writer(self.case, self.device, self.number, self.builder.sub_builder(name), self.slots)

    def number_constant(self, number: int) -> xb.Value:
        return self.record(xb.ops.constant, self.builder, literal=np.int32(number))

    def payload(self, item: Item) -> xb.Value:
        shape = parse_shape(item.get("shape", SHAPE))
        return self.record(xb.ops.constant, self.builder, literal=np.zeros(shape.dims, shape.dtype.dtype))  # type: ignore[union-attr]

    def token(self) -> xb.Value:
        return self.record(xb.ops.after_all, (), builder=self.builder)

    def slot(self, item: Item) -> xb.Value:
        """The number that decides in this item: of the data, or of what the case says that it comes from."""
        assert self.data is not None
        sources = {value.instruction.opcode: value for value in self._sources(item)}
        if "infeed" in sources:
            return self.record(xb.ops.get_tuple_element, sources["infeed"], index=0)
        if "replica_id" in sources:
            return self._by_replica(item, sources["replica_id"])
        place = self.slots[id(item)]
        vector = self.record(xb.ops.slice, self.data, start_indices=(place,), limit_indices=(place + 1,), strides=(1,))
        number = self.record(xb.ops.reshape, vector, new_sizes=())
        same = len({*item.get("trips", item.get("taken", {})).values()}) == 1
        if same and {"all_reduce", "all_gather"} & set(sources):
            return self.record(xb.ops.all_reduce, number, to_apply=xb.maximum)
        return number

    def _sources(self, item: Item) -> Iterator[xb.Value]:
        """What an item comes after, and by way of computations what these come after."""
        for dep in item["deps"]:
            if dep in self.values:
                yield self.values[dep]
                if self.items[dep]["op"] == "compute":
                    yield from self._sources(self.items[dep])

    def _by_replica(self, item: Item, replica: xb.Value) -> xb.Value:
        """The decisions of all replicas in a table of constants, looked up by replica-id."""
        chosen = self.number_constant(0)
        for device, number in item.get("trips", item.get("taken", {})).items():
            this = self.record(xb.ops.constant, self.builder, literal=np.uint32(device))
            here = self.record(xb.ops.compare, replica, this, direction="EQ")
            chosen = self.record(xb.ops.select, here, self.number_constant(number), chosen)
        return chosen

    def named(self, item: Item, function: Any, *arguments: Any, **keywords: Any) -> xb.Value:
        """The op under the item's name, after what the case says; by hand where the builder refuses it."""
        try:
            with xb.control(after=[self.values[dep] for dep in item["deps"] if dep in self.values]):
                return self.record(function, *arguments, name=item["name"], **keywords)
        except XbuildError:
            return self.by_hand(item, function.__name__.strip("_"), arguments, keywords)

    def by_hand(self, item: Item, opcode: str, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> xb.Value:
        schema = OPS[opcode]
        operands, segments = schema.flatten(tuple(arguments))
        attributes = schema.attributes(**keywords) if schema.attributes else None
        shape = operands[0].shape if operands else TupleShape((parse_shape(item.get("shape", SHAPE)), TokenShape()))
        after = tuple(self.values[dep].instruction for dep in item["deps"] if dep in self.values)
        instruction = xb.Instruction(
            opcode, item["name"], shape, tuple(o.instruction for o in operands), segments, attributes, None, after
        )
        return self.keep(instruction)

    def keep(self, instruction: xb.Instruction) -> xb.Value:
        """What was made by hand, with the item at hand."""
        self.groups.setdefault(self.current, []).append(instruction)
        return xb.Value(instruction, self.builder)

    def compute(self, item: Item) -> xb.Value:
        return self.named(item, xb.ops.negate, self.payload(item))

    def replica_id(self, item: Item) -> xb.Value:
        return self.named(item, xb.ops.replica_id, self.builder)

    def infeed(self, item: Item) -> xb.Value:
        return self.named(item, xb.ops.infeed, self.token(), shape=xb.s32[()])

    def partition_id(self, item: Item) -> xb.Value:
        return self.named(item, xb.ops.partition_id, self.builder)

    def outfeed(self, item: Item) -> xb.Value:
        value = self.payload(item)
        return self.named(item, xb.ops.outfeed, value, self.token(), outfeed_shape=value.shape)

    def _ends(self, item: Item) -> dict[str, Any]:
        """The channel, the host flag and the pair of devices, as far as the case says them."""
        peer = item.get("to", item.get("from"))
        known: dict[str, Any] = {"channel_id": item["channel"]}
        if item.get("host_transfer"):
            known["is_host_transfer"] = True
        elif peer is not None and HOST not in (peer, self.device):
            known["source_target_pairs"] = [(self.number, int(peer)) if "to" in item else (int(peer), self.number)]
        return known

    def send(self, item: Item) -> xb.Value:
        return self.named(item, xb.ops.send, self.payload(item), self.token(), **self._ends(item))

    def recv(self, item: Item) -> xb.Value:
        return self.named(item, xb.ops.recv, self.token(), shape=parse_shape(item["shape"]), **self._ends(item))

    def transfer_done(self, item: Item) -> xb.Value:
        opcode = item["op"].replace("-", "_")
        starts = self._starts(item)
        flag = item.get("host_transfer", bool(starts) and starts[0].instruction.attributes.is_host_transfer)
        keywords = {"channel_id": item["channel"], "is_host_transfer": flag}
        if not starts:
            return self.by_hand(item, opcode, (), keywords)
        return self.named(item, getattr(xb.ops, opcode), starts[0], **keywords)

    def _starts(self, item: Item) -> list[xb.Value]:
        """What a done completes: of what it comes after, that which is its start."""
        wanted = item["op"].replace("-", "_").replace("_done", "_start")
        wanted = wanted.removesuffix("_start") if wanted in ("send_start", "recv_start") else wanted
        wanted = wanted if wanted in OPS else "async_start"
        starts = [dep for dep in item["deps"] if self.values[dep].instruction.opcode == wanted]
        number = item.get("channel", item.get("collective"))
        same = [dep for dep in starts if number == self.items[dep].get("channel", self.items[dep].get("collective"))]
        return [self.values[dep] for dep in same or starts]

    def _collective(self, item: Item) -> xb.Value:
        opcode = item["op"].replace("-", "_")
        if opcode.endswith("_done"):
            return self.named(item, getattr(xb.ops, opcode if opcode in OPS else "async_done"), *self._starts(item))
        base = opcode.removesuffix("_start")
        keywords = self._collective_attributes(item, base)
        if opcode not in OPS:
            return self.wrapped(item, base, keywords)
        return self.named(item, getattr(xb.ops, opcode), self.payload(item), **keywords)

    def wrapped(self, item: Item, opcode: str, keywords: dict[str, Any]) -> xb.Value:
        """An op that HLO starts by an async-start, in the computation that this calls."""
        payload = self.payload(item)
        inner = self.inner(f"{item['name']}_wrapped")
        parameter = inner.record(xb.ops.parameter, inner.builder, number=0, shape=payload.shape)
        root = inner.named({**item, "deps": ()}, getattr(xb.ops, opcode), parameter, **keywords).instruction
        calls = xb.Computation(inner.builder.name, [parameter.instruction, root], root)
        return self.named(item, xb.ops.async_start, payload, calls=calls)

    def _collective_attributes(self, item: Item, opcode: str) -> dict[str, Any]:
        groups = item.get("groups") or ()
        size = len(groups[0]) if groups else self.case["devices"]
        keywords: dict[str, Any] = {"channel_id": item["collective"]}
        if opcode == "collective_permute":
            return {**keywords, "source_target_pairs": item["pairs"]}
        keywords["replica_groups"] = groups
        if opcode in ("all_reduce", "reduce_scatter"):
            keywords["to_apply"] = _sum()
        dimension = {"all_gather": "all_gather_dimension", "reduce_scatter": "scatter_dimension"}.get(opcode)
        if dimension is not None:
            keywords |= {dimension: 0, "shard_count": size}
        if opcode == "all_to_all":
            keywords |= {"split_dimension": 0, "concat_dimension": 0, "split_count": size}
        return keywords

    def while_loop(self, item: Item) -> xb.Value:
        """A counter from 0 to the number of trips, which is a constant or comes with the state."""
        assert self.data is not None
        limit = None if item["trips_known"] else self.slot(item)
        start = [self.number_constant(0), self.data, *([] if limit is None else [limit])]
        state = self.record(xb.ops.tuple_, start)
        known = int(item["trips"].get(self.device, 0)) if limit is None else None
        condition = self._loop_condition(item, state.shape, known)
        body = self._loop_body(item, state.shape)
        return self.named(item, xb.ops.while_, state, condition=condition, body=body)

    def _loop_condition(self, item: Item, shape: Any, known: int | None) -> xb.Computation:
        inner, elements = self._entered(f"{item['name']}_condition", shape)
        limit = elements[2] if known is None else inner.number_constant(known)
        goes_on = inner.record(xb.ops.compare, elements[0], limit, direction="LT")
        return inner.computation(item["condition"], elements[1], goes_on)

    def _loop_body(self, item: Item, shape: Any) -> xb.Computation:
        inner, elements = self._entered(f"{item['name']}_body", shape)
        following = inner.record(xb.ops.add, elements[0], inner.number_constant(1))
        state = inner.record(xb.ops.tuple_, [following, *elements[1:]])
        return inner.computation(item["body"], elements[1], state)

    def _entered(self, name: str, shape: Any) -> tuple[Writer, list[xb.Value]]:
        """A writer of a called computation, and the elements of its one parameter."""
        inner = self.inner(name)
        state = inner.record(xb.ops.parameter, inner.builder, number=0, shape=shape)
        return inner, [inner.record(xb.ops.get_tuple_element, state, index=n) for n in range(len(shape))]

    def conditional(self, item: Item) -> xb.Value:
        index = self.number_constant(item["taken"].get(self.device, 0)) if item["taken_known"] else self.slot(item)
        branches = [self._called(f"{item['name']}_branch_{n}", branch) for n, branch in enumerate(item["branches"])]
        operands = [self.data] * len(branches)
        return self.named(item, xb.ops.conditional, index, operands, branch_computations=branches)

    def call(self, item: Item) -> xb.Value:
        return self.named(item, xb.ops.call, self.data, to_apply=self._called(f"{item['name']}_called", item["body"]))

    def _called(self, name: str, items: Sequence[Item]) -> xb.Computation:
        assert self.data is not None
        inner = self.inner(name)
        data = inner.record(xb.ops.parameter, inner.builder, number=0, shape=self.data.shape)
        return inner.computation(items, data)

    def reduce(self, item: Item) -> xb.Value:
        inner = self.inner(f"{item['name']}_reducer")
        x, y = (inner.record(xb.ops.parameter, inner.builder, number=n, shape=xb.f32[()]) for n in (0, 1))
        total = inner.record(xb.ops.add, x, y)
        reducer = inner.computation(item["to_apply"], x, total)
        zero = self.record(xb.ops.constant, self.builder, literal=np.float32(0))
        return self.named(item, xb.ops.reduce, self.payload(item), zero, to_apply=reducer, dimensions=(0,))


_KINDS = {
    "compute": Writer.compute,
    "replica-id": Writer.replica_id,
    "partition-id": Writer.partition_id,
    "infeed": Writer.infeed,
    "outfeed": Writer.outfeed,
    "host-callback": host_callback,
    "send": Writer.send,
    "recv": Writer.recv,
    "send-done": Writer.transfer_done,
    "recv-done": Writer.transfer_done,
    "while": Writer.while_loop,
    "conditional": Writer.conditional,
    "call": Writer.call,
    "reduce": Writer.reduce,
}


def _sum() -> xb.Computation:
    return xb.computation(xb.f32[()], xb.f32[()])(xb.add)
