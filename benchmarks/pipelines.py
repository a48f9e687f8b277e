"""Pipelines with one program per stage: 1F1B and interleaved 1F1B, each with its schedule."""

from __future__ import annotations

from collections.abc import Iterator

import xbuild as xb

N = 64
"""The extent of the square matrices that stages multiply."""


def pipeline(stages: int, microbatches: int, chunks: int = 1) -> xb.ModuleGroup:
    """Stages that pass activations forward and gradients back; a forward is one product, a backward two.

    With several chunks a stage has parts of the model in turn, as the interleaved schedule has it. All recvs are posted
    at the beginning. Source: D. Narayanan et al., Efficient large-scale language model training on GPU clusters using
    Megatron-LM (2021), section 2.2.
    """
    return xb.ModuleGroup({s: _Stage(s, stages, microbatches, chunks).module() for s in range(stages)})


def ideal_bubble(stages: int, microbatches: int, chunks: int = 1) -> float:
    """The fraction of the time in which a stage idles: (p - 1) / (v * m + p - 1), by the same source."""
    return (stages - 1) / (chunks * microbatches + stages - 1)


class _Stage:
    """The program of one stage."""

    def __init__(self, stage: int, stages: int, microbatches: int, chunks: int) -> None:
        self.stage, self.stages, self.microbatches, self.chunks = stage, stages, microbatches, chunks
        self.builder = xb.Builder(f"stage{stage}")
        self.weights = xb.parameter(self.builder, number=0, shape=xb.f32[N, N])
        self.token = xb.ops.after_all((), builder=self.builder)
        self.posted: dict[int, xb.Value] = {}

    def module(self) -> xb.Module:
        steps = [*self._schedule()]
        for is_forward, chunk, microbatch in steps:
            channel = self._channel(is_forward, chunk, microbatch, incoming=True)
            if channel is not None:
                self.posted[channel] = xb.ops.recv(self.token, shape=xb.f32[N, N], channel_id=channel)
        value = self.weights
        for step in steps:
            value = self._step(*step)
        return xb.Module(f"stage{self.stage}", self.builder.build(value), is_scheduled=True)

    def _step(self, is_forward: bool, chunk: int, microbatch: int) -> xb.Value:
        value, channel = self.weights, self._channel(is_forward, chunk, microbatch, incoming=True)
        if channel is not None:
            done = xb.ops.recv_done(self.posted[channel], channel_id=channel)
            value = xb.ops.get_tuple_element(done, index=0)
        for _ in range(1 if is_forward else 2):
            value = xb.dot(value, self.weights)
        channel = self._channel(is_forward, chunk, microbatch, incoming=False)
        if channel is not None:
            xb.ops.send_done(xb.ops.send(value, self.token, channel_id=channel), channel_id=channel)
        return value

    def _channel(self, is_forward: bool, chunk: int, microbatch: int, *, incoming: bool) -> int | None:
        """The channel to or from the neighbor in the chain of all chunks; None at its ends."""
        place, last = chunk * self.stages + self.stage, self.chunks * self.stages - 1
        before = place if is_forward == incoming else place + 1
        if before == 0 or before == last + 1:
            return None
        return 1 + (microbatch * 2 + (not is_forward)) * (last + 1) + before

    def _schedule(self) -> Iterator[tuple[bool, int, int]]:
        """The warm-up forwards, then forwards and backwards alternately, then the remaining backwards."""
        total = self.microbatches * self.chunks
        ahead = self.stages - self.stage - 1
        warm_up = min(ahead if self.chunks == 1 else 2 * ahead + (self.chunks - 1) * self.stages, total)
        yield from (self._forward(n) for n in range(warm_up))
        for n in range(total - warm_up):
            yield self._forward(warm_up + n)
            yield self._backward(n)
        yield from (self._backward(n) for n in range(total - warm_up, total))

    def _forward(self, number: int) -> tuple[bool, int, int]:
        round_, within = divmod(number, self.stages * self.chunks)
        chunk, lane = divmod(within, self.stages)
        return True, chunk, round_ * self.stages + lane

    def _backward(self, number: int) -> tuple[bool, int, int]:
        _, chunk, microbatch = self._forward(number)
        return False, self.chunks - 1 - chunk, microbatch
