"""The option --partition: of an annotated program for one device a command treats what each device runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click
from attrs import define, evolve

from shape_inference import AnyShape

from ...core.graph import Module, ModuleGroup
from ...files.targets import Program
from ...properties.partitioning import not_partitioned
from .saying import say

if TYPE_CHECKING:
    from ...sharding.partition import Partitioned

PARTITION = "xbuild.partition"
_PARTS = "xbuild.parts"
_TOLD = "Partition an annotated program first, and treat what each device runs."


@define
class Parts:
    """A global program and its partition; `arguments` are the global arrays of a run, once they are read."""

    module: Module
    partitioned: Partitioned
    arguments: list[Any] | None = None

    @property
    def parameters(self) -> list[AnyShape]:
        """The shapes of the global arguments."""
        return list(self.partitioned.shapes)

    def cut(self, arguments: list[Any]) -> list[list[Any]]:
        """The arguments of each device, cut from global arrays, which are kept."""
        self.arguments = arguments
        return self.partitioned.arguments(*arguments)

    def joined(self, *several: list[Any]) -> tuple[list[AnyShape], ...]:
        """The shape of the global result, and the global results of several runs, each of which may be none."""
        return [self.partitioned.result], *([self.partitioned.joined(each)] if each else [] for each in several)

    def against_one_device(self, result: Any, **options: Any) -> list[Any]:
        """The comparison of each output with the run of the global program on one device."""
        from ...running import engines, execute

        module = evolve(self.module, num_partitions=1)
        one = execute(module, [self.arguments or []], **options)
        return engines.compare([result], one, [self.partitioned.result], engine="on one device")


def said_of(compared: Sequence[Any], what: str) -> Iterator[str]:
    """A line for each output of the whole program that is compared; `what` begins it in place of a device."""
    for each in compared:
        yield f"{what}  {str(each).partition('  ')[2]}"


def takes_partition(command: Any) -> Any:
    """A decorator that adds the option --partition to a command; `load` of its group does what it says."""

    def keep(context: click.Context, _: click.Parameter, is_given: bool) -> None:
        context.meta[PARTITION] = is_given

    return click.option("--partition", is_flag=True, expose_value=False, callback=keep, help=_TOLD)(command)


def partitioned(program: Program) -> Module:
    """What each device runs of a program that is annotated with shardings; `parts` gives how that was made."""
    from ...sharding.partition import partition

    if isinstance(program, ModuleGroup):
        raise click.UsageError("--partition is of one program for all devices, and this is one for each device")
    module = program if isinstance(program, Module) else Module(program.name, program)
    found = Parts(module, partition(module))
    click.get_current_context().meta[_PARTS] = found
    return found.partitioned.module


def parts() -> Parts | None:
    """The partition of the command's program; None where --partition is not given."""
    context = click.get_current_context(silent=True)
    found = None if context is None else context.meta.get(_PARTS)
    assert found is None or isinstance(found, Parts)
    return found


def say_not_partitioned(program: Program, is_treated: str) -> None:
    """Tell on stderr of modules that are not partitioned yet, and how `is_treated` what each device would run."""
    several = program.modules.values() if isinstance(program, ModuleGroup) else (program,)
    for module in dict.fromkeys(each for each in several if isinstance(each, Module)):
        if note := not_partitioned(module, is_treated):
            say(f"notice: {note}; with --partition what each device runs is {is_treated}", err=True)
