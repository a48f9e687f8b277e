"""Shrinking: a module on fewer devices, with smaller arrays and constants, and without attributes that only annotate.

Sections:

    Extents of dimensions: sizes in attributes follow, and all shapes are inferred again
    Devices, groups and source-target pairs
    Constants, among them trip counts
    Annotations, layouts, control edges, the schedule
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from attrs import evolve

from shape_inference import AnyShape, Dims, Shape, TokenShape, TupleShape, compatible
from shape_inference.elided import ElidedArray
from shape_inference.trees import leaves, map_leaves

from ..core.graph import NOTHING, Instruction, Module
from ..editing.rebuild import kept_annotations
from ..editing.refusals import infer_edited_shape
from ..properties.device_groups import strategy
from ..properties.rewriting import Rewriter, mapped
from .cuts import Part, callers_first

# ----------------------------------------------------------------------------
# Extents of dimensions: sizes in attributes follow, and all shapes are inferred again

Resize: TypeAlias = Callable[[int], int]

_SPELLED = frozenset({"literal"})
"""Annotations that keep the spelling of a value, and go with it."""

_SIZES = frozenset(
    {"sizes", "new_sizes", "new_size_bounds", "dynamic_slice_sizes", "slice_sizes", "fft_length", "length"}
)
"""Attributes that state extents."""


Extents: TypeAlias = tuple[str, int, int]
"""A change of extents: `most` bounds all, `one` replaces one extent, `divide` divides it and its multiples."""


_FEW = 16
"""Extents up to this one are also made smaller by one."""


def smaller_extents(module: Module) -> list[Extents]:
    """Smaller extents: all of them at once, then each one, and each with its multiples."""
    changes = [("most", 0, most) for most in (1, 2, 4)]
    for extent in sorted(_extents(module), reverse=True):
        parts = (1, 2, extent // 2, extent - extent // 4, extent - extent // 8, extent - (extent <= _FEW))
        changes += [("one", extent, less) for less in dict.fromkeys(parts) if 0 < less < extent]
        changes += [("divide", extent, by) for by in (extent, 2) if extent % by == 0]
    return changes


def with_extents(module: Module, changes: Collection[Extents]) -> Iterator[Module]:
    """The module with smaller extents; raises what the rules of the ops raise."""
    ((how, extent, number),) = changes
    resize: Mapping[str, Resize] = {
        "most": lambda each: min(each, number),
        "one": lambda each: number if each == extent else each,
        "divide": lambda each: each // number if each and each % extent == 0 else each,
    }
    yield _inferred(module, _Resizing(resize[how]).change)


def _extents(module: Module) -> set[int]:
    return {
        extent
        for computation in module.computations
        for instruction in computation.instructions
        for leaf in leaves(instruction.shape)
        if isinstance(leaf, Shape)
        for extent in leaf.dims
        if extent > 1
    }


def _inferred(module: Module, change: Callable[[Instruction, Instruction], Instruction]) -> Module:
    """The module with each instruction changed, and its shape inferred again where an operand or attribute differs.

    `change` gets an instruction and its version on the changed operands.
    """
    made = _Inferred(change).module(module)
    return evolve(made, annotations=kept_annotations(module.annotations, module.entry, made.entry))


class _Inferred(Rewriter):
    def __init__(self, change: Callable[[Instruction, Instruction], Instruction]) -> None:
        super().__init__()
        self.change = change

    def instruction(self, instruction: Instruction) -> Instruction:
        version = self.change(instruction, self.rewired(instruction))
        is_moved = any(not compatible(each.shape, self.now[each].shape) for each in instruction.operands)
        if is_moved or version.attributes is not instruction.attributes:
            shape = infer_edited_shape(version, version.operands, "the program is made smaller")
            version = version if compatible(shape, version.shape) else evolve(version, shape=shape)
        return self.add(version)


class _Resizing:
    """A change of extents, from parameters and constants on."""

    def __init__(self, resize: Resize) -> None:
        self.resize = resize

    def change(self, instruction: Instruction, version: Instruction) -> Instruction:
        attributes = self._attributes(version, [operand.shape.plain() for operand in version.operands])
        return version if attributes is None else _without_annotations(evolve(version, attributes=attributes), _SPELLED)

    def _attributes(self, instruction: Instruction, operands: Sequence[AnyShape]) -> Any:
        """The attributes for the new extents; None if they stay."""
        values = instruction.attribute_values()
        changes = {key: now for key, value in values.items() if (now := self._value(key, value)) is not value}
        opcode, first = instruction.opcode, operands[0] if operands else None
        if opcode == "reshape" and isinstance(first, Shape):
            changes["new_sizes"] = _fitting(changes.get("new_sizes", values["new_sizes"]), first)
        elif opcode == "broadcast" and isinstance(first, Shape):
            sizes = list(changes.get("sizes", values["sizes"]))
            for dimension, extent in zip(values["dimensions"], first.dims, strict=True):
                sizes[dimension] = extent
            changes["sizes"] = tuple(sizes)
        elif opcode == "slice" and isinstance(first, Shape):
            changes |= self._slice(values, first.dims)
        changes = {key: now for key, now in changes.items() if now is not values[key]}
        return evolve(instruction.attributes, **changes) if changes else None

    def _value(self, key: str, value: Any) -> Any:
        if isinstance(value, Shape | TupleShape | TokenShape):
            return self.shape(value)
        if isinstance(value, np.ndarray):
            dims = tuple(map(self.resize, value.shape))
            return value if dims == value.shape else _frozen(value[tuple(map(slice, dims))])
        if isinstance(value, ElidedArray):
            raise ValueError("the elements of a constant are omitted")
        if key in _SIZES and isinstance(value, int):
            return self.resize(value)
        if key in _SIZES and isinstance(value, tuple) and all(isinstance(each, int) for each in value):
            dims = tuple(map(self.resize, value))
            return value if dims == value else dims
        if key == "window" and value:
            return tuple([evolve(each, size=self.resize(each.size)) for each in value])
        if isinstance(value, tuple) and value and all(isinstance(each, Shape) for each in value):
            return tuple(map(self.shape, value))
        return value

    def shape(self, shape: AnyShape) -> AnyShape:
        def leaf_of(leaf: Any) -> Any:
            if not isinstance(leaf, Shape):
                return leaf
            dims = tuple(map(self.resize, leaf.dims))
            return leaf if dims == leaf.dims else Shape(leaf.dtype, dims, leaf.dynamic)

        found = map_leaves(leaf_of, shape)
        return shape if isinstance(shape, Shape | TokenShape) and found is shape else _as_shape(found)

    def _slice(self, values: Mapping[str, Any], extents: Dims) -> dict[str, Dims]:
        """The bounds of a slice of an operand with these extents."""
        starts, limits = [], []
        strides = values["strides"] or (1,) * len(extents)
        for start, limit, stride, extent in zip(
            values["start_indices"], values["limit_indices"], strides, extents, strict=True
        ):
            size = self.resize(max(0, -(-(limit - start) // stride)))
            room = size and (size - 1) * stride + 1
            starts.append(max(0, min(start, extent - room)))
            limits.append(starts[-1] + room)
        return {"start_indices": tuple(starts), "limit_indices": tuple(limits)}


def _as_shape(found: Any) -> AnyShape:
    """A tuple of shapes, as `map_leaves` returns it, as a shape."""
    return TupleShape(map(_as_shape, found)) if type(found) is tuple else found


def _fitting(sizes: Dims, operand: Shape) -> Dims:
    """The sizes of a reshape, or others of the same rank if they have another number of elements."""
    if math.prod(sizes) == operand.size:
        return sizes
    if len(sizes) == operand.rank:
        return operand.dims
    return (operand.size, *(1,) * (len(sizes) - 1)) if sizes else sizes


def _frozen(array: Any) -> Any:
    made = np.array(array)
    made.flags.writeable = False
    return made


# ----------------------------------------------------------------------------
# Devices, groups and source-target pairs


def replicas(module: Module) -> list[int]:
    return [*range(module.num_replicas)] if module.num_replicas > 1 else []


def partitions(module: Module) -> list[int]:
    return [*range(module.num_partitions)] if module.num_partitions > 1 else []


def without_replicas(module: Module, gone: Collection[int]) -> Iterator[Module]:
    """The module without these replicas; the others are numbered anew, also in groups and source-target pairs."""
    yield from _on_fewer(
        module, [n for n in range(module.num_replicas) if n not in gone], [*range(module.num_partitions)]
    )


def without_partitions(module: Module, gone: Collection[int]) -> Iterator[Module]:
    """The module without these partitions."""
    yield from _on_fewer(
        module, [*range(module.num_replicas)], [n for n in range(module.num_partitions) if n not in gone]
    )


def _on_fewer(module: Module, replicas: list[int], partitions: list[int]) -> Iterator[Module]:
    if not replicas or not partitions:
        return
    every = [r * module.num_partitions + p for r in replicas for p in partitions]
    numbers = {
        "cross_replica": _numbers(replicas),
        "cross_replica_and_partition": _numbers(replicas),
        "cross_partition": _numbers(partitions),
        "flattened_ids": _numbers(every),
    }

    def change(instruction: Instruction, version: Instruction) -> Instruction:
        is_transfer = instruction.opcode in ("send", "recv")
        return _regrouped(version, numbers["flattened_ids" if is_transfer else strategy(instruction)])

    annotations = {key: value for key, value in module.annotations.items() if key != "inferred_counts"}
    smaller = evolve(module, num_replicas=len(replicas), num_partitions=len(partitions), annotations=annotations)
    yield _inferred(smaller, change)


def _numbers(kept: Sequence[int]) -> dict[int, int]:
    return {old: new for new, old in enumerate(kept)}


def _regrouped(instruction: Instruction, numbers: Mapping[int, int]) -> Instruction:
    values = instruction.attribute_values()
    changes: dict[str, Any] = {}
    if groups := values.get("replica_groups"):
        kept = tuple(tuple(numbers[each] for each in group if each in numbers) for group in groups)
        changes["replica_groups"] = tuple(filter(None, kept))
    if pairs := values.get("source_target_pairs"):
        kept = tuple((numbers[a], numbers[b]) for a, b in pairs if a in numbers and b in numbers)
        changes["source_target_pairs"] = kept
    return _with_groups(instruction, changes, len(numbers))


def _with_groups(instruction: Instruction, changes: dict[str, Any], count: int) -> Instruction:
    """The instruction with other groups or pairs, and the count of shards that follows from them."""
    values = instruction.attribute_values()
    groups = changes.get("replica_groups", values.get("replica_groups"))
    if groups is not None:
        size = len(groups[0]) if groups else count
        changes |= {key: size for key in ("shard_count", "split_count") if values.get(key) is not None}
    changes = {key: now for key, now in changes.items() if now != values[key]}
    if not changes:
        return instruction
    version = evolve(instruction, attributes=evolve(instruction.attributes, **changes))
    return _without_annotations(version, {"replica_groups"})


GroupPart: TypeAlias = tuple[str, str, tuple[int, ...]]


def groups(module: Module) -> list[GroupPart]:
    """The replica groups and source-target pairs of each instruction that has several."""
    return [
        (computation.name, each.name, tuple(group))
        for computation in callers_first(module)
        for each in computation.instructions
        for key in ("replica_groups", "source_target_pairs")
        if len(each.attribute_values().get(key) or ()) > 1
        for group in getattr(each.attributes, key)
    ]


def without_groups(module: Module, gone: Collection[GroupPart]) -> Iterator[Module]:
    """The module without these groups and pairs."""
    chosen = {*gone}
    names = {each: (c.name, each.name) for c in module.computations for each in c.instructions}

    def change(instruction: Instruction, version: Instruction) -> Instruction:
        part, values = names[instruction], version.attribute_values()
        changes = {
            key: tuple([each for each in values[key] if (*part, tuple(each)) not in chosen])
            for key in ("replica_groups", "source_target_pairs")
            if values.get(key)
        }
        return _with_groups(version, {key: now for key, now in changes.items() if now}, module.num_devices)

    yield _inferred(module, change)


# ----------------------------------------------------------------------------
# Constants, among them trip counts


Smaller: TypeAlias = tuple[str, str, str]
"""A constant, by its computation and its name, and what replaces its elements: 0, 1, 2 or half."""


def smaller_constants(module: Module) -> list[Smaller]:
    """The constants that have a smaller value to try."""
    return [
        (computation.name, each.name, how)
        for computation in callers_first(module)
        for each in computation.instructions
        if each.opcode == "constant" and not isinstance(each.attributes.literal, ElidedArray)
        for how in _ELEMENTS
        if _smaller(each.attributes.literal, how) is not None
    ]


def with_constants(module: Module, changes: Collection[Smaller]) -> Iterator[Module]:
    """The module with a smaller constant."""
    ((computation, name, how),) = changes
    named = [each for c in module.computations if c.name == computation for each in c.instructions if each.name == name]
    place = named[0] if named else None
    literal = None if place is None or place.opcode != "constant" else _smaller(place.attributes.literal, how)
    if place is not None and literal is not None:
        attributes = evolve(place.attributes, literal=_frozen(literal))
        version = _without_annotations(evolve(place, attributes=attributes), _SPELLED)
        yield mapped(module, lambda each: version if each is place else each)


_ELEMENTS: Mapping[str, Callable[[Any], Any]] = {
    "0": np.zeros_like,
    "1": np.ones_like,
    "2": lambda literal: np.full_like(literal, 2),
    "half": lambda literal: literal // np.asarray(2, literal.dtype),
}


def _smaller(literal: Any, how: str) -> Any:
    """The literal with smaller elements; None if they are not smaller, or if only its own zeros are."""
    if how != "0" and (literal.ndim or literal.dtype == bool or (how == "half" and literal.dtype.kind not in "iu")):
        return None
    found = _ELEMENTS[how](literal)
    return found if _weight(found) < _weight(literal) else None


def _weight(literal: Any) -> float:
    with np.errstate(all="ignore"):
        total = float(np.abs(np.asarray(literal, dtype=np.complex128)).sum())
    return total if math.isfinite(total) else math.inf


# ----------------------------------------------------------------------------
# Annotations, layouts, control edges, the schedule

Note: TypeAlias = tuple[str, str, str]
"""An annotation: the computation, the instruction (empty for the module) and the key."""


def notes(module: Module) -> list[Note]:
    """The annotations of the module and its instructions, without those that only keep a spelling."""
    return [("", "", key) for key in module.annotations if key != "inferred_counts"] + [
        (computation.name, each.name, key)
        for computation in callers_first(module)
        for each in computation.instructions
        for key in each.annotations
        if key not in _SPELLED
    ]


def without_notes(module: Module, gone: Collection[Note]) -> Iterator[Module]:
    """The module without these annotations."""
    chosen: dict[Part, set[str]] = {}
    for computation, name, key in gone:
        chosen.setdefault((computation, name), set()).add(key)
    names = {each: (c.name, each.name) for c in module.computations for each in c.instructions}
    kept = {key: value for key, value in module.annotations.items() if ("", "", key) not in {*gone}}
    plain = evolve(module, annotations=kept)
    yield mapped(
        plain,
        lambda each: _without_annotations(each, chosen[names[each]]) if names[each] in chosen else each,
    )


def _without_annotations(instruction: Instruction, keys: Collection[str]) -> Instruction:
    kept = {key: value for key, value in instruction.annotations.items() if key not in keys}
    if len(kept) == len(instruction.annotations):
        return instruction
    return evolve(instruction, annotations=kept or NOTHING)


Spare: TypeAlias = tuple[str, str, str]
"""A property of the module (`layouts`, `edges`, `grid`, `schedule`), or of one instruction: its control edges."""


def spare_properties(module: Module) -> list[Spare]:
    """The layouts, the control edges, the grid of devices and the schedule of the module."""
    edges = [(c.name, each.name) for c in callers_first(module) for each in c.instructions if each.control]
    every: list[Spare] = [("layouts", "", ""), ("edges", "", ""), *(("edge", *part) for part in edges)]
    if module.num_replicas > 1 and module.num_partitions > 1:
        every += [("grid", "num_replicas", ""), ("grid", "num_partitions", "")]
    return [*every, ("schedule", "", "")] if module.is_scheduled else every


def without_properties(module: Module, gone: Collection[Spare]) -> Iterator[Module]:
    """The module without one of these properties."""
    ((what, computation, name),) = gone
    if what == "schedule":
        yield evolve(module, is_scheduled=False)
    elif what == "grid":  # all devices along one of its two directions
        counts: dict[str, Any] = {"num_replicas": 1, "num_partitions": 1, computation: module.num_devices}
        yield evolve(module, **counts)
    elif what == "layouts":
        yield mapped(module, _without_layout)
    else:
        names = {each: (c.name, each.name) for c in module.computations for each in c.instructions}
        every = what == "edges"
        yield mapped(
            module,
            lambda each: (
                evolve(each, control=()) if each.control and (every or names[each] == (computation, name)) else each
            ),
        )


def _without_layout(instruction: Instruction) -> Instruction:
    shape, attributes = instruction.shape.plain(), instruction.attributes
    changes = {
        key: value.plain()
        for key, value in instruction.attribute_values().items()
        if isinstance(value, Shape | TupleShape)
    }
    if changes:
        attributes = evolve(attributes, **changes)
    return evolve(instruction, shape=shape, attributes=attributes)
