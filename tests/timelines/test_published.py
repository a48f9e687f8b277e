"""Collective times against published figures and test vectors: equal where the model is the same."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import xbuild as xb
from xbuild.costs.collectives import CollectiveCost, algorithms
from xbuild.timelines.durations import collective_time

from .published import FIGURES, Figure

NAMES = "xyz"


def instruction(kind: str) -> xb.Instruction:
    """An instruction of this kind; its shape does not matter, as the payload is stated."""
    adder = xb.computation(xb.f32[()], xb.f32[()])(xb.ops.add)

    def program(x: xb.Value) -> xb.Value:
        if kind == "send":
            context = xb.ops.send(x, xb.ops.after_all((), builder=x.builder), channel_id=1)
            return xb.ops.send_done(context, channel_id=1)
        if kind == "all_gather":
            return xb.ops.all_gather(x, all_gather_dimension=0, shard_count=1)
        if kind == "reduce_scatter":
            return xb.ops.reduce_scatter(x, to_apply=adder, scatter_dimension=0, shard_count=1)
        if kind == "all_to_all":
            return xb.ops.all_to_all((x,), split_dimension=0, concat_dimension=0, split_count=1)
        if kind == "collective_broadcast":
            return xb.ops.collective_broadcast(x, replica_groups=[[0]])
        return xb.ops.all_reduce(x, to_apply=adder)

    (found,) = (i for i in xb.computation(xb.f32[8])(program).instructions if i.opcode == kind)
    return found


def seconds(
    kind: str, sizes: tuple[int, ...], payload: int, link: xb.Link, names: tuple[str, ...] | None = None
) -> float:
    axes = NAMES[: len(sizes)] if kind != "send" else ""
    size, words = math.prod(sizes), f"{'axis' if len(sizes) == 1 else 'axes'} {', '.join(axes)}" if axes else ""
    ways = tuple(each for each in algorithms(kind, size, payload) if names is None or each.name in names)
    cost = CollectiveCost(instruction(kind), words, size, 1, payload, ways)
    machine = xb.Machine(flops=1e12, memory_bandwidth=1e12, links=link)
    return collective_time(cost, machine, dict(zip(axes, sizes, strict=False))).seconds


def ours(figure: Figure) -> float:
    """The time of the ring, which is what the figures are of."""
    names = None if figure.kind in ("send", "all_to_all") else ("ring",)
    return seconds(figure.kind, figure.sizes, figure.payload, figure.link, names)


@pytest.mark.parametrize("figure", [each for each in FIGURES if not each.differs], ids=lambda each: each.source)
def test_the_same_model_gives_the_same_time(figure: Figure) -> None:
    assert ours(figure) == pytest.approx(figure.seconds, abs=figure.digit, rel=0)


@pytest.mark.parametrize("figure", [each for each in FIGURES if each.differs], ids=lambda each: each.source)
def test_another_model_gives_another_time_of_the_same_order(figure: Figure) -> None:
    assert abs(ours(figure) - figure.seconds) > figure.digit, "the models agree: drop the reason"
    assert 1 / 4 < ours(figure) / figure.seconds < 4


def test_there_are_enough_figures() -> None:
    assert sum(not each.differs for each in FIGURES) >= 10
    assert len(FIGURES) >= 20


BUS = {"all_reduce": lambda n: 2 * (n - 1) / n, "all_gather": lambda n: (n - 1) / n,
       "reduce_scatter": lambda n: (n - 1) / n, "all_to_all": lambda n: (n - 1) / n, "send": lambda n: 1}  # fmt: skip
"""The factors of bus bandwidth: NVIDIA, nccl-tests, doc/PERFORMANCE.md.

Broadcast has the factor 1 there, as of a chain that passes parts on; ours is a binomial tree that passes the whole
array on in ceil(log2 n) steps (Thakur et al.).
"""


@given(st.sampled_from(sorted(BUS)), st.integers(2, 9), st.integers(1, 1 << 20))
def test_the_bus_bandwidth_is_that_of_the_links(kind: str, devices: int, part: int) -> None:
    devices, payload = (2 if kind == "send" else devices), part * devices
    taken = seconds(kind, (devices,), payload, xb.Link(bandwidth=4.5e11))
    assert payload / taken * BUS[kind](devices) == pytest.approx(4.5e11)


@given(st.integers(1, 8), st.integers(0, 1 << 30), st.floats(0, 1e-4), st.floats(1e6, 1e12))
def test_a_broadcast_takes_the_steps_of_a_binomial_tree(
    levels: int, payload: int, alpha: float, bandwidth: float
) -> None:
    """Hockney's alpha + n beta for each of ceil(log2 p) steps; LogP's L + 2o is such an alpha."""
    found = seconds("collective_broadcast", (2**levels,), payload, xb.Link(alpha=alpha, bandwidth=bandwidth))
    assert found == pytest.approx(levels * (alpha + payload / bandwidth))


def test_between_nodes_all_ports_of_a_node_work() -> None:
    """400 GB/s leave a node of eight H100: How To Scale Your Model, Part 12."""
    h100 = xb.machine("h100")
    cost = CollectiveCost(instruction("all_gather"), "", 16, 1, 1 << 34, algorithms("all_gather", 16, 1 << 34)[:1])
    across = collective_time(cost, h100, {}, [range(16)]).seconds
    assert across == pytest.approx((1 << 34) * 15 / 16 / 4e11 + 15 * 5e-6)
    spread = collective_time(cost, h100, {}, [range(0, 128, 8)]).seconds
    assert spread == pytest.approx((1 << 34) * 15 / 16 / 5e10 + 15 * 5e-6)
