"""Derivatives of collectives and transfers: of the loss that is the sum of the losses of all devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from attrs import frozen

import xbuild as xb
from interpreter import evaluate, execute

V, M = xb.f64[4], xb.f64[4, 2]
PAIRS = [[0, 2], [1, 3]]
RING = [(0, 1), (1, 2), (2, 0)]
STEP = 1e-6

Array = np.ndarray[Any, Any]


@frozen(eq=False)
class Collective:
    """A function that each device applies, the shapes of its parameters, and how many devices there are."""

    name: str
    function: Callable[..., xb.Value]
    shapes: Sequence[xb.Shape] = (V,)
    replicas: int = 4
    partitions: int = 1

    def __str__(self) -> str:
        return self.name

    def module(self) -> xb.Module:
        entry = xb.computation(*self.shapes)(lambda *given: number(self.function(*given)))
        return xb.Module("m", entry, num_replicas=self.replicas, num_partitions=self.partitions)


def number(x: xb.Value) -> xb.Value:
    """A loss that is no sum of its parts."""
    return xb.reduce(xb.sin(x) * x, 0.0, xb.add)


def bent(x: xb.Value) -> xb.Value:
    return xb.tanh(x) * x


def counts(x: xb.Value, *values: int) -> xb.Value:
    return xb.constant(x.builder, np.array(values, np.int32))


def of_pair(found: xb.Value) -> xb.Value:
    first, second = found
    return first * second


def transferred(x: xb.Value) -> xb.Value:
    pairs, token = [(0, 1), (1, 2), (2, 3), (3, 0)], xb.after_all(builder=x.builder)
    posted = xb.recv(token, shape=V, channel_id=1, source_target_pairs=pairs)
    sent = xb.send(bent(x), token, channel_id=1, source_target_pairs=pairs)
    came = xb.recv_done(posted, channel_id=1)
    xb.send_done(sent, channel_id=1)
    return xb.get_tuple_element(came, index=0) * x


def transferred_in_a_loop(x: xb.Value) -> xb.Value:
    def body(state: xb.Value) -> Any:
        i, x = state
        return i + 1, transferred(x) * 0.5

    return xb.while_((0, x), lambda s: s[0] < 3, body)[1]


def ragged(x: xb.Value) -> xb.Value:
    me = xb.broadcast(xb.convert(xb.replica_id(x.builder), new_element_type=xb.s32), [2])
    sizes = counts(x, 1, 1)
    found = xb.ops.ragged_all_to_all(bent(x), xb.cos(x), counts(x, 0, 2), sizes, me + 1, sizes, replica_groups=[[0, 1]])
    return found * x


CASES = [
    Collective("all_reduce", lambda x: xb.all_reduce(bent(x), xb.add) * xb.tanh(x)),
    Collective("all_reduce in groups", lambda x: xb.all_reduce(bent(x), xb.add, PAIRS) * x),
    Collective("maximum", lambda x: xb.all_reduce(bent(x), xb.maximum, PAIRS) * x),
    Collective("minimum", lambda x: xb.all_reduce(bent(x), xb.minimum) * x),
    Collective("of several", lambda x, y: of_pair(xb.ops.all_reduce((x, y * x), to_apply=xb.add)), [V, V]),
    Collective(
        "one of several",
        lambda x, y: xb.ops.all_reduce((bent(x), y), to_apply=xb.maximum, replica_groups=PAIRS)[0] * y,
        [V, V],
    ),
    Collective(
        "across partitions",
        lambda x: xb.ops.all_reduce((bent(x),), to_apply=xb.add, replica_groups=[[0, 1]], channel_id=1) * x,
        replicas=2,
        partitions=2,
    ),
    Collective("cross_replica_sum", lambda x: xb.cross_replica_sum(bent(x), [0, 1, 0, 1]) * x),
    Collective("all_gather", lambda x: xb.all_gather(bent(x), 0, 2, PAIRS) * 2.0),
    Collective("reduce_scatter", lambda x: xb.reduce_scatter(bent(x), xb.add, 0, 2, PAIRS) * 2.0),
    Collective(
        "all_to_all",
        lambda x: xb.ops.all_to_all(
            (bent(x),), split_dimension=0, concat_dimension=1, split_count=2, replica_groups=PAIRS
        ),
        [M],
    ),
    Collective("all_to_all of a tuple", lambda x, y: xb.ops.all_to_all((bent(x), y), replica_groups=PAIRS)[0], [V, V]),
    Collective("collective_permute", lambda x: xb.collective_permute(bent(x), RING) * x),
    Collective("broadcast", lambda x: xb.ops.collective_broadcast(bent(x), replica_groups=[[2, 0], [1]]) * x),
    Collective("broadcast to all", lambda x: xb.ops.collective_broadcast(bent(x)) * x),
    Collective(
        "broadcast across partitions",
        lambda x: xb.ops.collective_broadcast(bent(x), replica_groups=[[1, 0]], channel_id=3) * x,
        replicas=2,
        partitions=2,
    ),
    Collective("ragged_all_to_all", ragged, replicas=2),
    Collective("all_reduce in halves", lambda x: xb.all_reduce_done(xb.all_reduce_start(bent(x), to_apply=xb.add)) * x),
    Collective("all_gather in halves", lambda x: xb.all_gather_done(
        xb.all_gather_start(bent(x), all_gather_dimension=0, shard_count=2, replica_groups=PAIRS))),
    Collective("permute in halves", lambda x: xb.collective_permute_done(
        xb.collective_permute_start(bent(x), RING)) * x),
    Collective("copy in halves", lambda x: xb.copy_done(xb.copy_start(bent(x))) * x),
    Collective("async", lambda x: xb.async_done(xb.async_update(
        xb.async_start(bent(x), lambda y: xb.reduce_scatter(y, xb.add, 0, 4))))),
    Collective("async maximum", lambda x: xb.async_done(
        xb.async_start(bent(x), lambda y: xb.all_reduce(y, xb.maximum)))),
    Collective("in a loop", lambda x: xb.while_(
        (0, x), lambda s: s[0] < 3, lambda s: (s[0] + 1, xb.all_reduce(bent(s[1]), xb.add, PAIRS)))[1]),
    Collective("transfers", transferred),
    Collective("transfers in a loop", transferred_in_a_loop),
]  # fmt: skip


def total(results: Any) -> float:
    """The sum of the losses of all devices."""
    return float(sum(np.sum(each) for each in results))


def arguments_of(modules: Sequence[xb.Module], chance: np.random.Generator) -> list[list[Array]]:
    return [[chance.normal(size=p.shape.dims) for p in m.entry.parameters] for m in modules]


def check_total(program: Any, modules: Sequence[xb.Module]) -> None:
    """The gradients of all devices, and the tangents of all losses, against the total loss a little further on."""
    chance = np.random.default_rng(0)
    arguments, direction = arguments_of(modules, chance), arguments_of(modules, chance)
    most = max(len(m.entry.parameters) for m in modules)
    found = execute(xb.grad(program, tuple(range(most))), arguments)
    tangents = execute(xb.jvp(program), [[*a, *v] for a, v in zip(arguments, direction, strict=True)])

    def at(step: float) -> float:
        moved = [[x + step * v for x, v in zip(*each, strict=True)] for each in zip(arguments, direction, strict=True)]
        return total(execute(program, moved))

    numeric = (at(STEP) - at(-STEP)) / (2 * STEP)
    back = sum(np.sum(g * v) for gs, vs in zip(found, direction, strict=True) for g, v in zip(gs, vs, strict=True))
    np.testing.assert_allclose(back, numeric, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(total(t for (t,) in tangents), numeric, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_total_loss(case: Collective) -> None:
    module = case.module()
    check_total(module, [module] * module.num_devices)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_derivative_is_a_program_that_ends(case: Collective) -> None:
    gradient = xb.grad(case.module())
    assert (gradient.num_replicas, gradient.num_partitions) == (case.replicas, case.partitions)
    assert xb.check(gradient).kind == "ok"
    assert xb.parse_hlo(str(gradient)).entry.signature == gradient.entry.signature


def test_the_gradient_of_a_sum_over_replicas_is_one_over_the_same_groups() -> None:
    entry = xb.computation(V)(lambda x: number(xb.cross_replica_sum(x, [0, 1, 0, 1])))
    gradient = xb.grad(xb.Module("m", entry, num_replicas=4))
    sums = [i for i in gradient.entry.instructions if i.opcode == "all_reduce"]
    assert [i.attributes.replica_groups for i in sums] == [((0, 2), (1, 3))] * 2


def test_a_collective_that_the_gradient_does_not_read_is_left_out() -> None:
    entry = xb.computation(V)(lambda x: xb.all_reduce_done(xb.all_reduce_start(xb.reduce(x, 0.0, xb.add), xb.add)))
    (back,) = [i for i in xb.grad(entry).instructions if "all_reduce" in i.opcode]
    assert back.opcode == "all_reduce"


def first_stage(x: xb.Value) -> xb.Value:
    token = xb.after_all(builder=x.builder)
    after = xb.send_done(xb.send(bent(x), token, channel_id=1), channel_id=1)
    came = xb.recv_done(xb.recv(after, shape=V, channel_id=2), channel_id=2)
    return xb.reduce(xb.get_tuple_element(came, index=0) * x, 0.0, xb.add)


def second_stage(w: xb.Value, b: xb.Value) -> xb.Value:
    came = xb.recv_done(xb.recv(xb.after_all(builder=w.builder), shape=V, channel_id=1), channel_id=1)
    y = xb.tanh(xb.get_tuple_element(came, index=0) * w) + b
    xb.send_done(xb.send(y, xb.get_tuple_element(came, index=1), channel_id=2), channel_id=2)
    return number(y)


def pipeline(stages: Mapping[int, xb.Computation]) -> xb.ModuleGroup:
    return xb.ModuleGroup({device: xb.Module(f"stage{device}", entry) for device, entry in stages.items()})


def test_a_group_of_programs_sends_cotangents_back_on_new_channels() -> None:
    group = pipeline({0: xb.computation(V)(first_stage), 1: xb.computation(V, V)(second_stage)})
    check_total(group, list(group.modules.values()))
    gradient = xb.grad(group)
    channels = [
        {i.attributes.channel_id for i in module.entry.instructions if i.opcode == opcode}
        for module in gradient.modules.values()
        for opcode in ("send", "recv")
    ]
    assert channels == [{1, 3}, {2, 4}, {2, 4}, {1, 3}] or channels == [{1, 4}, {2, 3}, {2, 3}, {1, 4}]
    assert xb.check(gradient).kind == "ok"


def test_a_stage_without_a_loss_of_its_own() -> None:
    def sender(x: xb.Value) -> xb.Value:
        return xb.send_done(xb.send(bent(x), xb.after_all(builder=x.builder), channel_id=1), channel_id=1)

    def receiver(w: xb.Value) -> xb.Value:
        came = xb.recv_done(xb.recv(xb.after_all(builder=w.builder), shape=V, channel_id=1), channel_id=1)
        return number(xb.get_tuple_element(came, index=0) * w)

    group = pipeline({0: xb.computation(V)(sender), 1: xb.computation(V)(receiver)})
    x, w = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.5, 0.25, -1.0, 2.0])
    of_x, of_w = execute(xb.grad(group), [[x], [w]])
    whole = xb.computation(V, V)(lambda x, w: number(bent(x) * w))
    for found, wanted in zip((of_x, of_w), evaluate(xb.grad(whole, (0, 1)), x, w), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_a_loop_that_only_sends_and_one_that_only_receives() -> None:
    def sender(x: xb.Value) -> xb.Value:
        def body(state: xb.Value) -> Any:
            i, x = state
            token = xb.after_all(builder=i.builder)
            xb.send_done(xb.send(bent(x), token, channel_id=1), channel_id=1)
            return i + 1, x * 0.5

        return xb.while_((0, x), lambda s: s[0] < 3, body)[0]

    def receiver(w: xb.Value) -> xb.Value:
        def body(state: xb.Value) -> Any:
            i, w, total = state
            came = xb.recv_done(xb.recv(xb.after_all(builder=i.builder), shape=V, channel_id=1), channel_id=1)
            return i + 1, w, total + number(xb.get_tuple_element(came, index=0) * w)

        return xb.while_((0, w, xb.constant(w.builder, 0.0, xb.f64)), lambda s: s[0] < 3, body)[2]

    group = pipeline({0: xb.computation(V)(sender), 1: xb.computation(V)(receiver)})
    x, w = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.5, 0.25, -1.0, 2.0])
    whole = xb.computation(V, V)(
        lambda x, w: sum((number(bent(x * 0.5**n) * w) for n in range(1, 3)), number(bent(x) * w))
    )
    for found, wanted in zip(execute(xb.grad(group), [[x], [w]]), evaluate(xb.grad(whole, (0, 1)), x, w), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_programs_that_meet_though_one_does_not_read_the_result() -> None:
    def reads(x: xb.Value) -> xb.Value:
        return number(xb.all_reduce(bent(x), xb.add, name="total"))

    def brings(x: xb.Value) -> xb.Value:
        xb.all_reduce(x * 3.0, xb.add, name="total")
        return number(x)

    group = pipeline({0: xb.computation(V)(reads), 1: xb.computation(V)(brings)})
    check_total(group, list(group.modules.values()))


def test_a_product_over_devices_is_refused() -> None:
    entry = xb.computation(V)(lambda x: number(xb.all_reduce(x, xb.multiply)))
    with pytest.raises(xb.ShapeError, match="to_apply is not an add, a maximum or a minimum"):
        xb.grad(entry)
