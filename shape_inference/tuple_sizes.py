"""Limits of the number of leaves and of the depth of a tuple."""

from __future__ import annotations

from .rules import refuse

MOST_LEAVES = 100_000  # arrays and tokens in a tuple, those of the tuples in it counted each time that they stand there
DEEPEST_TUPLE = 64  # tuples one inside another


def refuse_size(count: int, depth: int) -> None:
    """A tuple is refused before anything goes through it: by sharing a few lines make one of 2^40 leaves."""
    if count > MOST_LEAVES:
        refuse(
            "tuple_too_large", f"the tuple would have {count:,} arrays and tokens, and at most {MOST_LEAVES:,} may be"
        )
    refuse("tuple_too_large", f"tuples would stand {depth} deep inside each other, and at most {DEEPEST_TUPLE} may")
