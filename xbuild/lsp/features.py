"""What an editor asks about a document, as pure functions: hover, definitions, rename, outline and so on.

Places are offsets of the text; `server.py` converts them for the protocol.

Sections:

    Definitions, references and links to the user's lines
    Rename
    Hover
    Outline and folding
    Completion
    Problems: faults of the readers, and issues of check and lint
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Literal

from attrs import field, frozen

from shape_inference import AnyShape, Shape, TupleShape, XbuildError
from shape_inference.escaping import in_line
from shape_inference.trees import leaves

from ..core.graph import Instruction, MetadataSource, Source
from ..core.identifiers import is_identifier, nearest
from ..costs.buffers import bytes_of
from ..properties.trip_counts import known_trips
from ..stablehlo.spelling import OP_NAMES
from ..text.annotations import COMMON
from ..text.reader import own_keys
from ..text.scanner import BY_SPELLING
from .document import Document, Problem
from .index import CONTROL, REGIONS, Definition, Mention

# ----------------------------------------------------------------------------
# Definitions, references and links to the user's lines


def definition(document: Document, offset: int) -> Definition | MetadataSource | None:
    """Where the name at an offset is defined; at the definition itself, the user's line that made it, if stated."""
    found = document.index.at(offset)
    if found is None or found.definition is None:
        return None
    if found.begin == found.definition.begin and found.kind == "instruction":
        return document.python_line(found.definition) or found.definition
    return found.definition


def user_line(document: Document, offset: int) -> MetadataSource | None:
    """The Python line that made the instruction at an offset, or the instruction whose text holds the offset."""
    found = document.index.at(offset)
    named = found.definition if found is not None and found.kind == "instruction" else None
    named = named or document.index.instruction_at(offset)
    return document.python_line(named) if named is not None else None


def mentions(document: Document, offset: int, *, with_definition: bool = True) -> list[Mention]:
    """Each mention of the name at an offset."""
    found = document.index.at(offset)
    if found is None or found.definition is None:
        return []
    defined = found.definition
    return [each for each in document.index.mentions(defined) if with_definition or each.begin != defined.begin]


def path_of(source: Source, folders: Sequence[str]) -> str | None:
    """The path of a source file: absolute, or below the first of the folders. The file is not opened or looked for.

    A path on another machine, such as `//host/share`, is none: opening it would contact that machine.

    >>> path_of(Source("model/layer.py", 3, "f"), ["/home/me"]), path_of(Source("//host/a.py", 1, "f"), ["/home"])
    ('/home/me/model/layer.py', None)
    """
    file = source.file
    if file.startswith(("//", "\\\\", "<")) or "\0" in file or not file:
        return None
    if os.path.isabs(file):
        return file
    return str(PurePath(folders[0], file)) if folders else None


# ----------------------------------------------------------------------------
# Rename

_VALUE_NAME = re.compile(r"[A-Za-z_$.-][\w$.-]*+|\d++", re.ASCII)
_SYMBOL_NAME = re.compile(r"[A-Za-z_][\w$.]*+", re.ASCII)


class RenameError(ValueError):
    """Raised if a name cannot be changed, or not to this one; the message says why."""


def renamed(document: Document, offset: int) -> Mention:
    """The name at an offset that a rename would change. Raises RenameError if no name is there."""
    found = document.index.at(offset)
    if found is None or found.kind not in ("instruction", "computation"):
        raise RenameError("only instructions and computations can be renamed")
    if found.definition is None:
        raise RenameError(f"{found.name!r} is not defined in this file")
    if found.end == found.begin:
        raise RenameError("a computation in braces has no name")
    return found


