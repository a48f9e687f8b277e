"""Collective times that others have published, or hold in their tests, and the model of ours that is nearest."""

from __future__ import annotations

from attrs import frozen

import xbuild as xb

MB = 1024 * 1024
GIB = 1 << 30  # ASTRA-sim's GB/s is 2^30 bytes


@frozen
class Figure:
    """One figure: the collective, its devices by axis, its payload in bytes, the links, and the seconds.

    `model` says in which way the other model differs; empty where it is the same, and then the seconds are equal
    within half of the last digit that is printed (`digit`).
    """

    source: str
    kind: str
    sizes: tuple[int, ...]
    payload: int
    link: xb.Link
    seconds: float
    digit: float
    differs: str = ""


def _sol() -> xb.Link:
    """XLA's speed-of-light model with its test's settings: 8 devices with a port each, 100 us of preparation a chunk,
    100 us of round trip, shared by the 8 rings; 2.5 % of headers; 100 us of launch."""
    return xb.Link(alpha=(100e-6 + 100e-6) / 8, bandwidth=8 * 100e9 / 1.025, launch=100e-6)


def _sol_rows() -> list[Figure]:
    source = "XLA, sol_gpu_cost_model_test.cc"
    table = {"all_gather": (284, 485, 885), "all_reduce": (468, 870, 1670), "reduce_scatter": (284, 485, 885)}
    return [
        Figure(f"{source}, {kind} on {nodes} nodes", kind, (8 * nodes,), 8 * MB, _sol(), us * 1e-6, 1e-6)
        for kind, row in table.items()
        for nodes, us in zip((1, 2, 4), row, strict=True)
    ]


def _astra(hops: int, latency: float, gib: float) -> xb.Link:
    return xb.Link(alpha=hops * latency, bandwidth=gib * GIB)


_ASTRA = "ASTRA-sim, analytical network, test_congestion_unaware.cpp"
_BOOK = "How To Scale Your Model, Part 3"
_V5E, _V4P = xb.Link(alpha=1e-6, bandwidth=4.5e10, wraps=16), xb.Link(alpha=1e-6, bandwidth=4.5e10, wraps=4)
_NO_ALPHA = xb.Link(bandwidth=4.5e10, wraps=4)
_WHOLE = "the book sends the whole array and not its part (n-1)/n"

FIGURES = [
    *_sol_rows(),
    Figure(f"{_ASTRA}, Ring, 3 hops", "send", (2,), MB, _astra(3, 500e-9, 50), 21_031e-9, 1e-9),
    Figure(f"{_ASTRA}, FullyConnected", "send", (2,), MB, _astra(1, 500e-9, 50), 20_031e-9, 1e-9),
    Figure(f"{_ASTRA}, Switch", "send", (2,), MB, _astra(2, 500e-9, 50), 20_531e-9, 1e-9),
    Figure(f"{_ASTRA}, first dimension", "send", (2,), MB, _astra(1, 50e-9, 200), 4_932e-9, 1e-9),
    Figure(f"{_ASTRA}, second dimension", "send", (2,), MB, _astra(1, 500e-9, 100), 10_265e-9, 1e-9),
    Figure(f"{_ASTRA}, third dimension", "send", (2,), MB, _astra(2, 2e-6, 50), 23_531e-9, 1e-9),
    Figure(f"{_BOOK}, Pop Quiz 2, no wraparound", "all_gather", (4,), 2048 * 8192 * 2,
           xb.Link(bandwidth=4.5e10), 560e-6, 5e-6),
    Figure(f"{_BOOK}, Pop Quiz 2, both ways", "all_gather", (4,), 2048 * 8192 * 2, _NO_ALPHA, 377e-6, 1e-6, _WHOLE),
    Figure(f"{_BOOK}, Pop Quiz 2, small", "all_gather", (4,), 256 * 256 * 2, _V5E, 3e-6, 1e-6,
           "the book takes the larger of latency and bytes, and not their sum"),
    Figure(f"{_BOOK}, Question 2, part 1", "all_gather", (4,), 2 * 1024 * 4096 // 4, _NO_ALPHA, 23e-6, 1e-6, _WHOLE),
    Figure(f"{_BOOK}, Question 2, part 3", "all_gather", (4, 4), 2 * 1024 * 4096, _NO_ALPHA, 46e-6, 1e-6, _WHOLE),
    Figure(f"{_BOOK}, Question 3", "all_gather", (4,), 256, _V4P, 2e-6, 0.1e-6),
    Figure(f"{_BOOK}, AllToAll", "all_to_all", (16,), 2 * MB, xb.Link(bandwidth=5e10, wraps=16), 2 * MB * 16 / 4 / 1e11,
           1e-12),
    Figure("XLA, sol_gpu_cost_model_test.cc, all_to_all on 2 nodes", "all_to_all", (16,), 8 * MB, _sol(),
           1705e-6, 1e-6, "XLA counts the peers on other nodes, one after the other on one port, and no peer inside"),
    Figure("ASTRA-sim, test_congestion_aware.cpp, AllGatherOnRing", "all_gather", (16,), 16 * MB,
           xb.Link(alpha=500e-9, bandwidth=50 * GIB), 704_116e-9, 1e-9,
           "each chunk is sent apart along its way, and waits at each link for those before it"),
]  # fmt: skip
"""At least twenty figures; NVIDIA's formulas of bus bandwidth have a test of their own."""
