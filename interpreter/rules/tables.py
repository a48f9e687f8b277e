"""What an op does to values: a pure function of arrays in one table, or in the other the lines that a plan has for it.

A plan itself evaluates leaves, tuples and control flow, and asks the grid where an op needs another device or the host.
"""

from __future__ import annotations

from shape_inference import RuleTable

compute = RuleTable("value")
planned = RuleTable("plan")
