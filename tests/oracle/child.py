"""The child process of the oracle: reads jobs from stdin, runs each on jaxlib's CPU client, answers on stdout."""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)

from jax._src.lib import xla_client  # noqa: E402
from jaxlib import _hlo, _jax  # noqa: E402


def main() -> None:
    _ready_lapack()
    # What XLA prints must not stand between the pickles.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        try:
            text, arguments, num_replicas, num_partitions = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        pickle.dump(_attempt(text, arguments, num_replicas, num_partitions), answers)
        answers.flush()


def _ready_lapack() -> None:
    """LAPACK's kernels crash where they are called before they are set up."""
    with contextlib.suppress(ImportError, AttributeError):
        import jax._src.lax.linalg  # noqa: F401
        from jaxlib import lapack

        lapack._lapack.initialize()


def _attempt(text: str, arguments: Sequence[Sequence[Any]], num_replicas: int, num_partitions: int) -> Any:
    try:
        return _run(_hlo.hlo_module_from_text(text), arguments, num_replicas, num_partitions)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _run(module: Any, arguments: Sequence[Sequence[Any]], num_replicas: int, num_partitions: int) -> list[list[Any]]:
    count = num_replicas * num_partitions
    if len(arguments) != count:
        raise ValueError(f"{len(arguments)} lists of arguments for {count} devices")
    client = jax.devices("cpu")[0].client
    devices = client.local_devices()[:count]
    program = _lowered(module)
    if num_partitions > 1:
        program = _by_hand(program)
    options = _options(num_replicas, num_partitions)
    executable = client.compile_and_load(program, xla_client.DeviceList(tuple(devices)), options)
    results = executable.execute_sharded(_shards(module, arguments, devices))
    outputs = results.disassemble_into_single_device_arrays()
    return [[np.asarray(output[device]) for output in outputs] for device in range(count)]


def _shards(module: Any, arguments: Sequence[Sequence[Any]], devices: Sequence[Any]) -> list[Any]:
    """For each leaf of each parameter one array, of which every device holds its own version in full."""
    signature = _computation(module).program_shape()
    leaves = [leaf for parameter in signature.parameter_shapes() for leaf in _leaves(parameter)]
    mesh = jax.sharding.Mesh(np.array(devices), ("device",))
    whole = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    shards = []
    for number, leaf in enumerate(leaves):
        own = [np.asarray(row[number]).astype(leaf.numpy_dtype(), copy=False) for row in arguments]
        placed = [jax.device_put(array.reshape(leaf.dimensions()), d) for array, d in zip(own, devices, strict=True)]
        shards.append(jax.make_array_from_single_device_arrays(leaf.dimensions(), whole, placed))
    return shards


def _leaves(shape: Any) -> list[Any]:
    if not shape.is_tuple():
        return [shape]
    return [leaf for each in shape.tuple_shapes() for leaf in _leaves(each)]


def _computation(module: Any) -> Any:
    return _hlo.XlaComputation(module.as_serialized_hlo_module_proto())


def _lowered(module: Any) -> bytes:
    """The module in the form that the client compiles."""
    try:
        return _jax.mlir.hlo_to_stablehlo(module.as_serialized_hlo_module_proto())
    except Exception as error:
        try:
            program = _jax.mlir.xla_computation_to_mlir_module(_computation(module))
        except Exception:
            raise error from None
        return program if isinstance(program, bytes) else program.encode()


def _options(num_replicas: int, num_partitions: int) -> Any:
    numbers = np.arange(num_replicas * num_partitions, dtype=np.int32).reshape(num_replicas, num_partitions)
    options = xla_client.CompileOptions()
    build = options.executable_build_options
    for each in (options, build):
        each.num_replicas, each.num_partitions = num_replicas, num_partitions
        each.device_assignment = xla_client.DeviceAssignment.create(numbers)
    build.use_spmd_partitioning = num_partitions > 1
    build.use_shardy_partitioner = False
    return options


def _by_hand(program: bytes) -> bytes:
    """The program marked as partitioned already, so that the partitioner leaves its shapes alone."""
    from jax._src.interpreters import mlir
    from jax._src.lib.mlir import ir
    from jax._src.lib.mlir.dialects import func  # noqa: F401

    with mlir.make_ir_context():
        module = ir.Module.parse(program)
        manual = ir.StringAttr.get("{manual}")
        for function in module.body.operations:
            if function.operation.name == "func.func":
                _mark(function.operation, manual)
                if ir.StringAttr(function.attributes["sym_name"]).value == "main":
                    _mark_signature(function, manual, ir)
        return mlir.module_to_bytecode(module)


def _mark(operation: Any, manual: Any) -> None:
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                if not inner.operation.name.endswith(".return"):
                    inner.operation.attributes["mhlo.sharding"] = manual
                _mark(inner.operation, manual)


def _mark_signature(function: Any, manual: Any, ir: Any) -> None:
    kind = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    marked = ir.DictAttr.get({"mhlo.sharding": manual})
    for key, types in (("arg_attrs", kind.inputs), ("res_attrs", kind.results)):
        if len(types):
            function.attributes[key] = ir.ArrayAttr.get([marked] * len(types))


if __name__ == "__main__":
    main()
