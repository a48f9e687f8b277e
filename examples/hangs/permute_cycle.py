"""A compiler pass makes each of two permutes wait for the other one; their sends and receives then wait in a cycle."""

from __future__ import annotations

import numpy as np

import xbuild as xb
from examples.hangs.story import Inputs, Story

VALUE = xb.f32[2]


def post(name: str, channel: int, pair: tuple[int, int], builder: xb.Builder) -> xb.Value:
    token = xb.after_all(builder=builder)
    return xb.recv(token, shape=VALUE, channel_id=channel, source_target_pairs=[pair], name=f"post_{name}")


def send(value: xb.Value, name: str, channel: int, pair: tuple[int, int], after: list[xb.Value]) -> None:
    token = xb.after_all(builder=value.builder)
    with xb.control(after=after):
        sent = xb.send(value, token, channel_id=channel, source_target_pairs=[pair], name=f"send_{name}")
    xb.send_done(sent, channel_id=channel)


def broken() -> xb.Module:
    def step(value: xb.Value) -> xb.Value:
        forward = post("forward", 1, (0, 1), value.builder)
        backward = post("backward", 2, (1, 0), value.builder)
        from_before, _ = xb.recv_done(forward, channel_id=1, name="receive_forward")
        from_next, _ = xb.recv_done(backward, channel_id=2, name="receive_backward")
        send(value, "forward", 1, (0, 1), after=[from_next])
        send(value, "backward", 2, (1, 0), after=[from_before])
        return from_before + from_next

    return xb.Module("step", xb.computation(VALUE)(step), num_replicas=2)


def fixed() -> xb.Module:
    def step(value: xb.Value) -> xb.Value:
        forward = post("forward", 1, (0, 1), value.builder)
        backward = post("backward", 2, (1, 0), value.builder)
        from_before, _ = xb.recv_done(forward, channel_id=1, name="receive_forward")
        from_next, _ = xb.recv_done(backward, channel_id=2, name="receive_backward")
        send(value, "forward", 1, (0, 1), after=[])
        send(value, "backward", 2, (1, 0), after=[from_before])
        return from_before + from_next

    return xb.Module("step", xb.computation(VALUE)(step), num_replicas=2)


STORY = Story(
    title="XLA detects a cycle while visiting a collective-permute, if pipeline parallelism is optimized",
    threads=("AI-Hypercomputer/maxtext#2739",),
    symptom="Compilation of a pipelined training step fails: a cycle goes through a collective-permute.",
    cause=(
        "The passes that pipeline permutes add control edges. If the edges make two permutes wait for each other, no "
        "order can run them."
    ),
    fix="Add only the edges of one order: the second permute after the first.",
    omitted=(
        "The refusal: XLA sees the cycle while a permute is one instruction, so the job never ran. Here each permute "
        "is a send and a receive. Then the program of a device has no cycle, and the same two edges hang the devices. "
        "The thread does not show the edges; these are the smallest that make such a cycle."
    ),
    hanging=Inputs("any arguments", [[np.full(2, rank + 1, np.float32)] for rank in range(2)]),
    results=[np.full(2, 2, np.float32), np.full(2, 1, np.float32)],
)
