"""Queues between the host and the replicas: an infeed whose items are cut for the replicas, and an outfeed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import tee
from typing import Any

import numpy as np
from attrs import define, field

from shape_inference import PrimitiveType, Shape, TupleShape, primitive_type

from .. import derived, ops
from ..core.builder import Value, stands_for
from .support.arguments import element_type, extents, integer, integers, sequence
from .support.arrays import as_array
from .support.context import Operation, Tracing, needed
from .support.refusals import TpuTypeError, refuse

ALLOWED = ("pred", "s32", "s64", "bf16", "f32", "c64", "u32", "u8", "s8")
Array = np.ndarray[Any, Any]


@define(eq=False)
class InfeedQueue:
    """Items for the replicas: tuples of global arrays, cut along a dimension of each, one part for each replica.

    `tuple_types` and `tuple_shapes` are those of the whole batch; `shard_dimensions` is 0 for each element where it is
    not given. `replicate` and `shard` set the number of shards, and give each replica its parts as last arguments.
    Raises attribute_length_mismatch where the lists differ in length, element_type_unsupported, dimension_out_of_range.

    >>> import numpy as np
    >>> import xbuild as xb
    >>> queue = xb.tpu.InfeedQueue(tuple_types=[xb.f32], tuple_shapes=[[4]])
    >>> queue.enqueue(np.float32([1, 2, 3, 4]))
    >>> xb.tpu.replicate(lambda x: x * 10.0, [[], []], infeed_queue=queue)
    [[array([10., 20.], dtype=float32)], [array([30., 40.], dtype=float32)]]

    Source: tensorflow/python/tpu/tpu_feed.py, InfeedQueue.
    """

    number_of_tuple_elements: int | None = None
    tuple_types: Any = None
    tuple_shapes: Any = None
    shard_dimensions: Any = None
    number_of_shards: int | None = field(default=None, init=False)
    _waiting: deque[tuple[Array, ...]] = field(factory=deque, init=False)
    _parts: list[deque[tuple[Array, ...]]] = field(factory=list, init=False)
    _source: Iterator[Any] | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        lists = ("tuple_types", "tuple_shapes", "shard_dimensions")
        given = [what for what in lists if getattr(self, what) is not None]
        if self.number_of_tuple_elements is None:
            if not given:
                refuse(
                    "invalid_attribute", "InfeedQueue: the number of elements, their types or their shapes are wanted"
                )
            self.number_of_tuple_elements = len(
                sequence(f"InfeedQueue: {given[0]}", getattr(self, given[0]), "one entry for each element")
            )
        self.number_of_tuple_elements = integer("InfeedQueue: number_of_tuple_elements", self.number_of_tuple_elements)
        if self.number_of_tuple_elements < 1:
            refuse("non_positive", f"InfeedQueue: number_of_tuple_elements {self.number_of_tuple_elements} must be > 0")
        for what in given:
            getattr(self, f"set_{what}")(getattr(self, what))

    def set_tuple_types(self, tuple_types: Sequence[Any]) -> None:
        """The element types of the items; raises attribute_length_mismatch, element_type_unsupported."""
        self._check_length("tuple_types", tuple_types)
        self.tuple_types = tuple(element_type(f"InfeedQueue: type {n}", each) for n, each in enumerate(tuple_types))
        for number, dtype in enumerate(self.tuple_types):
            if str(dtype) not in ALLOWED:
                refuse(
                    "element_type_unsupported",
                    f"InfeedQueue: element {number} is {dtype}; an infeed takes {', '.join(ALLOWED)}",
                    error=TpuTypeError,
                )

    def set_tuple_shapes(self, tuple_shapes: Sequence[Sequence[int]]) -> None:
        """The shapes of the whole items; raises attribute_length_mismatch."""
        self._check_length("tuple_shapes", tuple_shapes)
        self.tuple_shapes = tuple(extents(f"InfeedQueue: shape {n}", each) for n, each in enumerate(tuple_shapes))

    def set_shard_dimensions(self, shard_dimensions: Sequence[int]) -> None:
        """The dimension along which each element is cut; raises attribute_length_mismatch."""
        self._check_length("shard_dimensions", shard_dimensions)
        self.shard_dimensions = tuple(integers("InfeedQueue: shard_dimensions", shard_dimensions))

    def _check_length(self, what: str, given: Sequence[Any]) -> None:
        if len(sequence(f"InfeedQueue: {what}", given, "one entry for each element")) != self.number_of_tuple_elements:
            refuse(
                "attribute_length_mismatch",
                f"InfeedQueue: {what} is {given!r}, but must be a list of length {self.number_of_tuple_elements}",
            )

    def set_number_of_shards(self, number_of_shards: int) -> None:
        """Cut every item in this many parts; what `replicate` calls.

        Raises divisibility where an extent cannot be cut, dimension_out_of_range, invalid_attribute where types or
        shapes are not known, or items were cut in another number already.
        """
        if self.tuple_types is None or self.tuple_shapes is None:
            refuse("invalid_attribute", "InfeedQueue: tuple_types and tuple_shapes are wanted before the queue is used")
        if number_of_shards == self.number_of_shards:
            return
        if any(self._parts):
            refuse(
                "invalid_attribute",
                f"InfeedQueue: items are cut for {self.number_of_shards} replicas, and {number_of_shards} ask for them",
            )
        for shape, dim in zip(self.tuple_shapes, self._dimensions(), strict=True):
            _check_cut(shape, dim, number_of_shards)
        self.number_of_shards = number_of_shards
        self._parts = [deque() for _ in range(number_of_shards)]

    def _dimensions(self) -> tuple[int, ...]:
        assert self.number_of_tuple_elements is not None
        return self.shard_dimensions or (0,) * self.number_of_tuple_elements

    @property
    def shard_shapes(self) -> tuple[Shape, ...]:
        """What one replica gets of an item."""
        assert self.number_of_shards is not None
        found = []
        for shape, dim, dtype in zip(self.tuple_shapes, self._dimensions(), self.tuple_types, strict=True):
            cut = [n // self.number_of_shards if place == dim else n for place, n in enumerate(shape)]
            found.append(dtype[tuple(cut)])
        return tuple(found)

    @property
    def signature(self) -> Any:
        """What a program depends on."""
        return self.shard_shapes

    def enqueue(self, *item: Any) -> None:
        """Append one item: an array for each element, in the global shapes.

        Raises attribute_length_mismatch, shape_mismatch, element_type_mismatch.
        """
        self._waiting.append(self._read(item))

    def feed(self, items: Iterable[Any]) -> None:
        """Take items from here when those that were enqueued are used up: tuples of arrays, one by one."""
        self._source = iter(items)

    def _read(self, item: Sequence[Any]) -> tuple[Array, ...]:
        if self.tuple_types is None or self.tuple_shapes is None:
            refuse("invalid_attribute", "InfeedQueue: tuple_types and tuple_shapes are wanted before items")
        if len(item) != self.number_of_tuple_elements:
            refuse(
                "attribute_length_mismatch",
                f"InfeedQueue: an item has {self.number_of_tuple_elements} elements, and {len(item)} are given",
            )
        pairs = zip(item, self.tuple_shapes, self.tuple_types, strict=True)
        return tuple(_element(number, *each) for number, each in enumerate(pairs))

    def __len__(self) -> int:
        """How many items are in the queue, those that only some replicas have taken included."""
        return len(self._waiting) + max(map(len, self._parts), default=0)

    @property
    def is_endless(self) -> bool:
        """Whether items come from a source, so that nobody knows how many there are."""
        return self._source is not None

    def counts(self) -> list[int]:
        """For each replica how many items it can take."""
        return [len(self._waiting) + len(parts) for parts in self._parts]

    def parts(self, replica: int) -> Iterator[tuple[Array, ...]]:
        """The items of one replica; it ends where the queue is empty."""
        while self._parts[replica] or self._draw():
            yield self._parts[replica].popleft()

    def _draw(self) -> bool:
        """Cut the next item for all replicas; False where there is none."""
        if not self._waiting and self._source is not None:
            for item in self._source:
                self.enqueue(*(item if isinstance(item, tuple | list) else (item,)))
                break
        if not self._waiting:
            return False
        item, shards = self._waiting.popleft(), self.number_of_shards or 1
        cut = [np.split(array, shards, dim) for array, dim in zip(item, self._dimensions(), strict=True)]
        for parts, each in zip(self._parts, zip(*cut, strict=True), strict=True):
            parts.append(tuple(map(np.ascontiguousarray, each)))
        return True

    def feeds(self, num_partitions: int) -> list[Iterator[tuple[Array, ...]]]:
        """An iterator of items for each device; the cores of a replica get the same."""
        found: list[Iterator[tuple[Array, ...]]] = []
        for replica in range(self.number_of_shards or 1):
            found += [self.parts(replica)] if num_partitions == 1 else tee(self.parts(replica), num_partitions)
        return found

    def generate_dequeue_op(self, tracing: Tracing) -> list[Value]:
        """Record the infeed of one item, and give its elements."""
        token = tracing.tokens[-1] if tracing.tokens else derived.after_all(builder=tracing.builder)
        found = derived.infeed(token, shape=TupleShape(self.shard_shapes), name="dequeue")
        item, after = found
        tracing.tokens.append(after)
        return list(item)


def _check_cut(shape: tuple[int, ...], dim: int, shards: int) -> None:
    if not 0 <= dim < len(shape):
        refuse(
            "dimension_out_of_range",
            f"InfeedQueue: shape {list(shape)} has no dimension {dim} to be cut along",
            "shard_dimensions=[...] has one dimension for each element",
        )
    if shape[dim] % shards:
        refuse(
            "divisibility",
            f"Shape {list(shape)} cannot be sharded {shards} ways along dimension {dim}",
            "shard_dimensions names another dimension for each element",
        )


def _element(number: int, given: Any, shape: tuple[int, ...], dtype: PrimitiveType) -> Array:
    array = as_array(given, f"element {number} of an item")
    if not isinstance(given, np.ndarray | np.generic) and array.dtype != dtype.dtype:
        array = array.astype(dtype.dtype)
    if primitive_type(array.dtype) is not dtype:
        refuse(
            "element_type_mismatch",
            f"InfeedQueue: element {number} is {array.dtype}, and the queue takes {dtype}",
            f".astype(xb.{dtype}.dtype) converts",
        )
    if array.shape != shape:
        refuse(
            "shape_mismatch", f"InfeedQueue: element {number} is {list(array.shape)}, and the queue takes {list(shape)}"
        )
    return array.copy()


@define(eq=False)
class OutfeedQueue:
    """What the replicas gave to the outfeed: iterating takes (replica, item) in the order in which they came.

    >>> import xbuild as xb
    >>> queue = xb.tpu.OutfeedQueue()
    >>> _ = xb.tpu.replicate(lambda x: xb.tpu.outfeed_enqueue(x), [[1.0], [2.0]], outfeed=queue)
    >>> [(replica, float(item)) for replica, item in queue]
    [(0, 1.0), (1, 2.0)]

    Source: tf.raw_ops.OutfeedDequeueTuple.
    """

    _items: deque[tuple[int, Any]] = field(factory=deque, init=False)

    def __call__(self, replica: int, item: Any) -> None:
        self._items.append((replica, item))

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        while self._items:
            yield self._items.popleft()

    def dequeue(self, replica: int = 0) -> Any:
        """The next item of one replica; raises infeed_starved where it has given none that is left."""
        number = next((n for n, (who, _) in enumerate(self._items) if who == replica), None)
        if number is None:
            refuse("infeed_starved", f"the outfeed holds {len(self)} items, and none of replica {replica}")
        _, item = self._items[number]
        del self._items[number]
        return item


def outfeed_enqueue(values: Any) -> Operation:
    """Give one item, a value or a tuple of values, to the outfeed of this replica.

    Raises no_builder outside of a computation.

    Source: tf.raw_ops.OutfeedEnqueueTuple.
    """
    tracing = needed("outfeed_enqueue")
    many = isinstance(values, list | tuple)
    found = [stands_for(each) for each in values] if many else [stands_for(values)]
    for each in found:
        if not isinstance(each, Value):
            refuse(
                "invalid_operand",
                f"outfeed_enqueue: {each!r} is no value of the computation",
                "xb.constant makes a value of a number or an array",
                error=TpuTypeError,
            )
    operand = ops.tuple_(found, builder=tracing.builder) if many else found[0]
    token = tracing.tokens[-1] if tracing.tokens else derived.after_all(builder=operand.builder)
    token = token if token.builder is operand.builder else derived.after_all(builder=operand.builder)
    done = derived.outfeed(operand, token)
    if done.builder is tracing.builder:
        tracing.tokens.append(done)
    return Operation(f"{done.name}")
