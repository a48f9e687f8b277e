"""Constants whose elements HLO text omits, as `{...}`."""

from __future__ import annotations

import math
from typing import Any, NoReturn

from attrs import frozen

from .rules import refuse
from .types import Dims, PrimitiveType

HINT = "to print all elements, pass --xla_dump_large_constants or set print_large_constants=True in HloPrintOptions"


@frozen(eq=False)
class ElidedArray:
    """Element type and extents of an array whose elements HLO text omits; access to the elements is refused.

    Two elided arrays are equal only if they are the same object, since their elements are unknown.
    """

    element_type: PrimitiveType
    shape: Dims

    @property
    def dtype(self) -> Any:
        return self.element_type.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def __str__(self) -> str:
        return "{...}"

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        refuse_elided(self)


def refuse_elided(array: ElidedArray, name: str = "", source: object = None) -> NoReturn:
    """Refuse access to elements that the text omits; the message has the constant's name and line if known."""
    of = f" of %{name}" + (f" at {source}" if source else "") if name else ""
    extents = ",".join(map(str, array.shape))
    what = f"{array.element_type}[{extents}]"
    refuse(
        "elided_constant",
        f"the text contains {{...}} instead of the elements{of} ({what}); {HINT} [elided_constant]",
        HINT,
    )
