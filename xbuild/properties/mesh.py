"""A mesh of named axes: the devices of a program in row-major order, and the groups into which its axes split them."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from attrs import frozen

from shape_inference import refuse
from shape_inference.bounds import check_devices

from ..core.graph import Module
from .device_groups import Groups, Pairs

AxisNames: TypeAlias = "str | int | Iterable[str | int]"
"""An axis of a mesh or several: names, or numbers that count the axes from the outermost."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+")


@frozen(init=False, repr=False)
class Mesh:
    """Devices in a grid with named axes. Devices are numbered row by row, and the last axis varies fastest.

    A device is a partition, or a replica if a program has only one partition. Axes are given by keyword, as a mapping
    from name to size, or as a list of sizes. The axes of a list are called "0", "1" and so on. `device_ids` specifies a
    different device order, row by row. Two meshes are equal if they have the same axis names, sizes and devices in the
    same order.
    Raises: invalid_attribute if there is no axis, a name is not an identifier, the device ids are not a permutation of
    0..n-1, or the mesh has more than 1,048,576 devices or 64 axes; non_positive for a size below 1.

    >>> import xbuild as xb
    >>> mesh = xb.Mesh(i=2, j=4)
    >>> mesh.num_devices, mesh.coordinates(5), mesh.device(i=1, j=1)
    (8, {'i': 1, 'j': 1}, 5)
    >>> mesh.groups("i")
    ((0, 4), (1, 5), (2, 6), (3, 7))
    >>> mesh == xb.Mesh({"i": 2, "j": 4})
    True
    >>> xb.Mesh([2, 2]).groups((1, 0)), xb.Mesh({"i": 2}, device_ids=[1, 0]).device(i=0)
    (((0, 2, 1, 3),), 1)

    Source: JAX, jax.sharding.Mesh; Shardy, sdy.mesh; MLIR, shard.grid.
    """

    sizes: tuple[tuple[str, int], ...]
    device_ids: tuple[int, ...] | None = None

    def __init__(
        self,
        axes: Mapping[str, int] | Sequence[int] | None = None,
        /,
        *,
        device_ids: Sequence[int] | None = None,
        **named: int,
    ) -> None:
        sizes = {**_by_name(axes), **named}
        if not sizes:
            refuse(
                "invalid_attribute", "Mesh: expected at least 1 axis, got none", "use xb.Mesh(i=2, j=4), for example"
            )
        for name, size in sizes.items():
            _check_axis(name, size)
        check_devices("Mesh: the mesh", [int(size) for size in sizes.values()])
        order = None if device_ids is None else _order(device_ids, math.prod(sizes.values()))
        self.__attrs_init__(tuple((name, int(size)) for name, size in sizes.items()), order)

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of the axes, outermost first."""
        return tuple(name for name, _ in self.sizes)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes, outermost first."""
        return tuple(size for _, size in self.sizes)

    @property
    def num_devices(self) -> int:
        return math.prod(self.shape)

    def size(self, axes: AxisNames) -> int:
        """Return the number of devices along an axis, or along several axes together."""
        if isinstance(axes, str):
            for name, size in self.sizes:
                if name == axes:
                    return size
        named = self.named(axes)
        return math.prod(size for name, size in self.sizes if name in named)

    def named(self, axes: AxisNames) -> tuple[str, ...]:
        """Return axis names as a tuple in the given order. Axis numbers are replaced with axis names.

        Raises unbound_axis if the mesh lacks an axis.
        """
        names = tuple(map(self._name, (axes,) if isinstance(axes, str | int) else axes))
        for name in names:
            if name not in self.axes:
                refuse("unbound_axis", f"{self} has no axis {name!r}; its axes are {', '.join(self.axes)}")
        if len(set(names)) < len(names):
            refuse("duplicate_dimension", f"an axis appears twice in {names}; list each axis only once")
        return names

    def _name(self, axis: str | int) -> str:
        """The name of an axis; a number counts the axes from the outermost."""
        if not isinstance(axis, int):
            return axis
        if not 0 <= axis < len(self.sizes):
            refuse("unbound_axis", f"{self} has no axis {axis}; its axes are 0..{len(self.sizes) - 1}")
        return self.axes[axis]

    def ordered(self, axes: Iterable[str]) -> tuple[str, ...]:
        """Return axis names in the order of the mesh."""
        given = set(axes)
        return tuple(name for name in self.axes if name in given)

    def coordinates(self, device: int) -> dict[str, int]:
        """Return the coordinate of a device along each axis. Raises index_out_of_range if no device has this number."""
        if not 0 <= device < self.num_devices:
            refuse("index_out_of_range", f"{self} has no device {device}; its devices are 0..{self.num_devices - 1}")
        place = device if self.device_ids is None else self.device_ids.index(device)
        return {name: place // stride % self.size(name) for name, stride in self._strides().items()}

    def coordinates_text(self, device: int) -> str:
        """Return the coordinates of a device as text.

        >>> import xbuild as xb
        >>> xb.Mesh(data=4, model=2).coordinates_text(3)
        'data=1, model=1'
        """
        return ", ".join(f"{axis}={place}" for axis, place in self.coordinates(device).items())

    def device(self, **coordinates: int) -> int:
        """Return the number of the device at these coordinates; the coordinate along an omitted axis is 0."""
        self.named(coordinates)
        for name, place in coordinates.items():
            if not 0 <= place < self.size(name):
                refuse(
                    "index_out_of_range",
                    f"{name}={place} is out of range for {self}; expected 0..{self.size(name) - 1}",
                )
        place = sum(stride * coordinates.get(name, 0) for name, stride in self._strides().items())
        return place if self.device_ids is None else self.device_ids[place]

    def groups(self, axes: AxisNames) -> Groups:
        """Return the groups of devices that differ only along these axes, one for each position along the other axes.

        Members are in row-major order of the axes as given, with the first name outermost.

        >>> import xbuild as xb
        >>> mesh = xb.Mesh(i=2, j=2)
        >>> mesh.groups(("i", "j")), mesh.groups(("j", "i"))
        (((0, 1, 2, 3),), ((0, 2, 1, 3),))

        Source: JAX, jax._src.interpreters.mlir._replica_groups.
        """
        return _groups(self, self.named(axes))

    def pairs(self, axes: AxisNames, pairs: Sequence[tuple[int, int]]) -> Pairs:
        """Convert pairs of positions along the axes to pairs of devices in every group."""
        return tuple((group[source], group[target]) for group in self.groups(axes) for source, target in pairs)

    def axes_of(self, groups: Groups) -> tuple[str, ...] | None:
        """Return the axes that form exactly these groups, in this order, or None if no axes do. For groups of one
        device, the result is empty.

        >>> import xbuild as xb
        >>> xb.Mesh(i=2, j=2).axes_of(((0, 2, 1, 3),))
        ('j', 'i')
        """
        found: list[str] = []
        group, place = _groups_or_all(self, groups)[0], 1
        while place < len(group):
            axis = self._differing_axis(group[0], group[place])
            if axis is None or axis in found:
                return None
            found.insert(0, axis)
            place *= self.size(axis)
        return tuple(found) if sorted(self.groups(found)) == sorted(_groups_or_all(self, groups)) else None

    def _differing_axis(self, one: int, other: int) -> str | None:
        """The one axis along which two devices differ; None if there is not exactly one."""
        if max(one, other) >= self.num_devices:
            return None
        a, b = self.coordinates(one), self.coordinates(other)
        differing = [axis for axis in self.axes if a[axis] != b[axis]]
        return differing[0] if len(differing) == 1 else None

    def spanned(self, groups: Groups) -> tuple[str, ...] | None:
        """Return the axes that form groups with these members, in any order, or None if no axes do.

        >>> import xbuild as xb
        >>> xb.Mesh(i=2, j=2).spanned(((2, 0), (1, 3)))
        ('i',)
        """
        members = tuple(tuple(sorted(group)) for group in _groups_or_all(self, groups))
        found = self.axes_of(members)
        return None if found is None else self.ordered(found)

    def stride(self, axis: str) -> int:
        """Return the distance between neighbours along an axis.

        It is a difference of device numbers, or of positions if `device_ids` is given.
        """
        return self._strides()[axis]

    def _strides(self) -> dict[str, int]:
        found, stride = {}, self.num_devices
        for name, size in self.sizes:
            stride //= size
            found[name] = stride
        return found

    def spelled(self) -> str:
        """Return the mesh in the syntax of HLO text.

        >>> import xbuild as xb
        >>> xb.Mesh(i=2, j=4).spelled()
        'i=2,j=4'
        """
        order = "" if self.device_ids is None else f";{','.join(map(str, self.device_ids))}"
        return ",".join(f"{name}={size}" for name, size in self.sizes) + order

    @staticmethod
    def read(text: str) -> Mesh:
        """Read a mesh from the text that `spelled` returns. Raises invalid_attribute for any other text."""
        axes, _, order = text.partition(";")
        pairs = [axis.partition("=") for axis in axes.split(",")]
        ids = order.split(",") if order else []
        if not all(name and _is_number(size) for name, _, size in pairs) or not all(map(_is_number, ids)):
            refuse("invalid_attribute", f"{text!r} is not a mesh; write a mesh as in i=2,j=4")
        return Mesh({name: int(size) for name, _, size in pairs}, device_ids=[*map(int, ids)] or None)

    def __repr__(self) -> str:
        order = "" if self.device_ids is None else f", device_ids={list(self.device_ids)}"
        return f"Mesh({', '.join(f'{name}={size}' for name, size in self.sizes)}{order})"


def _by_name(axes: Mapping[str, int] | Sequence[int] | None) -> dict[str, int]:
    """Sizes by axis name; in a list of sizes, the positions are the names."""
    if axes is None or isinstance(axes, Mapping):
        return dict(axes or {})
    return {str(number): size for number, size in enumerate(axes)}


def _order(device_ids: Sequence[int], count: int) -> tuple[int, ...] | None:
    """The ids of the devices row by row, or None if they count from 0."""
    ids = tuple(int(each) for each in device_ids)
    if sorted(ids) != [*range(count)]:
        refuse("invalid_attribute", f"Mesh: device_ids must be a permutation of 0..{count - 1}, got {list(ids)}")
    return None if ids == tuple(range(count)) else ids


def _is_number(text: str) -> bool:
    return text.isdecimal() and text.isascii() and len(text) < 10


def _check_axis(name: Any, size: Any) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        refuse("invalid_attribute", f"Mesh: {name!r} is not an axis name; use letters, digits and _")
    try:
        count = size.__index__()
    except AttributeError:
        refuse("invalid_attribute", f"Mesh: expected an integer as the size of axis {name}, got {size!r}")
    if count < 1:
        refuse("non_positive", f"Mesh: the size of axis {name} must be at least 1, got {count}")


def _groups_or_all(mesh: Mesh, groups: Groups) -> Groups:
    """The groups; if there are none, one of all devices."""
    return groups or (tuple(range(mesh.num_devices)),)


@functools.lru_cache(maxsize=1024)
def _groups(mesh: Mesh, axes: tuple[str, ...]) -> Groups:
    others = [number for number, name in enumerate(mesh.axes) if name not in axes]
    inside = [mesh.axes.index(name) for name in axes]
    ids = np.asarray(mesh.device_ids or range(mesh.num_devices)).reshape(mesh.shape).transpose([*others, *inside])
    return tuple(map(tuple, ids.reshape(-1, mesh.size(axes)).tolist()))


MESH = "xbuild.mesh"
_NOTED = re.compile(rf'{re.escape(MESH)}="([^"]*)"')


def mesh_of(module: Module) -> Mesh | None:
    """The mesh in the header of a module, or None; invalid_attribute if its text is not a mesh."""
    found = _NOTED.search(str(module.annotations.get("frontend_attributes", "")))
    return Mesh.read(found[1]) if found else None
