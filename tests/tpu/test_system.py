"""The record of the simulated system, what lies where, and replicas of several cores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from tests.tpu.support import F32, plain, refused


@pytest.fixture(autouse=True)
def _shut_down() -> Iterator[None]:
    yield
    xb.tpu.shutdown_system()


def test_core_names_a_core_of_every_replica() -> None:
    assert xb.tpu.core(0) == "device:TPU_REPLICATED_CORE:0"
    assert xb.tpu.core(99) == "device:TPU_REPLICATED_CORE:99"


def test_the_record_of_a_system() -> None:
    system = xb.tpu.initialize_system()
    assert (system.op, system.device) == ("ConfigureDistributedTPU", "/device:TPU_SYSTEM:0")
    assert xb.tpu.system() is system
    assert system.topology.num_cores == 8
    assert xb.tpu.initialize_system(job="worker").device == "/job:worker/device:TPU_SYSTEM:0"
    assert "ShutdownDistributedTPU on /job:worker" in xb.tpu.shutdown_system(job="worker").name
    assert xb.tpu.system() is None


def test_embeddings_are_configured_after_the_system() -> None:
    assert xb.tpu.initialize_system().operations == ("ConfigureDistributedTPU",)
    configured = xb.tpu.initialize_system(embedding_config="tables")
    assert configured.operations == ("ConfigureDistributedTPU", "ConfigureTPUEmbedding", "tpu_init_identity")


def test_the_options_of_the_compiler() -> None:
    options = xb.tpu.XLAOptions()
    assert options.use_spmd_for_xla_partitioning
    assert options.enable_xla_dynamic_padder
    assert not options.use_shardy_partitioner


@pytest.mark.parametrize(("given", "number"), [(None, 0), (True, 1), (False, 2)])
def test_cancellation_as_a_number(given: bool | None, number: int) -> None:
    assert xb.tpu.initialize_system(tpu_cancellation_closes_chips=given).tpu_cancellation_closes_chips == number


def test_replicas_fit_the_system() -> None:
    xb.tpu.initialize_system(topology=xb.tpu.Topology([2, 1, 1, 2]))
    assert len(xb.tpu.replicate(lambda: 1, [[]] * 4)) == 4
    assert len(xb.tpu.replicate(lambda: 1, [[]])) == 1
    text = refused("replica_out_of_range", lambda: xb.tpu.replicate(lambda: 1, [[]] * 3), "of 4 cores")
    assert "device_assignment=" in text
    placed = xb.tpu.device_assignment(xb.tpu.system().topology, num_replicas=3)
    assert len(xb.tpu.replicate(lambda: 1, [[]] * 3, device_assignment=placed)) == 3
    refused("shape_mismatch", lambda: xb.tpu.replicate(lambda: 1, [[]] * 2, device_assignment=placed), "3 replicas")
    other = xb.tpu.device_assignment(xb.tpu.Topology(), num_replicas=3)
    refused("invalid_attribute", lambda: xb.tpu.replicate(lambda: 1, [[]] * 3, device_assignment=other))


def test_systems_are_no_part_of_a_computation() -> None:
    refused("nested_replicate", lambda: xb.tpu.rewrite(lambda: xb.tpu.initialize_system()))
    refused("nested_replicate", lambda: xb.tpu.rewrite(lambda: xb.tpu.shutdown_system()))


def test_the_mesh() -> None:
    topology = xb.tpu.Topology([2, 2, 1, 2])
    assert topology.device_coordinates.shape == (1, 8, 4)
    assert topology.device_coordinates[0, :3].tolist() == [[0, 0, 0, 0], [0, 0, 0, 1], [1, 0, 0, 0]]
    refused("invalid_attribute", lambda: xb.tpu.Topology([2, 2]))
    refused("invalid_attribute", lambda: xb.tpu.Topology([2, 0, 1, 1]))


def test_what_lies_where() -> None:
    topology = xb.tpu.Topology([2, 2, 1, 2])
    placed = xb.tpu.device_assignment(topology, computation_shape=[1, 2, 1, 2], num_replicas=2)
    assert (placed.num_replicas, placed.num_cores_per_replica) == (2, 4)
    assert [placed.coordinates(0, core) for core in range(4)] == [
        (0, 0, 0, 0),
        (0, 0, 0, 1),
        (0, 1, 0, 0),
        (0, 1, 0, 1),
    ]
    assert placed.coordinates(1, 0) == (1, 0, 0, 0)
    assert placed.tpu_device(1, 0, job="w") == "/job:w/task:0/device:TPU:2"
    assert placed.host_device() == "/task:0/device:CPU:0"
    assert str(placed).splitlines()[0] == "replica 0 core 0  [0, 0, 0, 0]  /task:0/device:TPU:0"
    every = {placed.coordinates(r, c) for r in range(2) for c in range(4)}
    assert len(every) == 8


def test_strides() -> None:
    topology = xb.tpu.Topology([4, 1, 1, 1])
    placed = xb.tpu.device_assignment(topology, [2, 1, 1, 1], [2, 1, 1, 1], num_replicas=2)
    assert placed.core_assignment[:, :, 0].tolist() == [[0, 2], [1, 3]]


def test_placements_that_are_none() -> None:
    topology = xb.tpu.Topology([2, 1, 1, 2])
    refused("replica_out_of_range", lambda: xb.tpu.device_assignment(topology, num_replicas=5), "only 4 replicas")
    refused("attribute_length_mismatch", lambda: xb.tpu.device_assignment(topology, [1, 1]))
    refused("non_positive", lambda: xb.tpu.device_assignment(topology, [1, 1, 1, 0]))
    refused("rank_mismatch", lambda: xb.tpu.DeviceAssignment(topology, [[0, 0, 0, 0]]))
    refused("invalid_attribute", lambda: xb.tpu.DeviceAssignment(topology, [[[5, 0, 0, 0]]]), "is outside the mesh")
    refused(
        "invalid_attribute",
        lambda: xb.tpu.DeviceAssignment(topology, [[[0, 0, 0, 0]], [[0, 0, 0, 0]]]),
        "assigned twice",
    )
    wrong = lambda: xb.tpu.replicate(lambda: 1, [[]], device_assignment=[[0, 0, 0]])  # noqa: E731
    refused("rank_mismatch", wrong)


def test_replicas_of_several_cores_run_as_partitions() -> None:
    placed = np.array([[[0, 0, 0, 0], [0, 0, 0, 1]], [[1, 0, 0, 0], [1, 0, 0, 1]]])
    seen: list[float] = []
    feed = xb.tpu.InfeedQueue(tuple_types=[xb.f32], tuple_shapes=[[2]])
    feed.enqueue(F32([10, 20]))

    def computation(a: Any, x: Any) -> Any:
        with xb.tpu.device(xb.tpu.core(1)):
            y = a * x
            doubled = xb.tpu.outside_compilation(
                lambda v: (seen.append(v.item()), 2 * v)[1], y, result_shapes=xb.f32[1]
            )
        xb.tpu.outfeed_enqueue(doubled)
        return xb.tpu.cross_replica_sum(doubled)

    taken = xb.tpu.OutfeedQueue()
    program = xb.tpu.replicate.program(computation, [[1.0], [2.0]], feed, placed, outfeed=taken)
    assert (program.module.num_replicas, program.module.num_partitions) == (2, 2)
    assert plain(program.run()) == [[[100.0]], [[100.0]]]
    assert seen == [10.0, 40.0]
    assert [(replica, plain(item)) for replica, item in taken] == [(0, [20.0]), (1, [80.0])]
    multiply = next(i for i in program.module.entry.instructions if i.opcode == "multiply")
    assert multiply.annotations["sharding"] == "{maximal device=1}"
    send = next(i for i in program.module.entry.instructions if i.opcode == "send")
    assert send.annotations["frontend_attributes"]["_xla_host_compute_core"] == "cluster:1"


def test_variables_of_replicas_of_several_cores() -> None:
    w = xb.tpu.Variable(1.0)
    placed = [[[0, 0, 0, 0], [0, 0, 0, 1]], [[1, 0, 0, 0], [1, 0, 0, 1]]]
    xb.tpu.replicate(lambda x: w.assign(w + x), [[1.0], [2.0]], device_assignment=placed)
    assert plain(w.values) == [2.0, 3.0]


def test_a_core_that_a_replica_has_not() -> None:
    def computation() -> Any:
        with xb.tpu.device(xb.tpu.core(1)):
            return 1.0

    refused("invalid_attribute", lambda: xb.tpu.rewrite(computation), "each replica has 1 core, numbered from 0")
    with pytest.raises(xb.tpu.TpuError, match="not a core of this replica"), xb.tpu.device("/cpu:0"):
        pass
