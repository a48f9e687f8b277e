"""Detection of parameters that a program's annotations declare equal on several devices and whose arguments differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from xbuild.checking.dataflow.agreement import Labels
from xbuild.checking.dataflow.analysis import flat
from xbuild.checking.dataflow.promises import promised
from xbuild.checking.dataflow.replication import Replication, varies
from xbuild.checking.model.program import grid_of, program_of
from xbuild.core.graph import Instruction, Module, ModuleGroup

from ..rules.lines import Place
from ..rules.standing import Standing
from .ledger import Ledger
from .table import Spotted

_NOTES = ("parameter_replication", "sharding")


def check_promises(program: Module | ModuleGroup, arguments: Sequence[tuple[Any, ...]], ledger: Ledger) -> None:
    """Record each parameter whose arguments differ between devices although its annotations declare them equal."""
    for each in program_of(program).freed().classes:
        told = [p for p in each.module.entry.parameters if any(note in p.annotations for note in _NOTES)]
        walk = Replication(varies, each.devices, *grid_of(program)) if told else None
        for parameter in told:
            assert walk is not None
            reading = promised(walk, parameter)
            rows = [[*_leaves(arguments[d][parameter.attributes.number])] for d in each.devices]
            for leaf, agreement in enumerate(() if reading is None else flat(reading)):
                column = [row[leaf] for row in rows]
                _compare(parameter, leaf, agreement.labels, each.devices, column, ledger)


def _compare(
    parameter: Instruction, leaf: int, labels: Labels, devices: Sequence[int], column: Sequence[Any], ledger: Ledger
) -> None:
    first: dict[int, int] = {}
    for place, label in enumerate(labels):
        other = first.setdefault(label, place)
        if column[other] is not column[place] and column[other].tobytes() != column[place].tobytes():
            notes = ", ".join(
                f"{note}={parameter.annotations[note]}" for note in _NOTES if note in parameter.annotations
            )
            what = f"{notes}: equal to that of device {devices[other]}, and it is not"
            values = ((f"on device {devices[place]}", column[place]), (f"on device {devices[other]}", column[other]))
            spotted = Spotted("promise_broken", what, values=values, part=leaf)
            ledger.keep(devices[place], spotted, Standing((Place(parameter),), (None,)))


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for each in value:
            yield from _leaves(each)
    else:
        yield np.asarray(value)
