"""The interface of attribute codecs, which print attributes and read them from parsed text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from attrs import frozen

from ...core.graph import NOTHING, Instruction
from .parsed import ParsedInstruction
from .words import Read, Word
from .writer import Writer

ALWAYS: Any = object()  # equals no value

Found: TypeAlias = dict[str, Any]


@frozen
class Attribute:
    """An attribute as `key=value`, not printed if it is None or the default; `missing` is its value if not written."""

    name: str
    key: str
    word: Word
    default: Any = ALWAYS
    missing: Any = ALWAYS

    @property
    def by_operands(self) -> bool:
        return False

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def keys(self) -> Mapping[str, Read]:
        return {self.key: self.word.read}

    def text(self, writer: Writer, instruction: Instruction) -> str:
        value = getattr(instruction.attributes, self.name)
        if value is None or value == self.default:
            return ""
        return f", {self.key}={self.word.write(writer, value)}"

    def read(self, parsed: ParsedInstruction) -> Found:
        if self.key in parsed.written:
            return {self.name: parsed.written[self.key]}
        missing = self.default if self.missing is ALWAYS else self.missing
        return {} if missing is ALWAYS else {self.name: missing}


@frozen
class Joined:
    """Attributes that HLO text combines or spells in a special way; `text` prints `, key=value` or the empty text.

    `by_operands`: the values depend on the operands, not only on the text of the instruction.
    """

    names: tuple[str, ...]
    text: Callable[[Writer, Instruction], str]
    read: Callable[[ParsedInstruction], Found]
    keys: Mapping[str, Read] = NOTHING
    by_operands: bool = False


Spelling: TypeAlias = Attribute | Joined


def told(name: str, find: Callable[[ParsedInstruction], Any], by_operands: bool = False) -> Joined:
    """An attribute that is not written in text, but follows from the shape of the result or from the operands."""
    return Joined((name,), lambda writer, instruction: "", lambda parsed: {name: find(parsed)}, by_operands=by_operands)
