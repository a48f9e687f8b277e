"""Laws of the tables of the partitioner: the handlers of ops, and the templates of reasons."""

from __future__ import annotations

from string import Formatter

import pytest

from xbuild.core.op import OPS
from xbuild.properties.effects import FOLLOWED
from xbuild.sharding.partition import reasons
from xbuild.sharding.partition.handler import DEFAULT, HANDLERS, Handler, handles


def test_every_handler_is_of_an_op_and_differs_from_the_default() -> None:
    assert sorted(HANDLERS.keys() - OPS.keys()) == []
    public = [name for name in vars(Handler) if not name.startswith("_")]
    same = [
        opcode for opcode, handler in HANDLERS.items()
        if all(getattr(type(handler), name) is getattr(Handler, name) for name in public)
    ]  # fmt: skip
    assert same == []


def test_an_op_has_one_handler() -> None:
    before = HANDLERS["reduce"]
    with pytest.raises(ValueError, match="reduce has two handler rules"):
        handles("reduce")(Handler)
    with pytest.raises(TypeError, match="cannot be changed or removed"):
        HANDLERS.pop("reduce")
    assert HANDLERS["reduce"] is before


def test_computations_are_walked_that_run_as_often_as_their_caller() -> None:
    walked = {opcode for opcode, handler in HANDLERS.items() if handler.is_walked}
    assert walked == FOLLOWED - {"scan"}
    assert not DEFAULT.is_walked


def test_what_can_be_gathered_is_gathered_and_what_is_fetched_is_named() -> None:
    """A handler that overrides one half of a pair of methods overrides the other."""
    pairs = (("can_gather", "gather"), ("fetches_elements", "fetches"))
    halves = [
        (opcode, pair) for opcode, handler in HANDLERS.items() for pair in pairs
        if len({getattr(type(handler), name) is getattr(Handler, name) for name in pair}) > 1
    ]  # fmt: skip
    assert halves == []


DETAILS = {"device", "dim", "side"}
"""Fields of templates that the reason itself has."""


def test_every_field_of_a_template_is_known_and_used() -> None:
    kinds = [each for each in vars(reasons).values() if isinstance(each, reasons.ReasonKind)]
    texts = [text for kind in kinds for text in (kind.sentence, kind.of_numbers)]
    named = {name for text in texts for _, name, _, _ in Formatter().parse(text) if name is not None}
    assert sorted(named - reasons.FIELDS.keys()) == sorted(DETAILS)
    assert sorted(reasons.FIELDS.keys() - named) == []
    assert {name for kind in kinds for _, name, _, _ in Formatter().parse(kind.taker)} <= {"user", None}
