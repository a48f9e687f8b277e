"""Types of control flow: what a loop carries and what branches give, with the decision joined in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NoReturn

from attrs import evolve

from ...core.graph import Computation, Instruction
from ...properties.effects import MEETS, TRANSFERS
from ...properties.mesh import Mesh
from ...properties.variances import INVARYING, UNKNOWN, Axes, Type, Variance, flat, like, spread
from .linearity import is_zero
from .marks import mark_of
from .site import Judgement, Site, told, variance
from .walk import Typed


def called(site: Site) -> Judgement:
    """A call: the callee with parameters of the types of the operands."""
    (callee,) = site.instruction.called
    typed = site.walk.computation(callee, site.operands)
    return Judgement(site.operands, typed.root, (typed,))


@variance
def while_(site: Site) -> Judgement:
    """The least types that init, every trip, and the condition agree on; the init is cast to them.

    A state is carried with all axes along which the condition varies, since devices then make different numbers of
    trips. A collective over such an axis is refused: devices would not agree on making it.
    Source: XLA, HloReplicationAnalysis (while); JAX's loops want equal types and leave the condition out.
    """
    regions = dict(site.instruction.regions())
    (init,), zeros = site.operands, zeros_in(site.instruction.operands[0])
    carry = _begun(site, init, zeros)
    while True:
        condition = site.walk.computation(regions["condition"], (carry,))
        decision = _decision(site, condition.root, regions.values())
        body = site.walk.computation(regions["body"], (carry,))
        grown = _grown(site, carry, body.root, decision, zeros)
        if grown == carry:
            break
        _check_carry(site, init, grown, body.root)
        carry = grown
    reason = f"{site.instruction.name} carries it as {told(carry, site.mesh)}"
    typed = {"condition": condition, "body": evolve(body, root=carry)}
    return Judgement((carry,), carry, tuple(typed[role] for role in regions), {0: reason})


def _begun(site: Site, init: Type, zeros: Sequence[bool]) -> Type:
    """The types of the first round: in derivatives that of a sum that begins with zero is found by what is added."""
    if not site.walk.frees_constants:
        return init
    leaves = [UNKNOWN if is_zero_at else leaf for leaf, is_zero_at in zip(flat(init), zeros, strict=True)]
    return like(leaves, site.instruction.operands[0].shape)


def _grown(site: Site, carry: Type, root: Type, decision: Axes, zeros: Sequence[bool]) -> Type:
    leaves = [
        _joined(site, "carry_type_mismatch", f"leaf {n} of the state", pair, decision, is_zero_at)
        for n, (*pair, is_zero_at) in enumerate(zip(flat(carry), flat(root), zeros, strict=True))
    ]
    return like(leaves, site.instruction.shape)


def _check_carry(site: Site, carry: Type, grown: Type, root: Type) -> None:
    if site.walk.casts != "all":
        leaf = next(n for n, pair in enumerate(zip(flat(carry), flat(grown), strict=True)) if pair[0] != pair[1])
        old, new = flat(carry)[leaf], flat(root)[leaf]
        site.refuse(
            "carry_type_mismatch",
            f"leaf {leaf} of the state goes in {told(old, site.mesh)} and comes out {told(new, site.mesh)}",
            "xb.mesh.pvary on the init makes it varying, and so does casts='all'",
        )


def _joined(
    site: Site, kind: str, what: str, pair: Sequence[Variance], decision: Axes, is_zero_before: bool = False
) -> Variance:
    """The type that two types are cast to, and that a decision which varies adds to."""
    first, second = [INVARYING if leaf is UNKNOWN else leaf for leaf in pair]
    if pair[0] is UNKNOWN:
        first = second
    found = first
    for axis in site.mesh.axes:
        states = {first.state(axis), second.state(axis)} | ({"varying"} if axis in decision else set())
        if states == {"unreduced", "invarying"} and first.state(axis) == "invarying" and is_zero_before:
            state = "unreduced"
        elif "unreduced" in states and len(states) > 1:
            _refuse_sum(site, kind, what, axis, states)
        else:
            state = next(each for each in ("varying", "unreduced", "reduced", "invarying") if each in states)
        found = found.moved((axis,), state)
    return found


def _refuse_sum(site: Site, kind: str, what: str, axis: str, states: set[str]) -> NoReturn:
    others = " and ".join(sorted(states - {"unreduced"}))
    site.refuse(
        kind,
        f"{what} is unreduced along axis {axis} in one place, and {others} in another or by the decision",
        f"xb.mesh.psum(..., {axis!r}) sums it first",
    )


def _decision(site: Site, root: Type, regions: Iterable[Computation]) -> Axes:
    """The axes along which a decision varies; refused where a collective over one of them depends on it."""
    (leaf,) = flat(root)
    for region in regions:
        for instruction, axes in meetings(region, site.mesh):
            if shared := site.mesh.ordered({*axes} & leaf.varying):
                _refuse_meeting(site, instruction, shared)
    return leaf.varying


def _refuse_meeting(site: Site, instruction: Instruction, axes: tuple[str, ...]) -> NoReturn:
    line = f" at {instruction.source}" if instruction.source else ""
    site.refuse(
        "divergent_collective",
        f"the decision varies along {', '.join(axes)}, and {instruction.opcode.replace('_', '-')} %{instruction.name}"
        f"{line} inside meets along {', '.join(axes)}: devices may not agree on making it",
        f"decide by one value on all of them: xb.mesh.pmax(..., {axes[0]!r}) of the decision",
    )


def meetings(computation: Computation, mesh: Mesh) -> Iterable[tuple[Instruction, tuple[str, ...]]]:
    """The collectives of a computation and of what it calls, each with the axes over which devices meet.

    In a permutation, which has no groups, all devices meet.
    """
    for each in computation.reachable():
        for instruction in each.instructions:
            if instruction.opcode in MEETS or instruction.opcode in TRANSFERS:
                mark = mark_of(instruction)
                yield instruction, mesh.axes if mark is None or mark.op == "ppermute" else mark.axes


def zeros_in(instruction: Instruction) -> list[bool]:
    """For each leaf of a value, whether it is known to be zero."""
    if instruction.opcode == "tuple":
        return [found for operand in instruction.operands for found in zeros_in(operand)]
    if isinstance(spread(Variance(), instruction.shape), tuple):
        return [False] * len(flat(spread(Variance(), instruction.shape)))
    return [is_zero(instruction)]


@variance
def conditional(site: Site) -> Judgement:
    """What all branches give, and with it all axes along which the decision varies; operands are cast to vary so, too.

    Source: XLA, HloReplicationAnalysis (conditional); JAX leaves the decision out.
    """
    index, *given = site.operands
    regions = site.instruction.called
    decision = _decision(site, index, regions)
    labels = site.labels[1:]
    operands = [
        like([_joined(site, "branch_type_mismatch", what, (leaf, leaf), decision) for leaf in flat(each)], o.shape)
        for what, each, o in zip(labels, given, site.instruction.operands[1:], strict=True)
    ]
    branches = [site.walk.computation(*pair) for pair in zip(regions, ((each,) for each in operands), strict=True)]
    result = _branched(site, branches, decision)
    reason = f"{site.instruction.name} is decided by what varies along {', '.join(site.mesh.ordered(decision))}"
    return Judgement(
        (index, *operands),
        result,
        tuple(evolve(branch, root=result) for branch in branches),
        dict.fromkeys(range(1, 1 + len(operands)), reason),
    )


def _branched(site: Site, branches: Sequence[Typed], decision: Axes) -> Type:
    leaves = flat(branches[0].root)
    for branch in branches[1:]:
        pairs = zip(leaves, flat(branch.root), strict=True)
        if site.walk.casts != "all" and any(a != b for a, b in zip(leaves, flat(branch.root), strict=True)):
            roots = ", ".join(f"{each.computation.name} {told(each.root, site.mesh)}" for each in branches)
            hint = "xb.mesh.pvary on the result of a branch makes it varying, and so does casts='all'"
            site.refuse("branch_type_mismatch", f"branches give different types: {roots}", hint)
        leaves = [
            _joined(site, "branch_type_mismatch", f"leaf {n} of the result", p, decision) for n, p in enumerate(pairs)
        ]
    joined = [_joined(site, "branch_type_mismatch", "the result", (leaf, leaf), decision) for leaf in leaves]
    return like(joined, site.instruction.shape)


@variance
def scan(site: Site) -> Judgement:
    """As a loop whose trips are counted: the least types of the carries that init and every trip agree on."""
    (region,) = site.instruction.called
    count = len(site.operands) - site.instruction.attributes.num_carries
    given, carries = list(site.operands[:count]), list(site.operands[count:])
    zeros = [is_zero(each) for each in site.instruction.operands[count:]]
    begun, init = zip(carries, zeros, strict=True), tuple(carries)
    carries = [UNKNOWN if zero and site.walk.frees_constants else leaf for leaf, zero in begun]
    while True:
        typed = site.walk.computation(region, (*given, *carries))
        results = list(typed.root) if isinstance(typed.root, tuple) else [typed.root]
        outputs, after = results[: len(results) - len(carries)], results[len(results) - len(carries) :]
        grown = [
            _joined(site, "carry_type_mismatch", f"carry {n}", pair, frozenset(), zero)
            for n, (*pair, zero) in enumerate(zip(carries, after, zeros, strict=True))
        ]
        if grown == carries:
            break
        _check_carry(site, init, tuple(grown), tuple(after))
        carries = grown
    operands = (*given, *carries)
    root = (*outputs, *grown) if isinstance(typed.root, tuple) else grown[0]
    reasons = dict.fromkeys(range(count, len(operands)), f"{site.instruction.name} carries it so")
    return Judgement(operands, root, (evolve(typed, root=root),), reasons)
