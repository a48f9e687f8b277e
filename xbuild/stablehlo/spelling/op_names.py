"""Names of ops in the dialects stablehlo and chlo."""

from __future__ import annotations

from ...core.op import OPS

_OTHER = {
    "acos": "chlo.acos",
    "acosh": "chlo.acosh",
    "asin": "chlo.asin",
    "asinh": "chlo.asinh",
    "atanh": "chlo.atanh",
    "broadcast": "stablehlo.broadcast_in_dim",
    "call": "func.call",
    "conditional": "stablehlo.case",
    "cosh": "chlo.cosh",
    "dot": "stablehlo.dot_general",
    "erf": "chlo.erf",
    "mulhi": "chlo.mulhi",
    "opt_barrier": "stablehlo.optimization_barrier",
    "ragged_dot": "chlo.ragged_dot",
    "scan": "chlo.scan",
    "sinh": "chlo.sinh",
    "topk": "chlo.top_k",
}

UNNAMED = frozenset((
    "add_dependency", "all_gather_done", "all_gather_start", "all_reduce_done", "all_reduce_start", "async_update",
    "bitcast", "collective_permute_done", "collective_permute_start", "copy", "copy_done", "copy_start", "domain",
    "fusion", "parameter", "ragged_all_to_all", "recv_done", "rng_get_and_update_state", "scaled_dot", "send_done",
    "stochastic_convert",
))  # fmt: skip
"""Opcodes that no single op of StableHLO or CHLO stands for."""

OP_NAMES = {opcode: _OTHER.get(opcode, f"stablehlo.{opcode}") for opcode in OPS if opcode not in UNNAMED}
"""The MLIR op that an opcode becomes.

>>> OP_NAMES["add"], OP_NAMES["broadcast"], OP_NAMES["erf"]
('stablehlo.add', 'stablehlo.broadcast_in_dim', 'chlo.erf')
"""

HLO_OPCODE = "mhlo.opcode"
"""The attribute which says that an op of CHLO was this op of HLO, and is to be that again."""

EXPANDED = frozenset(("acos", "acosh", "asin", "asinh", "atanh", "cosh", "sinh"))
"""Opcodes whose op of CHLO is read, as XLA does, as a formula in other ops, unless `HLO_OPCODE` stands at it."""

OPCODES = {name: opcode for opcode, name in OP_NAMES.items()}
"""The opcode of each of these MLIR ops."""