def rename(document: Document, offset: int, name: str) -> list[tuple[int, int]]:
    """The places that a rename fills with the new name. Raises RenameError for an invalid name, and for a used one."""
    found = renamed(document, offset)
    defined = found.definition
    assert defined is not None
    name = name.strip().removeprefix("@" if document.is_mlir and found.kind == "computation" else "%")
    if name == defined.name:
        return []
    _check_name(document, found.kind, name)
    if document.is_mlir:
        others: Iterable[Definition] = (
            document.index.computations
            if found.kind == "computation"
            else (defined.home.members if defined.home else ())
        )
    else:
        others = document.index.computations if defined.home is None else defined.home.members
    taken = next((each for each in others if each.name == name), None)
    if taken is not None:
        line = document.text.line_of(taken.begin) + 1
        raise RenameError(f"{name!r} is already the name of the {taken.kind} on line {line}")
    return [(each.begin, each.end) for each in document.index.mentions(defined)]


def _check_name(document: Document, kind: str, name: str) -> None:
    if document.is_mlir:
        pattern = _SYMBOL_NAME if kind == "computation" else _VALUE_NAME
        if pattern.fullmatch(name) is None:
            raise RenameError(f"{name!r} is not a valid MLIR name: use letters, digits, `_`, `$` and `.`")
    elif not is_identifier(name):
        raise RenameError(
            f"{name!r} is not a valid name in HLO text: use letters, digits, `_`, `.` and `-`, but no leading digit "
            f"and no HLO keyword; for example, {nearest(name)!r} is valid"
        )


# ----------------------------------------------------------------------------
# Hover

_MOST_NAMES = 12
_MOST_TEXT = 400
_MOST_LINES = 40
_MOST_REASONS = 12
_MLIR_OPS = {name: opcode for opcode, name in OP_NAMES.items()}


@frozen
class Hover:
    """Markdown about the word from `begin` to `end`."""

    markdown: str
    begin: int
    end: int


def hover(document: Document, offset: int) -> Hover | None:
    """What is known about the word at an offset."""
    found = document.index.at(offset)
    if found is None:
        return None
    if found.kind in ("instruction", "computation"):
        if found.definition is None:
            return None
        tell = _instruction_lines if found.kind == "instruction" else _computation_lines
        lines = list(tell(document, found.definition))
    else:
        lines = list(_word_lines(found))
    return Hover("\n\n".join(lines), found.begin, found.end) if lines else None


def _instruction_lines(document: Document, defined: Definition) -> Iterator[str]:
    yield _fenced(_clipped(document.source[defined.start : defined.stop]), "mlir" if document.is_mlir else "hlo")
    instruction = document.instruction(defined)
    facts = [] if instruction is None else list(_facts(instruction))
    users = list(dict.fromkeys(_users(document, defined)))
    facts.append(f"**used by** {_names(users)}" if users else "**used by** no instruction")
    line = document.python_line(defined)
    if line is not None:
        facts.append(
            f"**made by** {_code(f'{line.file}:{line.line}')}" + (f" in {_code(line.function)}" * bool(line.function))
        )
    if instruction is not None and not document.is_current:
        facts.append("*from the last text that could be read*")
    yield "  \n".join(facts)
    if instruction is not None:
        reasons = _reasons(instruction)
        if reasons:
            yield "why this shape:\n" + _fenced("\n".join(reasons))


def _facts(instruction: Instruction) -> Iterator[str]:
    yield f"**shape** {_code(_shape_text(instruction.shape))}, {_bytes(instruction.shape)}"
    if isinstance(instruction.shape, Shape) and instruction.shape.layout is not None:
        yield f"**layout** {_code(str(instruction.shape.layout))}"
    notes = instruction.annotations
    if sharding := notes.get("sharding"):
        yield f"**sharding** {_code(_clipped(str(sharding)))}"
    if instruction.opcode in ("while", "scan"):
        trips = known_trips(instruction)
        yield f"**trips** {trips:,}" if trips is not None else "**trips** unknown before a run"
    called = [f"{role} {_code(region.name)}" for role, region in instruction.regions()]
    if called:
        yield f"**calls** {', '.join(called[:_MOST_NAMES])}"


