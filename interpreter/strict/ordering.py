"""The rule for sort: its keys, which are otherwise computed on whole arrays, are computed by the comparator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..kernels.comparators import keys_of
from ..rules.region import Region
from .table import Evaluation, Spotted, strict


@strict
def sort(it: Evaluation) -> Iterator[Spotted]:
    """Each element is compared with itself once, where the comparator computes, so that it is checked inside."""
    keys = keys_of(it.attributes.to_apply)
    if keys is not None and not all(key.is_element for key in keys):
        region: Any = Region.of(it.attributes.to_apply, strict=True).on(it.device)
        if region.lifted is not None:
            region.lifted(*(operand for operand in it.operands[0] for _ in (0, 1)))
    yield from ()
