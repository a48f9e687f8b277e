"""Starts, updates and dones: which belong together, and faults of those that do not pair."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import xbuild as xb
from interpreter import execute
from tests.checking.asynchronous.programs import ONES, F, finished, module, started, summed
from tests.support.compare import assert_same


def no_done(x: xb.Value) -> xb.Value:
    started(x, 1)
    return x


def two_dones(x: xb.Value) -> Any:
    start = started(x, 1)
    return finished(start), xb.all_reduce_done(start, name="again")


def done_of_another_kind(x: xb.Value) -> xb.Value:
    start = xb.all_gather_start(x, 0, 1, [(0,), (1,)], name="start1")
    return xb.collective_permute_done(start, name="done1")


def start_that_is_added(x: xb.Value) -> xb.Value:
    start = started(x, 1)
    return finished(start) + xb.negate(start, name="user")


def start_that_is_the_root(x: xb.Value) -> xb.Value:
    start = started(x, 1)
    finished(start)
    return start


def update_at_the_end(x: xb.Value) -> xb.Value:
    start = xb.async_start(x, xb.negate, name="start1")
    xb.async_update(start, name="update1")
    return xb.async_done(start)


def done_inside_a_call(x: xb.Value) -> xb.Value:
    return xb.call(started(x, 1), lambda start: xb.all_reduce_done(start, name="done1"))


def done_of_nothing(x: xb.Value) -> xb.Value:
    return xb.all_reduce_done(x, name="done1")


def two_ops_that_meet(x: xb.Value) -> xb.Value:
    calls = xb.computation(F)(lambda y: summed(xb.negate(y, name="first"), 1))
    return xb.async_done(xb.async_start(x, calls, name="start1"))


def copy_without_done(x: xb.Value) -> xb.Value:
    xb.copy_start(x, name="start1")
    return x


@pytest.mark.parametrize(
    ("program", "kind", "named"),
    [
        (no_done, "missing_done", ["start1"]),
        (copy_without_done, "missing_done", ["start1"]),
        (two_dones, "duplicate_done", ["start1", "done1", "again"]),
        (done_of_another_kind, "done_kind_mismatch", ["start1", "done1"]),
        (start_that_is_added, "start_misused", ["start1", "user"]),
        (start_that_is_the_root, "start_misused", ["start1"]),
        (update_at_the_end, "start_misused", ["update1"]),
        (done_inside_a_call, "nest_mismatch", ["start1", "done1"]),
        (done_of_nothing, "missing_start", ["done1"]),
        (two_ops_that_meet, "disallowed_computation", ["start1", "first", "sum1"]),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_halves_that_do_not_pair_are_refused(program: Callable[..., Any], kind: str, named: list[str]) -> None:
    verdict = xb.check(module(program))
    assert verdict.kind == "error"
    found = verdict.findings[0]
    assert found.kind == kind, verdict
    assert [i.name for i in found.instructions] == named
    assert all(f"{source.file.rsplit('/', 1)[-1]}:{source.line}" in str(verdict) for source in found.sources)
    assert len(found.sources) == len(named)


def test_an_update_chain_goes_back_to_its_start() -> None:
    def chained(x: xb.Value) -> xb.Value:
        start = xb.async_start(x, lambda y: summed(y, 1))
        return xb.async_done(xb.async_update(xb.async_update(start)))

    program = module(chained)
    assert xb.check(program).kind == "ok"
    assert_same(execute(program, [[ONES], [2 * ONES]]), [3 * ONES] * 2)
