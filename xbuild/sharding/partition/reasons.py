"""Explains why the partitioner inserted each collective: records, and the sentences made of them on demand.

Sections:

    Communication: an inserted collective, what it moves, and why
    Reason: the base class of all reasons
    Because: reasons whose sentence is one template
    Reduced: an op reduces a dimension that is split
    Chosen: why an op is not split along a dimension by an axis
    Operand and Result: an array whose sharding is not the one that the op or its user needs
    Neighbours: elements of a split dimension that other devices hold
    Story: why values of the global program have their shardings
    Phrases: values with their lines, shardings, axes, lists
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from attrs import define, field, frozen

from shape_inference import Shape, TupleShape, XbuildError, leaves
from shape_inference.escaping import in_line

from ...core.graph import Instruction, Source
from ...core.op import OPS
from ...core.report_text import join_words
from ...properties.effects import name_in_report
from ...properties.mesh import Mesh
from ..propagation import Propagated
from ..rules import FactorMap, ShardingRule, factor_name, rule_of
from ..sharding import Axis, Sharding, count, merge_parts, shard_dims
from ..stated_shardings import SHARDING

if TYPE_CHECKING:
    from .exchange import Exchange, Round

Axes: TypeAlias = tuple[Axis, ...]


@frozen
class Verbs:
    """What explanations say of an op; the handler of an op states those that differ.

    An op `reduces` a dimension, `needs` all of it, or `moves` its elements. If partial results are combined, each
    device `holds` one, named by what combines them; if they are gathered, `gathers` says how.
    """

    reduces: str = "reduces"
    holds: str = "a partial {}"
    gathers: str = (
        "each device reduces its own shard, gathers the results of all shards, and reduces the gathered results"
    )
    needs: str = ""
    moves: str = "moves elements along"


# ----------------------------------------------------------------------------
# Communication: an inserted collective, what it moves, and why


@frozen
class ArrayMove:
    """What a collective moves: its opcode, the value, and the shardings before and after all its steps.

    The shardings are None if single elements, or scalars, are sent.
    """

    opcode: str
    value: Instruction
    had: Sharding | None
    needed: Sharding | None
    story: Story


@frozen(eq=False)
class Communication:
    """A collective that the partitioner inserted, and why.

    `axes` are the mesh axes that it runs over, `bytes` what a device sends at once. `why` is the reason as a record, or
    its sentence if nothing more is known; `move` is the array that is moved, with its shardings before and after.
    """

    name: str
    axes: tuple[Axis, ...]
    bytes: int
    why: Reason | str = field(repr=False)
    move: ArrayMove = field(repr=False)

    @property
    def opcode(self) -> str:
        """The opcode of the collective."""
        return self.move.opcode

    @property
    def value(self) -> str:
        """The instruction of the global program whose data is moved."""
        return self.move.value.name

    @property
    def source(self) -> Source | None:
        """The line that recorded that instruction."""
        return self.move.value.source

    @property
    def had(self) -> Sharding | None:
        """The sharding before all steps of the move; None if single elements, or scalars, are sent."""
        return self.move.had

    @property
    def needed(self) -> Sharding | None:
        """The sharding after all steps of the move."""
        return self.move.needed

    @property
    def reason(self) -> str:
        """Why it was inserted, as a sentence."""
        return self.why if isinstance(self.why, str) else in_line(self.why.sentence(self.move))

    def __str__(self) -> str:
        names = ", ".join(dict.fromkeys(axis.name for axis in self.axes))
        return f"{self.name}: {self.opcode} over {names}, {self.bytes} bytes: {self.reason}"

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data for JSON."""
        facts = {"kind": "other"} if isinstance(self.why, str) else self.why.facts(self.move)
        return {
            "name": self.name,
            "op": self.opcode,
            "axes": list(dict.fromkeys(axis.name for axis in self.axes)),
            "bytes": self.bytes,
            "value": self.value,
            "reason": self.reason,
            "why": facts,
            "line": None if self.source is None else str(self.source),
        }


# ----------------------------------------------------------------------------
# Reason: the base class of all reasons
#
# A reason holds what the partitioner knew when it inserted the collective.


class Reason(ABC):
    """Why a value is moved. `kind` names the reason; `user` is the instruction of the global program that needs it."""

    __slots__ = ()
    kind: ClassVar[str]
    user: Instruction

    def __repr__(self) -> str:
        return f"{self.kind} of {self.user.name}"

    @abstractmethod
    def sentence(self, move: ArrayMove) -> str:
        """Why, as a sentence."""

    def name_taker(self) -> str:
        """Who takes the value, as the subject of a sentence; empty if the program returns it."""
        return name_with_line(self.user)

    def facts(self, move: ArrayMove) -> dict[str, Any]:
        """The same as plain data for JSON."""
        return {"kind": self.kind, "user": self.user.name, "line": line_of(self.user), **_sharding_facts(move)}


Use: TypeAlias = "tuple[Reason, Sharding]"
"""The reason for which an array is taken, and the sharding in which it is taken."""


