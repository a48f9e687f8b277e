"""Types of ordinary ops: along each axis the states of all operands decide that of the result, and what is cast."""

from __future__ import annotations

from attrs import define

from ...core.graph import Instruction
from ...properties.variances import INVARYING, UNKNOWN, Variance, spread
from .linearity import LINEAR, Linear, constant_of, is_zero
from .site import Judgement, Site, leaves_of, relike

_CHOOSING = ("start_indices", "scatter_indices", "pred")  # they have no cotangent, so that their state is free


@define
class _Leaf:
    """One array among the operands: whose it is, its type, and the type that it needs."""

    number: int
    role: str
    instruction: Instruction
    given: Variance
    wanted: Variance

    @property
    def is_aside(self) -> bool:
        """Whether it is a constant that the op begins or fills with."""
        return self.role in ("init_values", "padding_value") and self.is_constant

    @property
    def is_constant(self) -> bool:
        """Whether it is known when the program is built: it has no cotangent, and needs no cast beside what varies."""
        return constant_of(self.instruction) is not None

    def needs(self, axis: str, state: str) -> None:
        self.wanted = self.wanted.moved((axis,), state)


def ordinary(site: Site) -> Judgement:
    """Operands are cast until they agree, and the result is as they are.

    Along an axis: varying beside varying, invarying or reduced gives varying; invarying alone gives invarying; reduced
    alone gives reduced; unreduced goes through what is linear in it. A constant stands beside what varies as it is.
    Source: JAX, jax._src.core.standard_vma_rule; the rules of unreduced are stricter there and laxer here where sound.
    """
    leaves = _leaves(site)
    known = [leaf for leaf in leaves if leaf.given is not UNKNOWN]
    is_open = len(known) < len(leaves) and all(leaf.is_constant for leaf in known)
    result: Variance = UNKNOWN if is_open else INVARYING
    for axis in () if is_open else site.mesh.axes:
        states = {leaf.given.state(axis) for leaf in known}
        if states - {"invarying"}:
            result = result.moved((axis,), _agreed(site, known, axis, states))
    operands = relike([leaf.wanted for leaf in leaves], site.instruction.operands)
    return Judgement(operands, spread(result, site.instruction.shape), reasons=_reasons(site, leaves, result))


def _leaves(site: Site) -> list[_Leaf]:
    found = []
    pairs = zip(site.labels, site.instruction.operands, site.operands, strict=True)
    for number, (label, instruction, given) in enumerate(pairs):
        role = label.partition("[")[0]
        found += [_Leaf(number, role, instruction, leaf, leaf) for leaf in leaves_of([given])]
    return found


def _agreed(site: Site, leaves: list[_Leaf], axis: str, states: set[str]) -> str:
    """The state of the result along an axis; notes what the operands need for it."""
    if "unreduced" in states:
        return _unreduced(site, leaves, axis)
    if "varying" in states:
        return _varying(site, leaves, axis)
    for leaf in leaves:
        if leaf.given.state(axis) == "invarying" and not leaf.is_aside and leaf.role not in _CHOOSING:
            _freed(site, leaves, leaf, axis)
    return "reduced"


def _varying(site: Site, leaves: list[_Leaf], axis: str) -> str:
    for leaf in leaves:
        if leaf.given.state(axis) != "varying" and not leaf.is_constant:
            if site.walk.casts == "none":
                _refuse_pair(site, leaf, next(each for each in leaves if each.given.state(axis) == "varying"), axis)
            leaf.needs(axis, "varying")
    return "varying"


def _freed(site: Site, leaves: list[_Leaf], leaf: _Leaf, axis: str) -> None:
    """An invarying value beside a reduced one: a constant may stand there where the program is a derivative."""
    if not (site.walk.frees_constants and leaf.is_constant):
        _refuse_pair(site, leaf, next(each for each in leaves if each.given.state(axis) == "reduced"), axis)


