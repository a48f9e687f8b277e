"""Types of values on a mesh: along which axes a value varies, is unreduced or reduced, by a rule for each op.

Sections:

    NamedCollective: the collective by axis name that an instruction implements
    TypedSite and Judgement: what a typing rule receives and returns
    Linear: ops that may take unreduced operands
    Ordinary ops
    Collectives
    TypeWalk: the type of each value of a computation, and where a cast is needed
    Control flow
    The table of typing rules
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import CodeType, MappingProxyType
from typing import Any, Literal, NoReturn, TypeAlias

from attrs import define, evolve, field, frozen

from shape_inference import PrimitiveType, RuleTable, Shape, ShapeError, TupleShape, XbuildError, refuse
from shape_inference.trees import fill, flatten, unflatten

from ..core.diagnostics import explain, operand_labels
from ..core.graph import Computation, Instruction
from ..core.op import OPS
from ..core.report_text import join_words
from ..properties.device_groups import groups_of
from ..properties.effects import COLLECTIVES, MEETS, TRANSFERS, is_in_place
from ..properties.mesh import Mesh
from ..properties.order import ordered
from ..properties.variances import INVARYING, UNKNOWN, Axes, Type, Variance, spelled
from ..properties.variances import UNKNOWN as NOT_YET

# ----------------------------------------------------------------------------
# NamedCollective: the collective by axis name that an instruction implements
#
# It is a frontend attribute of the instruction.

COLLECTIVE = "xbuild.collective"
CAST = "xbuild.cast"
_ATTRIBUTES = "frontend_attributes"

_MARK = re.compile(r"(\w+)\(([\w,]*)\)(?:: (.*))?", re.DOTALL)


@frozen
class NamedCollective:
    """A collective by axis name: its name and its axes, in the order in which the program names them.

    `reason` says why a cast was inserted; a cast that the program states has none.
    """

    op: str
    axes: tuple[str, ...]
    reason: str = ""

    def text(self) -> str:
        return f"{self.op}({','.join(self.axes)})" + (f": {self.reason}" if self.reason else "")


def mark_of(instruction: Instruction, key: str = COLLECTIVE) -> NamedCollective | None:
    """The collective that an instruction is marked as; invalid_attribute for a mark that cannot be read."""
    notes = instruction.annotations.get(_ATTRIBUTES)
    if not notes or key not in notes:
        return None
    found = _MARK.fullmatch(str(notes[key]))
    if found is None:
        refuse("invalid_attribute", f"{key}={notes[key]!r} on %{instruction.name} does not have the form psum(i,j)")
    return NamedCollective(found[1], tuple(filter(None, found[2].split(","))), found[3] or "")


def cast_of(instruction: Instruction) -> NamedCollective | None:
    """The cast that an instruction implements, if any."""
    return mark_of(instruction, CAST)


def marks_of(instruction: Instruction) -> tuple[str, ...]:
    """The marks that distinguish instructions that compute the same: the collective or cast that each implements."""
    notes = instruction.annotations.get(_ATTRIBUTES)
    return tuple(str(notes[key]).partition(":")[0] for key in (COLLECTIVE, CAST) if key in notes) if notes else ()


def with_marks(notes: Mapping[str, Any], instruction: Instruction) -> Mapping[str, Any]:
    """Annotations with the marks of an instruction."""
    given = instruction.annotations.get(_ATTRIBUTES)
    return MappingProxyType({**notes, _ATTRIBUTES: given}) if given else notes


# ----------------------------------------------------------------------------
# TypedSite and Judgement: what a typing rule receives and returns

variance = RuleTable("variance")
"""opcode -> rule(site): the types that the operands have after casts, and the type of the result."""


@frozen(eq=False)
class Judgement:
    """The types that the operands have after casts, in the flat order of operands, and the type of the result.

    `called` are the typed callees in order; `reasons` say why an operand is cast, by its number.
    """

    operands: tuple[Type, ...]
    result: Type
    called: tuple[TypedComputation, ...] = ()
    reasons: Mapping[int, str] = field(factory=dict)


@frozen(eq=False)
class TypedSite:
    """An instruction with the types of its operands, on a mesh."""

    walk: TypeWalk
    instruction: Instruction
    operands: tuple[Type, ...]

    @property
    def mesh(self) -> Mesh:
        return self.walk.mesh

    @property
    def mark(self) -> NamedCollective | None:
        return mark_of(self.instruction) or cast_of(self.instruction)

    @property
    def labels(self) -> list[str]:
        """The name of each operand in the flat order."""
        schema = OPS[self.instruction.opcode]
        return operand_labels(schema, len(self.operands), self.instruction.segments)

    def describe(self, number: int) -> str:
        """An operand as messages name it."""
        return f"{self.labels[number]} %{self.instruction.operands[number].name} is {self.typed_shape(number)}"

    def typed_shape(self, number: int) -> str:
        """The shape of an operand with its type."""
        return typed_text(self.instruction.operands[number].shape, self.operands[number], self.mesh)

    def refuse(self, kind: str, message: str, *hints: str) -> NoReturn:
        """Refuse the instruction, with its operands and their types."""
        raise add_operands(self, ShapeError(kind, message, hints))


@frozen
class _ShownOperand:
    """An operand as messages show it."""

    shape: str
    name: str


def typed_text(shape: Any, given: Type, mesh: Mesh) -> str:
    """A shape followed by its type; for a tuple, leaf by leaf."""
    if isinstance(given, tuple):
        return f"({', '.join(typed_text(*pair, mesh) for pair in zip(shape.elements, given, strict=True))})"
    return f"{shape}{given.text(mesh)}"


def add_operands(site: TypedSite, error: XbuildError) -> XbuildError:
    """The refusal with the op, its operands and their types, its attributes, and the user's line."""
    instruction = site.instruction
    operands: list[Any] = [
        _ShownOperand(typed_text(o.shape, given, site.mesh), o.name)
        for o, given in zip(instruction.operands, site.operands, strict=True)
    ]
    where = instruction.where if isinstance(instruction.where, tuple) else None
    schema, attributes = OPS[instruction.opcode], instruction.attribute_values()
    return explain(error, schema, tuple(operands), instruction.segments, attributes, _place(where))


