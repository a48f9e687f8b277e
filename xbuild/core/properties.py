"""Properties of an op: facts about every instruction of it, stated at its declaration."""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import field, frozen

Elements: TypeAlias = Literal["same_place", "moved", "mixed", "made", "whole"]
"""Where an element of the result comes from: the same place of the operands; another place, unchanged; several places;
the attributes, the device or the outside alone; or the op takes and gives whole values (tuples, tokens, calls)."""

DependsOn: TypeAlias = Literal["operands", "device", "random_state", "implementation", "target", "caller", "outside"]
"""What the value depends on besides attributes and called computations: the operands (those of all members, where
devices meet); also the ids of the device; the random state of the device; choices of each implementation; the function
behind a custom call; what the caller gives; or what comes from another device or the host."""

Needs: TypeAlias = Literal["nobody", "group", "peer", "host"]
"""Whom an instruction needs to complete: nobody; the group of a collective; the device at the other end; the host."""

Half: TypeAlias = Literal["none", "start", "update", "done"]
"""Which part of an asynchronous pair the op is."""

Calls: TypeAlias = Literal["nothing", "once", "branch", "loop", "elements", "reducer", "wrapped", "target"]
"""How the op runs the computations it calls: once; one of several; again and again; on elements or windows; to reduce
across devices; as the one op that it starts asynchronously; or as the function behind a custom call chooses."""

Denormals: TypeAlias = Literal["kept", "returned", "flushed"]
"""What becomes of denormal numbers in a run that flushes them: the op keeps them (its computation may not); it gives a
denormal real operand back as it is, but flushes complex ones; or it flushes operands and result."""

Order: TypeAlias = Literal["fixed", "swapped", "any"]
"""In which order an op of two operands of one type may take these: as they stand; the two swapped (it is commutative);
or many in any order and grouping (it is associative, too, but for rounding)."""

Work: TypeAlias = Literal["none", "each", "transcendental", "rule"]
"""What operations an instruction does: none; one for each element of the result; a transcendental function of each; or
as many as the rule of the op in xbuild/costs says."""

_WORK: dict[Elements, Work] = {
    "same_place": "each", "moved": "none", "made": "none", "mixed": "rule", "whole": "none",
}  # fmt: skip


@frozen
class Properties:
    """The properties of an op. `elements` is stated by every op; each default is what most ops have, and a law in
    tests/ops/test_properties.py finds the op that has it wrongly.

    `moves` names the operands of whose elements, unchanged, the result consists (apart from zeros that a device without
    a partner gets); `chosen_by` the operands whose values choose these elements; `is_view` says that the result can
    share memory with an operand; `is_identity` that the value is that of the first operand; `done` is the op that
    completes a start; `mixes_precisions` says that floating point operands of
    two types are taken; `states_shape` that HLO text must state the result's shape, which XLA infers for other ops;
    `work` what operations the op does, which follows from `elements` where it is not stated.
    """

    elements: Elements
    moves: tuple[str, ...] = field(default=(), kw_only=True)
    chosen_by: tuple[str, ...] = field(default=(), kw_only=True)
    is_view: bool = field(default=False, kw_only=True)
    is_identity: bool = field(default=False, kw_only=True)
    depends_on: DependsOn = field(default="operands", kw_only=True)
    needs: Needs = field(default="nobody", kw_only=True)
    half: Half = field(default="none", kw_only=True)
    done: str = field(default="", kw_only=True)
    calls: Calls = field(default="nothing", kw_only=True)
    order: Order = field(default="fixed", kw_only=True)
    denormals: Denormals = field(default="kept", kw_only=True)
    mixes_precisions: bool = field(default=False, kw_only=True)
    states_shape: bool = field(default=False, kw_only=True)
    work: Work = field(kw_only=True)

    @work.default
    def _work(self) -> Work:
        return "none" if self.is_identity else _WORK[self.elements]
