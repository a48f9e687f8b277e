"""Words of the sentences: values with their lines, shardings, axes, lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath

from shape_inference.escaping import in_line

from ....core.graph import Instruction
from ....properties.mesh import Mesh
from ...axis import Axis, merged
from ...sharding import Sharding


def told(sharding: Sharding) -> str:
    """How an array is cut, in words."""
    mesh = sharding.mesh
    dims = [f"dimension {number} over {named(dim.axes, mesh)}" for number, dim in enumerate(sharding.dims) if dim.axes]
    cut = f"cut along {listed(dims)}" if dims else ""
    parts = f"in parts of a sum over {named(sharding.unreduced, mesh)}" if sharding.unreduced else ""
    return listed([each for each in (cut, parts) if each]) or "whole"


def named(axes: Iterable[Axis], mesh: Mesh) -> str:
    """The names of axes, the one that cuts first first; of a part of an axis with its place and size.

    >>> named([Axis("x", 2), Axis("y", 2), Axis("y", 2, 2), Axis("z", 2, 2)], Mesh(x=2, y=4, z=4))
    '`x`, `y` and `z:(2)2`'
    """
    parts = {
        axis: "" if axis.size == mesh.size(axis.name) else f":({axis.pre_size}){axis.size}" for axis in merged(axes)
    }
    return listed([f"`{axis.name}{part}`" for axis, part in parts.items()])


def listed(words: Sequence[str]) -> str:
    """a, b and c."""
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)


def called(instruction: Instruction) -> str:
    """The name of a value, the scope that the author gave it, and its line."""
    about = [each for each in (scope_of(instruction), line_of(instruction)) if each]
    return in_line(f"{instruction.name} ({', '.join(about)})" if about else instruction.name)


def name_of(instruction: Instruction) -> str:
    return in_line(instruction.name)


def line_of(instruction: Instruction) -> str:
    """The name of the file and the line that recorded an instruction."""
    source = instruction.source
    return "" if source is None else f"{PurePath(source.file).name}:{source.line}"


def scope_of(instruction: Instruction) -> str:
    """The scopes of JAX's name of an operation, without what JAX adds to them.

    >>> from xbuild.sharding.partition.reasons.words import scope_in
    >>> scope_in("jit(f)/mlp/layer 1/dot_general"), scope_in("x")
    ('mlp/layer 1', '')
    """
    metadata = instruction.annotations.get("metadata", {})
    return scope_in(str(metadata.get("op_name", ""))) if hasattr(metadata, "get") else ""


def scope_in(name: str) -> str:
    return "/".join(each for each in name.split("/")[:-1] if not each.endswith(")") and each != "main")
