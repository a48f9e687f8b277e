"""Commands whose modules are imported when the command is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module

import click
from attrs import define, field


@define
class LateCommands(MutableMapping[str, click.Command]):
    """Commands by name; `modules` has the module of each, which enters its commands here when it is imported."""

    modules: Mapping[str, str]
    _entered: dict[str, click.Command] = field(factory=dict)

    def __getitem__(self, name: str) -> click.Command:
        if name in self.modules and name not in self._entered:
            import_module(self.modules[name])
        return self._entered[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._entered[name] = command

    def __delitem__(self, name: str) -> None:
        del self._entered[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self.modules, **self._entered})

    def __len__(self) -> int:
        return len({*self.modules, *self._entered})

    def __contains__(self, name: object) -> bool:
        return name in self.modules or name in self._entered
