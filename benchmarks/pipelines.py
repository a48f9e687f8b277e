"""Pipelines with one program per stage: 1F1B, interleaved 1F1B, and any order of passes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import xbuild as xb

Pass: TypeAlias = tuple[str, int, int]
"""F forward, B backward or W the gradient of weights; the chunk; the microbatch."""

N = 64
"""The extent of the square matrices that stages multiply."""


def pipeline(stages: int, microbatches: int, chunks: int = 1) -> xb.ModuleGroup:
    """Stages that pass activations forward and gradients back; a forward is one product, a backward two.

    With several chunks a stage has parts of the model in turn, as the interleaved schedule has it. All recvs are posted
    at the beginning. Source: D. Narayanan et al., Efficient large-scale language model training on GPU clusters using
    Megatron-LM (2021), section 2.2.
    """
    return pipeline_in_order(
        [[*_one_forward_one_backward(s, stages, microbatches, chunks)] for s in range(stages)], chunks
    )


def pipeline_in_order(orders: Sequence[Sequence[Pass]], chunks: int = 1) -> xb.ModuleGroup:
    """Stages that run these passes. Each is one product; a backward is two, unless the order has passes W."""
    return xb.ModuleGroup({s: _Stage(s, len(orders), chunks, order).module() for s, order in enumerate(orders)})


def ideal_bubble(stages: int, microbatches: int, chunks: int = 1) -> float:
    """The fraction of the time in which a stage idles: (p - 1) / (v * m + p - 1), by the same source."""
    return (stages - 1) / (chunks * microbatches + stages - 1)


def _one_forward_one_backward(stage: int, stages: int, microbatches: int, chunks: int) -> Iterator[Pass]:
    """The warm-up forwards, then forwards and backwards alternately, then the remaining backwards."""

    def forward(number: int) -> Pass:
        round_, within = divmod(number, stages * chunks)
        chunk, lane = divmod(within, stages)
        return "F", chunk, round_ * stages + lane

    def backward(number: int) -> Pass:
        _, chunk, microbatch = forward(number)
        return "B", chunks - 1 - chunk, microbatch

    total, ahead = microbatches * chunks, stages - stage - 1
    warm_up = min(ahead if chunks == 1 else 2 * ahead + (chunks - 1) * stages, total)
    yield from map(forward, range(warm_up))
    for n in range(total - warm_up):
        yield forward(warm_up + n)
        yield backward(n)
    yield from map(backward, range(total - warm_up, total))


class _Stage:
    """The program of one stage."""

    def __init__(self, stage: int, stages: int, chunks: int, order: Sequence[Pass]) -> None:
        self.stage, self.stages, self.chunks, self.order = stage, stages, chunks, order
        is_split = any(kind == "W" for kind, _, _ in order)
        self.products = {"F": 1, "B": 1 if is_split else 2, "W": 1}
        self.builder = xb.Builder(f"stage{stage}")
        self.weights = xb.parameter(self.builder, number=0, shape=xb.f32[N, N])
        self.token = xb.ops.after_all((), builder=self.builder)
        self.posted: dict[int, xb.Value] = {}

    def module(self) -> xb.Module:
        for each in self.order:
            channel = self._channel(*each, incoming=True)
            if channel is not None:
                self.posted[channel] = xb.ops.recv(self.token, shape=xb.f32[N, N], channel_id=channel)
        value = self.weights
        for each in self.order:
            value = self._step(*each)
        return xb.Module(f"stage{self.stage}", self.builder.build(value), is_scheduled=True)

    def _step(self, kind: str, chunk: int, microbatch: int) -> xb.Value:
        value, channel = self.weights, self._channel(kind, chunk, microbatch, incoming=True)
        if channel is not None:
            done = xb.ops.recv_done(self.posted[channel], channel_id=channel)
            value = xb.ops.get_tuple_element(done, index=0)
        for _ in range(self.products[kind]):
            value = xb.dot(value, self.weights)
        channel = self._channel(kind, chunk, microbatch, incoming=False)
        if channel is not None:
            xb.ops.send_done(xb.ops.send(value, self.token, channel_id=channel), channel_id=channel)
        return value

    def _channel(self, kind: str, chunk: int, microbatch: int, *, incoming: bool) -> int | None:
        """The channel to or from the neighbor in the chain of all chunks; None at its ends and for passes W."""
        place, last = chunk * self.stages + self.stage, self.chunks * self.stages - 1
        before = place if (kind == "F") == incoming else place + 1
        if kind == "W" or before == 0 or before == last + 1:
            return None
        return 1 + (microbatch * 2 + (kind == "B")) * (last + 1) + before
