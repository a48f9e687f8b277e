"""The tables of value rules, and the arguments of rules: regions, limits, denormal modes.

`compute` has pure functions of arrays. `planned` has functions that emit lines of a plan: for leaves, tuples and
control flow, and for ops that need another device or the host, which become requests to the grid.
"""

from __future__ import annotations

from shape_inference import RuleTable

compute = RuleTable("value")
planned = RuleTable("plan")
