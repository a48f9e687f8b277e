"""The hook that gives the strict check of an instruction; `interpreter.strict` supplies the function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from xbuild.core.graph import Instruction
from xbuild.core.hooks import Hook

if TYPE_CHECKING:
    from .emit import Emitter


class Check(Protocol):
    """A function that a strict plan calls after an instruction; `guard` is a quick test written before the call."""

    def guard(self, emitter: Emitter, result: str) -> str: ...

    def __call__(self, device: Any, operands: tuple[Any, ...], result: Any) -> None: ...


check_of: Hook[[Instruction], Check | None] = Hook("gives the strict check of an instruction")