def _sharding_facts(move: ArrayMove) -> dict[str, Any]:
    pairs = (("had", move.had), ("needed", move.needed))
    return {key: describe(each) for key, each in pairs if each is not None}


def list_takers(uses: Sequence[Use], needed: Sharding) -> list[Reason]:
    """The reasons for which an array is taken in a sharding, one for each user."""
    return list({reason.user: reason for reason, sharding in uses if sharding == needed}.values())


def explain_need(uses: Sequence[Use], move: ArrayMove) -> str:
    """Why a value is needed in its sharding after a move: who takes it, or what the program states."""
    assert move.needed is not None
    takers = [reason.name_taker() for reason in list_takers(uses, move.needed)]
    users, needed = [taker for taker in takers if taker], describe(move.needed)
    if users:
        more = [f"{len(users) - 2} more"] if len(users) > 2 else []
        verb = "takes" if len(users) == 1 else "take"
        return f"{join_words([*users[:2], *more])} {verb} {name_of(move.value)} {needed}"
    cause = move.story.cause(move.value)
    start = f"the program returns {name_of(move.value)}" if takers else f"{name_of(move.value)} is needed"
    return f"{start} {needed}{f' ({cause})' if cause else ''}"


# ----------------------------------------------------------------------------
# Because: reasons whose sentence is one template
#
# One ReasonKind for each. The fields of the templates are those of FIELDS, and the details of the reason.


@frozen
class ReasonKind:
    """A kind of reason: its word, and templates of its sentence and of who takes the value.

    `of_numbers` is the sentence if scalars are sent and no array changes its sharding.
    """

    word: str
    sentence: str
    taker: str = "{user}"
    of_numbers: str = ""


OUTPUT = ReasonKind("output", "the program returns {value} {needed}, but {before}{because}", taker="")
"""The program returns a value; the user is the root."""

FIRST_TRIP = ReasonKind("loop state", "{taker} takes {value} {needed}, but {before}", taker="the state of {user}")
NEXT_TRIP = ReasonKind("loop state", "{taker} takes {value} {needed}, but {before}", taker="the next trip of {user}")
BEFORE_LOOP = ReasonKind(
    "before a loop",
    "{user} reads different elements of {value} in each trip, at positions known only at run time, and changes "
    "none: it takes {value} {needed} once, before the first trip, but {before}",
    taker="the state of {user}",
)
"""A loop invariant is gathered once before the loop, and not in part in each trip."""

BRANCH_RESULT = ReasonKind(
    "branch result",
    "all branches of {user} return their result {needed}, but {before}{because}",
    taker="the result of {user}",
)
DECIDES = ReasonKind("decides", "{value} decides {user}, so each device needs all of it, but {before}")
AGREED = ReasonKind(
    "agreement",
    "{value_there} decides {decided} in which devices communicate, and the check cannot prove it equal on all "
    "devices: all devices take the value of the first device",
)
INTO_REGION = ReasonKind("manual region", "{user} takes {value} {needed} into a manual region, but {before}")
OUT_OF_REGION = ReasonKind("manual region", "{user} takes {value} {needed} out of a manual region, but {before}")
WHOLE_OPERAND = ReasonKind("whole operand", "{user} runs on replicated operands because {unsplit}, but {before}")
ON_DEVICE = ReasonKind(
    "one device",
    "{user} runs only on device {device}, which takes {value} {needed}, but {before}",
    of_numbers="{user} runs only on device {device}: the other devices receive {value} from that device",
)
DRAWN_ONCE = ReasonKind(
    "random numbers",
    "{user} draws random numbers, which differ between devices: all devices take the numbers of the first device",
)
OTHER_DEVICES = ReasonKind(
    "other devices", "{user} moves {value} to a mesh that lists the devices in a different order"
)
ELEMENTS = ReasonKind("elements", "{user} takes {value_there} {needed}, but {value} is {had}: {displaced}")
"""An op moves elements of an array that it takes in a different sharding. `moved` are the dimensions along which
elements move, `made` is the sharding of the result."""

HELD_ELEMENTS = ReasonKind(
    "held elements",
    "{user} takes elements of {source} along {dims}; each device contributes the elements that it holds, and zeros "
    "for the rest; {added} because {user_name} is needed {needed}{given_cause}",
)
"""`source` is the array, `dims` are its split dimensions with their axes."""

TOTALS = ReasonKind(
    "totals",
    "{user} scans dimension {dim} of {scanned}, sharded along {axes}; each device scans its own shard and combines "
    "the result with the total of the shards {side} that shard: all devices take the totals of all shards",
)
"""A scan along the split dimension `dim`; `side` says whether the shards before or after it count."""


