"""Loops whose number of trips is known when they begin: a counter that only rises by one, up to a limit."""

from __future__ import annotations

import numpy as np
from attrs import evolve, frozen

from shape_inference import Shape
from xbuild.core.graph import Computation
from xbuild.core.memos import memo
from xbuild.properties.order import users_of
from xbuild.properties.trip_counts import element_index, integer_in, is_invariant, step_of

from .facts import live


@frozen(eq=False)
class CountedLoop:
    """A loop that runs while element `counter` of its state is less than a limit, and adds 1 to the element.

    The limit is a number, or the element `limit_element` of the state, which no trip changes. `body` is the body
    without the addition if nothing else reads the counter; None if the counter is read.
    """

    counter: int
    dtype: np.dtype[np.generic]
    limit: int | None
    limit_element: int | None
    body: Computation | None


def counted_loop(condition: Computation, body: Computation) -> CountedLoop | None:
    """What is known of a while loop with a counter; None if the loop has another form."""
    return memo(body, "counted_loop", condition, lambda: _counted_loop(condition, body))


def _counted_loop(condition: Computation, body: Computation) -> CountedLoop | None:
    test = condition.root
    if test.opcode != "compare" or body.root.opcode != "tuple" or test.attributes.direction not in ("LT", "GT"):
        return None
    low, high = test.operands if test.attributes.direction == "LT" else test.operands[::-1]
    if not live(condition) <= {test, low, high, *condition.parameters}:  # others may communicate or have effects
        return None
    counter, shape = element_index(low), low.shape
    if counter is None or not isinstance(shape, Shape) or shape.dims or not shape.dtype.is_native:
        return None
    if step_of(body, counter) != 1:
        return None
    limit, element = integer_in(high), element_index(high)
    if limit is None and (element is None or not is_invariant(body, (element,))):
        return None
    return CountedLoop(counter, shape.dtype.dtype, limit, element, _without_counter(body, counter))


def _without_counter(body: Computation, counter: int) -> Computation | None:
    """The body with its counter unchanged; None if something besides the addition reads the counter."""
    root, users = body.root, users_of(body)
    total = root.operands[counter]
    readers = [user for each in body.instructions if element_index(each) == counter for user in users[each]]
    if readers != [total] or users[total] != [root] or root.operands.count(total) != 1 or len(users[root]):
        return None
    if any(user.opcode != "get_tuple_element" for user in users[body.parameters[0]]):
        return None
    (old,) = (operand for operand in total.operands if element_index(operand) == counter)
    operands = tuple(old if place == counter else operand for place, operand in enumerate(root.operands))
    tail = evolve(root, operands=operands)
    return Computation(body.name, (*(each for each in body.instructions if each is not root), tail), tail)