def _place(where: Any) -> tuple[CodeType, int] | None:
    return where  # type: ignore[no-any-return]


def describe_type(given: Type, mesh: Mesh) -> str:
    """A type in words: `invarying` if it is along every axis."""
    text = spelled(given, mesh)
    return "invarying" if text == "{}" else text


# ----------------------------------------------------------------------------
# Linear: ops that may take unreduced operands
#
# They are linear in all of these together, so that sums pass through them.


def always(instruction: Instruction) -> str | None:
    """The op is linear for all attributes."""
    return None


@frozen
class Linear:
    """An op that is linear in the operands `data` if `factors` have the same value on all devices.

    `unless` returns the reason why an instruction of the op is not linear, or None. With `either`, one side is the data
    and the other the factor, in either order.
    """

    data: tuple[str, ...]
    factors: tuple[str, ...] = ()
    unless: Callable[[Instruction], str | None] = always
    either: bool = False


def _explain_inexact(convert: Instruction) -> str | None:
    """Why a conversion does not commute with a sum: only widening of floats, and of real to complex, does."""
    (operand,) = convert.operands
    assert isinstance(operand.shape, Shape)
    assert isinstance(convert.shape, Shape)
    source, target = operand.shape.dtype, convert.shape.dtype
    if source is target or (_is_real_or_complex(source) and _is_real_or_complex(target) and _widens(source, target)):
        return None
    return f"a conversion from {source} to {target} does not commute with a sum"


def _is_real_or_complex(dtype: PrimitiveType) -> bool:
    return dtype.kind in ("float", "complex")


def _widens(source: PrimitiveType, target: PrimitiveType) -> bool:
    """Whether one type contains every number of the other."""
    if source.kind == "complex" and target.kind != "complex":
        return False
    bits = target.bits // (2 if target.kind == "complex" else 1)
    own = source.bits // (2 if source.kind == "complex" else 1)
    return bits > own or (bits == own and target.kind == "complex" and source.name in ("f32", "f64"))


def _explain_rounding(divide: Instruction) -> str | None:
    assert isinstance(divide.shape, Shape)
    return f"division of {divide.shape.dtype} rounds" if divide.shape.dtype.is_integer else None


def is_sum(computation: Computation) -> bool:
    """Whether a reducer is the addition of its two parameters."""
    root = computation.root
    return root.opcode == "add" and {*root.operands} == {*computation.parameters} and len(computation.parameters) == 2


def _explain_no_sum(instruction: Instruction) -> str | None:
    (region,) = instruction.called
    return (
        None if is_sum(region) else f"{instruction.opcode.replace('_', '-')} with {region.name} does not compute a sum"
    )


def _explain_no_sum_or_set(scatter: Instruction) -> str | None:
    (region,) = scatter.called
    count = len(region.parameters)
    sets = count == 2 and region.root is region.parameters[1]
    return None if is_sum(region) or sets else f"a scatter with {region.name} neither adds nor overwrites"


def _explain_other_bits(bitcast: Instruction) -> str | None:
    same = bitcast.operands[0].shape.plain() == bitcast.shape.plain()
    return None if same else "it reinterprets bits as a different shape or type"


_MOVING = (
    "reshape", "transpose", "reverse", "broadcast", "slice", "copy", "negate", "real", "imag", "domain", "fft",
)  # fmt: skip

LINEAR: dict[str, Linear] = {
    **dict.fromkeys(_MOVING, Linear(("operand",))),
    "add": Linear(("lhs", "rhs")),
    "subtract": Linear(("lhs", "rhs")),
    "complex": Linear(("lhs", "rhs")),
    "multiply": Linear(("lhs",), ("rhs",), either=True),
    "dot": Linear(("lhs",), ("rhs",), either=True),
    "convolution": Linear(("lhs",), ("rhs",), either=True),
    "divide": Linear(("lhs",), ("rhs",), unless=_explain_rounding),
    "triangular_solve": Linear(("b",), ("a",)),
    "convert": Linear(("operand",), unless=_explain_inexact),
    "bitcast": Linear(("operand",), unless=_explain_other_bits),
    "concatenate": Linear(("operands",)),
    "select": Linear(("on_true", "on_false")),
    "pad": Linear(("operand", "padding_value")),
    "gather": Linear(("operand",)),
    "dynamic_slice": Linear(("operand",)),
    "dynamic_update_slice": Linear(("operand", "update")),
    "scatter": Linear(("operands", "updates"), unless=_explain_no_sum_or_set),
    "reduce": Linear(("operands", "init_values"), unless=_explain_no_sum),
    "reduce_window": Linear(("operands", "init_values"), unless=_explain_no_sum),
}


def is_zero(instruction: Instruction) -> bool:
    """Whether a value is a constant zero."""
    found = constant_of(instruction)
    return found is not None and not found.attributes.literal.astype(bool).any()


