"""StableHLO text on the reference interpreter of jaxlib, in this process: each device is a thread of one run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from .wires import TOKEN, Function, Wire

# The arguments or results of each device (replica * num_partitions + partition) as arrays; tuples are flattened.
Leaves = Mapping[int, Sequence[Any]]

DEVICE_BREAK = "\n// -----\n"
"""Stands between the programs of a text with a program for each device, as between the modules of a file of MLIR."""

_PASSES = (
    "builtin.module(func.func(chlo-legalize-to-stablehlo, stablehlo-legalize-deprecated-ops{fail-on-unused=false}))"
)


def run_text(text: str, arguments: Leaves, num_replicas: int = 1, num_partitions: int = 1) -> dict[int, list[Any]]:
    """Run StableHLO text, one program for all devices or one for each; the results by device, without tokens.

    Raises ValueError with what the reader or the interpreter said; an op that it lacks ends the process.
    """
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    said: list[str] = []
    with context() as made, ir.Location.unknown():
        handler = made.attach_diagnostic_handler(partial(_heard, said))
        try:
            module, function, counts = _assembled(text.split(DEVICE_BREAK), num_replicas, num_partitions)
            given = [_attribute(part, wire) for part, wire in _parts(arguments, function.inputs)]
            results = [np.array(each) for each in stablehlo.eval_module(module, given)]
        except (ir.MLIRError, ValueError) as error:
            raise ValueError("\n".join(said) or str(error)) from None
        finally:
            handler.detach()
    return _by_device(iter(results), iter(function.outputs), counts)


def _heard(said: list[str], told: Any) -> bool:
    """Keep a diagnostic; that it is dealt with."""
    said.append(told.message)
    return True


def context() -> Any:
    """A context of MLIR with the dialects of StableHLO, of CHLO and of the reference interpreter."""
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir.dialects import chlo, stablehlo

    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    made = ir.Context()
    made.append_dialect_registry(registry)
    made.load_all_available_dialects()
    for dialect in (stablehlo, chlo):
        dialect.register_dialect(made)
    stablehlo.register_interpreter_dialect(made)
    return made


def _assembled(texts: Sequence[str], num_replicas: int, num_partitions: int) -> tuple[Any, Function, list[int]]:
    """The module of all programs with a `main` around them, and how many results each device has."""
    from jaxlib.mlir import ir

    modules = [_lowered(ir.Module.parse(text)) for text in texts]
    signatures = []
    for number, module in enumerate(modules):
        signatures.append(_renamed(module, f"device{number}"))
    for module in modules[1:]:
        for operation in list(module.body.operations):
            modules[0].body.append(operation.detach_from_parent())
    devices = [number if len(texts) > 1 else 0 for number in range(num_replicas * num_partitions)]
    grid = np.array([f"device{number}.main" for number in devices]).reshape(num_replicas, num_partitions)
    function = Function()
    around = ir.Module.parse(function.text(grid.tolist(), [signatures[number] for number in devices]))
    main = next(each for each in around.body.operations if each.attributes["sym_name"].value == "main")
    modules[0].body.append(main.detach_from_parent())
    counts = [sum(type_ != TOKEN for type_ in signatures[number][1]) for number in devices]
    return modules[0], function, counts


def _lowered(module: Any) -> Any:
    """The module in ops of StableHLO alone."""
    from jaxlib.mlir.dialects import stablehlo
    from jaxlib.mlir.passmanager import PassManager

    stablehlo.register_stablehlo_passes()
    PassManager.parse(_PASSES).run(module.operation)
    return module


def _renamed(module: Any, prefix: str) -> tuple[list[str], list[str]]:
    """Give each function of a module a name of its own; the types of what `main` takes and gives."""
    from jaxlib.mlir import ir

    table = ir.SymbolTable(module.operation)
    for operation in list(module.body.operations):
        old = operation.attributes["sym_name"].value
        if old == "main":
            kind = ir.FunctionType(ir.TypeAttr(operation.attributes["function_type"]).value)
        new = f"{prefix}.{old}"
        ir.SymbolTable.replace_all_symbol_uses(old, new, module.operation)
        table.set_symbol_name(operation, new)
    return [str(type_) for type_ in kind.inputs], [str(type_) for type_ in kind.results]


def _parts(arguments: Leaves, wires: Sequence[Wire]) -> Iterator[tuple[Any, Wire]]:
    """Each array that goes in, with its wire."""
    leaves = [leaf for device in sorted(arguments) for leaf in arguments[device]]
    for leaf, wire in zip(leaves, wires, strict=True):
        yield from ((part, wire) for part in wire.parts(np.asarray(leaf)))


def _attribute(array: Any, wire: Wire) -> Any:
    from jaxlib.mlir import ir

    element = ir.Type.parse(wire.carrier[0])
    return ir.DenseElementsAttr.get(np.ascontiguousarray(array), shape=array.shape, type=element)


def _by_device(results: Iterator[Any], wires: Iterator[Wire], counts: Sequence[int]) -> dict[int, list[Any]]:
    return {device: [next(wires).whole(results) for _ in range(count)] for device, count in enumerate(counts)}
