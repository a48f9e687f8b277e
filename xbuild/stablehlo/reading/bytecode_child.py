"""Run as a script in a process of its own: MLIR bytecode on its input, the module's text on its output."""

from __future__ import annotations

import sys
from typing import Any


def text_of(raw: bytes) -> str:
    """The text of a module with locations; a portable artifact becomes StableHLO of this version."""
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    with _context() as context:
        try:
            module = stablehlo.deserialize_portable_artifact(context, raw)
        except ValueError:
            module = ir.Module.parse(raw)
        return str(module.operation.get_asm(enable_debug_info=True))


def _context() -> Any:
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir.dialects import chlo, sdy, stablehlo

    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    made = ir.Context()
    made.append_dialect_registry(registry)
    made.load_all_available_dialects()
    for dialect in (stablehlo, chlo, sdy):
        dialect.register_dialect(made)
    return made


if __name__ == "__main__":
    try:
        written = text_of(sys.stdin.buffer.read())
    except Exception as error:
        sys.exit(" ".join(str(error).split()) or type(error).__name__)
    sys.stdout.buffer.write(written.encode("utf-8", errors="surrogateescape"))
