"""A host creates a cuBLAS handle between two launches; the creation waits for a collective that has begun."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import xbuild as xb
from examples.hangs.story import Inputs, Story

VALUE, SIGNAL = xb.f32[2], xb.s32[()]
HOST, GROUPS = 2, [[0, 1], [2]]
LAUNCH, IDLE = (1, 2), 3  # channels from the host to each device, and back from device 0


def send(signal: xb.Value, token: xb.Value, channel: int, name: str) -> xb.Value:
    sent = xb.send(signal, token, channel_id=channel, name=name)
    return xb.send_done(sent, channel_id=channel)


def wait(token: xb.Value, channel: int, name: str) -> xb.Value:
    posted = xb.recv(token, shape=SIGNAL, channel_id=channel)
    return xb.recv_done(posted, channel_id=channel, name=name)[1]


def device(number: int) -> xb.Module:
    def run(value: xb.Value) -> xb.Value:
        token = wait(xb.after_all(builder=value.builder), LAUNCH[number], "launched")
        with xb.control(after=[token]):
            total = xb.all_reduce(value, xb.add, replica_groups=GROUPS, name="all_reduce")
        if number == 0:
            with xb.control(after=[total]):
                send(xb.constant(value.builder, np.int32(0)), token, IDLE, "idle")
        return total

    return xb.Module(f"device{number}", xb.computation(VALUE)(run))


def group(host: Callable[[xb.Value], xb.Value]) -> xb.ModuleGroup:
    host_module = xb.Module("host", xb.computation(SIGNAL)(host))
    return xb.ModuleGroup({0: device(0), 1: device(1), HOST: host_module})


def broken() -> xb.ModuleGroup:
    def host(signal: xb.Value) -> xb.Value:
        token = send(signal, xb.after_all(builder=signal.builder), LAUNCH[0], "launch_device_0")
        token = wait(token, IDLE, "create_cublas_handle")
        return send(signal, token, LAUNCH[1], "launch_device_1")

    return group(host)


def fixed() -> xb.ModuleGroup:
    def host(signal: xb.Value) -> xb.Value:
        token = send(signal, xb.after_all(builder=signal.builder), LAUNCH[0], "launch_device_0")
        token = send(signal, token, LAUNCH[1], "launch_device_1")
        return wait(token, IDLE, "create_cublas_handle")

    return group(host)


ARGUMENTS = [[np.full(2, 1, np.float32)], [np.full(2, 2, np.float32)], [np.int32(0)]]
STORY = Story(
    title="An NCCL collective and cublasCreate deadlock on the first call",
    threads=("openxla/xla#5103", "openxla/xla#38932", "microsoft/onnxruntime#5430"),
    symptom="The first execution hangs while one thread creates a cuBLAS handle and an NCCL kernel runs.",
    cause=(
        "Creating the handle can wait until the device is idle. An NCCL kernel runs until all its devices have "
        "launched theirs, and the host launches the next one only after it has the handle."
    ),
    fix="Create handles before the first collective or after all launches, as XLA does at initialization.",
    omitted=(
        "The driver: that a call waits for the device is not in any program. Here device 2 is the host, each launch "
        "is a send, and the creation of the handle waits for a message from device 0."
    ),
    hanging=Inputs("any arguments", ARGUMENTS),
    results=[np.full(2, 3, np.float32), np.full(2, 3, np.float32), None],
    written_out=True,
)
