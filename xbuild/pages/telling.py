"""Facts of an instruction in a step page: attributes, the op's documentation, the user's source line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..core.graph import Instruction
from ..core.op import OPS
from ..core.source_lines import line_of
from ..pictures.model.drawing import shape_words
from ..pictures.model.main_op import kind_of_instruction
from ..text.codecs.table import spellings
from ..text.spelling.literals import excerpt_text
from ..text.spelling.writer import Writer
from ..traces import Spot

_LONG = 160
_RULES = ("Formula", "Shapes", "Types", "Result", "Groups", "Pairs")


def told(spot: Spot, root: Path | None = None) -> dict[str, Any]:
    """The facts of the instruction of a spot; `root` is the folder under which source files may be opened."""
    instruction = spot.instruction
    return {
        "n": instruction.name,
        "o": instruction.opcode.replace("_", "-"),
        "s": shape_words(instruction),
        "k": kind_of_instruction(instruction).letter,
        "p": list(spot.path),
        "a": _attributes(instruction),
        "w": _source(instruction, root),
        "c": _channel(instruction),
    }


def sentence(opcode: str) -> str:
    """The first sentence of an op's documentation."""
    documentation = (OPS[opcode].declaration.__doc__ or "").strip()
    return " ".join(documentation.split("\n\n")[0].split()).replace("`", "")


def rules(opcode: str) -> list[list[str]]:
    """The formula of an op, and its rules of shapes and types, as pairs of a name and a text."""
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
    """The attributes of an instruction as pairs of a name and a text, in the spelling of HLO."""
    if instruction.opcode == "constant":
        return [["literal", _cut(excerpt_text(instruction.attributes.literal, 64))]]
    if instruction.attributes is None:
        return []
    texts = (spelling.text(Writer(), instruction).removeprefix(", ") for spelling in spellings(instruction.opcode))
    pairs = (text.partition("=") for text in texts if text)
    return [[name, _cut(text)] for name, equals, text in pairs if equals]


def _cut(text: str) -> str:
    return text if len(text) <= _LONG else f"{text[: _LONG - 1]}…"


def _channel(instruction: Instruction) -> int | None:
    return getattr(instruction.attributes, "channel_id", None)


def _source(instruction: Instruction, root: Path | None) -> list[str] | None:
    """The place of the user's source line, and the text of the line."""
    source = instruction.source
    return None if source is None else [str(source), _cut(line_of(instruction, root))]
