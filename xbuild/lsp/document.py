"""An open file as the features see it: its text, the places of its names, and the programs that were read from it."""

from __future__ import annotations

import bisect
import re
import time
from collections.abc import Iterator, Mapping
from functools import cached_property

from attrs import field, frozen

from shape_inference import XbuildError

from ..core.graph import Computation, Instruction, MetadataSource, Module, TextSource
from ..core.identifiers import nearest
from ..core.issues import Level
from ..stablehlo.reading import either
from ..text import reader as hlo
from ..text.header import TABLES, origin, read_frames
from ..text.scanner import HloParseError
from .index import Definition, Index, index_of
from .text import Text

FAILED = "failed"
"""The rule of a problem that is a mistake of xbuild, not of the text."""


@frozen
class Problem:
    """Something to show at a place of the text: a fault of the reader, a finding of the check, an issue of lint."""

    rule: str
    level: Level
    message: str
    begin: int
    end: int
    also: tuple[tuple[int, int, str], ...] = ()


@frozen(eq=False)
class Part:
    """One module of a text, with its place; without a module if the reader refused it."""

    begin: int
    end: int
    module: Module | None = None


@frozen(eq=False, slots=False)
class Reading:
    """What the readers made of a text: its modules, and their faults."""

    parts: tuple[Part, ...] = ()
    faults: tuple[Problem, ...] = ()
    seconds: float = 0.0

    @property
    def is_whole(self) -> bool:
        """Whether every module of the text was read."""
        return not self.faults


def read(text: Text, file: str) -> Reading:
    """Read all modules of a text; what a reader refuses becomes a fault at its place.

    >>> reading = read(Text("ENTRY e { x = f32[2] parameter(0) ROOT y = f32[2] ad(x, x) }"), "e.hlo")
    >>> [(fault.rule, fault.begin) for fault in reading.faults]
    [('unknown_opcode', 50)]
    """
    began = time.perf_counter()
    source = text.source
    is_mlir = either.is_mlir(source)
    ranges = either.module_ranges(source) if is_mlir else hlo.module_ranges(source)
    newlines = [found.end() for found in re.finditer("\n", source)]  # readers count only these as ends of lines
    parts: list[Part] = []
    faults: list[Problem] = []
    for begin, end in ranges or [(0, len(source))]:
        shifted = "\n" * bisect.bisect_right(newlines, begin) + source[begin:end]
        try:
            parts.append(Part(begin, end, _read_module(shifted, file, is_mlir)))
            continue
        except HloParseError as error:
            for fault in error.faults:
                begin_of_line = newlines[fault.line - 2] if fault.line > 1 else 0
                place = min(begin_of_line + fault.column - 1, len(source))
                message = "\n".join([fault.message, *(f"hint: {hint}" for hint in fault.hints)])
                faults.append(Problem(fault.kind, "error", message, place, _end_of_word(source, place)))
        except XbuildError as error:
            message = getattr(error, "message", None) or str(error)
            faults.append(Problem(error.kind, "error", message, begin, _end_of_line(source, begin)))
        except Exception as error:
            message = f"xbuild failed to read this text; please report it: {type(error).__name__}: {error}"
            faults.append(Problem(FAILED, "error", message, begin, _end_of_line(source, begin)))
        parts.append(Part(begin, end))
    return Reading(tuple(parts), tuple(faults), time.perf_counter() - began)


_BEGINS = re.compile(r"(?:\s++|//[^\n]*+)*+(?:HloModule|ENTRY)\b")


def is_program(file: str, source: str) -> bool:
    """Whether a file is one to read: by its suffix, or since its text begins like a program.

    >>> is_program("a.hlo", ""), is_program("a.txt", "HloModule m"), is_program("readme.txt", "A text.")
    (True, True, False)
    """
    return file.endswith((".hlo", ".mlir")) or _BEGINS.match(source) is not None or either.is_mlir(source)


