"""The table of types: for every op the rule by which the types of its operands give that of its result."""

from __future__ import annotations

from ...core.op import OPS
from ...properties.effects import COLLECTIVES
from ...properties.variances import INVARYING, Variance, flat, spread
from .collective_rules import axis_index, cast, collective
from .flows import called
from .linearity import LINEAR
from .ordinary import ordinary
from .site import Judgement, Site, leaves_of, variance


def marked(site: Site) -> Judgement:
    """An ordinary op that may stand for a cast, for a coordinate, or for a slice by it."""
    mark = site.mark
    if mark is None:
        return ordinary(site)
    if mark.op == "axis_index":
        return axis_index(site)
    if mark.op == "pscatter":
        return _own_slice(site)
    return cast(site)


def _own_slice(site: Site) -> Judgement:
    """A slice by the coordinate, which is invarying before and varying after."""
    found = collective(_data_alone(site))
    return Judgement((found.operands[0], *site.operands[1:]), found.result, reasons=found.reasons)


def _data_alone(site: Site) -> Site:
    from attrs import evolve

    instruction = evolve(site.instruction, operands=site.instruction.operands[:1], segments=(1, 0))
    return Site(site.walk, instruction, site.operands[:1])


def _unlike(site: Site) -> Judgement:
    """What each device makes for itself: random numbers, what comes from outside, ids, results of unknown functions."""
    for number, operand in enumerate(site.operands):
        if any(leaf.unreduced for leaf in flat(operand)):
            site.refuse(
                "nonlinear_on_unreduced",
                f"{site.shown(number)}: {site.instruction.opcode.replace('_', '-')} of parts of a sum is not known to "
                "give parts of a result",
                "xb.mesh.psum sums it first",
            )
    return Judgement(site.operands, spread(Variance(varying=site.mesh.axes), site.instruction.shape))


def _alike(site: Site) -> Judgement:
    return Judgement(site.operands, spread(INVARYING, site.instruction.shape))


def _id(site: Site) -> Judgement:
    """An id varies where the devices of the mesh count in it."""
    count = site.walk.num_partitions if site.instruction.opcode == "partition_id" else site.walk.num_replicas
    return _unlike(site) if count > 1 else _alike(site)


def _passed(site: Site) -> Judgement:
    """The first operand, whatever it is; what comes with it orders effects."""
    return Judgement(site.operands, site.operands[0])


@variance
def tuple_(site: Site) -> Judgement:
    return Judgement(site.operands, site.operands)


@variance
def get_tuple_element(site: Site) -> Judgement:
    return Judgement(site.operands, site.operands[0][site.instruction.attributes.index])


@variance
def custom_call(site: Site) -> Judgement:
    """The function may do anything, and not the same on each device."""
    return _unlike(site)


def _started(site: Site) -> Judgement:
    """What is under way: each part as varying as all operands together."""
    found = _unlike(site)
    varying = frozenset().union(*(leaf.varying for leaf in leaves_of(site.operands)))
    is_pure = not site.instruction.called or all(
        _is_ordinary(each.opcode) for each in site.instruction.called[0].instructions
    )
    return Judgement(found.operands, spread(Variance(varying=varying), site.instruction.shape)) if is_pure else found


def _is_ordinary(opcode: str) -> bool:
    return opcode in LINEAR or opcode in ("parameter", "constant") or variance.get(opcode) is ordinary


def _done(site: Site) -> Judgement:
    """The result of what was under way: of a tuple of operands and results the second."""
    (given,) = site.operands
    shape = site.instruction.operands[0].shape
    same = spread(INVARYING, shape) == spread(INVARYING, site.instruction.shape)
    return Judgement(site.operands, given if same else _result_in(given, site))


def _result_in(given: object, site: Site) -> object:
    leaves = flat(given)
    if isinstance(given, tuple) and len(given) > 1:
        return given[1]
    return spread(leaves[0], site.instruction.shape)


_UNLIKE = ("rng", "rng_get_and_update_state", "infeed", "outfeed", "recv", "recv_done", "send", "send_done")
_MARKED = ("copy", "convert", "dynamic_slice")
_ALIKE = ("constant", "iota", "after_all", "parameter")

variance.update(
    {
        **dict.fromkeys(COLLECTIVES & OPS.keys(), collective),
        **dict.fromkeys(("all_reduce_start", "all_gather_start", "collective_permute_start"), collective),
        **dict.fromkeys(("all_reduce_done", "all_gather_done", "collective_permute_done"), _done),
        **dict.fromkeys(("async_done",), _done),
        **dict.fromkeys(("async_start", "copy_start"), _started),
        **dict.fromkeys(("opt_barrier", "domain", "add_dependency", "async_update"), _passed),
        "copy_done": _done,
        **dict.fromkeys(_UNLIKE, _unlike),
        **dict.fromkeys(_ALIKE, _alike),
        **dict.fromkeys(("partition_id", "replica_id"), _id),
        **dict.fromkeys(("call", "fusion"), called),
        **dict.fromkeys(_MARKED, marked),
    }
)
for _opcode in OPS.keys() - variance.keys():
    variance.enter(_opcode, ordinary)
