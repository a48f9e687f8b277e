"""Constant propagation and bounds against runs: what is known of a value before the run holds on each device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import evaluate, execute
from shape_inference.trees import flatten
from tests.checking.decisions.drawn_values import Draw
from xbuild.checking.dataflow.backward_slice import BackwardSlice
from xbuild.checking.dataflow.constant_propagation import CollectiveExchange, Propagation, await_results
from xbuild.checking.dataflow.lattice import OpenValue, is_value
from xbuild.checking.model.program import program_of
from xbuild.checking.structure.collective_matching import collective_identities
from xbuild.running import LARGEST


def readings(module: xb.Module, *roots: xb.Instruction) -> list[Any]:
    """What is known of the root of a program on each of its devices."""
    program = program_of(module)
    needed = BackwardSlice(module)
    needed.add_collectives(roots or (module.entry.root,))
    exchange, found = CollectiveExchange(program, collective_identities(program), frozenset()), {}

    def walk(device: int) -> Iterator[Any]:
        entry = module.entry
        reading = yield from Propagation(exchange, needed, device).run(
            entry, [OpenValue() for _ in entry.parameters], ()
        )
        found[device] = yield from await_results(reading)

    with np.errstate(all="ignore"):
        exchange.run({device: walk(device) for device in program.devices})
    return [found[device] for device in program.devices]


def assert_holds(leaf: Any, value: Any, told: str) -> str:
    """The value is what the leaf says of it."""
    value = np.asarray(value)
    if is_value(leaf):
        assert leaf.dtype == value.dtype, told
        assert np.asarray(leaf).tobytes() == value.tobytes(), told
        return "known"
    if isinstance(leaf, OpenValue) and leaf.among:
        assert any(np.asarray(each).tobytes() == value.tobytes() for each in leaf.among), told
    if isinstance(leaf, OpenValue) and leaf.bounds is not None:
        assert leaf.bounds[0] <= int(value.min()) <= int(value.max()) <= leaf.bounds[1], told
        return "bounded"
    return "open"


def module_of(computation: xb.Computation, **counts: int) -> xb.Module:
    return xb.Module("m", computation, **counts)


@pytest.mark.parametrize("first", range(0, 240, 40))
def test_what_is_known_is_what_a_run_gives(first: int) -> None:
    counts = {"known": 0, "bounded": 0, "open": 0}
    for seed in range(first, first + 40):
        draw = Draw(seed, parameters=seed % 3)
        computation = draw.computation()
        (reading,) = readings(module_of(computation))
        for _ in range(3 if seed % 3 else 1):
            for n, (leaf, value) in enumerate(
                zip(flatten(reading), evaluate(computation, *draw.arguments()), strict=True)
            ):
                counts[assert_holds(leaf, value, f"seed {seed}, element {n}: {computation}")] += 1
    assert counts["known"] > 250
    assert counts["bounded"] > 100


class Meeting(Draw):
    """The same with what devices have of their own, and collectives between."""

    def step(self, pool: list[Any]) -> Any:
        if self.rng.random() < 0.6:
            return super().step(pool)
        scalar, vector = self.one_of(pool, 0), self.one_of(pool, 1)
        word, pairs = (
            str(self.rng.choice(["id", "reduce", "gather", "permute", "scatter", "all_to_all", "broadcast"])),
            4,
        )
        groups = [((0, 1, 2, 3),), ((0, 2), (1, 3)), ((0,), (1, 2, 3))][self.rng.integers(3)]
        if word == "id":
            found = xb.ops.convert(xb.ops.replica_id(self.builder), new_element_type=scalar.shape.dtype)
        elif word == "reduce":
            opcode = getattr(xb.ops, str(self.rng.choice(["add", "maximum", "subtract"])))
            found = xb.ops.all_reduce(scalar, to_apply=opcode, replica_groups=groups)
        elif word == "gather":
            halves = ((0, 2), (1, 3))
            whole = xb.ops.all_gather(vector, all_gather_dimension=0, shard_count=2, replica_groups=halves)
            found = xb.ops.reshape(
                xb.ops.slice(whole, start_indices=(1,), limit_indices=(2,), strides=(1,)), new_sizes=()
            )
        elif word == "permute":
            targets = self.rng.permutation(pairs)[: self.rng.integers(1, pairs + 1)]
            found = xb.ops.collective_permute(
                scalar, source_target_pairs=[(int(n), int(t)) for n, t in enumerate(targets)]
            )
        elif word == "broadcast":
            found = xb.ops.collective_broadcast(vector, replica_groups=groups[-1:])
        else:
            four = xb.ops.broadcast(scalar, sizes=(4,), dimensions=())
            four = xb.ops.add(four, xb.ops.iota(self.builder, shape=four.shape, iota_dimension=0))
            if word == "scatter":
                part = xb.ops.reduce_scatter(four, to_apply=xb.ops.add, scatter_dimension=0, shard_count=4)
            else:
                part = xb.ops.all_to_all(four, split_dimension=0, concat_dimension=0, split_count=4)
                part = xb.ops.slice(part, start_indices=(2,), limit_indices=(3,), strides=(1,))
            found = xb.ops.reshape(part, new_sizes=())
        return found


@pytest.mark.parametrize("first", range(0, 120, 40))
def test_what_is_known_on_each_device_is_what_a_run_gives_there(first: int) -> None:
    counts = {"known": 0, "bounded": 0, "open": 0}
    for seed in range(first, first + 40):
        draw = Meeting(seed, parameters=seed % 2)
        module = module_of(draw.computation(), num_replicas=4)
        results = execute(module, [draw.arguments() for _ in range(4)])
        for device, (reading, values) in enumerate(zip(readings(module), results, strict=True)):
            for n, (leaf, value) in enumerate(zip(flatten(reading), values, strict=True)):
                counts[assert_holds(leaf, value, f"seed {seed}, device {device}, element {n}: {module}")] += 1
    assert counts["known"] > 800


def test_what_a_user_may_have_otherwise_is_not_known() -> None:
    """Denormal numbers are flushed or kept as a run is told, and so is the order of a fold."""
    builder = xb.Builder("b")
    tiny, large = (xb.ops.constant(builder, literal=np.float32(each)) for each in (1e-40, 1.0))
    parts = xb.ops.constant(builder, literal=np.array([1e8, 1.0, -1e8, 1.0] * 8, np.float32))
    zero = xb.ops.constant(builder, literal=np.float32(0))
    folded = xb.ops.reduce((parts,), (zero,), dimensions=(0,), to_apply=xb.ops.add)
    roots = [xb.ops.add(tiny, large), xb.ops.compare(tiny, zero, direction="EQ"), folded, xb.ops.add(large, large)]
    (reading,) = readings(module_of(builder.build(xb.ops.tuple_(roots))))
    assert [is_value(leaf) for leaf in reading] == [False, False, False, True]


def test_only_small_values_are_looked_at() -> None:
    builder = xb.Builder("long")
    vectors = [xb.ops.iota(builder, shape=xb.s32[size], iota_dimension=0) for size in (LARGEST, LARGEST + 1)]
    ((fits, beyond),) = readings(module_of(builder.build(xb.ops.tuple_(vectors))))
    assert fits.size == LARGEST
    assert not is_value(beyond)


def test_chance_and_what_comes_from_outside_are_not_known() -> None:
    builder = xb.Builder("b")
    key = xb.ops.constant(builder, literal=np.array([1, 2], np.uint64))
    state, bits = xb.rng_bit_generator(key, algorithm="rng_three_fry", shape=xb.u32[2])
    item, _ = xb.infeed(xb.ops.after_all((), builder=builder), shape=xb.s32[2])
    called = xb.custom_call(key, custom_call_target="anything", shape=xb.s32[2])
    roots = [state, bits, item, called]
    (reading,) = readings(module_of(builder.build(xb.ops.tuple_(roots))))
    assert not any(is_value(leaf) for leaf in flatten(reading))