def _refuse_pair(site: Site, leaf: _Leaf, other: _Leaf, axis: str) -> None:
    state, beside = leaf.given.state(axis), other.given.state(axis)
    hints = {
        ("invarying", "varying"): f"xb.mesh.pvary(..., {axis!r}) makes it varying",
        ("invarying", "reduced"): f"xb.mesh.pcast(..., {axis!r}, to='reduced') makes it reduced",
        ("reduced", "varying"): f"xb.mesh.pcast(..., {axis!r}, to='varying') makes it varying",
    }
    hint = hints.get((state, beside), f"xb.mesh.psum(..., {axis!r}) sums what is unreduced")
    site.refuse(
        "state_mismatch",
        f"along axis {axis} {_named(site, leaf)} is {state}, and {_named(site, other)} is {beside}",
        hint,
    )


def _named(site: Site, leaf: _Leaf) -> str:
    return f"{site.labels[leaf.number]} %{leaf.instruction.name}"


def _unreduced(site: Site, leaves: list[_Leaf], axis: str) -> str:
    linear = LINEAR.get(site.instruction.opcode)
    first = next(leaf for leaf in leaves if leaf.given.state(axis) == "unreduced")
    if linear is None or (reason := linear.unless(site.instruction)):
        _refuse_nonlinear(site, first, axis, "" if linear is None else f": {reason}")
    assert linear is not None
    data, factors = _roles(site, linear, leaves, axis)
    for leaf in leaves:
        if leaf.role in data:
            _check_data(site, leaf, first, axis)
        elif leaf.role in factors:
            _check_factor(site, leaf, first, axis)
        elif leaf.given.state(axis) in ("varying", "unreduced"):
            _refuse_pair(site, leaf, first, axis)
    return "unreduced"


def _refuse_nonlinear(site: Site, leaf: _Leaf, axis: str, reason: str) -> None:
    spelling = site.instruction.opcode.replace("_", "-")
    site.refuse(
        "nonlinear_on_unreduced",
        f"{_named(site, leaf)} is unreduced along axis {axis}, and {spelling} of parts of a sum gives no parts of "
        f"{spelling} of the sum{reason}",
        f"xb.mesh.psum(..., {axis!r}) sums it first",
    )


def _roles(site: Site, linear: Linear, leaves: list[_Leaf], axis: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Which operands are the data and which the factors; refuses a product of two that are unreduced."""
    sums = {leaf.role for leaf in leaves if leaf.given.state(axis) == "unreduced"}
    if linear.factors and sums >= {*linear.data, *linear.factors}:
        both = " and ".join(_named(site, leaf) for leaf in leaves)
        site.refuse(
            "bilinear_on_unreduced",
            f"{both} are both unreduced along axis {axis}; a product of parts of sums gives no parts of the product",
            f"xb.mesh.psum(..., {axis!r}) sums one of them first",
        )
    if linear.factors and not sums & {*linear.data}:
        if not linear.either:
            wrong = next(leaf for leaf in leaves if leaf.role in sums)
            _refuse_nonlinear(site, wrong, axis, f" where it is {wrong.role}")
        return linear.factors, linear.data
    return linear.data, linear.factors


def _check_data(site: Site, leaf: _Leaf, first: _Leaf, axis: str) -> None:
    """Unreduced as the others, or zero, which is a sum of zeros."""
    state = leaf.given.state(axis)
    if state == "unreduced":
        return
    if state == "invarying" and is_zero(leaf.instruction):
        return
    if leaf.role == "padding_value":
        site.refuse(
            "nonzero_pad_on_unreduced",
            f"{_named(site, first)} is unreduced along axis {axis}, and {_named(site, leaf)} is not known to be zero: "
            "it would count once for each device",
            f"pad with zero, or after xb.mesh.psum(..., {axis!r})",
        )
    _refuse_pair(site, leaf, first, axis)


def _check_factor(site: Site, leaf: _Leaf, first: _Leaf, axis: str) -> None:
    """One value on all devices whose cotangent is unreduced, too."""
    state = leaf.given.state(axis)
    is_free = state == "invarying" and site.walk.frees_constants and leaf.is_constant
    if state != "reduced" and not is_free:
        _refuse_pair(site, leaf, first, axis)


def _reasons(site: Site, leaves: list[_Leaf], result: Variance) -> dict[int, str]:
    """Why operands are cast."""
    text = result.text(site.mesh)
    return {
        leaf.number: f"{site.instruction.name} of {text} takes {site.labels[leaf.number]} {leaf.instruction.name}"
        for leaf in leaves
        if leaf.wanted != leaf.given
    }
