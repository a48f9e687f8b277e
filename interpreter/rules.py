"""What an op does to values: a table from opcode to a pure function of arrays."""

from __future__ import annotations

from shape_inference import RuleTable

compute = RuleTable("value")
