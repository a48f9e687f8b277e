"""A script that reads MLIR bytecode or a HloModuleProto from stdin and writes its text to stdout."""

from __future__ import annotations

import sys
from typing import Any

MAGIC = b"ML\xefR"


def write_text(raw: bytes) -> None:
    """Write a module as text with locations; a portable artifact becomes StableHLO of this version.

    LLVM streams it to stdout, so that the process never holds all of it.
    """
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    with context() as made:
        try:
            module = stablehlo.deserialize_portable_artifact(made, raw)
        except ValueError:
            module = ir.Module.parse(raw)
        module.operation.print(file="-", enable_debug_info=True)


def context() -> Any:
    """An MLIR context with all dialects of jaxlib; jaxlib before 0.7 registers the first of them itself."""
    from jaxlib.mlir import _mlir_libs, ir
    from jaxlib.mlir.dialects import chlo, sdy, stablehlo

    made = ir.Context()
    made.enable_multithreading(False)
    if register := getattr(_extension(_mlir_libs.__name__), "register_dialects", None):
        registry = ir.DialectRegistry()
        register(registry)
        made.append_dialect_registry(registry)
    made.load_all_available_dialects()
    for dialect in (stablehlo, chlo, sdy):
        dialect.register_dialect(made)
    return made


def _extension(package: str) -> Any:
    """The module of jaxlib that registers dialects; None in versions without it."""
    import importlib

    try:
        return importlib.import_module(f"{package}._jax_mlir_ext")
    except ImportError:
        return None


def hlo() -> Any:
    """The module of jaxlib with the classes of HLO, which moved in jaxlib 0.9."""
    try:
        from jaxlib import _hlo
    except ImportError:
        from jaxlib import _jax as _hlo
    return _hlo


def write_hlo_text(raw: bytes) -> None:
    """Write the text of a HloModuleProto, with the elements of all constants."""
    options = hlo().HloPrintOptions()
    options.print_large_constants = True
    text = str(hlo().HloModule.from_serialized_hlo_module_proto(raw).to_string(options))
    sys.stdout.buffer.write(text.encode("utf-8", errors="surrogateescape"))


if __name__ == "__main__":
    given = sys.stdin.buffer.read()
    try:
        (write_text if given.startswith(MAGIC) else write_hlo_text)(given)
    except Exception as error:
        sys.exit(" ".join(str(error).split())[:2000] or type(error).__name__)
