"""The tables of value rules: `compute` has pure functions of arrays, `planned` has functions that emit lines of a plan.

A plan evaluates leaves, tuples and control flow; for an op that needs another device or the host, it makes a request to
the grid.
"""

from __future__ import annotations

from shape_inference import RuleTable

compute = RuleTable("value")
planned = RuleTable("plan")