@frozen(eq=False, repr=False, init=False)
class Because(Reason):
    """A reason of one of these kinds, with the details that its templates name."""

    row: ReasonKind
    user: Instruction
    details: Mapping[str, Any]

    def __init__(self, row: ReasonKind, user: Instruction, **details: Any) -> None:
        self.__attrs_init__(row, user, details)

    @property
    def kind(self) -> str:  # type: ignore[override]
        return self.row.word

    def sentence(self, move: ArrayMove) -> str:
        is_of_numbers = move.had is None and self.row.of_numbers
        return (self.row.of_numbers if is_of_numbers else self.row.sentence).format_map(_Fields(self, move))

    def name_taker(self) -> str:
        return self.row.taker.format(user=name_with_line(self.user))


class _Fields(dict[str, str]):
    """The fields of a template: those of FIELDS are computed when a template names them, others are details."""

    def __init__(self, why: Because, move: ArrayMove) -> None:
        super().__init__()
        self._given = why, move

    def __missing__(self, name: str) -> str:
        why, move = self._given
        return FIELDS[name](why, move) if name in FIELDS else str(why.details[name])


_ADDED = {
    "all_reduce": "the contributions are added here",
    "reduce_scatter": "the contributions are added and scattered here",
}

FIELDS: dict[str, Callable[[Because, ArrayMove], str]] = {
    "user": lambda why, move: name_with_line(why.user),
    "taker": lambda why, move: why.name_taker(),
    "user_name": lambda why, move: name_of(why.user),
    "value": lambda why, move: name_of(move.value),
    "value_there": lambda why, move: name_with_line(move.value),
    "had": lambda why, move: _describe_if_known(move.had),
    "needed": lambda why, move: _describe_if_known(move.needed),
    "before": lambda why, move: (
        f"{name_with_line(move.value)}{'' if move.had is None else f' is {describe(move.had)}'}"
    ),
    "because": lambda why, move: f": {cause}" if (cause := move.story.cause(why.user)) else "",
    "given_cause": lambda why, move: f" ({cause})" if (cause := move.story.cause(why.user)) else "",
    "decided": lambda why, move: _name_decision(why.user),
    "unsplit": lambda why, move: _explain_unsplit(why.user),
    "displaced": lambda why, move: _describe_displacement(why, move),
    "source": lambda why, move: name_of(why.details["source"]),
    "dims": lambda why, move: _split_dims(why),
    "added": lambda why, move: _ADDED.get(move.opcode, "the contributions are resharded on the way"),
    "axes": lambda why, move: name_axes(why.details["axes"], why.details["mesh"]),
    "scanned": lambda why, move: name_of(why.user.operands[0]),
}


def _describe_if_known(sharding: Sharding | None) -> str:
    return "" if sharding is None else describe(sharding)


def _name_decision(user: Instruction) -> str:
    return "a loop or branch" if user.opcode == "parameter" else name_with_line(user)


def _explain_unsplit(op: Instruction) -> str:
    """Why an op runs on replicated operands, as a clause."""
    properties = OPS[op.opcode].properties
    if op.opcode == "custom_call":
        return f"xbuild does not know what {op.attributes.custom_call_target} computes"
    shapes = [leaf for each in (*op.operands, op) for leaf in leaves(each.shape)]
    if any(isinstance(each, Shape) and each.is_dynamic for each in shapes):
        return "its extents are known only at run time"
    if properties.needs != "nobody" or properties.half != "none":
        return "it communicates or is half of an asynchronous op"
    if rule_of(op) is None:
        return f"{op.opcode} has no sharding rule"
    return f"every device runs all of {op.opcode}"


def _describe_displacement(why: Because, move: ArrayMove) -> str:
    """Along which dimensions elements change their position, or else the sharding in which the result is produced."""
    assert move.needed is not None
    assert move.had is not None
    moved, user = why.details["moved"], name_of(why.user)
    lost = [dim for dim in moved if _loses_axis(move.had.dim(dim).axes, move.needed.dim(dim).axes)]
    if not lost:
        return f"{user} is produced {describe(why.details['made'])}"
    dims = f"{'dimension' if len(lost) == 1 else 'dimensions'} {join_words([*map(str, lost)])}"
    return f"its elements change position along {dims} of {user}"


def _loses_axis(had: Sequence[Axis], needed: Sequence[Axis]) -> bool:
    """Whether a dimension is no longer split by one of its axes."""
    return any(not any(axis.overlaps(each) for each in needed) for axis in had)


def _split_dims(why: Because) -> str:
    mesh = why.details["mesh"]
    return join_words([f"dimension {dim} (sharded along {name_axes(axes, mesh)})" for dim, axes in why.details["dims"]])


# ----------------------------------------------------------------------------
# Reduced: an op reduces a dimension that is split
#
# Each device holds a partial result (Partial), or all devices gather the results of all (Gathered).


@frozen
class SplitFactor:
    """A reduced factor that is split: its name in the rule, its axes, and each dimension that it is part of."""

    name: str
    axes: Axes
    places: tuple[tuple[Instruction, int], ...]
    mesh: Mesh

    def describe(self, *, is_contracted: bool) -> str:
        """The factor in words: its dimensions, and the axes that split them."""
        dims = join_words([f"dimension {dim} of {name_of(value)}" for value, dim in self.places])
        both = "both " if is_contracted and len({value for value, _ in self.places}) == 2 else ""
        return f"{dims}, {both}sharded along {name_axes(self.axes, self.mesh)}"


