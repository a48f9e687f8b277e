"""The simulated TPU system: a record of what was initialized, which replicate is checked against."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from .support.context import Operation, current
from .support.refusals import refuse
from .topology import DeviceAssignment, Topology, core_array

_CANCELLATION = {None: 0, True: 1, False: 2}


@frozen(eq=False)
class System:
    """A system that was initialized: the op and the device of TensorFlow's graph, the mesh, and what was asked for."""

    device: str
    topology: Topology
    op: str = "ConfigureDistributedTPU"
    embedding_config: Any = None
    compilation_failure_closes_chips: bool = True
    tpu_cancellation_closes_chips: int = 0

    @property
    def operations(self) -> tuple[str, ...]:
        """The operations of TensorFlow's graph, in order: with an embedding configuration two more."""
        embedding = ("ConfigureTPUEmbedding", "tpu_init_identity") if self.embedding_config is not None else ()
        return (self.op, *embedding)

    def __str__(self) -> str:
        """The mesh and every core, a line each."""
        cores = [f"  core {n}  {place}" for n, place in enumerate(self.topology.device_coordinates[0].tolist())]
        return "\n".join([f"{self.op} on {self.device}: mesh {list(self.topology.mesh_shape)}", *cores])


class _Systems:
    """The system that is initialized, if one is."""

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
    """Initialize the simulated system; gives its record. `topology`: its mesh, of 8 cores where none is given.

    From here on replicas must fit its cores. Without a system any number of replicas runs.
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
    _outside("initialize_system")
    if tpu_cancellation_closes_chips not in (None, True, False):
        refuse(
            "invalid_attribute",
            f"tpu_cancellation_closes_chips is {tpu_cancellation_closes_chips!r}: None, True or False",
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
    """Shut the simulated system down; without one nothing happens.

    Raises nested_replicate inside of a computation.

    >>> import xbuild as xb
    >>> xb.tpu.shutdown_system()
    <tpu.Operation 'ShutdownDistributedTPU on /device:TPU_SYSTEM:0'>

    Source: tf.compat.v1.tpu.shutdown_system.
    """
    _outside("shutdown_system")
    _Systems.running = None
    return Operation(f"ShutdownDistributedTPU on {_device(job)}")


def _outside(what: str) -> None:
    if current() is not None:
        refuse(
            "nested_replicate", f"{what} is called inside of a computation that is being traced", "call it around it"
        )


def system() -> System | None:
    """The system that is initialized, or None.

    >>> import xbuild as xb
    >>> xb.tpu.system() is None
    True
    """
    return _Systems.running


def placed(num_replicas: int, given: Any) -> DeviceAssignment | None:
    """The assignment of devices as a record, checked against the replicas and the system."""
    running = _Systems.running
    if given is None:
        if running is not None and num_replicas not in (1, running.topology.num_cores):
            refuse(
                "replica_out_of_range",
                f"{num_replicas} replicas on a system of {running.topology.num_cores} cores: they are placed by "
                "themselves where there is one replica, or one for each core",
                f"device_assignment=xb.tpu.device_assignment(xb.tpu.system().topology, num_replicas={num_replicas})",
            )
        return None
    topology = running.topology if running is not None else None
    found = given if isinstance(given, DeviceAssignment) else _of_array(given, topology)
    if topology is not None and found.topology != topology:
        refuse("invalid_attribute", f"device_assignment is of {found.topology}, and the system has {topology}")
    if found.num_replicas != num_replicas:
        refuse(
            "shape_mismatch",
            f"device_assignment places {found.num_replicas} replicas, and the inputs are of {num_replicas}",
            f"xb.tpu.device_assignment(topology, num_replicas={num_replicas})",
        )
    return found


def _of_array(given: Any, topology: Topology | None) -> DeviceAssignment:
    """An array [replicas, cores, 4]; without a system, in the smallest mesh that holds it."""
    if topology is None:
        topology = _smallest(given)
    return DeviceAssignment(topology, given)


def _smallest(given: Any) -> Topology:
    array = core_array(given)
    if array.ndim != 3 or array.shape[2] != 4 or not array.size:
        refuse(
            "rank_mismatch", f"device_assignment must be [replicas, cores per replica, 4], and is {list(array.shape)}"
        )
    if array.min() < 0:
        place = next(place for place in array.reshape(-1, 4).tolist() if min(place) < 0)
        refuse("invalid_attribute", f"device_assignment has the core {place}, and coordinates are 0 or more")
    return Topology((array.reshape(-1, 4).max(axis=0) + 1).tolist())
