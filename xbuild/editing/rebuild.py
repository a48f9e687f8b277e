"""Rebuilding a module from changed computations: shapes in callers are inferred again, valid annotations are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from attrs import evolve

from shape_inference import AnyShape, Dims, TupleShape, compatible

from ..core.graph import Computation, Instruction, Module
from ..core.op import OPS
from ..properties.order import ordered
from ..properties.rewriting import with_called
from ..text.header import ALIASES, DONORS, LAYOUT, Alias, Donor, entries_text, stated_aliases, stated_donors
from .refusals import infer_edited_shape

Entry = TypeVar("Entry", bound=Donor)

# ----------------------------------------------------------------------------
# Header annotations that describe the entry: an edit keeps those that are still valid

_PARAMETERS, _OUTPUT = (f"allow_spmd_sharding_propagation_to_{word}" for word in ("parameters", "output"))


def kept_annotations(annotations: Mapping[str, Any], before: Computation, after: Computation) -> Mapping[str, Any]:
    """The annotations that hold for the new entry: those about parameters and results whose shapes are unchanged."""
    if before is after or not annotations:
        return annotations
    shapes = [parameter.shape for parameter in after.parameters]
    was = [parameter.shape for parameter in before.parameters]
    is_same = [compatible(new, old) for new, old in zip(shapes, was, strict=False)]
    same_parameters = len(shapes) == len(was) and all(is_same)
    same_result = compatible(before.root.shape, after.root.shape)
    if same_parameters and same_result:
        return annotations

    def is_donor(each: Donor) -> bool:
        return each.number < len(is_same) and is_same[each.number]

    def is_alias(each: Alias) -> bool:
        return is_donor(each) and _is_same_at(each.output, before.root.shape, after.root.shape)

    kept = dict(annotations)
    _filter(kept, ALIASES, stated_aliases(kept), is_alias)
    _filter(kept, DONORS, stated_donors(kept), is_donor)
    kept.pop(LAYOUT, None)
    for key, holds in ((_PARAMETERS, same_parameters), (_OUTPUT, same_result)):
        if not holds and str(kept.get(key, "")).startswith("{"):
            kept.pop(key)
    return kept


def _filter(kept: dict[str, Any], key: str, entries: Sequence[Entry], holds: Callable[[Entry], bool]) -> None:
    """Remove the entries of an annotation that no longer hold, and the annotation if no entry is left."""
    left = [each for each in entries if holds(each)]
    if len(left) < len(entries):
        kept.pop(key)
        if left:
            kept[key] = entries_text(left)


def _is_same_at(index: Dims, before: AnyShape, after: AnyShape) -> bool:
    """Whether both results have the same shape at an index."""
    for each in index:
        for shape in (before, after):
            if not isinstance(shape, TupleShape) or each >= len(shape):
                return False
        before, after = before.elements[each], after.elements[each]  # type: ignore[union-attr]
    return compatible(before, after)


# ----------------------------------------------------------------------------
# Rebuilding: shapes in callers are inferred again, and unchanged parts are shared


class Revision(Protocol):
    """A revised computation: the keys of its instructions in order, and the version and operands of each key."""

    root: Instruction

    def __iter__(self) -> Iterator[Instruction]: ...
    def current(self, key: Instruction) -> Instruction: ...
    def operands(self, key: Instruction) -> tuple[Instruction, ...]: ...
    def control(self, key: Instruction) -> tuple[Instruction, ...]: ...


class Unchanged:
    """A computation whose own instructions are unchanged; the computations that it calls may have changed."""

    def __init__(self, computation: Computation) -> None:
        self.instructions, self.root = ordered(computation), computation.root

    def __iter__(self) -> Iterator[Instruction]:
        return iter(self.instructions)

    def current(self, key: Instruction) -> Instruction:
        return key

    def operands(self, key: Instruction) -> tuple[Instruction, ...]:
        return key.operands

    def control(self, key: Instruction) -> tuple[Instruction, ...]:
        return key.control


def rebuild_module(
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
            done[computation] = revise_computation(name, revision, done)
        elif name != computation.name:
            done[computation] = Computation(name, computation.instructions, computation.root)
    entry = done.get(module.entry, module.entry)
    called = {*entry.reachable()}
    wanted = called if only_called else called | {done.get(each, each) for each in _find_uncalled(module)}
    kept = [each for each in (done.get(each, each) for each in module.computations) if each in wanted]
    return evolve(
        module,
        entry=entry,
        computations=tuple(callees_first(kept)),
        annotations=kept_annotations(module.annotations, module.entry, entry),
    )


def _find_uncalled(module: Module) -> set[Computation]:
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


def revise_computation(name: str, revision: Revision, done: Mapping[Computation, Computation]) -> Computation:
    """The computation of a revision, with the revised computations of `done` in place of those that it called."""
    made: dict[Instruction, Instruction] = {}
    moved: set[Instruction] = set()  # instructions whose shape changed
    for key in revision:
        version = revision.current(key)
        operands = tuple([made.get(each, each) for each in revision.operands(key)])
        control = tuple([made.get(each, each) for each in revision.control(key)])
        attributes = version.attributes
        if OPS[version.opcode].regions:
            attributes = with_called(version, [done.get(each, each) for each in version.called])
        if operands != version.operands or control != version.control or attributes is not version.attributes:
            version = evolve(version, operands=operands, control=control, attributes=attributes)
            if attributes is not revision.current(key).attributes or (moved and not moved.isdisjoint(operands)):
                shape = infer_edited_shape(version, operands, "its callee has changed")
                if not compatible(shape, version.shape):
                    version = evolve(version, shape=shape)
                    moved.add(version)
        made[key] = version
    return Computation(name, tuple(made.values()), made[revision.root])


# ----------------------------------------------------------------------------
# Applying an edit of modules to a computation, as the entry of a module

Program = TypeVar("Program", Module, Computation)


def module_of(program: Module | Computation) -> Module:
    return program if isinstance(program, Module) else Module(program.name, program)


def apply_edit(edit: Callable[[Module], Module], program: Program) -> Program:
    """Apply an edit to a module, or to the module of a computation; the result is of the same type as the program."""
    given: Any = program
    edited: Any = edit(module_of(given))
    return edited if isinstance(given, Module) else edited.entry  # type: ignore[no-any-return]
