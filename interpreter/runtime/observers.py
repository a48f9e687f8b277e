"""Observers of a run: functions that are called with the step, the device, the instruction and its value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeAlias

from attrs import define, field, frozen

from xbuild.core.graph import Instruction

from ..compiler.lines import Path, Stretch
from ..rules.denormals import as_user

Observer: TypeAlias = Callable[[int, int, Instruction, Any], None]


class PathObserver(ABC):
    """An observer that is called with the device, the call path and the value of each instruction."""

    @abstractmethod
    def __call__(self, device: int, path: Path, value: Any) -> None:
        """See one value."""


class MarkObserver(ABC):
    """An observer of executed instructions without values, which is called once for each stretch of them."""

    @property
    @abstractmethod
    def mark(self) -> Callable[[tuple[int, Stretch]], None]:
        """The function that is called with the device and the stretch that the device has executed."""


@define
class StepWatch(PathObserver):
    """An observer that numbers the steps of a run and passes each to a function."""

    observer: Observer
    step: int = 0

    def __call__(self, device: int, path: Path, value: Any) -> None:
        with as_user():
            self.observer(self.step, device, path[-1].instruction, value)
        self.step += 1


def as_path_observer(observer: AnyObserver) -> Watching:
    """The observer that the devices of a run call: the given one, or a StepWatch around a function."""
    return observer if isinstance(observer, PathObserver | MarkObserver) else StepWatch(observer)


Watching: TypeAlias = PathObserver | MarkObserver
AnyObserver: TypeAlias = Observer | Watching


@frozen
class Observation:
    """One observed value: the step, the device, the instruction and the value."""

    step: int
    device: int
    instruction: Instruction
    value: Any


@define
class Recorder:
    """An observer that keeps every value.

    >>> import xbuild as xb
    >>> seen = Recorder()
    >>> xb.evaluate(xb.computation(xb.f32[()])(lambda x: x * x + x), 3.0, observer=seen)
    np.float32(12.0)
    >>> [(event.instruction.name, float(event.value)) for event in seen.events]
    [('parameter.1', 3.0), ('multiply.2', 9.0), ('add.3', 12.0)]
    """

    events: list[Observation] = field(factory=list)

    def __call__(self, step: int, device: int, instruction: Instruction, value: Any) -> None:
        self.events.append(Observation(step, device, instruction, value))