@frozen(eq=False, repr=False)
class Reduced(Reason):
    """An op reduces a dimension that is split."""

    user: Instruction
    verbs: Verbs
    mesh: Mesh
    rule: ShardingRule
    assignment: tuple[Axes, ...]

    def factors(self) -> Iterator[SplitFactor]:
        """The reduced factors that are split."""
        for number, (factor, axes) in enumerate(zip(self.rule.factors, self.assignment, strict=True)):
            if factor.kind == "reduction" and axes:
                yield SplitFactor(factor_name(number), axes, tuple(self._places(number)), self.mesh)

    def _places(self, factor: int) -> Iterator[tuple[Instruction, int]]:
        for operand, dims in zip(self.user.operands, self.rule.operands, strict=True):
            yield from ((operand, dim) for dim, factors in enumerate(dims) if factor in factors)

    def describe_reduction(self) -> str:
        """What the op does along the dimensions that are split."""
        return ", and ".join(map(self._describe_factor, self.factors()))

    def _describe_factor(self, factor: SplitFactor) -> str:
        verb = self.verbs.reduces
        name = f"{factor.name}, " if verb == "contracts" else ""
        return f"{verb} {name}{factor.describe(is_contracted=verb == 'contracts')}"

    def factor_facts(self) -> list[dict[str, Any]]:
        """The reduced factors as plain data."""
        return [
            {"factor": each.name, "axes": [axis.name for axis in each.axes],
             "dimensions": [{"value": value.name, "dim": dim} for value, dim in each.places]}
            for each in self.factors()
        ]  # fmt: skip


@frozen(eq=False, repr=False)
class Gathered(Reduced):
    """Results of shards that no op combines in pairs: all devices gather them and reduce them again."""

    kind: ClassVar[str] = "results of parts"

    def sentence(self, move: ArrayMove) -> str:
        return f"{name_with_line(self.user)} {self.describe_reduction()}; {self.verbs.gathers}"

    def facts(self, move: ArrayMove) -> dict[str, Any]:
        return {**super().facts(move), "reduced": self.factor_facts()}


@frozen(eq=False, repr=False)
class Partial(Reduced):
    """An op reduces a dimension that is split.

    `combiner` is the opcode that combines two partial results; `uses` says who takes the result.
    """

    kind: ClassVar[str] = "partial results"
    combiner: str
    uses: list[Use]

    def sentence(self, move: ArrayMove) -> str:
        held = self.verbs.holds.format(_NOUNS.get(self.combiner, "result"))
        start = f"{name_with_line(self.user)} {self.describe_reduction()}"
        return f"{start}; each device holds {held}; {self._explain_combination(move)}"

    def _explain_combination(self, move: ArrayMove) -> str:
        assert move.needed is not None
        if move.opcode not in ("all_reduce", "reduce_scatter"):
            return f"the partial results are resharded on the way because {explain_need(self.uses, move)}"
        verb = _COMBINED.get(self.combiner, "combined by its computation")
        scattered = " and scattered" if move.opcode == "reduce_scatter" else ""
        return f"the partial results are {verb}{scattered} here because {explain_need(self.uses, move)}"

    def facts(self, move: ArrayMove) -> dict[str, Any]:
        assert move.needed is not None
        takers = [each.user.name for each in list_takers(self.uses, move.needed)]
        return {**super().facts(move), "reduced": self.factor_facts(), "combiner": self.combiner, "wanted_by": takers}


_NOUNS = {"add": "sum", "multiply": "product", "maximum": "maximum", "minimum": "minimum"}
_COMBINED = {
    "add": "added", "multiply": "multiplied", "maximum": "combined by maximum", "minimum": "combined by minimum",
    "and": "combined by and", "or": "combined by or", "xor": "combined by xor",
}  # fmt: skip


# ----------------------------------------------------------------------------
# Chosen: why an op is not split along a dimension by an axis
#
# The op needs all of the dimension, or the axis splits something else.


@frozen
class Alternative:
    """Another way to split an op: what it would move, the bytes it would send, and those of the chosen way."""

    what: str
    bytes: int
    chosen: int

    def describe(self) -> str:
        """The comparison in words."""
        if self.bytes == self.chosen:
            return f"{self.what} would also send {self.bytes} bytes"
        return f"{self.what} would send {self.bytes} bytes instead of {self.chosen}"


Others: TypeAlias = "Callable[[Chosen, FactorMap, Sharding, bool], Alternative | None]"
"""Finds the cheapest other way in which an array, by its factors, has a sharding; the flag says whether it is a result
that is produced in it."""