def constant_of(instruction: Instruction) -> Instruction | None:
    """The constant that a value is, or that it repeats and reshapes."""
    while instruction.opcode in ("broadcast", "reshape", "copy", "convert"):
        (instruction,) = instruction.operands
    return instruction if instruction.opcode == "constant" else None


# ----------------------------------------------------------------------------
# Ordinary ops
#
# Along each axis, the states of all operands decide the state of the result, and which operands are cast.

_CHOOSING = ("start_indices", "scatter_indices", "pred")  # they have no cotangent, so their state is free


@define
class _Leaf:
    """One array of the operands: the operand, its type, and the type that it needs."""

    number: int
    role: str
    instruction: Instruction
    given: Variance
    wanted: Variance

    @property
    def is_aside(self) -> bool:
        """Whether it is a constant initial value or padding."""
        return self.role in ("init_values", "padding_value") and self.is_constant

    @property
    def is_constant(self) -> bool:
        """Whether it is a constant, which has no cotangent and needs no cast beside varying operands."""
        return constant_of(self.instruction) is not None

    def require(self, axis: str, state: str) -> None:
        self.wanted = self.wanted.moved((axis,), state)


def ordinary(site: TypedSite) -> Judgement:
    """Operands are cast until they agree, and the result has their type.

    Along an axis: varying with varying, invarying or reduced gives varying; invarying only gives invarying; reduced
    only gives reduced; unreduced passes through ops linear in it. A constant needs no cast beside varying operands.
    Source: JAX, jax._src.core.standard_vma_rule; its rules for unreduced are stricter, ours are laxer where sound.
    """
    leaves = _leaves(site)
    known = [leaf for leaf in leaves if leaf.given is not UNKNOWN]
    is_open = len(known) < len(leaves) and all(leaf.is_constant for leaf in known)
    result: Variance = UNKNOWN if is_open else INVARYING
    for axis in () if is_open else site.mesh.axes:
        states = {leaf.given.state(axis) for leaf in known}
        if states - {"invarying"}:
            result = result.moved((axis,), _join_states(site, known, axis, states))
    operands = unflatten([each.shape for each in site.instruction.operands], [leaf.wanted for leaf in leaves])
    return Judgement(operands, fill(site.instruction.shape, result), reasons=_reasons(site, leaves, result))


def _leaves(site: TypedSite) -> list[_Leaf]:
    found = []
    pairs = zip(site.labels, site.instruction.operands, site.operands, strict=True)
    for number, (label, instruction, given) in enumerate(pairs):
        role = label.partition("[")[0]
        found += [_Leaf(number, role, instruction, leaf, leaf) for leaf in flatten(given)]
    return found


def _join_states(site: TypedSite, leaves: list[_Leaf], axis: str, states: set[str]) -> str:
    """The state of the result along an axis; records what the operands need for it."""
    if "unreduced" in states:
        return _join_unreduced(site, leaves, axis)
    if "varying" in states:
        return _cast_to_varying(site, leaves, axis)
    for leaf in leaves:
        if leaf.given.state(axis) == "invarying" and not leaf.is_aside and leaf.role not in _CHOOSING:
            _check_beside_reduced(site, leaves, leaf, axis)
    return "reduced"


def _cast_to_varying(site: TypedSite, leaves: list[_Leaf], axis: str) -> str:
    for leaf in leaves:
        if leaf.given.state(axis) != "varying" and not leaf.is_constant:
            if site.walk.casts == "none":
                _refuse_pair(site, leaf, next(each for each in leaves if each.given.state(axis) == "varying"), axis)
            leaf.require(axis, "varying")
    return "varying"


def _check_beside_reduced(site: TypedSite, leaves: list[_Leaf], leaf: _Leaf, axis: str) -> None:
    """Refuse an invarying value beside a reduced one, except for a constant in a derivative."""
    if not (site.walk.frees_constants and leaf.is_constant):
        _refuse_pair(site, leaf, next(each for each in leaves if each.given.state(axis) == "reduced"), axis)


def _refuse_pair(site: TypedSite, leaf: _Leaf, other: _Leaf, axis: str) -> None:
    state, beside = leaf.given.state(axis), other.given.state(axis)
    hints = {
        ("invarying", "varying"): f"xb.mesh.pvary(..., {axis!r}) makes it varying",
        ("invarying", "reduced"): f"xb.mesh.pcast(..., {axis!r}, to='reduced') makes it reduced",
        ("reduced", "varying"): f"xb.mesh.pcast(..., {axis!r}, to='varying') makes it varying",
    }
    hint = hints.get((state, beside), f"xb.mesh.psum(..., {axis!r}) sums the unreduced operand")
    site.refuse(
        "state_mismatch",
        f"along axis {axis} {_name_operand(site, leaf)} is {state}, but {_name_operand(site, other)} is {beside}",
        hint,
    )


def _name_operand(site: TypedSite, leaf: _Leaf) -> str:
    return f"{site.labels[leaf.number]} %{leaf.instruction.name}"


def _join_unreduced(site: TypedSite, leaves: list[_Leaf], axis: str) -> str:
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


def _refuse_nonlinear(site: TypedSite, leaf: _Leaf, axis: str, reason: str) -> None:
    spelling = site.instruction.opcode.replace("_", "-")
    site.refuse(
        "nonlinear_on_unreduced",
        f"{_name_operand(site, leaf)} is unreduced along axis {axis}, but {spelling} does not commute with its sum"
        f"{reason}",
        f"xb.mesh.psum(..., {axis!r}) sums the value first",
    )


