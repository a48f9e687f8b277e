"""StableHLO text on the reference interpreter of jaxlib, in this process: each device is a thread of one run.

Sections:

    Wires: how arrays of a type go in and out
    The function `main`, which runs the program of each device
    Runs of a text
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from attrs import define, field, frozen

from xbuild.properties.order import CONTROL_DEP
from xbuild.stablehlo.reading.bytecode_child import context as mlir_context
from xbuild.stablehlo.spelling import TYPES_BY_NAME

# ----------------------------------------------------------------------------
# Wires: how arrays of a type go in and out, in element types that NumPy has.
#
# Complex numbers go in and out by their parts, small types in larger ones.

_TENSOR = re.compile(r"tensor<((?:\d+x)*)([a-z]\w*(?:<\w+>)?)>\Z")
_PARTS = {"complex<f32>": "f32", "complex<f64>": "f64"}

# The element type that carries another one, and the op that leads there and back without loss.
_CARRIERS = {
    "bf16": ("ui16", "bitcast_convert"),
    **dict.fromkeys(("i2", "i4"), ("i8", "convert")),
    **dict.fromkeys(("ui2", "ui4"), ("ui8", "convert")),
    **dict.fromkeys(("f4E2M1FN", "f6E2M3FN", "f6E3M2FN"), ("f32", "convert")),
}

TOKEN = "!stablehlo.token"


class WireError(ValueError):
    """A value of this type cannot be passed to the reference interpreter, or read from it."""


@frozen
class Wire:
    """How arrays of one tensor type go in and out."""

    dims: str
    element: str

    @property
    def type(self) -> str:
        return f"tensor<{self.dims}{self.element}>"

    @property
    def carrier(self) -> tuple[str, str]:
        """The element type in which an array, or a part of it, goes in and out, and the op that leads there."""
        if self.element in _PARTS:
            return _PARTS[self.element], ""
        if self.element.startswith("f8"):
            return "ui8", "bitcast_convert"
        return _CARRIERS.get(self.element, (self.element, ""))

    @property
    def carried(self) -> str:
        return f"tensor<{self.dims}{self.carrier[0]}>"

    def parts(self, array: Any) -> Iterator[Any]:
        """The arrays in which an array is passed."""
        if self.element in _PARTS:
            yield from (array.real, array.imag)
        else:
            yield self._as(array, self.carrier[0])

    def join(self, parts: Iterator[Any]) -> Any:
        """The array that the next parts represent."""
        first = next(parts)
        if self.element not in _PARTS:
            return self._as(first, self.element)
        joined = np.empty(first.shape, TYPES_BY_NAME[self.element].dtype)
        joined.real, joined.imag = first, next(parts)
        return joined

    def _as(self, array: Any, element: str) -> Any:
        dtype = TYPES_BY_NAME[element].dtype
        return (
            array.astype(dtype)
            if self.carrier[1] == "convert"
            else np.ascontiguousarray(array).view(dtype).reshape(array.shape)
        )


def wire_of(type_: str) -> Wire | None:
    """The wire of a type in MLIR's spelling; None of a token, which has no array."""
    if type_ == TOKEN:
        return None
    match = _TENSOR.match(type_)
    if match is None or match[2] not in TYPES_BY_NAME:
        raise WireError(f"{type_}: the reference interpreter accepts only arrays with static shapes")
    return Wire(match[1], match[2])


# ----------------------------------------------------------------------------
# The function `main`, which gives each device its arguments and takes the results.


