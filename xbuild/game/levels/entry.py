"""What a level that ships has: its program, its words, and under which conditions it is played."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping

from attrs import frozen

from ...core.graph import Module, ModuleGroup
from ..level import Level, level_of
from ..page import Telling, level_page


@frozen
class Entry:
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


LEVELS: dict[str, Entry] = {}
"""The levels by name."""


def level(
    number: int, *, send_buffers: float = 0, infeed: Mapping[int, int] | None = None, is_repair: bool = False
) -> Callable[[Callable[[], Module | ModuleGroup]], Callable[[], Module | ModuleGroup]]:
    """Enter a function that makes a program as the level of a number."""

    def enter(make: Callable[[], Module | ModuleGroup]) -> Callable[[], Module | ModuleGroup]:
        LEVELS[make.__name__] = Entry(number, make, send_buffers, infeed, is_repair)
        return make

    return enter


def in_order() -> list[Entry]:
    """All levels, in the order in which they are played."""
    return sorted(LEVELS.values(), key=lambda each: each.number)