def _roles(site: TypedSite, linear: Linear, leaves: list[_Leaf], axis: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The operands that are data and those that are factors; refuses a product of two unreduced operands."""
    sums = {leaf.role for leaf in leaves if leaf.given.state(axis) == "unreduced"}
    if linear.factors and sums >= {*linear.data, *linear.factors}:
        both = join_words(_name_operand(site, leaf) for leaf in leaves)
        site.refuse(
            "bilinear_on_unreduced",
            f"{both} are both unreduced along axis {axis}; products of partial sums do not add up to the product",
            f"xb.mesh.psum(..., {axis!r}) sums one of them first",
        )
    if linear.factors and not sums & {*linear.data}:
        if not linear.either:
            wrong = next(leaf for leaf in leaves if leaf.role in sums)
            _refuse_nonlinear(site, wrong, axis, f" if it is {wrong.role}")
        return linear.factors, linear.data
    return linear.data, linear.factors


def _check_data(site: TypedSite, leaf: _Leaf, first: _Leaf, axis: str) -> None:
    """Refuse data that is neither unreduced nor zero, which is a sum of zeros."""
    state = leaf.given.state(axis)
    if state == "unreduced":
        return
    if state == "invarying" and is_zero(leaf.instruction):
        return
    if leaf.role == "padding_value":
        site.refuse(
            "nonzero_pad_on_unreduced",
            f"{_name_operand(site, first)} is unreduced along axis {axis}, but {_name_operand(site, leaf)} is not "
            "known to be zero: the sum would count it once per device",
            f"pad with zero, or pad after xb.mesh.psum(..., {axis!r})",
        )
    _refuse_pair(site, leaf, first, axis)


def _check_factor(site: TypedSite, leaf: _Leaf, first: _Leaf, axis: str) -> None:
    """Refuse a factor that is not reduced, except for a constant in a derivative."""
    state = leaf.given.state(axis)
    is_free = state == "invarying" and site.walk.frees_constants and leaf.is_constant
    if state != "reduced" and not is_free:
        _refuse_pair(site, leaf, first, axis)


def _reasons(site: TypedSite, leaves: list[_Leaf], result: Variance) -> dict[int, str]:
    """Why operands are cast, by their numbers."""
    text = result.text(site.mesh)
    return {
        leaf.number: f"{site.instruction.name} of {text} takes {site.labels[leaf.number]} {leaf.instruction.name}"
        for leaf in leaves
        if leaf.wanted != leaf.given
    }


# ----------------------------------------------------------------------------
# Collectives
#
# Each takes its operand in one state of the named axes, and returns its result in another.

UNKNOWN_OP = "unknown"


@frozen
class Collective:
    """The states of the named axes that a collective takes, with those that it returns, and whether it is linear.

    An invarying operand is cast to varying if `takes` has varying but not invarying, unless `is_strict`.
    """

    takes: dict[str, str]
    is_linear: bool = True
    is_strict: bool = False


_EXCHANGE = Collective({"varying": "varying"})
COLLECTIVE_RULES: dict[str, Collective] = {
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
    UNKNOWN_OP: Collective({"varying": "varying"}, is_linear=False),
}
CASTS: dict[str, dict[str, str]] = {
    "pvary": {"invarying": "varying"},
    "to_varying": {"invarying": "varying", "reduced": "varying"},
    "to_reduced": {"invarying": "reduced"},
    "to_unreduced": {"varying": "unreduced"},
}


def named_collective_of(site: TypedSite) -> NamedCollective:
    """The collective by axis name that an instruction is: its mark, or by its groups and its reducer."""
    if site.mark is not None:
        return site.mark
    instruction, mesh = site.instruction, site.mesh
    opcode = instruction.opcode.removesuffix("_start")
    op = _NAMES[opcode](instruction) if opcode in _NAMES else UNKNOWN_OP
    axes = _axes(site) if op != UNKNOWN_OP else None
    return NamedCollective(UNKNOWN_OP, mesh.axes) if axes is None else NamedCollective(op, axes)


def _axes(site: TypedSite) -> tuple[str, ...] | None:
    walk, opcode = site.walk, site.instruction.opcode
    groups = groups_of(site.instruction, walk.num_replicas, walk.num_partitions)
    is_in_order = opcode.removesuffix("_start") in ("all_gather", "reduce_scatter", "all_to_all")
    return site.mesh.axes_of(groups) if is_in_order else site.mesh.spanned(groups)


def _name_by_reducer(all_reduce: Instruction) -> str:
    (region,) = all_reduce.called
    return "psum" if is_sum(region) else {"maximum": "pmax", "minimum": "pmin"}.get(region.root.opcode, "preduce")


_NAMES: dict[str, Callable[[Instruction], str]] = {
    "all_reduce": _name_by_reducer,
    "all_gather": lambda _: "all_gather",
    "reduce_scatter": lambda scatter: "psum_scatter" if is_sum(scatter.called[0]) else UNKNOWN_OP,
    "all_to_all": lambda _: "all_to_all",
    "collective_broadcast": lambda _: "pbroadcast",
}


def collective(site: TypedSite) -> Judgement:
    """All named axes have one state in the operand and one in the result; other axes keep their states.

    Source: JAX, jax._src.lax.parallel (psum_invariant, all_gather_invariant, reduced collectives).
    """
    if is_in_place(site.instruction):
        site.refuse(
            "state_mismatch", "xbuild cannot infer the type of an in-place collective-permute (slice_sizes) on a mesh"
        )
    mark = named_collective_of(site)
    wanted: list[Variance] = []
    results: list[Variance] = []
    for number, operand in enumerate(site.operands):
        for leaf in flatten(operand):
            if leaf is NOT_YET:
                wanted.append(leaf)
                results.append(leaf)
                continue
            taken = _take_state(site, number, leaf, mark)
            _check_rest(site, number, leaf, mark)
            wanted.append(leaf.moved(mark.axes, taken))
            results.append(leaf.moved(mark.axes, COLLECTIVE_RULES[mark.op].takes[taken]))
    operands = unflatten([each.shape for each in site.instruction.operands], wanted)
    return Judgement(operands, _result(site, operands, results), reasons=_reasons_of_collective(site, operands, mark))


def _take_state(site: TypedSite, number: int, leaf: Variance, mark: NamedCollective) -> str:
    """The state of the named axes in the operand, after a cast."""
    state = state_of(site, number, leaf, mark)
    return state if state in COLLECTIVE_RULES[mark.op].takes else _cast_from(site, number, state, mark)


def _cast_from(site: TypedSite, number: int, state: str, mark: NamedCollective) -> str:
    """Varying, if this state may be cast to it implicitly."""
    rule = COLLECTIVE_RULES[mark.op]
    if mark.op == UNKNOWN_OP and state in ("invarying", "mixed"):
        return "varying"
    is_free = not rule.is_strict or (site.walk.frees_constants and "varying" in rule.takes)
    if state == "invarying" and is_free and site.walk.casts != "none":
        return "varying"
    return _refuse_state(site, number, state, mark)


def _refuse_state(site: TypedSite, number: int, state: str, mark: NamedCollective) -> NoReturn:
    rule = COLLECTIVE_RULES[mark.op]
    wanted = " or ".join(rule.takes)
    noun = "this axis" if len(mark.axes) == 1 else "these axes"
    kind = "nonlinear_on_unreduced" if state == "unreduced" and not rule.is_linear else "state_mismatch"
    hints = {"invarying": "xb.mesh.pvary makes it varying", "unreduced": "xb.mesh.psum sums the operand first"}
    site.refuse(
        kind,
        f"{mark.op} over {_name_axes(mark.axes)} expects an operand that is {wanted} along {noun}, got {state}: "
        f"{site.describe(number)}",
        hints.get(state, "xb.mesh.pcast(..., to='varying') makes it varying"),
    )


def state_of(site: TypedSite, number: int, leaf: Variance, mark: NamedCollective) -> str:
    """The one state of all named axes; refused if they have several."""
    states = {axis: leaf.state(axis) for axis in mark.axes}
    if len({*states.values()}) > 1:
        if mark.op == UNKNOWN_OP and {*states.values()} <= {"varying", "invarying"}:
            return "mixed"
        found = ", ".join(f"{axis} {state}" for axis, state in states.items())
        site.refuse(
            "mixed_axis_state",
            f"{mark.op} over {_name_axes(mark.axes)} expects the same state along all its axes, got "
            f"{site.describe(number)}: {found}",
            "use fewer axes, or cast the operand first: xb.mesh.pvary",
        )
    return next(iter(states.values()), "varying")


def _check_rest(site: TypedSite, number: int, leaf: Variance, mark: NamedCollective) -> None:
    rest = leaf.unreduced - {*mark.axes}
    if rest and not COLLECTIVE_RULES[mark.op].is_linear:
        site.refuse(
            "nonlinear_on_unreduced",
            f"{mark.op} over {_name_axes(mark.axes)} is not linear, but an operand is unreduced along "
            f"{_name_axes(rest)}: {site.describe(number)}",
            "xb.mesh.psum sums the operand first",
        )


def _result(site: TypedSite, operands: tuple[Type, ...], results: list[Variance]) -> Type:
    """The type of the result: for a start, those of its operands and results; for several arrays, a tuple."""
    shape, opcode = site.instruction.shape, site.instruction.opcode
    each = tuple(results) if len(results) > 1 else results[0]
    if opcode in ("all_gather_start", "collective_permute_start"):
        given = operands if len(operands) > 1 else operands[0]
        rest = [fill(part, INVARYING) for part in shape.elements[2:]]  # type: ignore[union-attr]
        return (given, each, *rest)
    if opcode == "all_to_all" and len(results) > 1:
        return fill(shape, _join_varying(results))
    return each


def _join_varying(results: list[Variance]) -> Variance:
    return Variance(varying=frozenset().union(*(each.varying for each in results)))


def _name_axes(axes: Iterable[str]) -> str:
    names = list(axes)
    return f"axis {names[0]}" if len(names) == 1 else f"axes ({', '.join(names)})"


def _reasons_of_collective(site: TypedSite, operands: tuple[Type, ...], mark: NamedCollective) -> dict[int, str]:
    pairs = enumerate(zip(site.operands, operands, strict=True))
    return {n: f"{mark.op} {site.instruction.name} takes a varying operand" for n, (old, new) in pairs if old != new}


def cast(site: TypedSite) -> Judgement:
    """A cast that the program states; refuses an unsupported one."""
    mark = site.mark
    assert mark is not None
    (leaf,) = flatten(site.operands)
    if leaf is NOT_YET:
        return Judgement(site.operands, leaf)
    state = state_of(site, 0, leaf, mark)
    if mark.op == "to_unreduced" and state == "invarying" and site.walk.frees_constants:
        varying = leaf.moved(mark.axes, "varying")
        return Judgement(
            (varying,), leaf.moved(mark.axes, "unreduced"), reasons={0: "a cotangent that is equal on all devices"}
        )
    if state not in CASTS[mark.op]:
        to = mark.op.removeprefix("to_") if mark.op != "pvary" else "varying"
        kind = "already_varying" if state == to == "varying" else "unsupported_cast"
        site.refuse(
            kind,
            f"cannot cast from {state} to {to} along {_name_axes(mark.axes)}: {site.describe(0)}",
            "the available casts are invarying to varying, invarying to reduced, reduced to varying, and "
            "varying to unreduced",
        )
    return Judgement(site.operands, leaf.moved(mark.axes, CASTS[mark.op][state]))


def axis_index(site: TypedSite) -> Judgement:
    """The coordinate along the named axes, which varies only along these."""
    assert site.mark is not None
    return Judgement(site.operands, Variance(varying=site.mark.axes))


# ----------------------------------------------------------------------------
# TypeWalk: the type of each value of a computation, and where a cast is needed

Casts: TypeAlias = Literal["all", "operands", "none"]


@frozen(eq=False)
class TypedComputation:
    """A computation with the type of each value; `judged` has the types that operands need."""

    computation: Computation
    parameters: tuple[Type, ...]
    judged: dict[Instruction, Judgement]
    root: Type

    def type_of(self, instruction: Instruction) -> Type:
        return self.judged[instruction].result


@define(eq=False)
class TypeWalk:
    """Types the values of computations on one mesh; a callee is typed once for each combination of argument types.

    `casts` says what may be cast implicitly: operands of ops ("operands"), also inputs of loops and branches ("all"),
    or nothing ("none"). With `frees_constants`, for derivatives, a constant beside a reduced value is cast to reduced,
    and an invarying cotangent is cast where a varying one is expected.
    """

    mesh: Mesh
    num_replicas: int
    num_partitions: int
    casts: Casts = "all"
    frees_constants: bool = False
    _known: dict[tuple[Computation, tuple[Type, ...]], TypedComputation] = field(factory=dict, init=False)

    def computation(self, computation: Computation, parameters: Sequence[Type]) -> TypedComputation:
        """The computation typed for these types of its parameters; refuses what one of its ops refuses."""
        key = computation, tuple(parameters)
        if key not in self._known:
            self._known[key] = self._type_computation(*key)
        return self._known[key]

    def _type_computation(self, computation: Computation, parameters: tuple[Type, ...]) -> TypedComputation:
        judged: dict[Instruction, Judgement] = {}
        for instruction in ordered(computation):
            if instruction.opcode == "parameter":
                judged[instruction] = Judgement((), parameters[instruction.attributes.number])
            else:
                judged[instruction] = self.judge(instruction, [judged[o].result for o in instruction.operands])
        return TypedComputation(computation, parameters, judged, judged[computation.root].result)

    def judge(self, instruction: Instruction, operands: Sequence[Type]) -> Judgement:
        """The judgement of an instruction whose operands have these types."""
        site = TypedSite(self, instruction, tuple(operands))
        try:
            judgement = variance[instruction.opcode](site)
        except XbuildError as error:
            raise add_operands(site, error) from None
        assert isinstance(judgement, Judgement)
        return judgement


# ----------------------------------------------------------------------------
# Control flow
#
# Loop-carried values and results of branches also vary along the axes along which the decision varies.


def type_call(site: TypedSite) -> Judgement:
    """A call: the callee, typed for the types of the operands."""
    (callee,) = site.instruction.called
    typed = site.walk.computation(callee, site.operands)
    return Judgement(site.operands, typed.root, (typed,))


@variance
def while_(site: TypedSite) -> Judgement:
    """The least types on which the initial state, every trip, and the condition agree; the state is cast to them.

    The state varies along all axes along which the condition varies, since devices then have different trip counts. A
    collective over such an axis is refused: devices might not all run it.
    Source: XLA, HloReplicationAnalysis (while); JAX's loops require equal types and ignore the condition.
    """
    regions = dict(site.instruction.regions())
    (init,), zeros = site.operands, zeros_in(site.instruction.operands[0])
    carry = _initial_carry(site, init, zeros)
    while True:
        condition = site.walk.computation(regions["condition"], (carry,))
        decision = _axes_of_decision(site, condition.root, regions.values())
        body = site.walk.computation(regions["body"], (carry,))
        grown = _grow_carry(site, carry, body.root, decision, zeros)
        if grown == carry:
            break
        _check_carry(site, init, grown, body.root)
        carry = grown
    reason = f"{site.instruction.name} carries it as {describe_type(carry, site.mesh)}"
    typed = {"condition": condition, "body": evolve(body, root=carry)}
    return Judgement((carry,), carry, tuple(typed[role] for role in regions), {0: reason})


def _initial_carry(site: TypedSite, init: Type, zeros: Sequence[bool]) -> Type:
    """The types of the first round; in derivatives, a sum that begins with zero gets the type of its addends."""
    if not site.walk.frees_constants:
        return init
    leaves = [UNKNOWN if is_zero_at else leaf for leaf, is_zero_at in zip(flatten(init), zeros, strict=True)]
    return unflatten(site.instruction.operands[0].shape, leaves)


def _grow_carry(site: TypedSite, carry: Type, root: Type, decision: Axes, zeros: Sequence[bool]) -> Type:
    leaves = [
        _join_types(site, "carry_type_mismatch", f"leaf {n} of the loop state", pair, decision, is_zero_at)
        for n, (*pair, is_zero_at) in enumerate(zip(flatten(carry), flatten(root), zeros, strict=True))
    ]
    return unflatten(site.instruction.shape, leaves)


def _check_carry(site: TypedSite, carry: Type, grown: Type, root: Type) -> None:
    if site.walk.casts != "all":
        leaf = next(n for n, pair in enumerate(zip(flatten(carry), flatten(grown), strict=True)) if pair[0] != pair[1])
        old, new = flatten(carry)[leaf], flatten(root)[leaf]
        site.refuse(
            "carry_type_mismatch",
            f"leaf {leaf} of the loop state enters the body as {describe_type(old, site.mesh)} but leaves as "
            f"{describe_type(new, site.mesh)}",
            "apply xb.mesh.pvary to the initial value, or pass casts='all'",
        )


def _join_types(
    site: TypedSite, kind: str, what: str, pair: Sequence[Variance], decision: Axes, is_zero_before: bool = False
) -> Variance:
    """The type to which two types are cast, which also varies along the axes of the decision."""
    first, second = [INVARYING if leaf is UNKNOWN else leaf for leaf in pair]
    if pair[0] is UNKNOWN:
        first = second
    found = first
    for axis in site.mesh.axes:
        states = {first.state(axis), second.state(axis)} | ({"varying"} if axis in decision else set())
        if states == {"unreduced", "invarying"} and first.state(axis) == "invarying" and is_zero_before:
            state = "unreduced"
        elif "unreduced" in states and len(states) > 1:
            _refuse_sum(site, kind, what, axis, {first.state(axis), second.state(axis)} - {"unreduced"})
        else:
            state = next(each for each in ("varying", "unreduced", "reduced", "invarying") if each in states)
        found = found.moved((axis,), state)
    return found


def _refuse_sum(site: TypedSite, kind: str, what: str, axis: str, others: set[str]) -> NoReturn:
    other = f"{min(others)} on another" if others else "the decision varies along that axis"
    site.refuse(
        kind,
        f"{what} is unreduced along axis {axis}{' on one path' if others else ''}, but {other}",
        f"xb.mesh.psum(..., {axis!r}) sums the value first",
    )


def _axes_of_decision(site: TypedSite, root: Type, regions: Iterable[Computation]) -> Axes:
    """The axes along which a decision varies; refused if a collective over one of them depends on it."""
    leaf: Variance
    (leaf,) = flatten(root)
    for region in regions:
        for instruction, axes in find_collectives(region, site.mesh):
            if shared := site.mesh.ordered({*axes} & leaf.varying):
                _refuse_collective(site, instruction, shared)
    return leaf.varying


def _refuse_collective(site: TypedSite, instruction: Instruction, axes: tuple[str, ...]) -> NoReturn:
    line = f" at {instruction.source}" if instruction.source else ""
    site.refuse(
        "divergent_collective",
        f"the decision varies along {', '.join(axes)}, but {instruction.opcode.replace('_', '-')} "
        f"%{instruction.name}{line} inside communicates along {', '.join(axes)}: some devices may not reach the op",
        f"make the decision equal on all devices: xb.mesh.pmax(..., {axes[0]!r})",
    )


def find_collectives(computation: Computation, mesh: Mesh) -> Iterable[tuple[Instruction, tuple[str, ...]]]:
    """The collectives of a computation and its callees, each with the axes over which devices communicate.

    A permutation has no groups, so it counts as one over all devices.
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
    if isinstance(instruction.shape, TupleShape):
        return [False] * instruction.shape.count
    return [is_zero(instruction)]


@variance
def conditional(site: TypedSite) -> Judgement:
    """The type on which all branches agree, which also varies along the axes of the decision; so do the operands.

    Source: XLA, HloReplicationAnalysis (conditional); JAX leaves the decision out.
    """
    index, *given = site.operands
    regions = site.instruction.called
    decision = _axes_of_decision(site, index, regions)
    labels = site.labels[1:]
    operands = [
        unflatten(
            o.shape, [_join_types(site, "branch_type_mismatch", what, (leaf,) * 2, decision) for leaf in flatten(each)]
        )
        for what, each, o in zip(labels, given, site.instruction.operands[1:], strict=True)
    ]
    branches = [site.walk.computation(*pair) for pair in zip(regions, ((each,) for each in operands), strict=True)]
    result = _join_branches(site, branches, decision)
    reason = f"{site.instruction.name} has a decision that varies along {', '.join(site.mesh.ordered(decision))}"
    return Judgement(
        (index, *operands),
        result,
        tuple(evolve(branch, root=result) for branch in branches),
        dict.fromkeys(range(1, 1 + len(operands)), reason),
    )


def _join_branches(site: TypedSite, branches: Sequence[TypedComputation], decision: Axes) -> Type:
    leaves = flatten(branches[0].root)
    for branch in branches[1:]:
        pairs = zip(leaves, flatten(branch.root), strict=True)
        if site.walk.casts != "all" and any(a != b for a, b in zip(leaves, flatten(branch.root), strict=True)):
            roots = ", ".join(f"{each.computation.name} {describe_type(each.root, site.mesh)}" for each in branches)
            hint = "apply xb.mesh.pvary to the result of a branch, or pass casts='all'"
            site.refuse("branch_type_mismatch", f"branches return different types: {roots}", hint)
        leaves = [
            _join_types(site, "branch_type_mismatch", f"leaf {n} of the result", p, decision)
            for n, p in enumerate(pairs)
        ]
    joined = [_join_types(site, "branch_type_mismatch", "the result", (leaf, leaf), decision) for leaf in leaves]
    return unflatten(site.instruction.shape, joined)


@variance
def scan(site: TypedSite) -> Judgement:
    """The least types of the carries on which the initial values and every trip agree."""
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
            _join_types(site, "carry_type_mismatch", f"carry {n}", pair, frozenset(), zero)
            for n, (*pair, zero) in enumerate(zip(carries, after, zeros, strict=True))
        ]
        if grown == carries:
            break
        _check_carry(site, init, tuple(grown), tuple(after))
        carries = grown
    operands = (*given, *carries)
    root = (*outputs, *grown) if isinstance(typed.root, tuple) else grown[0]
    reasons = dict.fromkeys(range(count, len(operands)), f"{site.instruction.name} carries it with this type")
    return Judgement(operands, root, (evolve(typed, root=root),), reasons)