@frozen(eq=False, repr=False)
class Chosen:
    """How an op is split: its rule, the factors that may be split, whether only into equal parts, the axes of each, and
    the shardings in which its results are needed.
    """

    op: Instruction
    verbs: Verbs
    mesh: Mesh
    rule: ShardingRule
    allowed: frozenset[int]
    is_even: bool
    assignment: tuple[tuple[Axis, ...], ...]
    stated: tuple[Sharding | None, ...]
    others: Others

    def find_other(self, dims: FactorMap, sharding: Sharding, *, is_made: bool = False) -> Alternative | None:
        """The cheapest other way in which an array has a sharding; None if no such way was considered."""
        return self.others(self, dims, sharding, is_made)

    def find_lost_axes(
        self, had: Sharding, made: Sharding, dims: FactorMap
    ) -> Iterator[tuple[int, int, tuple[Axis, ...]]]:
        """The axes that split a dimension in the first sharding only: dimension, factor, axes."""
        for dim, (old, new) in enumerate(zip(had.dims, made.dims, strict=True)):
            lost = tuple(axis for axis in old.axes if not any(axis.overlaps(each) for each in new.axes))
            if lost:
                yield dim, self._splittable_factor(dims[dim]), lost

    def _splittable_factor(self, factors: tuple[int, ...]) -> int:
        """The factor of a dimension that more axes would split: the outermost of several elements that is not full."""
        wide = [each for each in factors if self.rule.factors[each].size > 1] or list(factors)
        return next((each for each in wide if count(self.assignment[each]) < self.rule.factors[each].size), wide[-1])

    def explain_unsplit(self, factor: int, dim: int, value: Instruction, axes: tuple[Axis, ...]) -> str:
        """Why a factor, which is a dimension of a value, is not split by axes."""
        if factor not in self.allowed:
            return f"{name_of(self.op)} {self._describe_need(self.rule.factors[factor].kind, dim)}"
        size = self.rule.factors[factor].size
        if self.is_even and size % count(axes):
            uneven = f"{name_axes(axes, self.mesh)} cannot split {size} elements equally"
            return f"{name_of(self.op)} needs equal shards, and {uneven}"
        other = self._name_dimension_split_instead(axes, factor, value)
        if other:
            return other
        if self.rule.factors[factor].kind == "reduction":
            return f"with dimension {dim} sharded, {name_of(self.op)} would produce partial results"
        return self._explain_inner_part(factor, dim, value) or self._explain_misalignment(dim, value, axes)

    def _describe_need(self, kind: str, dim: int) -> str:
        """What the op does along a dimension of which each device needs all."""
        if self.verbs.needs:
            return f"{self.verbs.needs} all of dimension {dim}"
        if kind == "permutation":
            return f"moves elements along dimension {dim}, and needs all of that dimension"
        if kind == "reduction":
            return f"cannot combine partial results along dimension {dim}"
        return f"needs all of dimension {dim}"

    def _name_dimension_split_instead(self, axes: tuple[Axis, ...], factor: int, value: Instruction) -> str:
        """Which dimension the axes split instead, of the result if there is one, or of another operand."""
        for number, own in enumerate(self.assignment):
            if number != factor and any(axis.overlaps(each) for axis in axes for each in own):
                places = [*self._places(number)]
                held, dim = next((each for each in places if each[0] is not value), places[0])
                return f"dimension {dim} of {name_of(held)} is sharded along {name_axes(axes, self.mesh)} instead"
        return ""

    def _explain_inner_part(self, factor: int, dim: int, value: Instruction) -> str:
        """Says that a factor is the inner part of a dimension whose outer part is not split into single elements."""
        for held, each, factors in self._dims():
            outer = (
                [own for own in factors[: factors.index(factor)] if self.rule.factors[own].size > 1]
                if factor in factors
                else []
            )
            if any(count(self.assignment[own]) < self.rule.factors[own].size for own in outer):
                return (
                    f"dimension {dim} of {name_of(value)} is the inner part of dimension {each} of {name_of(held)}, "
                    "so a shard of the inner dimension would consist of many separate pieces of the outer one"
                )
        return ""

    def _explain_misalignment(self, dim: int, value: Instruction, axes: tuple[Axis, ...]) -> str:
        """Says that shards of a dimension do not align with the factors into which an op splits it."""
        factors = next((own for held, each, own in self._dims() if held is value and each == dim), ())
        sizes = [size for each in factors if (size := self.rule.factors[each].size) > 1]
        parts = count(axes)
        if len(sizes) < 2 or not sizes[0] % parts or not parts % sizes[0]:
            return ""
        split = " x ".join(map(str, sizes))
        shards = f"{parts} shards along {name_axes(axes, self.mesh)}"
        start = f"{name_of(self.op)} splits dimension {dim} of {name_of(value)} into {split}"
        return f"{start}, and {shards} do not align with this split"

    def describe_result(self) -> str:
        """In which sharding the result is produced, and whether it is needed in that."""
        made = self._result_shardings()
        if not made:
            return ""
        return f"{name_of(self.op)} is {'needed' if made[0] == self.stated[0] else 'produced'} {describe(made[0])}"

    def _result_shardings(self) -> tuple[Sharding, ...]:
        """The shardings in which the results are produced, before partial results are combined."""
        assigned = self.assignment
        return tuple(
            shard_dims(self.mesh, [merge_parts(axis for factor in each for axis in assigned[factor]) for each in dims])
            for dims in self.rule.results
        )

    def _dims(self) -> Iterator[tuple[Instruction, int, tuple[int, ...]]]:
        """The dimensions of the results, then of the operands, with their factors."""
        for dims in self.rule.results[:1]:
            yield from ((self.op, dim, factors) for dim, factors in enumerate(dims))
        for operand, dims in zip(self.op.operands, self.rule.operands, strict=True):
            yield from ((operand, dim, factors) for dim, factors in enumerate(dims))

    def _places(self, factor: int) -> Iterator[tuple[Instruction, int]]:
        """The dimensions of the results, then of the operands, that have a factor."""
        return ((held, dim) for held, dim, factors in self._dims() if factor in factors)


