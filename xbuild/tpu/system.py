"""The simulated TPU system: its mesh of chips and cores, and which core runs which replica.

Sections:

    The mesh of chips and cores
    The simulated TPU system
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import field, frozen

from .arguments import TpuTypeError, read_integer, read_integers, refuse
from .context import Operation, current

# ----------------------------------------------------------------------------
# The mesh of chips and cores
#
# And which core runs which part of which replica.

DEFAULT_MESH = (2, 2, 1, 2)


def _read_mesh(given: Sequence[int]) -> tuple[int, ...]:
    return tuple(read_integers("`mesh_shape`", given))


@frozen
class Topology:
    """A mesh of chips, each with cores: `mesh_shape` is [x, y, z, core].

    Raises invalid_attribute unless the mesh has four extents of 1 or more.

    >>> import xbuild as xb
    >>> xb.tpu.Topology([2, 2, 1, 2]).num_cores
    8

    Source: tensorflow/python/tpu/topology.py.
    """

    mesh_shape: tuple[int, ...] = field(default=DEFAULT_MESH, converter=_read_mesh)

    def __attrs_post_init__(self) -> None:
        if len(self.mesh_shape) != 4 or min(self.mesh_shape) < 1:
            refuse("invalid_attribute", f"`mesh_shape` must be a sequence of 4 positive entries; got {self.mesh_shape}")

    @property
    def mesh_rank(self) -> int:
        """The number of extents of the mesh."""
        return len(self.mesh_shape)

    @property
    def num_cores(self) -> int:
        """The number of cores of all chips."""
        return int(np.prod(self.mesh_shape))

    @property
    def device_coordinates(self) -> np.ndarray[Any, Any]:
        """[1 task, cores, 4]: the coordinates of each core, with the cores of a chip in sequence."""
        x, y, z, cores = self.mesh_shape
        coordinates = [(i, j, k, c) for k, j, i, c in itertools.product(range(z), range(y), range(x), range(cores))]
        return np.array(coordinates, np.int32)[np.newaxis]


def read_cores(given: Any) -> np.ndarray[Any, Any]:
    """Read the coordinates of cores as an array of integers."""
    try:
        cores = np.asarray(given)
    except ValueError:
        cores = np.asarray("ragged")
    if cores.size and cores.dtype.kind not in "iu":
        refuse(
            "invalid_attribute",
            f"device_assignment: expected an integer array of shape [replicas, cores, 4], got {given!r}",
            "xb.tpu.device_assignment(topology, num_replicas=...) returns one",
            error=TpuTypeError,
        )
    return cores.astype(np.int32)


@frozen(eq=False)
class DeviceAssignment:
    """Which core of the mesh is logical core c of replica r: `core_assignment` is [replicas, cores, mesh_rank].

    Raises rank_mismatch, and invalid_attribute if a core is not in the mesh or is assigned twice.

    >>> import xbuild as xb
    >>> assignment = xb.tpu.device_assignment(xb.tpu.Topology(), num_replicas=2)
    >>> assignment.coordinates(1, 0)
    (0, 0, 0, 1)

    Source: tensorflow/python/tpu/device_assignment.py.
    """

    topology: Topology
    core_assignment: np.ndarray[Any, Any] = field(converter=read_cores)

    def __attrs_post_init__(self) -> None:
        cores, mesh = self.core_assignment, self.topology.mesh_shape
        if cores.ndim != 3 or cores.shape[2] != len(mesh):
            refuse(
                "rank_mismatch",
                f"core_assignment must have shape [replicas, cores, {len(mesh)}], but has {list(cores.shape)}",
            )
        places = [tuple(place) for place in cores.reshape(-1, len(mesh)).tolist()]
        for place in places:
            if any(not 0 <= at < size for at, size in zip(place, mesh, strict=True)):
                refuse("invalid_attribute", f"core {place} is outside the mesh {list(mesh)}")
        if len(set(places)) < len(places):
            twice = next(place for place in places if places.count(place) > 1)
            refuse("invalid_attribute", f"core {twice} is assigned twice")

    @property
    def num_replicas(self) -> int:
        """The number of replicas."""
        return int(self.core_assignment.shape[0])

    @property
    def num_cores_per_replica(self) -> int:
        """The number of cores that run one replica."""
        return int(self.core_assignment.shape[1])

    def coordinates(self, replica: int, logical_core: int) -> tuple[int, ...]:
        """The coordinates of a logical core of a replica in the mesh."""
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
        """The placement, one line per core."""
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
    """Place replicas in the mesh, each on a block of `computation_shape` cores that are `computation_stride` apart.

    Raises attribute_length_mismatch; non_positive; replica_out_of_range if the mesh has no room for the replicas.

    >>> import xbuild as xb
    >>> print(xb.tpu.device_assignment(xb.tpu.Topology([1, 1, 1, 2]), computation_shape=[1, 1, 1, 2]))
    replica 0 core 0  [0, 0, 0, 0]  /task:0/device:TPU:0
    replica 0 core 1  [0, 0, 0, 1]  /task:0/device:TPU:1

    Source: tf.compat.v1.tpu.experimental.DeviceAssignment, build.
    """
    if not isinstance(topology, Topology):
        refuse(
            "invalid_operand", f"device_assignment: expected an xb.tpu.Topology, got {topology!r}", error=TpuTypeError
        )
    mesh, rank, num_replicas = topology.mesh_shape, topology.mesh_rank, read_integer("num_replicas", num_replicas)
    shape = (1,) * rank if computation_shape is None else tuple(read_integers("`computation_shape`", computation_shape))
    stride = (
        (1,) * rank if computation_stride is None else tuple(read_integers("`computation_stride`", computation_stride))
    )
    for what, extents in (("computation_shape", shape), ("computation_stride", stride)):
        if len(extents) != rank:
            refuse(
                "attribute_length_mismatch",
                f"`{what}` must have {rank} entries, one for each extent of {list(mesh)}; got {extents}",
            )
        if min(extents) < 1:
            refuse("non_positive", f"`{what}` must be positive; got {list(extents)}")
    blocks = [n // (size * step) for n, size, step in zip(mesh, shape, stride, strict=True)]
    most = int(np.prod(blocks)) * int(np.prod(stride))
    if not 1 <= num_replicas <= most:
        refuse(
            "replica_out_of_range",
            f"requested {num_replicas} replicas, but only {most} replicas of {list(shape)} cores fit {list(mesh)}",
        )
    origins = [_block_starts(n, size, step) for n, size, step in zip(mesh, shape, stride, strict=True)]
    inner = [range(0, size * step, step) for size, step in zip(shape, stride, strict=True)]
    places = itertools.islice(_places(origins), num_replicas)
    return DeviceAssignment(
        topology, [[[*map(sum, zip(at, by, strict=True))] for by in _places(inner)] for at in places]
    )


def _block_starts(extent: int, size: int, stride: int) -> list[int]:
    """The start of each block along one dimension."""
    return [block + offset for block in range(0, extent - size * stride + 1, size * stride) for offset in range(stride)]


def _places(axes: Sequence[Sequence[int]]) -> Any:
    """All coordinates, with the core fastest, then x, y, z."""
    x, y, z, core = axes
    return ((i, j, k, c) for k, j, i, c in itertools.product(z, y, x, core))


# ----------------------------------------------------------------------------
# The simulated TPU system
#
# A record of the initialized system; replicate checks its replicas against it.

_CANCELLATION = {None: 0, True: 1, False: 2}


@frozen(eq=False)
class System:
    """An initialized system: the op and device of TensorFlow's graph, the mesh, and the options."""

    device: str
    topology: Topology
    op: str = "ConfigureDistributedTPU"
    embedding_config: Any = None
    compilation_failure_closes_chips: bool = True
    tpu_cancellation_closes_chips: int = 0

    @property
    def operations(self) -> tuple[str, ...]:
        """The operations of TensorFlow's graph, in order; an embedding configuration adds two."""
        embedding = ("ConfigureTPUEmbedding", "tpu_init_identity") if self.embedding_config is not None else ()
        return (self.op, *embedding)

    def __str__(self) -> str:
        """The mesh and every core, one line each."""
        cores = [f"  core {n}  {place}" for n, place in enumerate(self.topology.device_coordinates[0].tolist())]
        return "\n".join([f"{self.op} on {self.device}: mesh {list(self.topology.mesh_shape)}", *cores])


