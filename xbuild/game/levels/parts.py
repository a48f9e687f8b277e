"""Parts of which the programs of levels are made: a sum over a group, a value sent, a value received."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import xbuild as xb

from ...core.builder import Value
from ...core.graph import Module, ModuleGroup

Body = Callable[[Value], Sequence[Value]]


def group(*bodies: Body) -> ModuleGroup:
    """A program for each device, made of a function of one f32[2]; what the function returns is kept."""
    return ModuleGroup([_module(f"device_{number}", body) for number, body in enumerate(bodies)])


def one_program(body: Body, devices: int) -> Module:
    """One program for all devices."""
    return _module("program", body, devices)


def _module(name: str, body: Body, devices: int = 1) -> Module:
    builder = xb.Builder(name)
    x = xb.parameter(builder, number=0, shape=xb.f32[2], name="x")
    return Module(name, builder.build(xb.tuple_(*body(x))), num_replicas=devices)


def total(x: Value, name: str, channel: int, *groups: Sequence[int]) -> Value:
    """The sum of x over a group of devices, by name."""
    return xb.all_reduce(x, xb.add, channel_id=channel, replica_groups=groups, name=name)


def sent(x: Value, source: int, target: int, channel: int, after: Sequence[Value] = ()) -> Value:
    """The token of x sent from one device to another."""
    token = xb.after_all(*after) if after else xb.create_token(x.builder)
    pairs = [(source, target)]
    begun = xb.send(x, token, channel_id=channel, source_target_pairs=pairs, name=f"send_to_{target}")
    return xb.send_done(begun, channel_id=channel)


def received(x: Value, source: int, target: int, channel: int, after: Sequence[Value] = ()) -> tuple[Value, Value]:
    """The value that one device receives from another, and its token."""
    token = xb.after_all(*after) if after else xb.create_token(x.builder)
    pairs = [(source, target)]
    posted = xb.recv(token, shape=x.shape, channel_id=channel, source_target_pairs=pairs, name=f"recv_from_{source}")
    value, token = xb.recv_done(posted, channel_id=channel, name=f"recv_done_from_{source}")
    return value, token
