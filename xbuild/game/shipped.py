"""What a level that ships has: its program, its words, its conditions; and the parts that programs are made of."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence

from attrs import frozen

import xbuild as xb

from ..core.builder import Value
from ..core.graph import Module, ModuleGroup
from .level import Level, level_of
from .page import Telling, level_page

# ----------------------------------------------------------------------------
# What a level that ships has: its program, its words, and under which conditions it is played.


@frozen
class ShippedLevel:
    """A level that ships; its title and text are the docstring of the function that makes its program."""

    number: int
    make: Callable[[], Module | ModuleGroup]
    send_buffers: float = 0
    infeed: Mapping[int, int] | None = None
    is_repair: bool = False

    @property
    def name(self) -> str:
        """The name of the level, as `xbuild play` takes it."""
        return self.make.__name__

    @property
    def title(self) -> str:
        return f"{self.number}. {self._parts[0].removesuffix('.')}"

    @property
    def _parts(self) -> tuple[str, str]:
        title, _, text = (inspect.getdoc(self.make) or "").partition("\n\n")
        return title, text

    def level(self) -> Level:
        """The states of the level."""
        return level_of(self.make(), name=self.name, send_buffers=self.send_buffers, infeed=self.infeed)

    def page(self) -> str:
        """The page of the level, as HTML."""
        return level_page(self.level(), Telling(self.title, self._parts[1], self.is_repair))


LEVELS: dict[str, ShippedLevel] = {}
"""The levels by name."""


def level(
    number: int, *, send_buffers: float = 0, infeed: Mapping[int, int] | None = None, is_repair: bool = False
) -> Callable[[Callable[[], Module | ModuleGroup]], Callable[[], Module | ModuleGroup]]:
    """Enter a function that makes a program as the level of a number."""

    def enter(make: Callable[[], Module | ModuleGroup]) -> Callable[[], Module | ModuleGroup]:
        LEVELS[make.__name__] = ShippedLevel(number, make, send_buffers, infeed, is_repair)
        return make

    return enter


def in_order() -> list[ShippedLevel]:
    """All levels, in the order in which they are played."""
    return sorted(LEVELS.values(), key=lambda each: each.number)


# ----------------------------------------------------------------------------
# Parts of which the programs of levels are made: a sum over a group, a value sent, a value received.

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