# ----------------------------------------------------------------------------
# The table of typing rules


def type_marked(site: TypedSite) -> Judgement:
    """An op that may implement a cast, a coordinate, or a slice at it; else an ordinary op."""
    mark = site.mark
    if mark is None:
        return ordinary(site)
    if mark.op == "axis_index":
        return axis_index(site)
    if mark.op == "pscatter":
        return _slice_at_coordinate(site)
    return cast(site)


def _slice_at_coordinate(site: TypedSite) -> Judgement:
    """A slice at the coordinate: invarying to varying."""
    found = collective(_without_indices(site))
    return Judgement((found.operands[0], *site.operands[1:]), found.result, reasons=found.reasons)


def _without_indices(site: TypedSite) -> TypedSite:
    from attrs import evolve

    instruction = evolve(site.instruction, operands=site.instruction.operands[:1], segments=(1, 0))
    return TypedSite(site.walk, instruction, site.operands[:1])


def _type_varying(site: TypedSite) -> Judgement:
    """A value that each device makes for itself: random numbers, inputs from outside, ids, results of custom calls."""
    for number, operand in enumerate(site.operands):
        if any(leaf.unreduced for leaf in flatten(operand)):
            site.refuse(
                "nonlinear_on_unreduced",
                f"{site.describe(number)}: {site.instruction.opcode.replace('_', '-')} is not known to commute with "
                "the pending sum",
                "xb.mesh.psum sums the operand first",
            )
    return Judgement(site.operands, fill(site.instruction.shape, Variance(varying=site.mesh.axes)))


