"""Why programs send more here than as XLA partitions them with Shardy."""

from __future__ import annotations

SLIGHT = 1.1
"""The ratio up to which a program sends little more."""

CAUSES: dict[str, str] = {}