def _reasons(instruction: Instruction) -> list[str]:
    from ..explaining.shapes import reasons

    if isinstance(instruction.shape, TupleShape) and instruction.shape.count > _MOST_NAMES:
        return []
    try:
        found = [in_line(each) for each in reasons[instruction.opcode](instruction)]
    except XbuildError:
        return []
    more = len(found) - _MOST_REASONS
    return [*found[:_MOST_REASONS], *([f"... and {more} more"] if more > 0 else [])]


def _computation_lines(document: Document, defined: Definition) -> Iterator[str]:
    head = document.source[defined.start : min(defined.stop, defined.start + 4 * _MOST_TEXT)].partition("{\n")[0]
    yield _fenced(_clipped(head), "mlir" if document.is_mlir else "hlo")
    facts = []
    computation = document.computation(defined)
    if computation is not None:
        facts.append(f"**signature** {_code(_clipped(str(computation.program_shape)))}")
    if defined.members:
        facts.append(f"**instructions** {len(defined.members):,}")
    callers = list(dict.fromkeys(_users(document, defined)))
    if defined.is_entry:
        facts.append("the entry computation")
    elif callers:
        facts.append(f"**called by** {_names(callers)}")
    if facts:
        yield "  \n".join(facts)


def _users(document: Document, defined: Definition) -> Iterator[str]:
    for each in document.index.mentions(defined):
        if each.begin != defined.begin:
            user = document.index.instruction_at(each.begin)
            yield user.name if user is not None else "the result"


def _word_lines(found: Mention) -> Iterator[str]:
    texts = explain(found.name)
    if not texts and found.kind == "attribute":
        texts = explain(found.name.replace("-", "_"))
    for text in texts:
        lines = text.splitlines()
        more = ["..."] if len(lines) > _MOST_LINES else []
        yield _fenced("\n".join([*lines[:_MOST_LINES], *more]))


@functools.lru_cache(maxsize=256)
def explain(word: str) -> tuple[str, ...]:
    """What `xbuild explain WORD` prints; an op of MLIR is explained as the op of HLO that it becomes."""
    from ..reference.words import explain_word

    opcode = _MLIR_OPS.get(word) or _MLIR_OPS.get(f"stablehlo.{word.partition('.')[2]}")
    if "." in word and opcode is None:
        return ()
    return tuple(explain_word(opcode or word))


def _shape_text(shape: AnyShape) -> str:
    if isinstance(shape, TupleShape) and shape.count > _MOST_NAMES:
        return f"a tuple of {shape.count:,} arrays and tokens"
    return _clipped(str(shape))


def _bytes(shape: AnyShape) -> str:
    count = sum(map(bytes_of, leaves(shape)))
    return f"{count:,} byte{'s' * (count != 1)}"


def _names(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(map(_code, names[:_MOST_NAMES])) + (f" and {more:,} more" if more > 0 else "")


def _clipped(text: str) -> str:
    text = " ".join(text[: 4 * _MOST_TEXT].split())
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}..."


def _code(text: str) -> str:
    """Text of a file inside Markdown: shown as it is, whatever it holds."""
    return f"`{in_line(text).replace('`', chr(39))}`"


def _fenced(text: str, language: str = "text") -> str:
    lines = "\n".join(in_line(line) for line in text.splitlines()).replace("```", "'''")
    return f"```{language}\n{lines}\n```"


# ----------------------------------------------------------------------------
# Outline and folding

MOST_SYMBOLS = 20_000
"""The greatest number of instructions in an outline; the computations after them are listed without instructions."""


@frozen
class OutlineEntry:
    """An entry of the outline, from `start` to `stop`, with its name from `begin` to `end`."""

    kind: Literal["computation", "entry", "instruction"]
    name: str
    detail: str
    start: int
    stop: int
    begin: int
    end: int
    members: tuple[OutlineEntry, ...] = field(default=(), repr=False)


_LAYOUT = re.compile(r"\{[^{}]*+\}")
_SHAPE_AND_OPCODE = re.compile(r"\s*+=\s*+(.{0,120}?[\w-])\(")
_OPERATION = re.compile(r"(?::\d++)?+\s*+=\s*+\"?([\w.]++)")


