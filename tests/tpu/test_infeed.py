"""Infeed queues: items cut for the replicas, checked when they are queued; outfeeds; an empty queue is a verdict."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import Refused, Stopped
from tests.tpu.support import F32, plain, refused


def queue(*shapes: Any, types: Any = None, **options: Any) -> xb.tpu.InfeedQueue:
    return xb.tpu.InfeedQueue(tuple_types=types or [xb.f32] * len(shapes), tuple_shapes=shapes, **options)


def test_each_replica_gets_its_slice_after_the_inputs() -> None:
    feed = queue([8, 2], [8], types=[xb.f32, xb.s32])
    feed.enqueue(np.arange(16, dtype=np.float32).reshape(8, 2), np.arange(8, dtype=np.int32))
    shapes = []

    def computation(a: Any, x: Any, y: Any) -> Any:
        shapes.append((x.shape, y.shape))
        return a, x, y

    found = xb.tpu.replicate(computation, [[1.0], [2.0]], infeed_queue=feed)
    assert shapes == [(xb.f32[4, 2], xb.s32[4])]
    assert plain(found[1]) == [2.0, [[8, 9], [10, 11], [12, 13], [14, 15]], [4, 5, 6, 7]]


def test_an_element_may_be_cut_along_another_dimension() -> None:
    feed = queue([2, 4], shard_dimensions=[1])
    feed.enqueue(F32([[1, 2, 3, 4], [5, 6, 7, 8]]))
    found = xb.tpu.replicate(lambda x: x, [[], []], infeed_queue=feed)
    assert plain(found) == [[[[1, 2], [5, 6]]], [[[3, 4], [7, 8]]]]


def test_items_are_taken_in_order_one_a_run() -> None:
    feed = queue([2])
    for n in range(3):
        feed.enqueue(F32([n, 10 * n]))
    program = xb.tpu.batch_parallel.program(lambda x: x, num_shards=2, infeed_queue=feed)
    assert [plain(program.run()) for _ in range(3)] == [[[0, 0]], [[1, 10]], [[2, 20]]]
    assert len(feed) == 0


def test_items_of_a_source_come_when_the_queue_is_empty() -> None:
    feed = queue([2])
    feed.enqueue(F32([1, 2]))
    feed.feed(F32([n, n]) for n in (3, 4))
    program = xb.tpu.batch_parallel.program(lambda x: x, num_shards=2, infeed_queue=feed)
    assert [plain(program.run()) for _ in range(3)] == [[[1, 2]], [[3, 3]], [[4, 4]]]
    with pytest.raises(Stopped) as caught:
        program.run()
    assert caught.value.report.kind == "infeed_starved"


def test_an_empty_queue_is_a_verdict_and_no_hang() -> None:
    program = xb.tpu.batch_parallel.program(lambda x: x, num_shards=2, infeed_queue=queue([2]))
    with pytest.raises(Refused, match="holds no item for dequeue"):
        program.run()
    assert program.verdict.kind == "depends"


def test_two_programs_share_a_queue() -> None:
    feed = queue([2])
    feed.enqueue(F32([1, 2]))
    feed.enqueue(F32([3, 4]))
    assert plain(xb.tpu.replicate(lambda x: x, [[], []], infeed_queue=feed)) == [[[1]], [[2]]]
    assert plain(xb.tpu.replicate(lambda x: x * 2.0, [[], []], infeed_queue=feed)) == [[[6]], [[8]]]


def test_what_an_infeed_refuses() -> None:
    text = refused("divisibility", lambda: xb.tpu.replicate(lambda x: x, [[]] * 3, infeed_queue=queue([8, 2])))
    assert "Shape [8, 2] cannot be sharded 3 ways along dimension 0" in text
    cut = queue([8, 2], shard_dimensions=[2])
    refused("dimension_out_of_range", lambda: xb.tpu.replicate(lambda x: x, [[]] * 2, infeed_queue=cut))
    refused("element_type_unsupported", lambda: queue([2], types=[xb.f64]), "f64", error=TypeError)
    refused("attribute_length_mismatch", lambda: xb.tpu.InfeedQueue(2, tuple_types=[xb.f32]))
    refused("attribute_length_mismatch", lambda: queue([2], shard_dimensions=[0, 0]))
    refused("invalid_attribute", lambda: xb.tpu.InfeedQueue())
    refused("non_positive", lambda: xb.tpu.InfeedQueue(0))
    untyped = xb.tpu.InfeedQueue(1)
    refused("invalid_attribute", lambda: xb.tpu.replicate(lambda x: x, [[]], infeed_queue=untyped), "are wanted")


def test_items_are_checked_when_they_are_queued() -> None:
    feed = queue([2], [1], types=[xb.f32, xb.s32])
    refused("attribute_length_mismatch", lambda: feed.enqueue(F32([1, 2])), "2 elements, and 1")
    refused("shape_mismatch", lambda: feed.enqueue(F32([1]), np.int32([1])), "element 0")
    refused("element_type_mismatch", lambda: feed.enqueue(F32([1, 2]), F32([1])), "element 1", "s32")
    assert len(feed) == 0
    feed.enqueue([1, 2], [3])
    assert len(feed) == 1


def test_the_number_of_shards_stays_while_items_are_cut() -> None:
    feed = queue([4])
    feed.enqueue(F32([1, 2, 3, 4]))
    feed.set_number_of_shards(2)
    assert plain(next(feed.parts(0))) == ([1, 2],)
    refused("invalid_attribute", lambda: feed.set_number_of_shards(4), "cut for 2 replicas")


@pytest.mark.parametrize("dtype", ["pred", "s32", "s64", "bf16", "f32", "c64", "u32", "u8", "s8"])
def test_the_types_of_an_infeed(dtype: str) -> None:
    kind = getattr(xb, dtype)
    feed = queue([2], types=[kind])
    feed.enqueue(np.ones(2).astype(kind.dtype))
    (found, _) = xb.tpu.replicate(lambda x: x, [[], []], infeed_queue=feed)
    assert found[0].dtype == kind.dtype


def test_an_outfeed_goes_to_a_function_or_a_queue() -> None:
    seen: list[Any] = []

    def computation(x: Any) -> Any:
        return x, xb.tpu.outfeed_enqueue(x * 2.0), xb.tpu.outfeed_enqueue((x, x + 1.0))

    rows = [[1.0], [2.0]]
    xb.tpu.replicate(computation, rows, outfeed=lambda replica, item: seen.append((replica, plain(item))))
    wanted = [(0, 2.0), (0, (1.0, 2.0)), (1, 4.0), (1, (2.0, 3.0))]
    assert seen == wanted
    taken = xb.tpu.OutfeedQueue()
    xb.tpu.replicate(computation, rows, outfeed=taken)
    assert len(taken) == 4
    assert plain(taken.dequeue(1)) == 4.0
    assert [(replica, plain(item)) for replica, item in taken] == [wanted[0], wanted[1], wanted[3]]
    refused("infeed_starved", lambda: taken.dequeue(0), "none of replica 0")
    refused("no_builder", lambda: xb.tpu.outfeed_enqueue(1.0))