# ----------------------------------------------------------------------------
# Operand and Result: an array whose sharding is not the one that the op or its user needs


@frozen(eq=False, repr=False)
class Operand(Reason):
    """An op takes an operand in a sharding that the operand does not have."""

    kind: ClassVar[str] = "operand"
    user: Instruction
    number: int
    chosen: Chosen

    @property
    def operand(self) -> Instruction:
        return self.user.operands[self.number]

    def other(self, move: ArrayMove) -> Alternative | None:
        """The cheapest way to run the op that takes the operand as it is, among those considered."""
        assert move.had is not None
        return self.chosen.find_other(self.chosen.rule.operands[self.number], move.had)

    def sentence(self, move: ArrayMove) -> str:
        assert move.needed is not None
        assert move.had is not None
        other = self.other(move)
        needed = f"{self._name_operand(move)} {describe(move.needed)}"
        start = f"{name_with_line(self.user)} takes {needed}, but {name_of(self.operand)} is {describe(move.had)}"
        ends = [*self.obstacles(move), *([other.describe()] if other is not None else [])]
        return f"{start}: {'; '.join(ends)}" if ends else start

    def _name_operand(self, move: ArrayMove) -> str:
        """The operand, and the value that a call or a tuple passes on as it."""
        if move.value.name == self.operand.name:
            return name_with_line(self.operand)
        return f"{name_of(self.operand)}, which is {name_with_line(move.value)},"

    def obstacles(self, move: ArrayMove) -> list[str]:
        """Why the operand is not taken as it is, for each dimension that loses axes."""
        assert move.needed is not None
        assert move.had is not None
        chosen, dims = self.chosen, self.chosen.rule.operands[self.number]
        lost = chosen.find_lost_axes(move.had, move.needed, dims)
        reasons = _drop_repeated(chosen.explain_unsplit(f, dim, self.operand, axes) for dim, f, axes in lost)
        return reasons or _drop_repeated([chosen.describe_result()])

    def facts(self, move: ArrayMove) -> dict[str, Any]:
        other = self.other(move)
        facts = {"operand": self.number, "obstacles": self.obstacles(move), "rule": str(self.chosen.rule)}
        if other is not None:
            facts["alternative"] = {"what": other.what, "bytes": other.bytes, "chosen_bytes": other.chosen}
        return {**super().facts(move), **facts}


@frozen(eq=False, repr=False)
class Result(Reason):
    """An op produces its result in a sharding that differs from its annotation.

    `chosen` is None for tuples and constraints, which split nothing themselves.
    """

    kind: ClassVar[str] = "result"
    user: Instruction
    number: int = 0
    chosen: Chosen | None = None

    def other(self, move: ArrayMove) -> Alternative | None:
        """The cheapest way to run the op that produces the result in the sharding that is needed."""
        if self.chosen is None or move.needed is None:
            return None
        return self.chosen.find_other(self.chosen.rule.results[self.number], move.needed, is_made=True)

    def sentence(self, move: ArrayMove) -> str:
        assert move.needed is not None
        assert move.had is not None
        cause = move.story.cause(self.user)
        other = self.other(move)
        had, needed = describe(move.had), describe(move.needed)
        if move.story.returns(self.user) and self._is_of_tuple(move):
            start = f"the program returns {name_with_line(move.value)} {needed}, but it is produced {had}"
        else:
            start = f"{self._name_result(move)} produced {had}, but is needed {needed}"
        ends = [f"({cause})" if cause else "", *self.obstacles(move), other.describe() if other is not None else ""]
        return "; ".join([f"{start} {ends[0]}".rstrip(), *filter(None, ends[1:])])

    def _name_result(self, move: ArrayMove) -> str:
        """The value that is produced: the instruction, or an element of its tuple."""
        if self._is_of_tuple(move):
            return f"{name_with_line(move.value)}, an element of {name_with_line(self.user)}, is"
        return f"{name_with_line(self.user)} is"

    def _is_of_tuple(self, move: ArrayMove) -> bool:
        return isinstance(self.user.shape, TupleShape) and move.value is not self.user

    def obstacles(self, move: ArrayMove) -> list[str]:
        """Why the op does not produce its result as it is needed, for each dimension that lacks axes."""
        if self.chosen is None or move.needed is None or move.had is None:
            return []
        lost = self.chosen.find_lost_axes(move.needed, move.had, self.chosen.rule.results[self.number])
        return _drop_repeated(self.chosen.explain_unsplit(f, dim, self.user, axes) for dim, f, axes in lost)

    def facts(self, move: ArrayMove) -> dict[str, Any]:
        return {**super().facts(move), "obstacles": self.obstacles(move), "cause": move.story.cause(self.user)}