class _Systems:
    """The initialized system, if there is one."""

    running: System | None = None


def _device(job: str | None) -> str:
    return f"{'' if job is None else f'/job:{job}'}/device:TPU_SYSTEM:0"


def initialize_system(
    embedding_config: Any = None,
    job: str | None = None,
    compilation_failure_closes_chips: bool = True,
    tpu_cancellation_closes_chips: bool | None = None,
    *,
    topology: Topology | None = None,
) -> System:
    """Initialize the simulated system and return its record. `topology` is its mesh; the default has 8 cores.

    From then on replicas must fit its cores. Without a system, any number of replicas runs.
    Raises nested_replicate inside of a computation.

    >>> import xbuild as xb
    >>> system = xb.tpu.initialize_system(job="worker", topology=xb.tpu.Topology([1, 1, 1, 2]))
    >>> print(system)
    ConfigureDistributedTPU on /job:worker/device:TPU_SYSTEM:0: mesh [1, 1, 1, 2]
      core 0  [0, 0, 0, 0]
      core 1  [0, 0, 0, 1]
    >>> xb.tpu.shutdown_system(job="worker")
    <tpu.Operation 'ShutdownDistributedTPU on /job:worker/device:TPU_SYSTEM:0'>

    Source: tf.compat.v1.tpu.initialize_system.
    """
    _check_outside("initialize_system")
    if tpu_cancellation_closes_chips not in (None, True, False):
        refuse(
            "invalid_attribute",
            f"tpu_cancellation_closes_chips: expected None, True or False, got {tpu_cancellation_closes_chips!r}",
        )
    _Systems.running = System(
        _device(job),
        Topology() if topology is None else topology,
        embedding_config=embedding_config,
        compilation_failure_closes_chips=compilation_failure_closes_chips,
        tpu_cancellation_closes_chips=_CANCELLATION[tpu_cancellation_closes_chips],
    )
    return _Systems.running


