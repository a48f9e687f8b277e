"""What a page says of an instruction beside its values: attributes, the op in a sentence, the user's line."""

from __future__ import annotations

import linecache
from functools import lru_cache
from typing import Any

from ..graph import Instruction, Source
from ..op import OPS
from ..text.codecs import spellings
from ..text.literals import literal_text
from ..text.writer import Writer
from ..trace import Spot
from ..viz.drawing import short_shape
from ..viz.kinds import kind_of

_LONG = 160
_RULES = ("Formula", "Shapes", "Types", "Result", "Groups", "Pairs")


def told(spot: Spot) -> dict[str, Any]:
    """The instruction of a spot, in words."""
    instruction = spot.instruction
    return {
        "n": instruction.name,
        "o": instruction.opcode.replace("_", "-"),
        "s": short_shape(instruction.shape),
        "k": kind_of(instruction.opcode).letter,
        "p": list(spot.path),
        "a": _attributes(instruction),
        "w": _source(instruction),
        "c": _channel(instruction),
    }


def sentence(opcode: str) -> str:
    """The first sentence of an op's documentation."""
    documentation = (OPS[opcode].declaration.__doc__ or "").strip()
    return " ".join(documentation.split("\n\n")[0].split()).replace("`", "")


def rules(opcode: str) -> list[list[str]]:
    """What its documentation says of shapes and types, and the formula: pairs of a name and a text."""
    paragraphs = (OPS[opcode].declaration.__doc__ or "").strip().split("\n\n")
    found: list[list[str]] = []
    for line in paragraphs[1].split("\n") if len(paragraphs) > 1 else ():
        name, colon, rest = line.strip().partition(": ")
        if name == "Raises" or line.strip().startswith(">>>"):
            break
        if colon and name in _RULES:
            found.append([name.lower(), rest])
        elif found:
            found[-1][1] += f" {line.strip()}"
    return [[name, text.replace("`", "")] for name, text in found]


def _attributes(instruction: Instruction) -> list[list[str]]:
    """Names and texts, as HLO spells them."""
    if instruction.opcode == "constant":
        return [["literal", _cut(literal_text(instruction.attributes.literal.reshape(-1)[:64]))]]
    if instruction.attributes is None:
        return []
    texts = (spelling.text(Writer(), instruction).removeprefix(", ") for spelling in spellings(instruction.opcode))
    pairs = (text.partition("=") for text in texts if text)
    return [[name, _cut(text)] for name, equals, text in pairs if equals]


def _cut(text: str) -> str:
    return text if len(text) <= _LONG else f"{text[: _LONG - 1]}…"


def _channel(instruction: Instruction) -> int | None:
    return getattr(instruction.attributes, "channel_id", None)


def _source(instruction: Instruction) -> list[str] | None:
    """The place of the user's line, and the line."""
    source = instruction.source
    if source is None:
        return None
    return _told(source)


@lru_cache(maxsize=4096)
def _told(source: Source) -> list[str]:
    try:
        line = linecache.getline(source.file, source.line)
    except ValueError:  # no file has such a name
        line = ""
    return [str(source), _cut(line.strip())]
