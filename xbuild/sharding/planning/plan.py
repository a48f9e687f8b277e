"""`plan`: the steps from one sharding of an array to another that send the fewest bytes."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from attrs import field, frozen

from shape_inference import PrimitiveType, Shape, refuse
from shape_inference.types import f32

from ..sharding import Sharding, cut
from .search import Cost, cheapest, greedy, joined
from .states import State, Step, cuts_of, state_of
from .steps import Site

MOST_PARTS = 5
"""Up to how many prime-sized parts of axes ways are looked at in such parts; above, axes are cut where they have to."""


@frozen
class Costs:
    """The cost of communication along each axis of a mesh: `alpha` for a step, `beta` for a byte that a device sends.

    An axis that is not named has `default_alpha` and `default_beta`. A step over several axes costs the greatest.
    """

    alpha: Mapping[str, float] = field(factory=dict, hash=False)
    beta: Mapping[str, float] = field(factory=dict, hash=False)
    default_alpha: float = 0.0
    default_beta: float = 1.0

    def of(self, step: Step) -> Cost:
        """The cost of a step, then 1 where it is counted as one."""
        if step.is_local or not step.bytes:
            return 0.0, int(step.op != "pad")
        names = {axis.name for axis in step.axes}
        alpha = max((self.alpha.get(name, self.default_alpha) for name in names), default=self.default_alpha)
        beta = max((self.beta.get(name, self.default_beta) for name in names), default=self.default_beta)
        return alpha + beta * step.bytes, 1


@frozen
class Plan:
    """How an array goes from one sharding to another: the steps, and the bytes that a device sends in them."""

    source: Sharding
    target: Sharding
    shape: Shape
    start: State
    steps: tuple[Step, ...]

    @property
    def bytes(self) -> int:
        """The bytes that a device sends."""
        return sum(step.bytes for step in self.steps)

    def __str__(self) -> str:
        if not self.steps:
            return "nothing to do"
        return "; ".join(map(str, self.steps))


def plan(
    source: Sharding, target: Sharding, shape: Shape | tuple[int, ...] | list[int], costs: Costs | None = None
) -> Plan:
    """The cheapest steps that bring an array from one sharding to another.

    `shape` is that of the whole array; extents alone stand for f32. Costs are bytes that a device sends, then the
    number of steps, unless `costs` are given. Where axes have few parts, the best order of slices, permutes,
    all-to-alls, gathers and reductions is searched; where they have many, Shardy's order is taken.
    Raises: invalid_attribute for shardings on two meshes; rank_mismatch for more dimensions than the array has.

    >>> import xbuild as xb
    >>> from xbuild.sharding.axis import whole
    >>> mesh = xb.Mesh(x=2, y=2)
    >>> x, y = whole(mesh, "x"), whole(mesh, "y")
    >>> print(plan(cut(mesh, [[x], [y]]), cut(mesh, [[], [x]]), (4, 4)))
    all_gather over y dimension 1: 16 bytes; all_to_all over x from dimension 0 to dimension 1: 16 bytes

    Source: Shardy, reshard to collectives.
    """
    whole = shape if isinstance(shape, Shape) else f32[tuple(shape)]
    if source.mesh != target.mesh:
        refuse("invalid_attribute", f"plan: the source is on {source.mesh}, and the target on {target.mesh}")
    for name, sharding in (("source", source), ("target", target)):
        if len(sharding.dims) > whole.rank:
            refuse("rank_mismatch", f"plan: the {name} has {len(sharding.dims)} dimensions, and {whole} {whole.rank}")
    return planned(source, target, whole.dims, whole.dtype, costs or Costs())


@functools.lru_cache(maxsize=1 << 14)
def planned(
    source: Sharding, target: Sharding, dims: tuple[int, ...], dtype: PrimitiveType, costs: Costs = Costs()
) -> Plan:
    """The plan for an array of these extents, found once."""
    axes = (*source.cut_axes, *source.unreduced, *target.cut_axes, *target.unreduced)
    shape, width = dtype[dims], max(1, dtype.bits // 8)
    cuts = cuts_of(axes, is_prime=True)
    if cuts is not None and sum(len(each) - 1 for each in cuts.values()) > MOST_PARTS:
        cuts = cuts_of(axes, is_prime=False)
    if cuts is None:
        return _in_two_halves(source, target, dims, dtype, costs)
    start = state_of(source, dims, cuts)
    site = Site(source.mesh, state_of(target, dims, cuts), width)
    return Plan(source, target, shape, start, _best(site, start, costs))


def _best(site: Site, start: State, costs: Costs) -> tuple[Step, ...]:
    simple = joined(site, start, greedy(site, start))
    price = _total(costs, simple)
    is_by_bytes = costs == Costs()
    if price[0] == 0 or (is_by_bytes and _is_best(site, start, simple)):
        return simple
    found = cheapest(site, start, costs.of, price, is_by_bytes)
    return simple if found is None else joined(site, start, found)


def _is_best(site: Site, start: State, steps: tuple[Step, ...]) -> bool:
    """Whether nothing is sent but what devices lack, or one reduction of all that they have."""
    sending = [step for step in steps if not step.is_local]
    if start.unreduced:
        return len(sending) == 1
    return sum(step.bytes for step in sending) <= site.lacking(start) * site.width


def _total(costs: Costs, steps: tuple[Step, ...]) -> Cost:
    prices = [costs.of(step) for step in steps]
    return sum(price for price, _ in prices), sum(number for _, number in prices)


def _in_two_halves(
    source: Sharding, target: Sharding, dims: tuple[int, ...], dtype: PrimitiveType, costs: Costs
) -> Plan:
    """By way of the whole array, where parts of an axis do not fit each other, such as 2 and 3 of 6."""
    middle = cut(source.mesh, [()] * len(dims))
    first, second = (planned(*pair, dims, dtype, costs) for pair in ((source, middle), (middle, target)))
    return Plan(source, target, first.shape, first.start, (*first.steps, *second.steps))