def shutdown_system(job: str | None = None) -> Operation:
    """Shut down the simulated system; does nothing without one.

    Raises nested_replicate inside of a computation.

    >>> import xbuild as xb
    >>> xb.tpu.shutdown_system()
    <tpu.Operation 'ShutdownDistributedTPU on /device:TPU_SYSTEM:0'>

    Source: tf.compat.v1.tpu.shutdown_system.
    """
    _check_outside("shutdown_system")
    _Systems.running = None
    return Operation(f"ShutdownDistributedTPU on {_device(job)}")


def _check_outside(what: str) -> None:
    if current() is not None:
        refuse(
            "nested_replicate",
            f"{what} was called inside a computation being traced",
            "call it outside the computation",
        )


def system() -> System | None:
    """The initialized system, or None.

    >>> import xbuild as xb
    >>> xb.tpu.system() is None
    True
    """
    return _Systems.running


def assign_devices(num_replicas: int, given: Any) -> DeviceAssignment | None:
    """Read a device assignment and check it against the replicas and the system."""
    running = _Systems.running
    if given is None:
        if running is not None and num_replicas not in (1, running.topology.num_cores):
            refuse(
                "replica_out_of_range",
                f"cannot place {num_replicas} replicas automatically on a system of {running.topology.num_cores} "
                "cores: expected one replica, or one replica for each core",
                f"device_assignment=xb.tpu.device_assignment(xb.tpu.system().topology, num_replicas={num_replicas})",
            )
        return None
    topology = running.topology if running is not None else None
    assignment = given if isinstance(given, DeviceAssignment) else _assign_array(given, topology)
    if topology is not None and assignment.topology != topology:
        refuse(
            "invalid_attribute", f"device_assignment was made for {assignment.topology}, but the system has {topology}"
        )
    if assignment.num_replicas != num_replicas:
        refuse(
            "shape_mismatch",
            f"device_assignment places {assignment.num_replicas} replicas, but inputs were passed for {num_replicas}",
            f"xb.tpu.device_assignment(topology, num_replicas={num_replicas})",
        )
    return assignment


def _assign_array(given: Any, topology: Topology | None) -> DeviceAssignment:
    """An assignment from an array [replicas, cores, 4]; without a system, in the smallest mesh that fits."""
    if topology is None:
        topology = _smallest_mesh(given)
    return DeviceAssignment(topology, given)


def _smallest_mesh(given: Any) -> Topology:
    array = read_cores(given)
    if array.ndim != 3 or array.shape[2] != 4 or not array.size:
        refuse(
            "rank_mismatch",
            f"device_assignment must have shape [replicas, cores, 4], but has {list(array.shape)}",
        )
    if array.min() < 0:
        place = next(place for place in array.reshape(-1, 4).tolist() if min(place) < 0)
        refuse("invalid_attribute", f"device_assignment has core {place}, but coordinates must be 0 or more")
    return Topology((array.reshape(-1, 4).max(axis=0) + 1).tolist())
