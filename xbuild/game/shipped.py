"""Shipped levels: their programs, texts and conditions, and the parts from which the programs are built."""

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
# A shipped level: its program, its text, and the conditions under which it is played.


@frozen
class ShippedLevel:
    """A shipped level; its title and text are the docstring of the function that makes its program."""

    number: int
    make: Callable[[], Module | ModuleGroup]
    send_buffers: float = 0
    infeed: Mapping[int, int] | None = None
    is_repair: bool = False

    @property
    def name(self) -> str:
        """The name of the level, which `xbuild play` accepts."""
        return self.make.__name__

    @property
    def title(self) -> str:
        return f"{self.number}. {self._parts[0].removesuffix('.')}"

    @property
    def telling(self) -> Telling:
        return Telling(self.title, self._parts[1], self.is_repair)

    @property
    def _parts(self) -> tuple[str, str]:
        title, _, text = (inspect.getdoc(self.make) or "").partition("\n\n")
        return title, text

    def level(self) -> Level:
        """The level: all states of its program."""
        return level_of(self.make(), name=self.name, send_buffers=self.send_buffers, infeed=self.infeed)

    def page(self, links: str = "") -> str:
        """The page of the level, as HTML, with `links` at its top."""
        return level_page(self.level(), self.telling, links)


LEVELS: dict[str, ShippedLevel] = {}
"""The levels by name."""


def level(
    number: int, *, send_buffers: float = 0, infeed: Mapping[int, int] | None = None, is_repair: bool = False
) -> Callable[[Callable[[], Module | ModuleGroup]], Callable[[], Module | ModuleGroup]]:
    """Return a decorator that registers a function, which makes a program, as the level of this number."""

    def enter(make: Callable[[], Module | ModuleGroup]) -> Callable[[], Module | ModuleGroup]:
        LEVELS[make.__name__] = ShippedLevel(number, make, send_buffers, infeed, is_repair)
        return make

    return enter


def in_order() -> list[ShippedLevel]:
    """All levels, by number."""
    return sorted(LEVELS.values(), key=lambda each: each.number)


# ----------------------------------------------------------------------------
# Parts from which the programs of levels are built: a sum over a group, a sent value, a received value.

Body = Callable[[Value], Sequence[Value]]


def group(*bodies: Body) -> ModuleGroup:
    """A group of programs, one for each device, each built by a function of one f32[2], whose values it returns."""
    return ModuleGroup([_module(f"device_{number}", body) for number, body in enumerate(bodies)])


def one_program(body: Body, devices: int) -> Module:
    """One program that all devices run."""
    return _module("program", body, devices)


def _module(name: str, body: Body, devices: int = 1) -> Module:
    builder = xb.Builder(name)
    x = xb.parameter(builder, number=0, shape=xb.f32[2], name="x")
    return Module(name, builder.build(xb.tuple_(*body(x))), num_replicas=devices)


def total(x: Value, name: str, channel: int, *groups: Sequence[int]) -> Value:
    """The sum of x over a group of devices, as an instruction of this name."""
    return xb.all_reduce(x, xb.add, channel_id=channel, replica_groups=groups, name=name)


def sent(x: Value, source: int, target: int, channel: int, after: Sequence[Value] = ()) -> Value:
    """Send x from one device to another; returns the token."""
    token = xb.after_all(*after) if after else xb.create_token(x.builder)
    pairs = [(source, target)]
    begun = xb.send(x, token, channel_id=channel, source_target_pairs=pairs, name=f"send_to_{target}")
    return xb.send_done(begun, channel_id=channel)


def received(x: Value, source: int, target: int, channel: int, after: Sequence[Value] = ()) -> tuple[Value, Value]:
    """Receive a value from another device; returns the value and the token."""
    token = xb.after_all(*after) if after else xb.create_token(x.builder)
    pairs = [(source, target)]
    posted = xb.recv(token, shape=x.shape, channel_id=channel, source_target_pairs=pairs, name=f"recv_from_{source}")
    value, token = xb.recv_done(posted, channel_id=channel, name=f"recv_done_from_{source}")
    return value, token
