"""Loops whose number of trips is known when they begin: a counter that only rises by one, up to a limit."""

from __future__ import annotations

import numpy as np
from attrs import evolve, frozen

from shape_inference import Shape
from shape_inference.elided import ElidedArray
from xbuild.core.graph import Computation, Instruction
from xbuild.core.memos import memo
from xbuild.properties.order import users_of


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
    test, root = condition.root, body.root
    if test.opcode != "compare" or root.opcode != "tuple" or test.attributes.direction not in ("LT", "GT"):
        return None
    low, high = test.operands if test.attributes.direction == "LT" else test.operands[::-1]
    counter = _element(low, condition)
    shape = low.shape
    if counter is None or not isinstance(shape, Shape) or shape.dims or not shape.dtype.is_integer:
        return None
    if not shape.dtype.is_native or not _adds_one(root.operands[counter], counter, body):
        return None
    limit, element = _number(high), _element(high, condition)
    if limit is None and (element is None or _element(root.operands[element], body) != element):
        return None
    return CountedLoop(counter, shape.dtype.dtype, limit, element, _without_counter(body, counter))


def _element(value: Instruction, computation: Computation) -> int | None:
    """The number of the element of the state that a value is."""
    is_element = value.opcode == "get_tuple_element" and value.operands[0] is computation.parameters[0]
    return value.attributes.index if is_element else None


def _number(value: Instruction) -> int | None:
    is_known = value.opcode == "constant" and not isinstance(value.attributes.literal, ElidedArray)
    return int(value.attributes.literal) if is_known else None


def _adds_one(value: Instruction, counter: int, body: Computation) -> bool:
    if value.opcode != "add":
        return False
    one, rest = [_number(operand) for operand in value.operands], [_element(each, body) for each in value.operands]
    return (one[1], rest[0]) == (1, counter) or (one[0], rest[1]) == (1, counter)


def _without_counter(body: Computation, counter: int) -> Computation | None:
    """The body with its counter unchanged; None if something besides the addition reads the counter."""
    root, users = body.root, users_of(body)
    total = root.operands[counter]
    readers = [user for each in body.instructions if _element(each, body) == counter for user in users[each]]
    if readers != [total] or users[total] != [root] or root.operands.count(total) != 1 or len(users[root]):
        return None
    if any(user.opcode != "get_tuple_element" for user in users[body.parameters[0]]):
        return None
    (old,) = (operand for operand in total.operands if _element(operand, body) == counter)
    operands = tuple(old if place == counter else operand for place, operand in enumerate(root.operands))
    tail = evolve(root, operands=operands)
    return Computation(body.name, (*(each for each in body.instructions if each is not root), tail), tail)
