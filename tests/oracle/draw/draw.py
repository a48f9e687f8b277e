"""What a draw is: a function of chance and an element type."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from shape_inference import PrimitiveType

from ..chance import Chance
from ..instance import Instance

Draw: TypeAlias = Callable[[Chance, PrimitiveType], Instance]
