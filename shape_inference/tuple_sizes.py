"""Limits of the number of leaves and of the nesting depth of a tuple."""

from __future__ import annotations

from .rules import refuse

MOST_LEAVES = 100_000  # arrays and tokens in a tuple; a tuple that is an element twice is counted twice
DEEPEST_TUPLE = 64  # levels of nested tuples


def refuse_size(count: int, depth: int) -> None:
    """Refuse a tuple that is too large, before it is traversed: with shared elements, 40 lines make 2^40 leaves."""
    if count > MOST_LEAVES:
        refuse(
            "tuple_too_large", f"the tuple would have {count:,} arrays and tokens, and at most {MOST_LEAVES:,} may be"
        )
    refuse("tuple_too_large", f"tuples would stand {depth} deep inside each other, and at most {DEEPEST_TUPLE} may")
