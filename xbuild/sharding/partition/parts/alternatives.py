"""Other ways in which an op could have been cut, for those who ask why it was not."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from shape_inference import Shape

from ...factors import FactorMap
from ...sharding import Sharding
from ..reasons.obstacles import Alternative, Chosen, Others
from ..reasons.words import listed, name_of, named, told
from .assignments import Assignment
from .choices import TOO_MUCH, Request
from .layouts import distance


def other_ways(request: Request) -> Others:
    """Gives the cheapest other way in which an operand is taken, or a result is made, in a sharding."""

    def best(chosen: Chosen, dims: FactorMap, sharding: Sharding, is_made: bool) -> Alternative | None:
        def is_other(each: Assignment) -> bool:
            is_so = request.site.sharding(each, dims) == sharding
            return is_so and not (is_made and request.unreduced(each))

        return _best(request, chosen, is_other)

    return best


def _best(request: Request, chosen: Chosen, is_other: Callable[[Assignment], bool]) -> Alternative | None:
    others = [each for each in request.candidates() if each != chosen.assignment and is_other(each)]
    if not others:
        return None
    best = min(others, key=request.bytes)
    if request.bytes(best) >= TOO_MUCH:
        return None
    return Alternative(_told(request, chosen, best), request.bytes(best), request.bytes(chosen.assignment))


def _told(request: Request, chosen: Chosen, other: Assignment) -> str:
    """What another way moves, as the subject of a sentence."""
    acts = [*_brought(request, chosen, other), *_made(request, chosen, other)]
    if not acts and request.fetched is not None and request.fetched(other):
        acts = ["getting elements of neighbours"]
    return listed(acts) or "the way that moves nothing"


def _brought(request: Request, chosen: Chosen, other: Assignment) -> Iterator[str]:
    operands = zip(chosen.op.operands, request.shapes, request.site.rule.operands, request.at_hand, strict=True)
    for operand, shape, dims, some in operands:
        needed = request.site.sharding(other, dims)
        if shape is not None and min(distance(each, needed, shape) for each in some):
            yield f"taking {name_of(operand)} {told(needed)}"


def _made(request: Request, chosen: Chosen, other: Assignment) -> Iterator[str]:
    """How the result is joined, or brought to the sharding that is wanted."""
    if axes := request.unreduced(other):
        yield f"joining partial results of {name_of(chosen.op)} over {named(axes, request.site.mesh)}"
        return
    for result, dims, wanted in zip(request.results, request.site.rule.results, request.wanted, strict=True):
        given = request.site.sharding(other, dims)
        if isinstance(result, Shape) and wanted is not None and distance(given, wanted, result):
            yield f"making {name_of(chosen.op)} {told(given)}"
            return