def _read_module(source: str, file: str, is_mlir: bool) -> Module:
    if is_mlir:
        from ..stablehlo.reading.reader import parse_stablehlo

        return parse_stablehlo(source, file)
    return hlo.parse_hlo(source, file)


_WORD = re.compile(r"%?[\w.$-]++|[^\r\n]")


def _end_of_word(source: str, place: int) -> int:
    found = _WORD.match(source, place)
    return found.end() if found else place


def _end_of_line(source: str, place: int) -> int:
    end = source.find("\n", place)
    return len(source) if end < 0 else end


# ----------------------------------------------------------------------------
# Document: a text with its index, and the last reading, which may be of an earlier text

_SOURCE = re.compile(r'source_file="((?:[^"\\\n]++|\\[^\n])*+)"(?:[ ,]++source_line=(\d{1,9}+))?')
_FRAME = re.compile(r"stack_frame_id=(\d{1,9}+)")
_TABLES = re.compile(rf"^{TABLES[0]}$", re.MULTILINE)
_METADATA = re.compile(r"metadata=\{")


@frozen(eq=False, slots=False)
class Document:
    """A text, and the programs of this text or of the last text that could be read."""

    text: Text
    file: str = "<text>"
    reading: Reading = field(factory=Reading)
    is_current: bool = True

    @property
    def source(self) -> str:
        return self.text.source

    @cached_property
    def is_mlir(self) -> bool:
        return either.is_mlir(self.source)

    @cached_property
    def index(self) -> Index:
        return index_of(self.source)

    # Instructions of the program, and their definitions in the text

    def _module_at(self, place: int) -> Module | None:
        """The module of the part that holds a place; the last one if an edit moved the parts."""
        parts = self.reading.parts
        number = bisect.bisect_right([part.begin for part in parts], place) - 1
        return parts[max(number, 0)].module if parts else None

    def computation(self, definition: Definition) -> Computation | None:
        """The computation that a definition, or the home of one, became."""
        home = definition if definition.kind == "computation" else definition.home
        module = self._module_at(definition.begin)
        if home is None or module is None:
            return None
        names = self._computations(module)
        return names.get(home.name) or names.get(nearest(home.name))

    def _computations(self, module: Module) -> Mapping[str, Computation]:
        if id(module) not in self._by_module:
            self._by_module[id(module)] = {each.name: each for each in module.computations}
        return self._by_module[id(module)]

    @cached_property
    def _by_module(self) -> dict[int, dict[str, Computation]]:
        return {}

    def instruction(self, definition: Definition) -> Instruction | None:
        """The instruction that a definition became; None if it is new or faulty."""
        computation = self.computation(definition)
        if not self.is_mlir:
            try:
                return None if computation is None else computation[definition.name]
            except KeyError:
                return None
        return self._mlir_instructions.get(id(definition))

    @cached_property
    def _mlir_instructions(self) -> dict[int, Instruction]:
        """The instruction of each value: an argument by its number, any other by its line and name, or its name."""
        found: dict[int, Instruction] = {}
        for part in self.reading.parts:
            if part.module is None:
                continue
            lines: dict[int, list[Instruction]] = {}
            for computation in part.module.computations:
                for each in computation.instructions:
                    if isinstance(each.source, TextSource) and not isinstance(each.source, MetadataSource):
                        lines.setdefault(each.source.line, []).append(each)
            for function in self.index.computations:
                if part.begin <= function.begin < part.end and function.members:
                    found.update(self._of_function(function, lines))
        return found

    def _of_function(
        self, function: Definition, lines: dict[int, list[Instruction]]
    ) -> Iterator[tuple[int, Instruction]]:
        computation = self.computation(function)
        if computation is None:
            return
        named: dict[str, Instruction] = {}
        for each in computation.instructions:
            named.setdefault(each.name, each)
            named.setdefault(each.name.rpartition(".")[2], each)
        count = len(computation.parameters)
        for number, value in enumerate(function.members):
            if number < count:
                yield id(value), computation.parameters[number]
                continue
            line = self._line_number(value.begin)
            here = [
                each
                for each in lines.get(line, ())
                if each.name.split(".")[-1] == value.name or each.name == value.name
            ]
            if instruction := (here[0] if here else named.get(value.name)):
                yield id(value), instruction

    def _line_number(self, place: int) -> int:
        """The line of a place as the readers count, from 1."""
        return bisect.bisect_left(self._newlines, place) + 1

    @cached_property
    def _newlines(self) -> list[int]:
        return [found.start() for found in re.finditer("\n", self.source)]

    def find(self, computation: str | None, name: str, line: int | None, begin: int = 0) -> tuple[int, int] | None:
        """The place of an instruction: by its computation and name, by its name, or by its line, counted from 1."""
        end = next((part.end for part in self.reading.parts if part.begin <= begin < part.end), len(self.source))
        wanted = (each for each in self._named.get(name, ()) if begin <= each.begin < end)
        found = sorted(
            wanted,
            key=lambda each: (
                each.home is None or each.home.name != computation,
                self._line_number(each.begin) != line,
            ),
        )
        if found:
            return found[0].begin, found[0].end
        if line is None or not 0 < line <= len(self._newlines) + 1:
            return None
        start = self._newlines[line - 2] + 1 if line > 1 else 0
        stop = self._newlines[line - 1] if line <= len(self._newlines) else len(self.source)
        inside = self.source[start:stop]
        return start + len(inside) - len(inside.lstrip()), max(start + len(inside.rstrip()), start)

    @cached_property
    def _named(self) -> dict[str, list[Definition]]:
        """The instructions of the text by the names that they may have in the program."""
        found: dict[str, list[Definition]] = {}
        for computation in self.index.computations:
            for each in computation.members:
                names = {each.name}
                if self.is_mlir and (instruction := self.instruction(each)) is not None:
                    names.add(instruction.name)
                for name in names:
                    found.setdefault(name, []).append(each)
        return found

    # The user's lines

    def python_line(self, definition: Definition) -> MetadataSource | None:
        """The user's line that made an instruction, as metadata or a location states it."""
        if self.is_mlir:
            instruction = self.instruction(definition)
            source = instruction.source if instruction is not None else None
            return source if isinstance(source, MetadataSource) else None
        begin = self.source.find("metadata={", definition.end, definition.stop + 1)
        if begin < 0:
            return None
        stated = self.source[begin : definition.stop + 1]
        file, frame = _SOURCE.search(stated), _FRAME.search(stated)
        given: dict[str, object] = {"stack_frame_id": int(frame[1])} if frame else {}
        if file is not None and file[2]:
            given |= {"source_file": file[1], "source_line": int(file[2])}
        return origin(self._frames_at(definition.begin), given)

    def _frames_at(self, place: int) -> dict[int, MetadataSource]:
        """The stack frames of the module that holds a place, by number."""
        found = [each for each in self._frames if each[0] <= place]
        return found[-1][1] if found else {}

    @cached_property
    def _frames(self) -> list[tuple[int, dict[int, MetadataSource]]]:
        """The tables of stack frames, each with its place."""
        heads = [each.start for each in self.index.computations]
        found = []
        for match in _TABLES.finditer(self.source):
            end = bisect.bisect_left(heads, match.start())
            stop = heads[end] if end < len(heads) else len(self.source)
            found.append((match.start(), read_frames(self.source[match.start() : stop])))
        return found

    def python_links(self) -> Iterator[tuple[int, int, MetadataSource]]:
        """Each name of a source file in metadata, with the line that it states."""
        for match in _SOURCE.finditer(self.source):
            yield match.start(1), match.end(1), MetadataSource(match[1], int(match[2] or 1), "")
