"""Canonical names and order of instructions: programs of equal structure get equal text."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from attrs import evolve

from ..core.graph import Computation, Instruction, Module
from ..properties.structure import Structure, structure_of
from .rebuild import Program, Unchanged, apply_edit, called_by, callees_first, rebuild_module


class _Renamed(Unchanged):
    """A computation with its instructions reordered and renamed."""

    def __init__(self, computation: Computation, order: tuple[Instruction, ...], count: Iterator[int]) -> None:
        super().__init__(computation)
        self.instructions = order
        self.names = {each: f"{each.opcode.replace('_', '-')}.{next(count)}" for each in order}

    def current(self, key: Instruction) -> Instruction:
        return evolve(key, name=self.names[key])


def canonical(program: Program) -> Program:
    """Return the program with names and an order that depend only on its structure.

    Instructions are named `opcode.N`, the entry `main`, and other computations `computation.N`. A scheduled program
    keeps its order. Programs with the same structure (see `same_structure`) get the same names in the same order.

    >>> import xbuild as xb
    >>> module = xb.parse_hlo("ENTRY e { x = f32[2] parameter(0) b = negate(x) a = tanh(x) ROOT c = add(a, b) }")
    >>> print(xb.canonical(module).entry)
    ENTRY main {
      parameter.1 = f32[2] parameter(0)
      tanh.2 = f32[2] tanh(parameter.1)
      negate.3 = f32[2] negate(parameter.1)
      ROOT add.4 = f32[2] add(tanh.2, negate.3)
    }
    """
    return apply_edit(_rename_all, program)


def _rename_all(module: Module) -> Module:
    structure = structure_of(module)
    count = itertools.count(1)
    called = _callers_first(module, structure)
    revisions = {each: _Renamed(each, structure.order(each), count) for each in called}
    names = {each: f"computation.{n}" for n, each in enumerate(called)} | {module.entry: "main"}
    renamed = rebuild_module(module, revisions, names=names)
    place = {name: n for n, name in enumerate(names.values())}
    ordered = sorted(renamed.computations, key=lambda each: place[each.name], reverse=True)
    return evolve(renamed, computations=ordered)


def _callers_first(module: Module, structure: Structure) -> list[Computation]:
    """The entry and the computations that it calls, callers first; then the computations that it does not call."""
    uncalled = sorted({*module.computations} - {*module.entry.reachable()}, key=structure.of)
    found = list(callees_first((module.entry, *uncalled), lambda each: called_by(structure.order(each))))
    split = found.index(module.entry) + 1
    return [*reversed(found[:split]), *reversed(found[split:])]
