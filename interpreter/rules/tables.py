"""The tables of value rules: `compute` has pure functions of arrays, `planned` functions that write lines of a plan.

A plan itself evaluates leaves, tuples and control flow, and asks the grid where an op needs another device or the host.
"""

from __future__ import annotations

from shape_inference import RuleTable

compute = RuleTable("value")
planned = RuleTable("plan")