def _type_invarying(site: TypedSite) -> Judgement:
    return Judgement(site.operands, fill(site.instruction.shape, INVARYING))


def _type_id(site: TypedSite) -> Judgement:
    """An id varies if the devices of the mesh are counted by it."""
    count = site.walk.num_partitions if site.instruction.opcode == "partition_id" else site.walk.num_replicas
    return _type_varying(site) if count > 1 else _type_invarying(site)


def _type_first_operand(site: TypedSite) -> Judgement:
    """The type of the first operand; other operands only order effects."""
    return Judgement(site.operands, site.operands[0])


@variance
def tuple_(site: TypedSite) -> Judgement:
    return Judgement(site.operands, site.operands)


@variance
def get_tuple_element(site: TypedSite) -> Judgement:
    return Judgement(site.operands, site.operands[0][site.instruction.attributes.index])


@variance
def custom_call(site: TypedSite) -> Judgement:
    """A custom call may return different values on each device."""
    return _type_varying(site)


def _type_start(site: TypedSite) -> Judgement:
    """The start of an asynchronous op: it varies along all axes along which operands vary."""
    found = _type_varying(site)
    varying = frozenset().union(*(leaf.varying for leaf in flatten(site.operands)))
    is_pure = not site.instruction.called or all(
        _is_ordinary(each.opcode) for each in site.instruction.called[0].instructions
    )
    return Judgement(found.operands, fill(site.instruction.shape, Variance(varying=varying))) if is_pure else found


