"""The opcodes of HLO text, and the refusal of an unknown opcode."""

from __future__ import annotations

import re
from typing import NoReturn

from shape_inference import PRIMITIVES

from ...core.op import OPS
from .scanner import Scanner

SPELLED = {schema.spelling: schema for schema in OPS.values()}
OPENS = re.compile(r"[ \t\r\n]*+\(")


def unknown(scanner: Scanner, opcode: str, place: int) -> NoReturn:
    """Refuse an unknown word at the position of an opcode."""
    hints = scanner.near(opcode, SPELLED)
    if opcode.lower() in PRIMITIVES:
        hints = (f"element types are written in lower case: {opcode.lower()}",)
    elif not OPENS.match(scanner.text, scanner.place):
        scanner.fail("syntax", f"an opcode and '(' are wanted, and {opcode[:40]!r} stands here", *hints, place=place)
    scanner.fail("unknown_opcode", f"xbuild has no op {opcode[:60]!r}", *hints, place=place)
