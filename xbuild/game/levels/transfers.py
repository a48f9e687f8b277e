"""Levels of send and recv."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.builder import Value
from ...core.graph import ModuleGroup
from ..shipped import Body, group, level, received, sent


@level(1)
def one_send_one_recv() -> ModuleGroup:
    """One send and one recv.

    Device 0 sends to device 1. A send waits until its receiver has posted a buffer. A recv posts the buffer and returns
    at once.
    """
    return group(lambda x: [sent(x, 0, 1, 1)], lambda x: [*received(x, 0, 1, 1)])


def _swap(device: int) -> Body:
    other = 1 - device
    return lambda x: [sent(x, device, other, 1 + device), *received(x, other, device, 1 + other)]


@level(9)
def swap() -> ModuleGroup:
    """Two devices swap.

    Each device sends a value to the other device and receives one. The program does not say which comes first.
    """
    return group(_swap(0), _swap(1))


def _send_first(device: int) -> Body:
    def body(x: Value) -> Sequence[Value]:
        other = 1 - device
        token = sent(x, device, other, 1 + device)
        return received(x, other, device, 1 + other, [token])

    return body


@level(10)
def both_send_first() -> ModuleGroup:
    """Both send first.

    The devices swap values, but on both devices the recv takes the token of the send, so it follows the send.
    """
    return group(_send_first(0), _send_first(1))


@level(11, send_buffers=1)
def both_send_first_with_a_buffer() -> ModuleGroup:
    """Both send first, with a buffer.

    The program is that of level 10, but the machine has a buffer for one message of each channel. A send into the
    buffer completes before its recv is posted.
    """
    return group(_send_first(0), _send_first(1))


def _passed(device: int, devices: int) -> Body:
    def body(x: Value) -> Sequence[Value]:
        before, after = (device - 1) % devices, (device + 1) % devices
        return [sent(x, device, after, 1 + device), *received(x, before, device, 1 + before)]

    return body


@level(12)
def ring_of_three() -> ModuleGroup:
    """A ring of three.

    Each device sends to the next device and receives from the previous one. How many devices must start with the wrong
    move?
    """
    return group(*[_passed(device, 3) for device in range(3)])


@level(13)
def pipeline() -> ModuleGroup:
    """A pipeline of two stages.

    Stage 0 sends two values to stage 1. Stage 1 sends the first result back before it receives the second value.
    """

    def first(x: Value) -> Sequence[Value]:
        token = sent(x, 0, 1, 1)
        other = sent(x, 0, 1, 2, [token])
        return [other, *received(x, 1, 0, 3)]

    def second(x: Value) -> Sequence[Value]:
        value, token = received(x, 0, 1, 1)
        back = sent(value, 1, 0, 3, [token])
        return received(x, 0, 1, 2, [back])

    return group(first, second)
