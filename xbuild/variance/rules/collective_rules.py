"""Types of collectives: what state of the named axes they take, and what they make of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NoReturn

from attrs import frozen

from ...core.graph import Instruction
from ...properties.device_groups import groups_of
from ...properties.effects import is_in_place
from ...properties.variances import INVARYING, Type, Variance, spread
from ...properties.variances import UNKNOWN as NOT_YET
from .linearity import is_sum
from .marks import Mark
from .site import Judgement, Site, leaves_of, relike

UNKNOWN = "unknown"


@frozen
class Collective:
    """From which states of the named axes to which, and whether it is linear in its operand.

    An invarying operand is cast to varying where `takes` has varying and not invarying, unless `is_strict`.
    """

    takes: dict[str, str]
    is_linear: bool = True
    is_strict: bool = False


_EXCHANGE = Collective({"varying": "varying"})
COLLECTIVES: dict[str, Collective] = {
    "psum": Collective({"varying": "invarying", "unreduced": "invarying"}),
    "pmax": Collective({"varying": "invarying"}, is_linear=False),
    "pmin": Collective({"varying": "invarying"}, is_linear=False),
    "preduce": Collective({"varying": "invarying"}, is_linear=False),
    "all_gather": _EXCHANGE,
    "all_gather_invariant": Collective({"varying": "invarying"}),
    "all_gather_reduced": Collective({"varying": "reduced"}, is_strict=True),
    "psum_scatter": Collective({"varying": "varying", "unreduced": "varying"}),
    "pscatter": Collective({"invarying": "varying"}, is_strict=True),
    "all_to_all": _EXCHANGE,
    "ppermute": _EXCHANGE,
    "pbroadcast": _EXCHANGE,
    UNKNOWN: Collective({"varying": "varying"}, is_linear=False),
}
CASTS: dict[str, dict[str, str]] = {
    "pvary": {"invarying": "varying"},
    "to_varying": {"invarying": "varying", "reduced": "varying"},
    "to_reduced": {"invarying": "reduced"},
    "to_unreduced": {"varying": "unreduced"},
}


def marked_of(site: Site) -> Mark:
    """What a collective stands for: its mark, or what its groups and its reducer say."""
    if site.mark is not None:
        return site.mark
    instruction, mesh = site.instruction, site.mesh
    opcode = instruction.opcode.removesuffix("_start")
    op = _NAMES[opcode](instruction) if opcode in _NAMES else UNKNOWN
    axes = _axes(site) if op != UNKNOWN else None
    return Mark(UNKNOWN, mesh.axes) if axes is None else Mark(op, axes)


def _axes(site: Site) -> tuple[str, ...] | None:
    walk, opcode = site.walk, site.instruction.opcode
    groups = groups_of(site.instruction, walk.num_replicas, walk.num_partitions)
    is_in_order = opcode.removesuffix("_start") in ("all_gather", "reduce_scatter", "all_to_all")
    return site.mesh.axes_of(groups) if is_in_order else site.mesh.spanned(groups)


def _of_reducer(all_reduce: Instruction) -> str:
    (region,) = all_reduce.called
    return "psum" if is_sum(region) else {"maximum": "pmax", "minimum": "pmin"}.get(region.root.opcode, "preduce")


_NAMES: dict[str, Callable[[Instruction], str]] = {
    "all_reduce": _of_reducer,
    "all_gather": lambda _: "all_gather",
    "reduce_scatter": lambda scatter: "psum_scatter" if is_sum(scatter.called[0]) else UNKNOWN,
    "all_to_all": lambda _: "all_to_all",
    "collective_broadcast": lambda _: "pbroadcast",
}


def collective(site: Site) -> Judgement:
    """One state of all named axes goes in, and one comes out; other axes stay as they are.

    Source: JAX, jax._src.lax.parallel (psum_invariant, all_gather_invariant, reduced collectives).
    """
    if is_in_place(site.instruction):
        site.refuse("state_mismatch", "a collective-permute in place (slice_sizes) has no types on a mesh")
    mark = marked_of(site)
    wanted: list[Variance] = []
    results: list[Variance] = []
    for number, operand in enumerate(site.operands):
        for leaf in leaves_of([operand]):
            if leaf is NOT_YET:
                wanted.append(leaf)
                results.append(leaf)
                continue
            taken = _taken(site, number, leaf, mark)
            _check_rest(site, number, leaf, mark)
            wanted.append(leaf.moved(mark.axes, taken))
            results.append(leaf.moved(mark.axes, COLLECTIVES[mark.op].takes[taken]))
    operands = relike(wanted, site.instruction.operands)
    return Judgement(operands, _result(site, operands, results), reasons=_reasons(site, operands, mark))


def _taken(site: Site, number: int, leaf: Variance, mark: Mark) -> str:
    """The state in which the named axes go in, after a cast."""
    state = state_of(site, number, leaf, mark)
    return state if state in COLLECTIVES[mark.op].takes else _cast_from(site, number, state, mark)


def _cast_from(site: Site, number: int, state: str, mark: Mark) -> str:
    """Varying, where what is in this state may be cast to it unasked."""
    rule = COLLECTIVES[mark.op]
    if mark.op == UNKNOWN and state in ("invarying", "mixed"):
        return "varying"
    is_free = not rule.is_strict or (site.walk.frees_constants and "varying" in rule.takes)
    if state == "invarying" and is_free and site.walk.casts != "none":
        return "varying"
    return _refuse_state(site, number, state, mark)


def _refuse_state(site: Site, number: int, state: str, mark: Mark) -> NoReturn:
    rule = COLLECTIVES[mark.op]
    wanted = " or ".join(rule.takes)
    kind = "nonlinear_on_unreduced" if state == "unreduced" and not rule.is_linear else "state_mismatch"
    hints = {"invarying": "xb.mesh.pvary makes it varying", "unreduced": "xb.mesh.psum sums it first"}
    site.refuse(
        kind,
        f"{mark.op} over {_told(mark.axes)} takes what is {wanted} along it, and {site.shown(number)}, {state}",
        hints.get(state, "xb.mesh.pcast(..., to='varying') makes it varying"),
    )


def state_of(site: Site, number: int, leaf: Variance, mark: Mark) -> str:
    """The one state of all named axes; refused where they have several."""
    states = {axis: leaf.state(axis) for axis in mark.axes}
    if len({*states.values()}) > 1:
        if mark.op == UNKNOWN and {*states.values()} <= {"varying", "invarying"}:
            return "mixed"
        found = ", ".join(f"{axis} {state}" for axis, state in states.items())
        site.refuse(
            "mixed_axis_state",
            f"{mark.op} over {_told(mark.axes)} wants one state of all its axes, and {site.shown(number)}: {found}",
            "name fewer axes, or cast first: xb.mesh.pvary",
        )
    return next(iter(states.values()), "varying")


def _check_rest(site: Site, number: int, leaf: Variance, mark: Mark) -> None:
    rest = leaf.unreduced - {*mark.axes}
    if rest and not COLLECTIVES[mark.op].is_linear:
        site.refuse(
            "nonlinear_on_unreduced",
            f"{mark.op} over {_told(mark.axes)} is not linear, and {site.shown(number)}, unreduced along {_told(rest)}",
            "xb.mesh.psum sums it first",
        )


def _result(site: Site, operands: tuple[Type, ...], results: list[Variance]) -> Type:
    """The types of the results; of a start those of its operands and its results, of a list a tuple."""
    shape, opcode = site.instruction.shape, site.instruction.opcode
    each = tuple(results) if len(results) > 1 else results[0]
    if opcode in ("all_gather_start", "collective_permute_start"):
        given = operands if len(operands) > 1 else operands[0]
        rest = [spread(INVARYING, part) for part in shape.elements[2:]]  # type: ignore[union-attr]
        return (given, each, *rest)
    if opcode == "all_to_all" and len(results) > 1:
        return spread(_joined(results), shape)
    return each


def _joined(results: list[Variance]) -> Variance:
    return Variance(varying=frozenset().union(*(each.varying for each in results)))


def _told(axes: Iterable[str]) -> str:
    names = list(axes)
    return f"axis {names[0]}" if len(names) == 1 else f"axes ({', '.join(names)})"


def _reasons(site: Site, operands: tuple[Type, ...], mark: Mark) -> dict[int, str]:
    pairs = enumerate(zip(site.operands, operands, strict=True))
    return {n: f"{mark.op} {site.instruction.name} takes what varies" for n, (old, new) in pairs if old != new}


def cast(site: Site) -> Judgement:
    """A cast that the program states; refuses one that does not exist."""
    mark = site.mark
    assert mark is not None
    (leaf,) = leaves_of(site.operands)
    if leaf is NOT_YET:
        return Judgement(site.operands, leaf)
    state = state_of(site, 0, leaf, mark)
    if mark.op == "to_unreduced" and state == "invarying" and site.walk.frees_constants:
        varying = leaf.moved(mark.axes, "varying")
        return Judgement((varying,), leaf.moved(mark.axes, "unreduced"), reasons={0: "a cotangent that is one value"})
    if state not in CASTS[mark.op]:
        to = mark.op.removeprefix("to_") if mark.op != "pvary" else "varying"
        kind = "already_varying" if state == to == "varying" else "unsupported_cast"
        site.refuse(
            kind,
            f"there is no cast from {state} to {to}, and {site.shown(0)}, along {_told(mark.axes)}",
            "casts are: invarying to varying, invarying to reduced, reduced to varying, varying to unreduced",
        )
    return Judgement(site.operands, leaf.moved(mark.axes, CASTS[mark.op][state]))


def axis_index(site: Site) -> Judgement:
    """The coordinate along the named axes, which differs along them and no other."""
    assert site.mark is not None
    return Judgement(site.operands, Variance(varying=site.mark.axes))
