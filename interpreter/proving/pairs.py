"""Pairs of programs that should compute one function: a global one and that of each device, with layouts of arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from attrs import evolve, frozen

from shape_inference import Shape, TupleShape
from shape_inference.trees import flatten
from xbuild.core.graph import Computation, Instruction, Module, ModuleGroup, module_in
from xbuild.properties.effects import communicates
from xbuild.properties.mesh import Mesh
from xbuild.sharding.hlo_text import hlo_text, shardings
from xbuild.sharding.partition import Partitioned, partition
from xbuild.sharding.sharding import Axis, Placement, Sharding, shard_dims
from xbuild.sharding.stated_shardings import (
    RESULTS,
    mesh_of_program,
    on_one_mesh,
    sharding_of,
    with_stated_shardings,
)
from xbuild.sharding.unpartitioned import annotated_devices, is_per_device_in_part
from xbuild.text.annotations import read_frontend_text

from ..fields.draws import shapes_of
from ..fields.layouts import own_layouts
from .result_layouts import ResultLayouts, fits_all

Shardings = Sequence[Any] | None
"""A sharding for each array, or its slices for each device; None for an array, or for all, if nothing states it."""


@frozen(eq=False)
class ProgramPair:
    """Two programs as `equivalent` takes them, and the layouts of the first one's arrays on the devices of the second.

    `unstated` finds the layouts of results that neither program states; None if all are stated, or not needed. If the
    first program has parts for each device, `partitioned` gives its partition with such layouts.
    """

    one: Module | ModuleGroup
    other: Module | ModuleGroup
    inputs: Shardings = None
    outputs: Shardings = None
    unstated: ResultLayouts | None = None
    partitioned: Callable[[Shardings], Module] | None = None

    def variants(self) -> Iterator[tuple[ProgramPair, Shardings]]:
        """The pair for each layout of the results to try, with these layouts: the stated ones, or those of runs."""
        if self.unstated is None:
            yield self, self.outputs
            return
        for outputs in self.unstated.candidates():
            if self.partitioned is None:
                yield ProgramPair(self.one, self.other, self.inputs, outputs), outputs
            else:
                yield ProgramPair(self.partitioned(outputs), self.other), outputs


def pair_of(before: Any, after: Any, inputs: Shardings = None, outputs: Shardings = None) -> ProgramPair:
    """The pair of two programs, each of which is a program of any form that `equivalent` takes.

    The layouts are those that are given, those that `after` states, or those that `before` states, in this order. A
    global program with parts for each device (`jax.shard_map`) is partitioned first.
    """
    inputs = _own(after, "in") if inputs is None else inputs
    outputs = _own(after, "out") if outputs is None else outputs
    one, other = program_of(before), program_of(after)
    if isinstance(one, ModuleGroup) or isinstance(other, ModuleGroup) or not is_global(one, other):
        return ProgramPair(one, other, inputs, outputs)
    mesh = stated_mesh(one, other)
    inputs = _filled(inputs, stated_layouts(stated_inputs, (other, one), one, other, mesh))
    if outputs is None or None in outputs:
        outputs = _filled(outputs, stated_layouts(stated_outputs, (other, one), one, other, mesh))
    if outputs is None and _result_dims(one) == _result_dims(other):
        outputs = [None] * len(_result_dims(other))
    if is_global(other, one):
        return _global_pair(one, other, inputs, outputs, mesh)
    if is_per_device_in_part(one):
        return _pair_with_manual_parts(one, other, inputs, outputs, mesh)
    one = as_one_device(one)
    unstated = ResultLayouts(one, other, inputs, mesh) if outputs is None else None
    return ProgramPair(one, other, inputs, outputs, unstated)


def _filled(given: Shardings, stated: Shardings) -> Shardings:
    """The layouts that are given, with those that are stated in place of None."""
    if given is None or stated is None:
        return stated if given is None else given
    return [other if each is None else each for each, other in zip(given, stated, strict=True)]


def _own(given: Any, way: str) -> Shardings:
    """The layouts that an object with a module states."""
    found = own_layouts(given, way)
    return None if found is None else list(found)


def program_of(given: Any) -> Module | ModuleGroup:
    """The program that an object is or has; TypeError for any other object."""
    found = module_in(given, is_global=True)
    if isinstance(found, Computation):
        found = Module(found.name, found)
    if not isinstance(found, Module | ModuleGroup):
        raise TypeError(
            f"prove: expected a program, or a function that JAX has lowered or compiled, got {type(given).__name__}"
        )
    return found


def is_global(module: Module, other: Module) -> bool:
    """Whether a module is a global program, not that of each device, next to the other program of its pair.

    It is if it is annotated and not partitioned, if it is for one device and the other for several, or if it
    communicates nothing and its arrays are larger than those of the other.
    """
    if annotated_devices(module) > 1:
        return True
    if module.num_devices == 1:
        return other.num_devices > 1
    return module.num_devices == other.num_devices and not communicates(module.entry) and _is_larger(module, other)


def _is_larger(module: Module, other: Module) -> bool:
    """Whether some arrays of parameters and results are larger than those of the other module, and none are smaller."""
    rows = [shapes_of([*each.entry.parameters, each.entry.root]) for each in (module, other)]
    sizes = [(one.size, two.size) for one, two in zip(*rows, strict=False)]
    return all(one >= two for one, two in sizes) and any(one > two for one, two in sizes)


def _result_dims(module: Module) -> list[Any]:
    return [shape.dims for shape in shapes_of([module.entry.root])]


def stated_mesh(one: Module | ModuleGroup, other: Module | ModuleGroup) -> Mesh | None:
    """The mesh of the shardings of the one program, or of the other if it states none."""
    for module in (one, other):
        if isinstance(module, Module) and (module is other or annotated_devices(module)):
            return mesh_of_program(on_one_mesh(module))
    return None


def as_one_device(module: Module) -> Module:
    """A global program as that of one device."""
    return evolve(module, num_replicas=1, num_partitions=1)


def _global_pair(one: Module, other: Module, inputs: Shardings, outputs: Shardings, mesh: Mesh | None) -> ProgramPair:
    """The pair of two global programs; those with parts for each device are partitioned, in the same way."""
    if not is_per_device_in_part(one) and not is_per_device_in_part(other):
        return ProgramPair(as_one_device(one), as_one_device(other))
    cut = partition_as(other, inputs, outputs, mesh)
    inputs, outputs = flatten(cut.in_shardings), flatten(cut.out_shardings)
    if is_per_device_in_part(one):
        return ProgramPair(partition_as(one, inputs, outputs, mesh).module, cut.module)
    return ProgramPair(as_one_device(one), cut.module, inputs, outputs)


def _pair_with_manual_parts(
    one: Module, other: Module, inputs: Shardings, outputs: Shardings, mesh: Mesh | None
) -> ProgramPair:
    if outputs is not None:
        return ProgramPair(partition_as(one, inputs, outputs, mesh).module, other)
    full = partition_as(one, inputs, [None] * len(_result_dims(other)), mesh)
    unstated = ResultLayouts(full, other, inputs, mesh)
    return ProgramPair(
        one, other, unstated=unstated, partitioned=lambda layouts: partition_as(one, inputs, layouts, mesh).module
    )


def partition_as(module: Module, inputs: Shardings, outputs: Shardings, mesh: Mesh | None) -> Partitioned:
    """The partition of a global program with these shardings of parameters and results; None means replicated.

    A parameter keeps the sharding that the program states if `inputs` states none.
    """
    module = evolve(on_one_mesh(module, mesh), num_partitions=1)
    taken = None if inputs is None else _texts(inputs, module.entry.parameters, mesh)
    results = None if outputs is None else _texts(outputs, [module.entry.root], mesh)
    if results is not None and isinstance(module.entry.root.shape, TupleShape):
        results = [results[0].strip()[1:-1]]
    return partition(with_stated_shardings(module, taken, results, is_global=True), mesh=mesh)


def _texts(stated: Sequence[Any], instructions: Sequence[Instruction], mesh: Mesh | None) -> list[str]:
    """The texts of the shardings of values, each of which takes as many shardings as it has arrays."""
    found, rest = [], iter(stated)
    for instruction in instructions:
        several = [
            hlo_text(each, shape.rank) if (each := next(rest)) is not None else "{replicated}"
            for shape in shapes_of([instruction])
        ]
        found.append(several[0] if isinstance(instruction.shape, Shape) else f"{{{', '.join(several)}}}")
    return found


# ----------------------------------------------------------------------------
# The shardings that a program states


def stated_layouts(
    stated: Callable[[Module, Mesh | None], Shardings],
    texts: Iterable[Module],
    one: Module,
    other: Module,
    mesh: Mesh | None,
) -> Shardings:
    """The shardings of inputs or outputs that the first of these texts states that fit both programs.

    They fit if they split each array of the global program into that of the per-device program. Of two global programs,
    the shardings of the first text with any are taken; None if no text states them.
    """
    whole, local = (
        module.entry.parameters if stated is stated_inputs else [module.entry.root] for module in (one, other)
    )
    several = (found for text in texts if (found := stated(text, mesh)) is not None)
    return next((each for each in several if annotated_devices(other) > 1 or fits_all(each, whole, local)), None)


def stated_inputs(module: Module, mesh: Mesh | None) -> Shardings:
    """The shardings of the arrays of the parameters; None for an array without one, or if none is stated."""
    parameters = (on_one_mesh(module, mesh) if annotated_devices(module) else module).entry.parameters
    several = [sharding_of(value, mesh) for value in parameters]
    if all(each is None for each in several):
        return None
    return [each for found, value in zip(several, parameters, strict=True) for each in _of_arrays(found, value, mesh)]


def stated_outputs(module: Module, mesh: Mesh | None) -> Shardings:
    """The shardings of the arrays of the results, which the header or the root states; None if they are not stated."""
    module = on_one_mesh(module, mesh) if annotated_devices(module) else module
    notes = read_frontend_text(str(module.annotations.get("frontend_attributes", "{}")))
    found = shardings(notes[RESULTS], mesh) if RESULTS in notes else sharding_of(module.entry.root, mesh)
    return None if found is None else _of_arrays(found, module.entry.root, mesh)


def _of_arrays(found: Any, of: Instruction, mesh: Mesh | None) -> list[Any]:
    """A sharding for each array of a value; None for a placement other than unreduced, such as replicated."""
    several = list(found) if isinstance(found, tuple) else [found] * len(flatten(of.shape))
    pairs = zip(several, flatten(of.shape), strict=True)
    return [_sharding(each, mesh) for each, leaf in pairs if isinstance(leaf, Shape)]


def _sharding(found: Any, mesh: Mesh | None) -> Sharding | None:
    if isinstance(found, Placement) and found.kind == "unreduced" and mesh is not None:
        return shard_dims(mesh, (), [Axis(name, size) for name, size in mesh.sizes])
    return found if isinstance(found, Sharding) else None
