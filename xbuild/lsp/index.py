"""Where the names of a text are: its computations and instructions, and each mention of them.

The readers of `xbuild/text` and `xbuild/stablehlo` decide what a text means; they do not keep the place of each name,
and they stop at faults. An index finds places in any text, also while it is being typed: it knows strings, comments,
brackets and names, and nothing of ops.

Sections:

    Definition, Mention, Index
    HLO text: computations, their instructions, and the words of one instruction
    MLIR text: functions, values and symbols
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from functools import cached_property
from typing import Literal, Protocol, TypeAlias

from attrs import define, field, frozen

from ..core.identifiers import KEYWORDS
from ..stablehlo.reading.either import is_mlir

# ----------------------------------------------------------------------------
# Definition, Mention, Index

Kind: TypeAlias = Literal["computation", "instruction"]
"""What a name names: in MLIR, a function or another symbol is a computation, and a value is an instruction."""

WordKind: TypeAlias = Literal["computation", "instruction", "opcode", "attribute", "shape"]


@define(eq=False)
class Definition:
    """A computation or an instruction: its name from `begin` to `end`, and all of it from `start` to `stop`."""

    kind: Kind
    name: str
    begin: int
    end: int
    start: int
    stop: int
    home: Definition | None = None
    is_entry: bool = False
    members: list[Definition] = field(factory=list, repr=False)


@frozen
class Mention:
    """A word of the text; a name has the definition that it means, if there is one."""

    kind: WordKind
    name: str
    begin: int
    end: int
    definition: Definition | None = None


class Index(Protocol):
    """The places of the names of a text."""

    @property
    def computations(self) -> list[Definition]: ...

    def at(self, offset: int) -> Mention | None:
        """The word at an offset, or just before it."""

    def mentions(self, definition: Definition) -> list[Mention]:
        """Each mention of a definition in text order, with the definition itself."""

    def instruction_at(self, offset: int) -> Definition | None:
        """The innermost instruction whose text holds an offset."""

    def words(self, instruction: Definition) -> Iterator[Mention]:
        """The words of an instruction, the one of its name first."""

    def visible(self, offset: int) -> list[Definition]:
        """The instructions that an operand at an offset can name."""


def index_of(source: str) -> Index:
    """The index of a text, in the language in which it begins."""
    return MlirIndex(source) if is_mlir(source) else HloIndex(source)


# ----------------------------------------------------------------------------
# HLO text: computations, their instructions, and the words of one instruction

NAME = r"[A-Za-z_][A-Za-z0-9_.-]*+"
# a string that is not closed ends with its line
_STRING = r'"(?:[^"\\\n]++|\\[^\n])*+"?|\'(?:[^\'\\\n]++|\\[^\n])*+\'?'
_COMMENT = r"//[^\n]*+|/\*(?s:.*?)(?:\*/|\Z)"
_STRUCTURE = re.compile(
    rf"""{_STRING}
    |(?P<border>^[ \t]*+(?:HloModule(?=[ \t,])|//[ ]-----[^\n]*+$))
    |{_COMMENT}
    |^(?:(?P<entry_line>ENTRY)[ \t]++)?+%?(?P<head>{NAME})[ \t]*+(?:\([^\n]*)?\{{[ \t\r]*+$
    |(?:(?<![\w.%=-])ROOT[ \t\r\n]++)?+
     (?:(?<![\w.-])%(?P<marked>{NAME})[ \t\r\n]*+|(?<![\w.%-])(?P<name>{NAME})[ \t\r\n]++)=(?!=)
    |\{{[^{{}}"'/=]*+\}}
    |(?P<open>\{{)|(?P<close>\}})
    """,
    re.VERBOSE | re.MULTILINE,
)
_HEAD = re.compile(rf"(?:^|(?<=[\s}}]))(?:(ENTRY)[ \t\r\n]++)?+%?({NAME})[ \t\r\n]*+(?=\(|\Z)")
_KEY = re.compile(r"([A-Za-z_][A-Za-z_-]*+)=[ \t\r\n]*+\Z")
_INSTRUCTION = re.compile(rf"[ \t\r\n]*+(?:ROOT[ \t\r\n]++)?+(?:%{NAME}[ \t\r\n]*+|{NAME}[ \t\r\n]++)=")
_ONE_LINE = re.compile(r"[ \t]*+\Z")

REGIONS = frozenset({
    "to_apply", "calls", "body", "condition", "branch_computations", "true_computation", "false_computation",
    "called_computations", "select", "scatter", "async_computation",
})  # fmt: skip
"""The keys whose values are computations; `tests/lsp/test_index.py` compares them with the reader's."""

CONTROL = "control-predecessors"

_WORD = re.compile(
    rf"{_STRING}|{_COMMENT}|(?<![\w.+-])(?:(?P<key>{NAME})=(?!=)|(?P<name>%?{NAME}))|(?P<mark>[()\[\]{{}},])", re.DOTALL
)


class HloIndex:
    """The places in HLO text: computations and instructions at once, the words of an instruction on demand."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.computations: list[Definition] = []
        self.instructions: list[Definition] = []
        self.borders = [0]  # where each module of the text begins
        _Outline(self).read()
        self._starts = [each.start for each in self.instructions]
        self._heads = [each.start for each in self.computations]

    @cached_property
    def _by_part(self) -> dict[tuple[int, str], Definition]:
        """The computations by module of the text and name; the first of a name."""
        found: dict[tuple[int, str], Definition] = {}
        for each in self.computations:
            found.setdefault((self.part(each.begin), each.name), each)
        return found

    @cached_property
    def _by_name(self) -> dict[tuple[int, str], Definition]:
        """The instructions by computation and name; the first of a name."""
        found: dict[tuple[int, str], Definition] = {}
        for each in self.instructions:
            found.setdefault((id(each.home), each.name), each)
        return found

    def part(self, offset: int) -> int:
        """The number of the module that holds an offset, among those of the text."""
        return bisect.bisect_right(self.borders, offset)

    def instruction_at(self, offset: int) -> Definition | None:
        place = bisect.bisect_right(self._starts, offset) - 1
        found = self.instructions[place] if place >= 0 else None
        while found is not None and offset > found.stop:  # behind an instruction of a computation in braces
            home = found.home
            found = self._around(home) if home is not None else None
        return found

    def _around(self, computation: Definition) -> Definition | None:
        """The instruction in which a computation in braces stands."""
        place = bisect.bisect_left(self._starts, computation.start) - 1
        found = self.instructions[place] if place >= 0 else None
        return found if found is not None and found.stop >= computation.stop else None

    def visible(self, offset: int) -> list[Definition]:
        found = self.instruction_at(offset)
        if found is None or found.home is None:
            return []
        return [each for each in found.home.members if each.begin < found.begin]

    def at(self, offset: int) -> Mention | None:
        instruction = self.instruction_at(offset)
        if instruction is None:
            place = bisect.bisect_right(self._heads, offset) - 1
            head = self.computations[place] if place >= 0 else None
            if head is None or not head.begin <= offset <= head.end:
                return None
            return Mention("computation", head.name, head.begin, head.end, head)
        found = [each for each in self.words(instruction) if each.begin <= offset <= each.end]
        return found[-1] if found else None

    def mentions(self, definition: Definition) -> list[Mention]:
        home = definition.home
        part = self.part(definition.begin)
        begin, stop = self._range(part) if home is None else (home.start, home.stop)
        pattern = re.compile(rf"(?<![\w.-]){re.escape(definition.name)}(?![\w.-])")
        found = []
        words: dict[int, list[Mention]] = {}
        if definition.kind == "computation":
            found.append(Mention("computation", definition.name, definition.begin, definition.end, definition))
        for match in pattern.finditer(self.source, begin, stop):
            instruction = self.instruction_at(match.start())
            if instruction is None:
                continue
            if id(instruction) not in words:
                words[id(instruction)] = [each for each in self.words(instruction) if each.definition is definition]
            found += [each for each in words[id(instruction)] if each.begin == match.start()]
        return found

    def _range(self, part: int) -> tuple[int, int]:
        return self.borders[part - 1], self.borders[part] if part < len(self.borders) else len(self.source)

    def words(self, instruction: Definition) -> Iterator[Mention]:
        """The words of an instruction: names, its opcode, the keys of its attributes, its element types.

        The instructions of a computation in braces inside it are left out.
        """
        yield Mention("instruction", instruction.name, instruction.begin, instruction.end, instruction)
        depth, braces, key, opcode = 0, 0, "", ""
        place = instruction.end
        inner = self._inside(instruction)
        while match := _WORD.search(self.source, place, instruction.stop):
            place = match.end()
            while inner and inner[-1].stop <= match.start():
                inner.pop()
            if inner and inner[-1].start <= match.start():
                place = inner[-1].stop
                continue
            mark, name = match["mark"], match["name"]
            if mark:
                step = (mark in "([{") - (mark in ")]}")
                depth, braces = depth + step, braces + step * (mark in "[]{}")
                key = "" if not depth and mark == "," else key
            elif match["key"] and opcode and not depth:
                key = match["key"]
                yield Mention("attribute", key, match.start(), match.start() + len(key))
            elif name and not opcode:
                if self._opens(place) and not depth and name != "b":
                    opcode = name
                    yield Mention("opcode", name, match.start(), place)
                elif not braces:
                    yield Mention("shape", name, match.start(), place)
            elif name and (key or opcode != "constant"):
                yield from self._name(instruction, match, key, braces)

    def _name(self, instruction: Definition, match: re.Match[str], key: str, braces: int) -> Iterator[Mention]:
        """A name behind the opcode: of an operand, or in the value of an attribute."""
        name = match["name"].removeprefix("%")
        begin, end = match.end() - len(name), match.end()
        if key in REGIONS:
            yield Mention("computation", name, begin, end, self._by_part.get((self.part(begin), name)))
        elif key == CONTROL or (not key and not braces):
            found = self._by_name.get((id(instruction.home), name))
            if found is None and (self._opens(end) or name in KEYWORDS):
                yield Mention("opcode" if self._opens(end) else "shape", name, begin, end)
            else:
                yield Mention("instruction", name, begin, end, found)

    def _opens(self, place: int) -> bool:
        while place < len(self.source) and self.source[place] in " \t\r\n":
            place += 1
        return self.source.startswith("(", place)

    def _inside(self, instruction: Definition) -> list[Definition]:
        """The computations in braces inside an instruction, the last one first."""
        begin, end = (bisect.bisect_left(self._heads, place) for place in (instruction.start, instruction.stop))
        return self.computations[begin:end][::-1]


class _Outline:
    """Finds the computations and instructions of HLO text, by its braces."""

    def __init__(self, index: HloIndex) -> None:
        self.index, self.source = index, index.source
        self.braces: list[Definition | str] = []  # a computation, or the key of any other value
        self.bodies: list[Definition] = []
        self.open: dict[int, Definition] = {}  # the last instruction of each computation that is not closed
        self.last = 0  # where the last part outside computations ended
        self.inline = 0

    def read(self) -> None:
        for match in _STRUCTURE.finditer(self.source):
            group = match.lastgroup
            if group is None:
                continue
            if group == "border":
                self._reset(match.start())
                if self.source[: match.start()].strip() or len(self.index.borders) > 1:
                    self.index.borders.append(match.start())
                self.last, self.inline = match.end(), 0
            elif group == "head":
                self._reset(match.start())
                self._begin(match["head"], match.start("head"), match.start(), match.end(), bool(match["entry_line"]))
            elif group == "open":
                self._open(match.start())
            elif group == "close":
                self._close(match.end())
            else:
                self._define(match, group)
        self._reset(len(self.source))

    def _begin(self, name: str, begin: int, start: int, brace: int, is_entry: bool = False, length: int = -1) -> None:
        end = begin + (len(name) if length < 0 else length)
        made = Definition("computation", name, begin, end, start, len(self.source), None, is_entry)
        self.index.computations.append(made)
        self.braces.append(made)
        self.bodies.append(made)

    def _open(self, place: int) -> None:
        """A brace that is neither a list nor the end of a line that begins a computation."""
        before = self.source[max(0, place - 200) : place].rstrip()
        if not self.braces and before[-1:] not in tuple("=],({"):
            head = _HEAD.search(self.source[self.last : place].rstrip())
            if head is not None:
                start = self.last + head.start()
                self._begin(head[2], self.last + head.start(2), start, place, bool(head[1]))
                return
        found = _KEY.search(before) if self.bodies else None
        key = found[1] if found else ""
        is_listed = bool(self.braces) and self.braces[-1] in REGIONS
        if (key in REGIONS or is_listed) and _INSTRUCTION.match(self.source, place + 1):
            self.inline += 1
            self._begin(f"inline.{self.inline}", place, place, place, length=0)
        else:
            self.braces.append(key)

    def _close(self, end: int) -> None:
        if not self.braces:
            return
        computation = self.braces.pop()
        if isinstance(computation, Definition):
            self._end(computation, end)
        if not self.braces:
            self.last = end

    def _end(self, computation: Definition, end: int) -> None:
        computation.stop = end
        self.bodies.pop()
        if last := self.open.pop(id(computation), None):
            last.stop = max(last.end, end - 1)

    def _reset(self, place: int) -> None:
        """Close what is still open: a brace is missing, or the text ends."""
        self.braces.clear()
        for computation in self.bodies[::-1]:
            self._end(computation, place)
        self.last = place

    def _define(self, match: re.Match[str], group: str) -> None:
        if not self.bodies:
            return
        if isinstance(self.braces[-1], str):
            if not _ONE_LINE.match(self.source, self._line_begin(match.start()), match.start()):
                return
            while isinstance(self.braces[-1], str):  # a brace of the line before is missing
                self.braces.pop()
        home = self.bodies[-1]
        begin, end = match.span(group)
        made = Definition("instruction", match[group], begin, end, match.start(), end, home)
        if last := self.open.get(id(home)):
            last.stop = max(last.end, match.start() - 1)
        self.open[id(home)] = made
        home.members.append(made)
        self.index.instructions.append(made)

    def _line_begin(self, place: int) -> int:
        return self.source.rfind("\n", max(0, place - 400), place) + 1


# ----------------------------------------------------------------------------
# MLIR text: functions, values and symbols

_VALUES = r"%[\w$.-]++(?::\d++)?+"
_TOKEN = re.compile(
    rf"""(?P<several>^[ \t]*+{_VALUES}(?:\s*+,\s*+{_VALUES})++\s*+=(?!=))
    |sym_name\s*+=\s*+"(?P<named>[^"\\\n]++)"
    |"(?:[^"\\\n]++|\\[^\n])*+"?+
    |(?P<border>^[ \t]*+//[ ]-----[^\n]*+$)
    |//[^\n]*+
    |%(?P<value>[\w$.-]++)(?P<count>[:\#]\d++)?+
    |(?<![\w"])(?P<symbols>func\.func|sdy\.mesh|stablehlo\.mesh|shard\.grid|mesh\.mesh)(?![\w.])
    |@(?:(?P<symbol>[A-Za-z_][\w$.-]*+)|"(?P<quoted>[^"\\\n]++)")
    |\^(?P<block>[\w$.-]++)
    |(?<![\w%@.$"\#!])(?P<op>[a-z_]\w*+\.[a-z_][\w.]*+)
    |(?P<mark>[(){{}}])
    """,
    re.VERBOSE | re.MULTILINE | re.ASCII,
)
_SYMBOLS = ("func.func", "sdy.mesh", "stablehlo.mesh", "shard.grid", "mesh.mesh")
_ONE_VALUE = re.compile(r"%([\w$.-]++)", re.ASCII)
_DEFINES = re.compile(r"\s*+=(?!=)")
_TYPED = re.compile(r"\s*+:(?!\d)")
_CALLED_OP = re.compile(r'"([a-z_]\w*+\.[a-z_][\w.]*+)"', re.ASCII)


class MlirIndex:
    """The places in MLIR text, found in one pass. A value means the latest definition of its name in an open region."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.computations: list[Definition] = []
        self.instructions: list[Definition] = []
        self._words: list[Mention] = []
        self._end = -1  # of the line that is read
        self._read()
        self._words.sort(key=lambda each: each.begin)
        self._begins = [each.begin for each in self._words]
        self._starts = [each.start for each in self.instructions]

    @cached_property
    def _mentions(self) -> dict[int, list[Mention]]:
        found: dict[int, list[Mention]] = {}
        for each in self._words:
            if each.definition is not None:
                found.setdefault(id(each.definition), []).append(each)
        return found

    def at(self, offset: int) -> Mention | None:
        for place in (bisect.bisect_right(self._begins, offset) - 1, bisect.bisect_left(self._begins, offset) - 1):
            if place >= 0 and self._words[place].begin <= offset <= self._words[place].end:
                return self._words[place]
        return None

    def mentions(self, definition: Definition) -> list[Mention]:
        return self._mentions.get(id(definition), [])

    def words(self, instruction: Definition) -> Iterator[Mention]:
        """The words from the name of an instruction to the end of its line."""
        place = bisect.bisect_left(self._begins, instruction.begin)
        while place < len(self._words) and self._words[place].begin < instruction.stop:
            yield self._words[place]
            place += 1

    def instruction_at(self, offset: int) -> Definition | None:
        place = bisect.bisect_right(self._starts, offset) - 1
        found = self.instructions[place] if place >= 0 else None
        return found if found is not None and offset <= found.stop else None

    def visible(self, offset: int) -> list[Definition]:
        for each in self.computations:
            if each.start <= offset <= each.stop:
                return [member for member in each.members if member.end < offset]
        return []

    def _read(self) -> None:
        regions: list[dict[str, Definition]] = [{}]
        lists: list[bool] = []  # for each open parenthesis, whether it holds arguments
        symbols: dict[str, Definition] = {}
        uses: list[tuple[str, int, int]] = []  # symbols whose definition may follow
        home: Definition | None = None
        depth = 0  # of the braces in which the function stands
        previous = ""
        for match in _TOKEN.finditer(self.source):
            group = match.lastgroup
            if group == "border":
                self._resolve(uses, symbols)
                regions, lists, symbols, uses, home = [{}], [], {}, [], None
            elif group == "several":
                for each in _ONE_VALUE.finditer(self.source, match.start(), match.end()):
                    self._define(each[1], each.start(1), each.end(1), regions, home)
            elif group in ("value", "count"):
                name, (begin, end) = match["value"], match.span("value")
                if self._defines(match, lists):
                    self._define(name, begin, end, regions, home)
                else:
                    self._words.append(Mention("instruction", name, begin, end, _found(regions, name)))
            elif group == "named" or (group in ("symbol", "quoted") and previous in _SYMBOLS):
                assert group is not None
                made = self._symbol(match[group], *match.span(group))
                symbols.setdefault(made.name, made)
                if previous == "func.func" or group == "named":
                    home, depth = made, len(regions) - (group == "named")
                    regions[-1].clear()
            elif group in ("symbol", "quoted"):
                uses.append((match[group], *match.span(group)))
            elif group == "op":
                self._words.append(Mention("opcode", match["op"], *match.span("op")))
            elif group == "mark":
                mark = match["mark"]
                if mark == "(":
                    lists.append(previous in ("symbol", "quoted", "block") or self._is_reducer(match.start()))
                elif mark == ")" and lists:
                    lists.pop()
                elif mark == "{":
                    regions.append({})
                elif mark == "}" and len(regions) > 1:
                    regions.pop()
                    if home is not None and len(regions) == depth:
                        home.stop = match.end()
            elif group is None:
                if called := _CALLED_OP.fullmatch(match[0]):
                    self._words.append(Mention("opcode", called[1], match.start() + 1, match.end() - 1))
                continue
            previous = match[0] if group == "symbols" else group or ""
        self._resolve(uses, symbols)

    def _defines(self, match: re.Match[str], lists: list[bool]) -> bool:
        """Whether a value is defined here: before `=`, or with its type among arguments."""
        end = match.end()
        if _DEFINES.match(self.source, end):
            return True
        return bool(lists) and (
            self.source.startswith(":", end) or (lists[-1] and bool(_TYPED.match(self.source, end)))
        )

    def _symbol(self, name: str, begin: int, end: int) -> Definition:
        made = Definition("computation", name, begin, end, self.source.rfind("\n", 0, begin) + 1, end)
        made.is_entry = name == "main"
        self.computations.append(made)
        self._words.append(Mention("computation", name, begin, end, made))
        return made

    def _resolve(self, uses: list[tuple[str, int, int]], symbols: dict[str, Definition]) -> None:
        self._words += [Mention("computation", name, begin, end, symbols.get(name)) for name, begin, end in uses]

    def _define(
        self, name: str, begin: int, end: int, regions: list[dict[str, Definition]], home: Definition | None
    ) -> None:
        made = Definition("instruction", name, begin, end, begin - 1, self._line_end(end), home)
        regions[-1][name] = made
        self.instructions.append(made)
        if home is not None:
            home.members.append(made)
        self._words.append(Mention("instruction", name, begin, end, made))

    def _is_reducer(self, place: int) -> bool:
        return self.source[max(0, place - 8) : place].rstrip().endswith("reducer")

    def _line_end(self, place: int) -> int:
        if place > self._end:
            end = self.source.find("\n", place)
            self._end = len(self.source) if end < 0 else end
        return self._end


def _found(regions: list[dict[str, Definition]], name: str) -> Definition | None:
    """The definition of a value in the innermost region that has one."""
    for region in reversed(regions):
        if name in region:
            return region[name]
    return None
