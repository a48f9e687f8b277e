"""The mesh of chips and cores, and which core runs which part of which replica."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import field, frozen

from .support.arguments import integer, integers
from .support.refusals import TpuTypeError, refuse

DEFAULT_MESH = (2, 2, 1, 2)


def _extents(given: Sequence[int]) -> tuple[int, ...]:
    return tuple(integers("`mesh_shape`", given))


@frozen
class Topology:
    """A mesh of chips, each with cores: `mesh_shape` is [x, y, z, core].

    Raises invalid_attribute for a mesh that has not four extents of 1 and more.

    >>> import xbuild as xb
    >>> xb.tpu.Topology([2, 2, 1, 2]).num_cores
    8

    Source: tensorflow/python/tpu/topology.py.
    """

    mesh_shape: tuple[int, ...] = field(default=DEFAULT_MESH, converter=_extents)

    def __attrs_post_init__(self) -> None:
        if len(self.mesh_shape) != 4 or min(self.mesh_shape) < 1:
            refuse("invalid_attribute", f"`mesh_shape` must be a sequence of 4 positive entries; got {self.mesh_shape}")

    @property
    def mesh_rank(self) -> int:
        """How many extents the mesh has."""
        return len(self.mesh_shape)

    @property
    def num_cores(self) -> int:
        """All cores of all chips."""
        return int(np.prod(self.mesh_shape))

    @property
    def device_coordinates(self) -> np.ndarray[Any, Any]:
        """[1 task, cores, 4]: where each core lies, the cores of a chip one after the other."""
        x, y, z, cores = self.mesh_shape
        found = [(i, j, k, c) for k, j, i, c in itertools.product(range(z), range(y), range(x), range(cores))]
        return np.array(found, np.int32)[np.newaxis]


def core_array(given: Any) -> np.ndarray[Any, Any]:
    """The coordinates of cores as an array; refused where they are no integers."""
    try:
        found = np.asarray(given)
    except ValueError:
        found = np.asarray("ragged")
    if found.size and found.dtype.kind not in "iu":
        refuse(
            "invalid_attribute",
            f"device_assignment is {given!r}, and an array [replicas, cores, 4] of integers is wanted",
            "xb.tpu.device_assignment(topology, num_replicas=...) makes one",
            error=TpuTypeError,
        )
    return found.astype(np.int32)


@frozen(eq=False)
class DeviceAssignment:
    """Which core of the mesh is logical core c of replica r: `core_assignment` is [replicas, cores, mesh_rank].

    Raises rank_mismatch, and invalid_attribute where a core is none of the mesh, or is given twice.

    >>> import xbuild as xb
    >>> assignment = xb.tpu.device_assignment(xb.tpu.Topology(), num_replicas=2)
    >>> assignment.coordinates(1, 0)
    (0, 0, 0, 1)

    Source: tensorflow/python/tpu/device_assignment.py.
    """

    topology: Topology
    core_assignment: np.ndarray[Any, Any] = field(converter=core_array)

    def __attrs_post_init__(self) -> None:
        found, mesh = self.core_assignment, self.topology.mesh_shape
        if found.ndim != 3 or found.shape[2] != len(mesh):
            refuse(
                "rank_mismatch",
                f"core_assignment must be [replicas, cores per replica, {len(mesh)}], and is {list(found.shape)}",
            )
        places = [tuple(place) for place in found.reshape(-1, len(mesh)).tolist()]
        for place in places:
            if any(not 0 <= at < size for at, size in zip(place, mesh, strict=True)):
                refuse("invalid_attribute", f"core {place} is none of the mesh {list(mesh)}")
        if len(set(places)) < len(places):
            twice = next(place for place in places if places.count(place) > 1)
            refuse("invalid_attribute", f"core {twice} is given to two replicas, or twice to one")

    @property
    def num_replicas(self) -> int:
        """How many replicas are placed."""
        return int(self.core_assignment.shape[0])

    @property
    def num_cores_per_replica(self) -> int:
        """How many cores run one replica."""
        return int(self.core_assignment.shape[1])

    def coordinates(self, replica: int, logical_core: int) -> tuple[int, ...]:
        """Where a logical core of a replica lies in the mesh."""
        return tuple(self.core_assignment[replica, logical_core].tolist())

    def tpu_ordinal(self, replica: int = 0, logical_core: int = 0) -> int:
        """The number of the core on its host."""
        places = [tuple(place) for place in self.topology.device_coordinates[0].tolist()]
        return places.index(self.coordinates(replica, logical_core))

    def tpu_device(self, replica: int = 0, logical_core: int = 0, job: str | None = None) -> str:
        """The name of the core."""
        where = "" if job is None else f"/job:{job}"
        return f"{where}/task:0/device:TPU:{self.tpu_ordinal(replica, logical_core)}"

    def host_device(self, replica: int = 0, logical_core: int = 0, job: str | None = None) -> str:
        """The name of the host of the core."""
        return f"{'' if job is None else f'/job:{job}'}/task:0/device:CPU:0"

    def __str__(self) -> str:
        """What lies where, a line for each core."""
        rows = itertools.product(range(self.num_replicas), range(self.num_cores_per_replica))
        return "\n".join(
            f"replica {r} core {c}  {list(self.coordinates(r, c))}  {self.tpu_device(r, c)}" for r, c in rows
        )


def device_assignment(
    topology: Topology,
    computation_shape: Sequence[int] | None = None,
    computation_stride: Sequence[int] | None = None,
    num_replicas: int = 1,
) -> DeviceAssignment:
    """Place replicas in the mesh, each on a block of cores of `computation_shape` that are `computation_stride` apart.

    Raises attribute_length_mismatch; non_positive; replica_out_of_range where the mesh holds fewer replicas.

    >>> import xbuild as xb
    >>> print(xb.tpu.device_assignment(xb.tpu.Topology([1, 1, 1, 2]), computation_shape=[1, 1, 1, 2]))
    replica 0 core 0  [0, 0, 0, 0]  /task:0/device:TPU:0
    replica 0 core 1  [0, 0, 0, 1]  /task:0/device:TPU:1

    Source: tf.compat.v1.tpu.experimental.DeviceAssignment, build.
    """
    if not isinstance(topology, Topology):
        refuse("invalid_operand", f"device_assignment: {topology!r} is no xb.tpu.Topology", error=TpuTypeError)
    mesh, rank, num_replicas = topology.mesh_shape, topology.mesh_rank, integer("num_replicas", num_replicas)
    shape = (1,) * rank if computation_shape is None else tuple(integers("`computation_shape`", computation_shape))
    stride = (1,) * rank if computation_stride is None else tuple(integers("`computation_stride`", computation_stride))
    for what, given in (("computation_shape", shape), ("computation_stride", stride)):
        if len(given) != rank:
            refuse(
                "attribute_length_mismatch",
                f"`{what}` must have {rank} entries, one for each of {list(mesh)}; got {given}",
            )
        if min(given) < 1:
            refuse("non_positive", f"`{what}` must be positive; got {list(given)}")
    blocks = [n // (size * step) for n, size, step in zip(mesh, shape, stride, strict=True)]
    most = int(np.prod(blocks)) * int(np.prod(stride))
    if not 1 <= num_replicas <= most:
        refuse(
            "replica_out_of_range",
            f"requested {num_replicas} replicas, but only {most} replicas of {list(shape)} cores fit {list(mesh)}",
        )
    origins = [_along(n, size, step) for n, size, step in zip(mesh, shape, stride, strict=True)]
    inner = [range(0, size * step, step) for size, step in zip(shape, stride, strict=True)]
    places = itertools.islice(_places(origins), num_replicas)
    return DeviceAssignment(
        topology, [[[*map(sum, zip(at, by, strict=True))] for by in _places(inner)] for at in places]
    )


def _along(extent: int, size: int, stride: int) -> list[int]:
    """Where blocks begin along one dimension."""
    return [block + offset for block in range(0, extent - size * stride + 1, size * stride) for offset in range(stride)]


def _places(axes: Sequence[Sequence[int]]) -> Any:
    """Places with the core fastest, then x, y, z."""
    x, y, z, core = axes
    return ((i, j, k, c) for k, j, i, c in itertools.product(z, y, x, core))
