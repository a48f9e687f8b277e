"""`Story`: why values of the global program have their shardings, found when a sentence asks for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import PurePath
from typing import Any

from attrs import define

from shape_inference import TupleShape, XbuildError

from ....core.graph import Instruction, Source
from ...propagation import Propagated
from ...stored import SHARDING
from .words import listed, name_of


@define(eq=False, slots=False)
class Story:
    """The propagation of a program, made again when it is asked for; None where shardings were not propagated."""

    find: Callable[[], Propagated | None]

    @cached_property
    def propagated(self) -> Propagated | None:
        return self.find()

    def cause(self, value: Instruction) -> str:
        """Why a value has its sharding, as a clause; empty where that is not known."""
        if isinstance(value.shape, TupleShape):
            return ""
        if self.propagated is None:
            return "the program states it" if SHARDING in value.annotations else "no sharding of it is stated"
        try:
            cause = self.propagated.cause(value.name)
        except XbuildError:  # a value of a computation that calls were replaced by
            return ""
        if cause.kind == "propagated":
            return self._origins(value)
        words = {"stated": f"the program states it{at(cause.where)}", "whole": "no axes reached it by propagation"}
        return words.get(cause.kind, "")

    def _origins(self, value: Instruction) -> str:
        """The values whose stated shardings a value has its axes from."""
        assert self.propagated is not None
        chains: Any = self.propagated.chains(value.name)
        found = dict.fromkeys(f"{origin}{at(where)}" for _, _, _, origin, where in chains if origin != name_of(value))
        return f"propagation brings the axes from {listed(list(found))}" if found else "the program states it"


def at(where: Source | None) -> str:
    """A line in brackets."""
    return "" if where is None else f" ({PurePath(where.file).name}:{where.line})"
