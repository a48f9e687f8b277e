"""HLO text on the devices of JAX's runtime, in this process: compiled by jaxlib, fed and read device by device."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from xbuild.stablehlo.reading.bytecode_child import hlo

# The arguments or results of each device (replica * num_partitions + partition) as arrays; tuples are flattened.
Leaves = Mapping[int, Sequence[Any]]


def run_text(
    text: str, arguments: Leaves, num_replicas: int = 1, num_partitions: int = 1, platform: str | None = None
) -> dict[int, list[Any]]:
    """Compile the text and run it; returns the results of the devices that this process holds.

    `arguments` has the arguments of the same devices. Raises what jaxlib raises; some bad programs end the process.
    """
    ready_lapack()  # returns at once after the first call
    with _wide():
        results: dict[int, list[Any]] = _run(text, arguments, num_replicas, num_partitions, platform)
    return results


def _wide() -> Any:
    """A context in which JAX has 64 bits; JAX before 0.8 has it elsewhere."""
    import jax

    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    from jax.experimental import enable_x64

    return enable_x64(True)


def require() -> None:
    """Raise ImportError or AttributeError if this jaxlib lacks an internal that a run needs."""
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client

    _wide()
    for owner, names in (
        (hlo(), ("hlo_module_from_text", "XlaComputation")),
        (xla_client, ("CompileOptions", "DeviceAssignment", "DeviceList")),
        (mlir, ("make_ir_context", "module_to_bytecode")),
    ):
        for name in names:
            getattr(owner, name)


def ready_lapack() -> None:
    """Set up LAPACK's kernels, which crash if they are called before that."""
    with contextlib.suppress(ImportError, AttributeError):
        import jax._src.lax.linalg  # noqa: F401
        from jaxlib import lapack

        lapack._lapack.initialize()


def _text_module(text: str) -> Any:
    return hlo().hlo_module_from_text(text)


def _run(text: str, arguments: Leaves, num_replicas: int, num_partitions: int, platform: str | None) -> Any:
    devices = _devices(num_replicas * num_partitions, platform)
    mine = {
        number: device for number, device in enumerate(devices) if device.process_index == device.client.process_index()
    }
    if set(arguments) != set(mine):
        raise ValueError(
            f"got arguments for devices {sorted(arguments)}, but this process holds devices {sorted(mine)}"
        )
    module, executable = _compiled(text, num_replicas, num_partitions, platform)
    results = executable.execute_sharded(_shards(module, arguments, devices, mine))
    outputs = results.disassemble_into_single_device_arrays()
    leaves = _leaves(_computation(module).program_shape().result_shape())
    # A token has no value, and is not among the results.
    arrays = [output for output, leaf in zip(outputs, leaves, strict=True) if not leaf.is_token()]
    return {device: [np.asarray(array[place]) for array in arrays] for place, device in enumerate(mine)}


@functools.lru_cache(maxsize=4)
def _compiled(text: str, num_replicas: int, num_partitions: int, platform: str | None) -> tuple[Any, Any]:
    """The module and its executable, cached for the next run of the same program."""
    from jax._src.lib import xla_client

    module, devices = _text_module(text), _devices(num_replicas * num_partitions, platform)
    program = lower(module)
    if num_partitions > 1:
        program = _with_manual_shardings(program)
    options = _options(devices, num_replicas, num_partitions)
    return module, devices[0].client.compile_and_load(program, xla_client.DeviceList(tuple(devices)), options)


def _devices(count: int, platform: str | None) -> list[Any]:
    import jax

    available = jax.devices(platform)
    if len(available) < count:
        raise ValueError(
            f"the program needs {count} devices, but JAX has only {len(available)} on platform "
            f"{available[0].platform!r}"
        )
    return available[:count]  # type: ignore[no-any-return]


def _shards(module: Any, arguments: Leaves, devices: Sequence[Any], mine: Mapping[int, Any]) -> list[Any]:
    """One JAX array for each leaf of each parameter; every device holds its own argument as a full copy."""
    import jax

    signature = _computation(module).program_shape()
    leaves = [leaf for parameter in signature.parameter_shapes() for leaf in _leaves(parameter)]
    mesh = jax.sharding.Mesh(np.array(devices), ("device",))
    replicated = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    shards = []
    for number, leaf in enumerate(leaves):
        own = {d: np.asarray(row[number]).astype(leaf.numpy_dtype(), copy=False) for d, row in arguments.items()}
        placed = [jax.device_put(own[d].reshape(leaf.dimensions()), device) for d, device in mine.items()]
        shards.append(jax.make_array_from_single_device_arrays(leaf.dimensions(), replicated, placed))
    return shards


def _leaves(shape: Any) -> list[Any]:
    if not shape.is_tuple():
        return [shape]
    return [leaf for element in shape.tuple_shapes() for leaf in _leaves(element)]


def _computation(module: Any) -> Any:
    return hlo().XlaComputation(module.as_serialized_hlo_module_proto())


def lower(module: Any) -> bytes:
    """The module in the form that the client compiles."""
    from jaxlib import _jax

    try:
        return _jax.mlir.hlo_to_stablehlo(module.as_serialized_hlo_module_proto())  # type: ignore[no-any-return]
    except Exception as error:
        try:
            program = _jax.mlir.xla_computation_to_mlir_module(_computation(module))
        except Exception:
            raise error from None
        return program if isinstance(program, bytes) else program.encode()


def _options(devices: Sequence[Any], num_replicas: int, num_partitions: int) -> Any:
    from jax._src.lib import xla_client

    ids = np.array([device.id for device in devices], np.int32).reshape(num_replicas, num_partitions)
    options = xla_client.CompileOptions()
    build = options.executable_build_options
    for settings in (options, build):
        settings.num_replicas, settings.num_partitions = num_replicas, num_partitions
        settings.device_assignment = xla_client.DeviceAssignment.create(ids)
    build.use_spmd_partitioning = num_partitions > 1
    build.use_shardy_partitioner = False
    return options


def _with_manual_shardings(program: bytes) -> bytes:
    """The program with `manual` sharding on every op, so that the partitioner does not change its shapes."""
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
        return mlir.module_to_bytecode(module)  # type: ignore[no-any-return]


def _mark(operation: Any, manual: Any) -> None:
    for region in operation.regions:
        for block in region.blocks:
            for inner in list(block.operations):
                if inner.operation.name == "stablehlo.while":
                    _keep(inner.operation, manual)
                if not inner.operation.name.endswith(".return"):
                    inner.operation.attributes["mhlo.sharding"] = manual
                _mark(inner.operation, manual)


def _keep(loop: Any, manual: Any) -> None:
    """Put a barrier before each operand of a loop: one that is simplified away loses its mark, and the loop its own."""
    from jax._src.lib.mlir import ir

    for number, operand in enumerate(loop.operands):
        if not isinstance(operand.type, ir.RankedTensorType):
            continue  # a token
        barrier = ir.Operation.create(
            "stablehlo.optimization_barrier", results=[operand.type], operands=[operand],
            attributes={"mhlo.sharding": manual}, loc=loop.location, ip=ir.InsertionPoint(loop),
        )  # fmt: skip
        loop.operands[number] = barrier.result


def _mark_signature(function: Any, manual: Any, ir: Any) -> None:
    kind = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    marked = ir.DictAttr.get({"mhlo.sharding": manual})
    for key, types in (("arg_attrs", kind.inputs), ("res_attrs", kind.results)):
        if len(types):
            function.attributes[key] = ir.ArrayAttr.get([marked] * len(types))