def _is_ordinary(opcode: str) -> bool:
    return opcode in LINEAR or opcode in ("parameter", "constant") or variance.get(opcode) is ordinary


def _type_done(site: TypedSite) -> Judgement:
    """The result of an asynchronous op: the second element of a start's tuple of operands and results."""
    (given,) = site.operands
    shape = site.instruction.operands[0].shape
    same = fill(shape, INVARYING) == fill(site.instruction.shape, INVARYING)
    return Judgement(site.operands, given if same else _result_in(given, site))


def _result_in(given: object, site: TypedSite) -> object:
    leaves = flatten(given)
    if isinstance(given, tuple) and len(given) > 1:
        return given[1]
    return fill(site.instruction.shape, leaves[0])


_UNLIKE = ("rng", "rng_get_and_update_state", "infeed", "outfeed", "recv", "recv_done", "send", "send_done")
_MARKED = ("copy", "convert", "dynamic_slice")
_ALIKE = ("constant", "iota", "after_all", "parameter")

variance.update(
    {
        **dict.fromkeys(COLLECTIVES & OPS.keys(), collective),
        **dict.fromkeys(("all_reduce_start", "all_gather_start", "collective_permute_start"), collective),
        **dict.fromkeys(("all_reduce_done", "all_gather_done", "collective_permute_done"), _type_done),
        **dict.fromkeys(("async_done",), _type_done),
        **dict.fromkeys(("async_start", "copy_start"), _type_start),
        **dict.fromkeys(("opt_barrier", "domain", "add_dependency", "async_update"), _type_first_operand),
        "copy_done": _type_done,
        **dict.fromkeys(_UNLIKE, _type_varying),
        **dict.fromkeys(_ALIKE, _type_invarying),
        **dict.fromkeys(("partition_id", "replica_id"), _type_id),
        **dict.fromkeys(("call", "fusion"), type_call),
        **dict.fromkeys(_MARKED, type_marked),
    }
)
for _opcode in OPS.keys() - variance.keys():
    variance.enter(_opcode, ordinary)