def outline(document: Document) -> list[OutlineEntry]:
    """The computations of a text, each with its instructions."""
    left = MOST_SYMBOLS
    found = []
    for each in document.index.computations:
        members = each.members[:left]
        left -= len(members)
        kind: Literal["entry", "computation"] = "entry" if each.is_entry else "computation"
        detail = f"{len(each.members):,} instructions" if each.members else ""
        inside = tuple(
            OutlineEntry("instruction", m.name, _detail(document, m), m.start, _end(document, m), m.begin, m.end)
            for m in members
        )
        found.append(
            OutlineEntry(kind, each.name or "computation", detail, each.start, each.stop, each.begin, each.end, inside)
        )
    return found


def _detail(document: Document, instruction: Definition) -> str:
    """The shape and opcode of an instruction, as the text has them."""
    text = document.source[instruction.end : min(instruction.stop, instruction.end + 300)]
    found = _OPERATION.match(text) if document.is_mlir else _SHAPE_AND_OPCODE.match(_LAYOUT.sub("", text))
    return found[1] if found else ""


def _end(document: Document, definition: Definition) -> int:
    """Where an instruction ends, without the blanks after it."""
    stop = min(definition.stop, len(document.source))
    while stop > definition.end and document.source[stop - 1].isspace():
        stop -= 1
    return stop


def folds(document: Document) -> list[tuple[int, int]]:
    """The first and the last line of each computation, and of each instruction of several lines, such as a literal."""
    lines = document.text.line_of
    found = [(lines(each.start), lines(max(each.stop - 1, each.start))) for each in document.index.computations]
    for computation in document.index.computations:
        for each in computation.members:
            if document.source.find("\n", each.start, each.stop) >= 0:
                found.append((lines(each.start), lines(max(_end(document, each) - 1, each.start))))
    if document.is_mlir:
        found += _brace_folds(document)
    return sorted({(first, last) for first, last in found if last > first})


_BRACE = re.compile(r'"(?:[^"\\\n]++|\\[^\n])*+"?|//[^\n]*+|[{}]')


def _brace_folds(document: Document) -> Iterator[tuple[int, int]]:
    """The regions of MLIR: from the line of a brace to the line of the brace that closes it."""
    open_: list[int] = []
    for match in _BRACE.finditer(document.source):
        if match[0] == "{":
            open_.append(match.start())
        elif match[0] == "}" and open_:
            yield document.text.line_of(open_.pop()), document.text.line_of(match.start())


# ----------------------------------------------------------------------------
# Completion

MOST_COMPLETIONS = 200
_AFTER_EQUALS = re.compile(
    r"[\w.-]\s++=\s*+(?:(?:\([^=()]*+\)|[a-z]\w*+\[[^\[\]=]*+\](?:\{[^{}=]*+\})?+)\s++)?+([a-z][a-z0-9-]*+)?\Z",
    re.ASCII,
)
_AFTER_KEY = re.compile(r"([a-z_]++)=\{?(?:[^={}]*,)?\s*+%?([\w.-]*+)\Z", re.ASCII)
_NEXT_KEY = re.compile(r"[)}\w\"\]]\s*+,\s*+([a-z_-]*+)\Z", re.ASCII)
_OPERAND = re.compile(r"[(,]\s*+%?([\w.-]*+)\Z", re.ASCII)
_MLIR_WORD = re.compile(r"(?:(%)([\w$.-]*+)|(@)([\w$.-]*+)|([a-z_]\w*\.[\w.]*))\Z", re.ASCII)


@frozen
class Completion:
    """A word that may follow, which replaces the text from `begin`."""

    kind: Literal["opcode", "attribute", "instruction", "computation"]
    word: str
    begin: int
    detail: str = ""


