"""How the inputs and outputs of one program lie on the devices of another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from attrs import frozen

from shape_inference import Shape, refuse
from xbuild.core.graph import Instruction, Module
from xbuild.sharding.hlo_text import shardings
from xbuild.sharding.sharding import Sharding
from xbuild.sharding.stored import RESULTS, sharding_of
from xbuild.text.spelling.notes import read_frontend_text

from . import layouts
from .draws import shapes_of
from .layouts import Layout
from .run import Subject

Layouts: TypeAlias = Sequence[Any] | None


def own(given: Any, way: str) -> Layouts:
    """The layouts that an object with a module states: its in_shardings and out_shardings, or its specs on a mesh."""
    shardings, specs = getattr(given, f"{way}_shardings", None), getattr(given, f"{way}_specs", None)
    if shardings is not None:
        return [*_leaves(shardings)]
    return None if specs is None else layouts.of_specs(given.mesh, specs)


def stated(one: Subject, other: Subject) -> tuple[Layouts, Layouts]:
    """The layouts that a partitioned program states in its text, where its arrays are parts of those of the first.

    Parameters have their shardings, the header or the root those of the results.
    """
    module = other.program
    if not isinstance(module, Module) or other.devices == 1 or _alike(one, other):
        return None, None
    notes = read_frontend_text(str(module.annotations.get("frontend_attributes", "{}")))
    inputs = [_sharding(sharding_of(each), each) for each in module.entry.parameters]
    outputs = shardings(notes[RESULTS]) if RESULTS in notes else sharding_of(module.entry.root)
    return [*_leaves(inputs)], None if outputs is None else [*_leaves(_sharding(outputs, module.entry.root))]


def _alike(one: Subject, other: Subject) -> bool:
    """Whether a device of both programs has arrays of the same dimensions."""
    pairs = ((one.inputs(0), other.inputs(0)), (one.outputs(0), other.outputs(0)))
    return all([each.dims for each in left] == [each.dims for each in right] for left, right in pairs)


def _sharding(found: Any, of: Instruction) -> Any:
    """Shardings for each array of a value; None where a device holds the whole array."""
    if isinstance(found, tuple):
        return [each if isinstance(each, Sharding) else None for each in found]
    return [found if isinstance(found, Sharding) else None] * len(shapes_of([of]))


def _leaves(given: Any) -> Iterator[Any]:
    if isinstance(given, list | tuple):
        for each in given:
            yield from _leaves(each)
    else:
        yield given


@frozen(eq=False)
class Laid:
    """How the inputs and outputs of one program lie on the devices of the other; None where they are given alike."""

    inputs: tuple[Layout, ...] | None
    outputs: tuple[Layout, ...] | None


def laid(one: Subject, other: Subject, inputs: Layouts, outputs: Layouts) -> Laid:
    """The layouts that are given, or follow from the shapes; invalid_attribute where they fit neither."""
    if one.devices == other.devices and (one.devices > 1 or (inputs is None and outputs is None)):
        for device in range(one.devices):
            _check_alike(one, other, device)
        return Laid(None, None)
    if one.devices != 1:
        refuse(
            "invalid_attribute",
            f"equivalent: the first program has {one.devices} devices and the second {other.devices}; the first is to "
            "have one, or as many as the second and the same arrays",
        )
    return Laid(
        _layouts(one.inputs(0), other.inputs(0), inputs, other.devices, "input"),
        _layouts(one.outputs(0), other.outputs(0), outputs, other.devices, "output"),
    )


def _check_alike(one: Subject, other: Subject, device: int) -> None:
    for name, left, right in (
        ("inputs", one.inputs(device), other.inputs(device)),
        ("outputs", one.outputs(device), other.outputs(device)),
    ):
        if [each.dims for each in left] != [each.dims for each in right]:
            refuse(
                "invalid_attribute",
                f"equivalent: the {name} of device {device} are {_listed(left)} in one program and {_listed(right)} in "
                "the other; a global program is the first of the two",
                "the shardings of a partitioned program stand in its text, or inputs=[...] and outputs=[...] say them",
            )


def _listed(shapes: Sequence[Shape]) -> str:
    return f"({', '.join(map(str, shapes))})"


def _layouts(whole: list[Shape], local: list[Shape], given: Layouts, devices: int, name: str) -> tuple[Layout, ...]:
    layout = [None] * len(whole) if given is None else list(given)
    if not len(whole) == len(local) == len(layout):
        refuse(
            "invalid_attribute",
            f"equivalent: {len(whole)} {name}s in one program, {len(local)} in the other, and {len(layout)} layouts",
        )
    rows = enumerate(zip(layout, whole, local, strict=True))
    return tuple(layouts.layout_of(each, a, b, devices, f"{name} {n}") for n, (each, a, b) in rows)