@define
class Function:
    """The text of the function `main`, which runs the program of each device, and how its arguments go in and out."""

    inputs: list[Wire] = field(factory=list)
    outputs: list[Wire] = field(factory=list)
    _parameters: list[str] = field(factory=list)
    _lines: list[str] = field(factory=list)
    _results: list[tuple[str, str]] = field(factory=list)
    _count: int = 0

    def text(self, programs: Sequence[Sequence[str]], signatures: Sequence[tuple[list[str], list[str]]]) -> str:
        """The module with `main` and the declarations that it refers to; signatures are those of all devices."""
        operands = [self._emit_argument(type_) for takes, _ in signatures for type_ in takes]
        types = [type_ for takes, _ in signatures for type_ in takes]
        gives = [type_ for _, results in signatures for type_ in results]
        grid = ", ".join(f"[{', '.join(f'@{name}' for name in row)}]" for row in programs)
        head = f"%run:{len(gives)} = " if gives else ""
        self._lines.append(
            f'{head}"interpreter.run_parallel"({", ".join(operands)}) {{programs = [{grid}]}} : '
            f"({', '.join(types)}) -> ({', '.join(gives)})"
        )
        for number, type_ in enumerate(gives):
            self._emit_result(f"%run#{number}", type_)
        names, kinds = [name for name, _ in self._results], [kind for _, kind in self._results]
        body = [*self._lines, f"return {', '.join(names)} : {', '.join(kinds)}" if names else "return"]
        declared = dict(zip((name for row in programs for name in row), signatures, strict=True))
        stubs = [
            f"func.func private @{name}({', '.join(takes)}) -> ({', '.join(results)})"
            for name, (takes, results) in declared.items()
        ]
        main = f"func.func @main({', '.join(self._parameters)}) -> ({', '.join(kinds)}) {{"
        return "\n".join([*stubs, main, *body, "}"])

    def _new(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def _parameter(self, wire: Wire) -> str:
        name = self._new()
        self._parameters.append(f"{name}: {wire.carried}")
        return name

    def _op(self, op: str, operands: str, takes: str, gives: str) -> str:
        name = self._new()
        self._lines.append(f'{name} = "stablehlo.{op}"({operands}) : ({takes}) -> {gives}')
        return name

    def _emit_argument(self, type_: str) -> str:
        """The value of a program's parameter, composed of parameters of `main`."""
        wire = wire_of(type_)
        if wire is None:
            raise WireError("a parameter is a token, which cannot be passed to the reference interpreter")
        self.inputs.append(wire)
        first = self._parameter(wire)
        if wire.element in _PARTS:
            second = self._parameter(wire)
            return self._op("complex", f"{first}, {second}", f"{wire.carried}, {wire.carried}", wire.type)
        op = wire.carrier[1]
        return self._op(op, first, wire.carried, wire.type) if op else first

    def _emit_result(self, value: str, type_: str) -> None:
        """Return the value of a program's result in results of `main`."""
        wire = wire_of(type_)
        if wire is None:
            return
        self.outputs.append(wire)
        op = wire.carrier[1]
        if wire.element in _PARTS:
            parts = [self._op(part, value, wire.type, wire.carried) for part in ("real", "imag")]
        else:
            parts = [self._op(op, value, wire.type, wire.carried) if op else value]
        self._results += [(part, wire.carried) for part in parts]


# ----------------------------------------------------------------------------
# Runs of a text.

# The arguments or results of each device (replica * num_partitions + partition) as arrays; tuples are flattened.
Leaves = Mapping[int, Sequence[Any]]

DEVICE_BREAK = "\n// -----\n"
"""Stands between the programs of a text with a program for each device, as between the modules of a file of MLIR."""

_PASSES = (
    "builtin.module(func.func(chlo-legalize-to-stablehlo, stablehlo-legalize-deprecated-ops{fail-on-unused=false}))"
)


def run_text(text: str, arguments: Leaves, num_replicas: int = 1, num_partitions: int = 1) -> dict[int, list[Any]]:
    """Run StableHLO text, one program for all devices or one for each; returns the results by device, without tokens.

    Raises ValueError with what the reader or the interpreter said; an op that it lacks ends the process.
    """
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    messages: list[str] = []
    with context() as mlir, ir.Location.unknown():
        handler = mlir.attach_diagnostic_handler(partial(_keep_diagnostic, messages))
        try:
            module, function, counts = _assemble(text.split(DEVICE_BREAK), num_replicas, num_partitions)
            inputs = [_attribute(part, wire) for part, wire in _parts(arguments, function.inputs)]
            results = [np.array(result) for result in stablehlo.eval_module(module, inputs)]
        except (ir.MLIRError, ValueError) as error:
            raise ValueError("\n".join(messages) or str(error)) from None
        finally:
            handler.detach()
    return _by_device(iter(results), iter(function.outputs), counts)


def _keep_diagnostic(messages: list[str], diagnostic: Any) -> bool:
    """Keep a diagnostic; True means that it has been handled."""
    messages.append(diagnostic.message)
    return True


def context() -> Any:
    """A context of MLIR with all dialects that jaxlib has, and that of the reference interpreter."""
    from jaxlib.mlir.dialects import stablehlo

    interpreter_context = mlir_context()
    stablehlo.register_interpreter_dialect(interpreter_context)
    return interpreter_context


def _assemble(texts: Sequence[str], num_replicas: int, num_partitions: int) -> tuple[Any, Function, list[int]]:
    """The module of all programs with a `main` around them, and how many results each device has."""
    from jaxlib.mlir import ir

    modules = [_lower(ir.Module.parse(text)) for text in texts]
    signatures = []
    for number, module in enumerate(modules):
        signatures.append(_rename_functions(module, f"device{number}"))
    for module in modules[1:]:
        for operation in list(module.body.operations):
            modules[0].body.append(operation.detach_from_parent())
    devices = [number if len(texts) > 1 else 0 for number in range(num_replicas * num_partitions)]
    grid = np.array([f"device{number}.main" for number in devices]).reshape(num_replicas, num_partitions)
    function = Function()
    around = ir.Module.parse(function.text(grid.tolist(), [signatures[number] for number in devices]))
    main = next(operation for operation in around.body.operations if operation.attributes["sym_name"].value == "main")
    modules[0].body.append(main.detach_from_parent())
    counts = [sum(type_ != TOKEN for type_ in signatures[number][1]) for number in devices]
    return modules[0], function, counts


def _lower(module: Any) -> Any:
    """The module in ops of StableHLO only; the interpreter runs them in order, without `control_dep`."""
    from jaxlib.mlir.dialects import stablehlo
    from jaxlib.mlir.passmanager import PassManager

    for call in list(_control_dependencies(module.operation)):
        call.erase()

    stablehlo.register_stablehlo_passes()
    PassManager.parse(_PASSES).run(module.operation)
    return module


def _control_dependencies(operation: Any) -> Iterator[Any]:
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                if inner.operation.name == "stablehlo.custom_call":
                    if inner.operation.attributes["call_target_name"].value == CONTROL_DEP:
                        yield inner.operation
                else:
                    yield from _control_dependencies(inner.operation)


def _rename_functions(module: Any, prefix: str) -> tuple[list[str], list[str]]:
    """Rename each function of a module to a unique name; returns the types of the arguments and results of `main`."""
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
    return {device: [next(wires).join(results) for _ in range(count)] for device, count in enumerate(counts)}