def _drop_repeated(clauses: Iterable[str]) -> list[str]:
    """The clauses without repetitions and without empty ones."""
    return [clause for clause in dict.fromkeys(clauses) if clause]


# ----------------------------------------------------------------------------
# Neighbours: elements of a split dimension that other devices hold
#
# A permute fetches some of them.


@frozen(eq=False)
class Wish:
    """Which instruction needs elements of which arrays, and the exchange that fetches them."""

    user: Instruction
    verbs: Verbs
    sources: tuple[Instruction, ...]
    exchange: Exchange


@frozen(eq=False, repr=False)
class Neighbours(Reason):
    """An op moves elements of a dimension that axes split; `permute` fetches some of those that it needs."""

    kind: ClassVar[str] = "neighbours"
    wish: Wish
    mesh: Mesh
    axes: Axes
    dim: int
    permute: Round

    @property
    def user(self) -> Instruction:  # type: ignore[override]
        return self.wish.user

    def count_lacking(self) -> tuple[int, int]:
        """How many elements a device needs, at most, from the shards before its own and from those after it."""
        before, after = dict[int, int](), dict[int, int]()
        for each in (sent for permute in self.wish.exchange.rounds for sent in permute.moves):
            if each.part != each.place:
                side = before if each.part < each.place else after
                side[each.place] = side.get(each.place, 0) + each.segment.count
        return max(before.values(), default=0), max(after.values(), default=0)

    def sentence(self, move: ArrayMove) -> str:
        return (
            f"{name_with_line(self.user)} {self._describe_move()}, {self._describe_parts()}: "
            f"{self._describe_lack()}; here the device receives {self._describe_elements()} from "
            f"{self._name_part()} of {self._name_sender()}"
        )

    def _describe_move(self) -> str:
        names = join_words([name_of(each) for each in dict.fromkeys(self.wish.sources)])
        if any(each not in self.user.operands for each in self.wish.sources):
            return f"consists of elements of {names} that move along dimension {self.dim}"
        return f"{self.wish.verbs.moves} dimension {self.dim} of {names}"

    def _describe_parts(self) -> str:
        sizes = dict.fromkeys(self.wish.exchange.parts)
        return f"sharded along {name_axes(self.axes, self.mesh)} ({join_words([*map(str, sizes)])} per device)"

    def _describe_lack(self) -> str:
        before, after = self.count_lacking()
        sides = [_count_elements(count, word) for count, word in ((before, "before"), (after, "after")) if count]
        return f"a device lacks up to {' and '.join(sides)} its own shard"

    def _describe_elements(self) -> str:
        """The elements that the permute fetches, the same ones from each shard or not."""
        runs = dict.fromkeys((each.segment.first, each.segment.count, each.segment.step) for each in self.permute.moves)
        if len(runs) == 1:
            return _name_elements(*next(iter(runs)))
        many = f"{self.permute.size} {'element' if self.permute.size == 1 else 'elements'}"
        return many if len({count for _, count, _ in runs}) == 1 else f"up to {many}"

    def _name_part(self) -> str:
        """The shard that is sent, with its array if there are several."""
        arrays = dict.fromkeys(self.wish.sources[each.segment.source] for each in self.permute.moves)
        names = [name_of(each) for each in arrays]
        return f"the shard of {join_words(names)}" if len(dict.fromkeys(self.wish.sources)) > 1 else "the shard"

    def _name_sender(self) -> str:
        shifts = {each.part - each.place for each in self.permute.moves}
        axes = name_axes(self.axes, self.mesh)
        if len(shifts) > 1:
            return f"another device along {axes}"
        (shift,) = shifts
        word = "before" if shift < 0 else "after"
        return f"the device {abs(shift)} {'place' if abs(shift) == 1 else 'places'} {word} it along {axes}"

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Positions along the axes, as pairs of source and target."""
        return ((each.part, each.place) for each in self.permute.moves)

    def facts(self, move: ArrayMove) -> dict[str, Any]:
        before, after = self.count_lacking()
        sent = {"elements": self.permute.size, "pairs": [list(each) for each in self.pairs()]}
        lack = {"dim": self.dim, "parts": list(self.wish.exchange.parts), "before": before, "after": after}
        return {**super().facts(move), "of": [each.name for each in self.wish.sources], **lack, **sent}


def _count_elements(count: int, word: str) -> str:
    return f"{count} {'element' if count == 1 else 'elements'} {word}"


def _name_elements(first: int, count: int, step: int) -> str:
    """Elements in words, in ascending order."""
    low, high = sorted((first, first + (count - 1) * step))
    if count == 1:
        return f"element {first}"
    between = "" if abs(step) == 1 else f", {abs(step)} apart,"
    return f"elements {low} to {high}{between}"


# ----------------------------------------------------------------------------
# Story: why values of the global program have their shardings
#
# Found when a sentence needs it.


@define(eq=False, slots=False)
class Story:
    """The propagation of a program, repeated when a sentence needs it; None if shardings were not propagated."""

    find: Callable[[], Propagated | None]

    @cached_property
    def propagated(self) -> Propagated | None:
        return self.find()

    def returns(self, value: Instruction) -> bool:
        """Whether the program is known to return this value."""
        return self.propagated is not None and self.propagated.given.entry.root.name == value.name

    def cause(self, value: Instruction) -> str:
        """Why a value has its sharding, as a clause; empty if that is unknown."""
        if isinstance(value.shape, TupleShape):
            return ""
        if self.propagated is None:
            return (
                "the program states this sharding"
                if SHARDING in value.annotations
                else "no sharding is stated for this value"
            )
        try:
            cause = self.propagated.cause(value.name)
        except XbuildError:  # a value of a computation that replaced a call
            return ""
        if cause.kind == "propagated":
            return self._name_origins(value)
        words = {
            "stated": f"the program states this sharding{at(cause.where)}",
            "whole": "no axes propagated to this value",
        }
        return words.get(cause.kind, "")

    def _name_origins(self, value: Instruction) -> str:
        """The values from whose stated shardings a value has its axes."""
        assert self.propagated is not None
        chains: Any = self.propagated.chains(value.name)
        paths = self.propagated.paths
        found = dict.fromkeys(
            in_line(paths[origin]) if origin in paths else f"{origin}{at(where)}"
            for _, _, _, origin, where in chains
            if origin != value.name
        )
        return f"its axes propagate from {join_words(list(found))}" if found else "the program states this sharding"


def at(where: Source | None) -> str:
    """A file and line in parentheses."""
    return "" if where is None else f" ({PurePath(where.file).name}:{where.line})"


# ----------------------------------------------------------------------------
# Phrases: values with their lines, shardings, axes, lists


def describe(sharding: Sharding) -> str:
    """A sharding in words: sharded, replicated, or in partial sums.

    >>> from xbuild.sharding.sharding import shard_dims
    >>> mesh = Mesh(x=2, y=4)
    >>> describe(shard_dims(mesh, [[Axis("x", 2)], []])), describe(shard_dims(mesh, [[], []], [Axis("y", 4)]))
    ('sharded along `x` in dimension 0', 'in partial sums along `y`')
    """
    mesh = sharding.mesh
    dims = [
        f"along {name_axes(dim.axes, mesh)} in dimension {number}"
        for number, dim in enumerate(sharding.dims)
        if dim.axes
    ]
    split = f"sharded {join_words(dims)}" if dims else ""
    sums = f"in partial sums along {name_axes(sharding.unreduced, mesh)}" if sharding.unreduced else ""
    return join_words([phrase for phrase in (split, sums) if phrase]) or "replicated"


def name_axes(axes: Iterable[Axis], mesh: Mesh) -> str:
    """The names of axes, the outermost first; a part of an axis with its pre-size and size.

    >>> name_axes([Axis("x", 2), Axis("y", 2), Axis("y", 2, 2), Axis("z", 2, 2)], Mesh(x=2, y=4, z=4))
    '`x`, `y` and `z:(2)2`'
    """
    parts = {
        axis: "" if axis.size == mesh.size(axis.name) else f":({axis.pre_size}){axis.size}"
        for axis in merge_parts(axes)
    }
    return join_words([f"`{axis.name}{part}`" for axis, part in parts.items()])


def name_with_line(instruction: Instruction) -> str:
    """The name of a value, the author's scope, and its line; only the path of a parameter that reports name by it."""
    name = name_of(instruction)
    places = [each for each in (scope_of(instruction), line_of(instruction)) if each]
    return in_line(f"{name} ({', '.join(places)})") if places and name == in_line(instruction.name) else name


def name_of(instruction: Instruction) -> str:
    return in_line(name_in_report(instruction))


def line_of(instruction: Instruction) -> str:
    """The name of the file and the line that recorded an instruction."""
    source = instruction.source
    return "" if source is None else f"{PurePath(source.file).name}:{source.line}"


def scope_of(instruction: Instruction) -> str:
    """The scopes of JAX's name of an operation, without what JAX adds to them.

    >>> from xbuild.sharding.partition.reasons import scope_in
    >>> scope_in("jit(f)/mlp/layer 1/dot_general"), scope_in("x")
    ('mlp/layer 1', '')
    """
    metadata = instruction.annotations.get("metadata", {})
    return scope_in(str(metadata.get("op_name", ""))) if hasattr(metadata, "get") else ""


def scope_in(name: str) -> str:
    return "/".join(each for each in name.split("/")[:-1] if not each.endswith(")") and each != "main")
