"""The strict rule for sort, which checks the instructions of the comparator that computes the keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..kernels.comparators import keys_of
from ..rules.region import Region
from .table import Evaluation, Spotted, strict


@strict
def sort(it: Evaluation) -> Iterator[Spotted]:
    """Run a comparator with computed keys once on each element and itself, so that its instructions are checked."""
    keys = keys_of(it.attributes.to_apply)
    if keys is not None and not all(key.is_element for key in keys):
        region: Any = Region.of(it.attributes.to_apply, strict=True).on(it.device)
        if region.lifted is not None:
            region.lifted(*(operand for operand in it.operands[0] for _ in (0, 1)))
    yield from ()
