"""Queues between the host and the replicas: an infeed whose items are split over the replicas, and an outfeed."""

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
from .arguments import (
    TpuTypeError,
    as_array,
    read_element_type,
    read_extents,
    read_integer,
    read_integers,
    read_sequence,
    refuse,
)
from .context import Operation, Tracing, require_tracing

INFEED_TYPES = ("pred", "s32", "s64", "bf16", "f32", "c64", "u32", "u8", "s8")
Array = np.ndarray[Any, Any]


@define(eq=False)
class InfeedQueue:
    """Items for the replicas: tuples of global arrays, each split along a dimension into one part per replica.

    `tuple_types` and `tuple_shapes` are those of the entire batch; `shard_dimensions` defaults to 0 for each element.
    `replicate` and `shard` set the number of shards and pass each replica its parts as the last arguments.
    Raises attribute_length_mismatch if the lists differ in length, element_type_unsupported, dimension_out_of_range.

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
                    "invalid_attribute",
                    "InfeedQueue: pass number_of_tuple_elements, tuple_types or tuple_shapes",
                )
            self.number_of_tuple_elements = len(
                read_sequence(f"InfeedQueue: {given[0]}", getattr(self, given[0]), "one entry for each element")
            )
        self.number_of_tuple_elements = read_integer(
            "InfeedQueue: number_of_tuple_elements", self.number_of_tuple_elements
        )
        if self.number_of_tuple_elements < 1:
            refuse("non_positive", f"InfeedQueue: number_of_tuple_elements {self.number_of_tuple_elements} must be > 0")
        for what in given:
            getattr(self, f"set_{what}")(getattr(self, what))

    def set_tuple_types(self, tuple_types: Sequence[Any]) -> None:
        """Set the element types of the items; raises attribute_length_mismatch, element_type_unsupported."""
        self._check_length("tuple_types", tuple_types)
        self.tuple_types = tuple(
            read_element_type(f"InfeedQueue: type {n}", each) for n, each in enumerate(tuple_types)
        )
        for number, dtype in enumerate(self.tuple_types):
            if str(dtype) not in INFEED_TYPES:
                refuse(
                    "element_type_unsupported",
                    f"InfeedQueue: element {number} is {dtype}; expected one of {', '.join(INFEED_TYPES)}",
                    error=TpuTypeError,
                )

    def set_tuple_shapes(self, tuple_shapes: Sequence[Sequence[int]]) -> None:
        """Set the shapes of the entire items; raises attribute_length_mismatch."""
        self._check_length("tuple_shapes", tuple_shapes)
        self.tuple_shapes = tuple(read_extents(f"InfeedQueue: shape {n}", each) for n, each in enumerate(tuple_shapes))

    def set_shard_dimensions(self, shard_dimensions: Sequence[int]) -> None:
        """Set the dimension along which each element is split; raises attribute_length_mismatch."""
        self._check_length("shard_dimensions", shard_dimensions)
        self.shard_dimensions = tuple(read_integers("InfeedQueue: shard_dimensions", shard_dimensions))

    def _check_length(self, what: str, given: Sequence[Any]) -> None:
        if (
            len(read_sequence(f"InfeedQueue: {what}", given, "one entry for each element"))
            != self.number_of_tuple_elements
        ):
            refuse(
                "attribute_length_mismatch",
                f"InfeedQueue: {what} is {given!r}; expected a list of length {self.number_of_tuple_elements}",
            )

    def set_number_of_shards(self, number_of_shards: int) -> None:
        """Split every item into this many parts; `replicate` calls it.

        Raises divisibility if an extent cannot be split, dimension_out_of_range, invalid_attribute if types or shapes
        are not set, or if items have already been split into a different number of parts.
        """
        if self.tuple_types is None or self.tuple_shapes is None:
            refuse(
                "invalid_attribute", "InfeedQueue: set tuple_types and tuple_shapes before the first use of the queue"
            )
        if number_of_shards == self.number_of_shards:
            return
        if any(self._parts):
            refuse(
                "invalid_attribute",
                f"InfeedQueue: items are split over {self.number_of_shards} replicas, but {number_of_shards} "
                "replicas read them",
            )
        for shape, dim in zip(self.tuple_shapes, self._dimensions(), strict=True):
            _check_split(shape, dim, number_of_shards)
        self.number_of_shards = number_of_shards
        self._parts = [deque() for _ in range(number_of_shards)]

    def _dimensions(self) -> tuple[int, ...]:
        assert self.number_of_tuple_elements is not None
        return self.shard_dimensions or (0,) * self.number_of_tuple_elements

    @property
    def shard_shapes(self) -> tuple[Shape, ...]:
        """The shapes of one replica's part of an item."""
        assert self.number_of_shards is not None
        shapes = []
        for shape, dim, dtype in zip(self.tuple_shapes, self._dimensions(), self.tuple_types, strict=True):
            cut = [n // self.number_of_shards if place == dim else n for place, n in enumerate(shape)]
            shapes.append(dtype[tuple(cut)])
        return tuple(shapes)

    @property
    def signature(self) -> Any:
        """The part of the queue on which a traced program depends."""
        return self.shard_shapes

    def enqueue(self, *item: Any) -> None:
        """Append one item: an array for each element, in the global shapes.

        Raises attribute_length_mismatch, shape_mismatch, element_type_mismatch.
        """
        self._waiting.append(self._read(item))

    def feed(self, items: Iterable[Any]) -> None:
        """Take items (tuples of arrays) from an iterable once the enqueued ones are used up."""
        self._source = iter(items)

    def _read(self, item: Sequence[Any]) -> tuple[Array, ...]:
        if self.tuple_types is None or self.tuple_shapes is None:
            refuse("invalid_attribute", "InfeedQueue: set tuple_types and tuple_shapes before you enqueue items")
        if len(item) != self.number_of_tuple_elements:
            refuse(
                "attribute_length_mismatch",
                f"InfeedQueue: expected an item of {self.number_of_tuple_elements} elements, got {len(item)}",
            )
        pairs = zip(item, self.tuple_shapes, self.tuple_types, strict=True)
        return tuple(_read_element(number, *each) for number, each in enumerate(pairs))

    def __len__(self) -> int:
        """The number of items in the queue, including those that only some replicas have taken."""
        return len(self._waiting) + max(map(len, self._parts), default=0)

    @property
    def is_endless(self) -> bool:
        """Whether items come from an iterable, so that their number is unknown."""
        return self._source is not None

    def counts(self) -> list[int]:
        """The number of items that each replica can take."""
        return [len(self._waiting) + len(parts) for parts in self._parts]

    def parts(self, replica: int) -> Iterator[tuple[Array, ...]]:
        """The items of one replica, until the queue is empty."""
        while self._parts[replica] or self._draw():
            yield self._parts[replica].popleft()

    def _draw(self) -> bool:
        """Split the next item over the replicas; False if there is none."""
        if not self._waiting and self._source is not None:
            for item in self._source:
                self.enqueue(*(item if isinstance(item, tuple | list) else (item,)))
                break
        if not self._waiting:
            return False
        item, shards = self._waiting.popleft(), self.number_of_shards or 1
        cut = [np.split(array, shards, dim) for array, dim in zip(item, self._dimensions(), strict=True)]
        for parts, arrays in zip(self._parts, zip(*cut, strict=True), strict=True):
            parts.append(tuple(map(np.ascontiguousarray, arrays)))
        return True

    def feeds(self, num_partitions: int) -> list[Iterator[tuple[Array, ...]]]:
        """An iterator of items for each device; the cores of a replica get the same items."""
        iterators: list[Iterator[tuple[Array, ...]]] = []
        for replica in range(self.number_of_shards or 1):
            iterators += [self.parts(replica)] if num_partitions == 1 else tee(self.parts(replica), num_partitions)
        return iterators

    def generate_dequeue_op(self, tracing: Tracing) -> list[Value]:
        """Record the infeed of one item and return its elements."""
        token = tracing.tokens[-1] if tracing.tokens else derived.after_all(builder=tracing.builder)
        dequeued = derived.infeed(token, shape=TupleShape(self.shard_shapes), name="dequeue")
        item, after = dequeued
        tracing.tokens.append(after)
        return list(item)


def _check_split(shape: tuple[int, ...], dim: int, shards: int) -> None:
    if not 0 <= dim < len(shape):
        refuse(
            "dimension_out_of_range",
            f"InfeedQueue: shape {list(shape)} has no dimension {dim} to split along",
            "pass shard_dimensions=[...] with one dimension for each element",
        )
    if shape[dim] % shards:
        refuse(
            "divisibility",
            f"Shape {list(shape)} cannot be sharded {shards} ways along dimension {dim}",
            "choose a different dimension with shard_dimensions",
        )


def _read_element(number: int, given: Any, shape: tuple[int, ...], dtype: PrimitiveType) -> Array:
    array = as_array(given, f"element {number} of an item")
    if not isinstance(given, np.ndarray | np.generic) and array.dtype != dtype.dtype:
        array = array.astype(dtype.dtype)
    if primitive_type(array.dtype) is not dtype:
        refuse(
            "element_type_mismatch",
            f"InfeedQueue: element {number} is {array.dtype}, but the queue takes {dtype}",
            f".astype(xb.{dtype}.dtype) converts the array",
        )
    if array.shape != shape:
        refuse(
            "shape_mismatch",
            f"InfeedQueue: element {number} has shape {list(array.shape)}, but the queue takes {list(shape)}",
        )
    return array.copy()


@define(eq=False)
class OutfeedQueue:
    """The items that the replicas enqueued: iterating yields (replica, item) in the order of arrival.

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
        """The next item of one replica; raises infeed_starved if it has no item in the queue."""
        number = next((n for n, (who, _) in enumerate(self._items) if who == replica), None)
        if number is None:
            refuse("infeed_starved", f"the outfeed holds {len(self)} items, but no item from replica {replica}")
        _, item = self._items[number]
        del self._items[number]
        return item


def outfeed_enqueue(values: Any) -> Operation:
    """Enqueue one item, a value or a tuple of values, on the outfeed of this replica.

    Raises no_builder outside of a computation.

    Source: tf.raw_ops.OutfeedEnqueueTuple.
    """
    tracing = require_tracing("outfeed_enqueue")
    many = isinstance(values, list | tuple)
    items = [stands_for(item) for item in values] if many else [stands_for(values)]
    for item in items:
        if not isinstance(item, Value):
            refuse(
                "invalid_operand",
                f"outfeed_enqueue: expected a value of the computation, got {item!r}",
                "xb.constant turns a number or an array into a value",
                error=TpuTypeError,
            )
    operand = ops.tuple_(items, builder=tracing.builder) if many else items[0]
    token = tracing.tokens[-1] if tracing.tokens else derived.after_all(builder=operand.builder)
    token = token if token.builder is operand.builder else derived.after_all(builder=operand.builder)
    done = derived.outfeed(operand, token)
    if done.builder is tracing.builder:
        tracing.tokens.append(done)
    return Operation(f"{done.name}")
