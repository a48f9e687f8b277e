"""Collective broadcasts and ragged all-to-alls: what arrives where, and groups that do not fit."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import xbuild as xb
from interpreter import execute
from tests.checking.asynchronous.programs import F, module
from tests.support.compare import assert_same


def test_a_broadcast_comes_from_the_first_of_the_group_and_is_zero_outside_of_all() -> None:
    program = module(lambda x: xb.collective_broadcast(x, [(2, 1), (4,)]), xb.s32[()], replicas=5)
    assert xb.check(program).kind == "ok"
    assert execute(program, [[n + 1] for n in range(5)]) == [0, 3, 3, 0, 5]
    by_partition = module(lambda x: xb.collective_broadcast(x, [(1, 0)], 7), xb.s32[()], partitions=2)
    assert execute(by_partition, [[n] for n in range(4)]) == [1, 1, 3, 3]


def test_groups_of_another_size_than_the_offsets_are_refused() -> None:
    numbers = [xb.s32[2]] * 4
    program = module(xb.ragged_all_to_all, F, F, *numbers, replicas=3)
    verdict = xb.check(program)
    assert verdict.findings[0].kind == "invalid_group"
    assert "the groups have 3 devices, but dimension 0 of input_offsets is 2" in str(verdict)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 4), st.integers(1, 3), st.integers(0, 2**32))
def test_ragged_rows_arrive_where_their_senders_say(members: int, updates: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sent = rng.integers(0, 4, (members, members, updates)).astype(np.int32)
    starts = np.cumsum(sent.reshape(members, -1), axis=1).reshape(sent.shape).astype(np.int32) - sent
    arrivals = sent.transpose(1, 0, 2).reshape(members, -1)
    places = (np.cumsum(arrivals, axis=1) - arrivals).reshape(members, members, updates).astype(np.int32)
    data = [np.arange(sent[m].sum() + 1, dtype=np.float32) + 100 * m for m in range(members)]
    rows = max(map(len, data))
    data = [np.pad(each, (0, rows - len(each))) for each in data]
    most = int(arrivals.sum(axis=1).max()) + 1
    shapes = xb.f32[rows], xb.f32[most], *[xb.s32[members, updates]] * 4
    program = module(xb.ragged_all_to_all, *shapes, replicas=members)
    inputs = [
        [data[m], np.full(most, -1, np.float32), starts[m], sent[m], places[:, m], sent[:, m]] for m in range(members)
    ]
    for m, result in enumerate(execute(program, inputs)):
        parts = [data[s][starts[s, m, u] :][: sent[s, m, u]] for s in range(members) for u in range(updates)]
        arrived = np.concatenate(parts)
        assert_same(result, np.concatenate([arrived, np.full(most - len(arrived), -1, np.float32)]))
