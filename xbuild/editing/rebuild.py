"""Rebuilds a module from changed computations: shapes in their callers are inferred again, other parts are shared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

from attrs import evolve

from shape_inference import compatible

from ..core.graph import Computation, Instruction, Module
from ..core.op import OPS
from ..properties.order import ordered
from .header import kept_annotations
from .refusals import inferred


class Revision(Protocol):
    """A revised computation: the keys of its instructions in order, and the version and operands of each key."""

    root: Instruction

    def __iter__(self) -> Iterator[Instruction]: ...
    def now(self, key: Instruction) -> Instruction: ...
    def operands(self, key: Instruction) -> tuple[Instruction, ...]: ...
    def control(self, key: Instruction) -> tuple[Instruction, ...]: ...


class Unchanged:
    """A computation whose own instructions are unchanged; the computations that it calls may have changed."""

    def __init__(self, computation: Computation) -> None:
        self.instructions, self.root = ordered(computation), computation.root

    def __iter__(self) -> Iterator[Instruction]:
        return iter(self.instructions)

    def now(self, key: Instruction) -> Instruction:
        return key

    def operands(self, key: Instruction) -> tuple[Instruction, ...]:
        return key.operands

    def control(self, key: Instruction) -> tuple[Instruction, ...]:
        return key.control


def rebuilt(
    module: Module,
    revisions: Mapping[Computation, Revision],
    *,
    names: Mapping[Computation, str] | None = None,
    only_called: bool = False,
) -> Module:
    """The module with these computations revised and renamed.

    Computations that the entry no longer calls are removed; with `only_called`, also those that it never called.
    """
    done: dict[Computation, Computation] = {}
    for computation in callees_first(module.computations):
        revision = revisions.get(computation)
        if revision is None and any(each in done for each in called_by(computation.instructions)):
            revision = Unchanged(computation)
        name = (names or {}).get(computation, computation.name)
        if revision is not None:
            done[computation] = revised(name, revision, done)
        elif name != computation.name:
            done[computation] = Computation(name, computation.instructions, computation.root)
    entry = done.get(module.entry, module.entry)
    called = {*entry.reachable()}
    wanted = called if only_called else called | {done.get(each, each) for each in _uncalled(module)}
    kept = [each for each in (done.get(each, each) for each in module.computations) if each in wanted]
    return evolve(
        module,
        entry=entry,
        computations=tuple(callees_first(kept)),
        annotations=kept_annotations(module.annotations, module.entry, entry),
    )


def _uncalled(module: Module) -> set[Computation]:
    """The computations that the entry does not call, directly or indirectly."""
    return {*module.computations} - {*module.entry.reachable()}


def called_by(instructions: Iterable[Instruction]) -> Iterator[Computation]:
    """The computations that the instructions call, in order."""
    for instruction in instructions:
        if OPS[instruction.opcode].regions:
            yield from instruction.called


def callees_first(
    computations: Iterable[Computation],
    calls: Callable[[Computation], Iterable[Computation]] = lambda each: called_by(each.instructions),
) -> Iterator[Computation]:
    """The computations and their callees in the given order, except that each callee precedes its callers."""
    seen: set[Computation] = set()
    for computation in computations:
        stack = [(computation, False)]
        while stack:
            each, is_done = stack.pop()
            if is_done and each not in seen:
                seen.add(each)
                yield each
            elif each not in seen:
                stack.append((each, True))
                stack += [(called, False) for called in reversed([*calls(each)]) if called not in seen]


def revised(name: str, revision: Revision, done: Mapping[Computation, Computation]) -> Computation:
    """The computation of a revision, with the revised computations of `done` in place of those that it called."""
    made: dict[Instruction, Instruction] = {}
    moved: set[Instruction] = set()  # instructions whose shape changed
    for key in revision:
        version = revision.now(key)
        operands = tuple([made.get(each, each) for each in revision.operands(key)])
        control = tuple([made.get(each, each) for each in revision.control(key)])
        attributes = _with_callees(version, done) if OPS[version.opcode].regions else version.attributes
        if operands != version.operands or control != version.control or attributes is not version.attributes:
            version = evolve(version, operands=operands, control=control, attributes=attributes)
            if attributes is not revision.now(key).attributes or (moved and not moved.isdisjoint(operands)):
                shape = inferred(version, operands, "what it calls has changed")
                if not compatible(shape, version.shape):
                    version = evolve(version, shape=shape)
                    moved.add(version)
        made[key] = version
    return Computation(name, tuple(made.values()), made[revision.root])


def _with_callees(instruction: Instruction, done: Mapping[Computation, Computation]) -> Any:
    """The attributes of an instruction with revised computations in place of those that it called."""
    changes: dict[str, Any] = {}
    for key, value in instruction.attribute_values().items():
        if isinstance(value, Computation) and value in done:
            changes[key] = done[value]
        elif isinstance(value, tuple) and any(isinstance(each, Computation) and each in done for each in value):
            changes[key] = tuple(done.get(each, each) for each in value)
    return evolve(instruction.attributes, **changes) if changes else instruction.attributes
