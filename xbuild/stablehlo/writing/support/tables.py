"""The two tables of rules, by opcode."""

from __future__ import annotations

from shape_inference.rules import RuleTable

lines = RuleTable("StableHLO")
"""Rules that give the text of one op of MLIR: what stands before the dictionary of annotations, and the types."""

values = RuleTable("StableHLO value")
"""Rules that write whatever lines there are to write, and give the names of the result's arrays and tokens."""

REFUSED: set[str] = set()
"""The opcodes that no text of StableHLO stands for."""
