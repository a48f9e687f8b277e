"""Why programs send more here than as XLA partitions them with Shardy."""

from __future__ import annotations

SLIGHT = 1.1
"""The ratio up to which a program sends little more."""

CAUSES = {
    "state space, sequence": (
        "the slices of the padded sequence fetch 3, 2 and 1 rows of the neighbour; "
        "XLA moves a row with the pad, and its slices fetch 2, 1 and 1"
    ),
}