def completions(document: Document, offset: int) -> list[Completion]:
    """The words that can follow at an offset: opcodes, attributes of the opcode, operands, computations."""
    line = document.text.line_range(document.text.line_of(offset))[0]
    before = document.source[max(line, offset - 2000) : offset]
    found = (
        _mlir_completions(document, offset, before) if document.is_mlir else _hlo_completions(document, offset, before)
    )
    return sorted(found, key=lambda each: each.word)[:MOST_COMPLETIONS]


def _hlo_completions(document: Document, offset: int, before: str) -> Iterator[Completion]:
    match = _AFTER_EQUALS.search(before)
    if match is not None:
        yield from _matching("opcode", BY_SPELLING, match[1] or "", offset)
        return
    match = _AFTER_KEY.search(before)
    if match is not None and match[1] in REGIONS:
        names = [each.name for each in document.index.computations if each.name and each.stop <= offset]
        yield from _matching("computation", names, match[2], offset)
        return
    instruction = document.index.instruction_at(offset)
    words = document.index.words(instruction) if instruction is not None else ()
    opcode = next((each for each in words if each.kind == "opcode"), None)
    if opcode is None or opcode.end > offset:
        return
    schema, match = BY_SPELLING.get(opcode.name), _NEXT_KEY.search(before)
    if _is_inside(document.source[opcode.end : offset]):
        operand = _OPERAND.search(before)
        names = [each.name for each in document.index.visible(offset)]
        yield from _matching("instruction", names, operand[1] if operand else "", offset)
    elif schema is not None and match is not None:
        keys = [*own_keys(schema.opcode), *COMMON, CONTROL]
        yield from _matching("attribute", [f"{key}=" for key in keys], match[1], offset)


def _is_inside(text: str) -> bool:
    """Whether a text ends inside the parentheses with which it begins."""
    return text.count("(") > text.count(")")


def _mlir_completions(document: Document, offset: int, before: str) -> Iterator[Completion]:
    match = _MLIR_WORD.search(before)
    if match is None:
        return
    if match[1]:
        yield from _matching("instruction", [each.name for each in document.index.visible(offset)], match[2], offset)
    elif match[3]:
        yield from _matching("computation", [each.name for each in document.index.computations], match[4], offset)
    else:
        yield from _matching("opcode", _MLIR_OPS, match[5], offset)


def _matching(kind: Any, words: Iterable[str], prefix: str, offset: int) -> Iterator[Completion]:
    for word in dict.fromkeys(words):
        if word.startswith(prefix):
            yield Completion(kind, word, offset - len(prefix))


# ----------------------------------------------------------------------------
# Problems: faults of the readers, and issues of check and lint


def problems_of(document: Document, issues: Iterable[Mapping[str, Any]]) -> list[Problem]:
    """The issues of `analysis_child.py` at their places in the text."""
    return [_problem(document, each) for each in issues]


def _problem(document: Document, issue: Mapping[str, Any]) -> Problem:
    begin, computation = issue["begin"], issue["computation"]
    places = []
    for number, name in enumerate(issue["instructions"]):
        home, line = (computation, issue["line"]) if not number else (None, None)
        if place := document.find(home, name, line, begin):
            places.append((*place, name))
    for message, line in issue["related"]:
        if line is not None and (place := document.find(None, "", line, begin)):
            places.append((*place, message))
    if not places and issue["line"] is not None and (place := document.find(None, "", issue["line"], begin)):
        places.append((*place, ""))
    first = places[0] if places else (*_first_word(document, begin), "")
    also = [each for each in dict.fromkeys(places[1:]) if each[0] != first[0]]
    message = issue["message"] + (f"\nfix: {issue['fix']}" if issue["fix"] else "")
    return Problem(issue["rule"], issue["level"], message, first[0], first[1], tuple(also))


def _first_word(document: Document, begin: int) -> tuple[int, int]:
    """The first word of a module, where an issue is shown that names no instruction."""
    match = re.compile(r"\s*+(\S*+)").match(document.source, begin)
    return match.span(1) if match else (begin, begin)
