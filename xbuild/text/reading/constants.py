"""Reader of constants that are tuples: a constant for each array in them, and the tuples of these."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shape_inference import AnyShape, Shape, TupleShape

from ...core.graph import Instruction
from ...core.op import OPS
from ..codecs.attribute_reader import read_attributes
from ..codecs.calls import elements_of
from ..spelling.parsed import ParsedInstruction

if TYPE_CHECKING:
    from .body import Body


def tuple_constant(body: Body, name: str | None, shape: TupleShape, place: int) -> Instruction:
    """The tuple that stands between the brackets of `constant(...)`, with the attributes after these."""
    parsed = _tuple(body, shape, place)
    body.reader.expect(")", " at the end of a constant")
    if name is not None:
        read_attributes(body.reader, OPS["tuple"], parsed, body.named)
    return body.finish(name, OPS["tuple"], parsed, None, place, "")


def _tuple(body: Body, shape: TupleShape, place: int) -> ParsedInstruction:
    parsed = ParsedInstruction(shape.plain())
    body.reader.expect("(", " before the elements of a tuple")
    found = []
    for number, element in enumerate(shape.elements):
        if number:
            body.reader.expect(",", " between the elements of a tuple")
        found.append(_element(body, element, place))
    body.reader.expect(")", f" after the {len(shape)} elements of a tuple")
    parsed.operands = tuple(found)
    return parsed


def _element(body: Body, shape: AnyShape, place: int) -> Instruction:
    if isinstance(shape, TupleShape):
        return body.finish(None, OPS["tuple"], _tuple(body, shape, place), shape, place, "")
    if not isinstance(shape, Shape):
        body.reader.fail("syntax", f"constants hold arrays, and {shape} is written for an element")
    parsed = ParsedInstruction(shape.plain())
    parsed.inside, text = elements_of(body.reader, shape)
    return body.finish(None, OPS["constant"], parsed, shape, place, text)
