"""HLO text in: modules and computations; `body` reads what stands in one."""

from __future__ import annotations

import re

from shape_inference import AnyShape, ProgramShape, compatible

from ..graph import Computation, Module
from .body import Body
from .faults import MOST_FAULTS, Fault, HloParseError, Poisoned, parse_error
from .header import Header, read_header
from .lines import Known
from .scanner import NAME, Scanner, did_you_mean

# The next place where an instruction or the end of a computation can begin.
_RESUME = re.compile(r"\n[ \t\r]*+(?=(?:ROOT[ \t]++)?%?[A-Za-z_][A-Za-z0-9_.-]*+[ \t]++=|\})")

_SHAPE = re.compile(r"[a-z]\w*+\[[^\[\]\n]*+\](?:\{[^{}\n]*+\})?|\([^()\n]*+\)", re.ASCII)


def parse_hlo(text: str | bytes, file: str | None = None) -> Module:
    """The module that HLO text spells, each shape inferred again and compared with the one that is written.

    Layouts, shardings, metadata, backend_config and the like are kept and printed back. `file` is what errors call the
    text. Raises HloParseError with up to ten faults, each with line, column and what was expected.

    >>> import xbuild as xb
    >>> module = xb.parse_hlo("ENTRY main { x = f32[2] parameter(0) ROOT y = negate(x) }")
    >>> print(module.entry)
    ENTRY main {
      x = f32[2] parameter(0)
      ROOT y = f32[2] negate(x)
    }

    Source: xla/hlo/parser, the grammar of HLO text.
    """
    if isinstance(text, bytes | bytearray):
        text = text.decode("utf-8", errors="replace")
    if not isinstance(text, str):
        raise TypeError(f"HLO text is wanted, and {type(text).__name__} is given")
    return Reader(text, file).module()


class Reader(Scanner):
    """Reads one module; a computation that had faults of its own is None, and what needs it is not blamed."""

    def __init__(self, text: str, file: str | None = None) -> None:
        super().__init__(text)
        self.file = file
        self.header = Header()
        self.computations: dict[str, Computation | None] = {}
        self.inline: list[Computation] = []
        self.faults: list[Fault] = []
        self.known: dict[tuple[str, ...], Known] = {}
        self.shapes: dict[str, AnyShape] = {}
        self._lines = (0, 1)
        self._known_names: frozenset[str] | None = None

    def module(self) -> Module:
        try:
            entry = self._read()
        except Fault as fault:
            self.faults.append(fault)
        except RecursionError:
            self.faults.append(Fault("syntax", "this is nested too deep", self.place))
        if self.faults:
            raise self._error()
        assert entry is not None  # else there is a fault
        order = tuple(c for c in (*self.inline, *self.computations.values()) if c is not None)
        return Module(
            self.header.name or f"module_{entry.name}",
            entry,
            order,
            num_replicas=self.header.num_replicas,
            num_partitions=self.header.num_partitions,
            is_scheduled=self.header.is_scheduled,
            annotations=self.header.annotations,
        )

    def _error(self) -> HloParseError:
        return parse_error(self.text, self.file, self.faults[:MOST_FAULTS])

    def _read(self) -> Computation | None:
        self.header = read_header(self)
        entry: str | None = None
        name = ""
        while self.skip() < len(self.text) and len(self.faults) < MOST_FAULTS:
            place = self.skip()
            is_entry = self.take_word("ENTRY")
            if is_entry and entry is not None:
                self.fail("syntax", f"{entry!r} is the ENTRY already; there is one in a module", place=place)
            name = self._computation()
            entry = name if is_entry else entry
        if not name:
            self.expected("a computation")
        return self.computations[name if entry is None else entry]

    def _computation(self) -> str:
        place = self.skip()
        name = self.name("the name of a computation")
        if name in self.computations:
            self.fail("duplicate_name", f"there is a computation {name!r} already", place=place)
        written = self._signature()
        self.expect("{", f" before the instructions of {name!r}")
        self.computations[name] = self.body(name, written)
        while self.take(","):
            key, key_place = self.key()
            if key != "execution_thread":
                self.fail("unknown_attribute", f"a computation has no attribute {key!r}", place=key_place)
            self.string()
        return name

    def _signature(self) -> tuple[int, ProgramShape] | None:
        """The program shape before the brace, and its place; it may be missing."""
        place = self.skip()
        if not self.sees("("):
            return None
        parameters = self.listed(self._parameter, "(", ")")
        self.expect("->")
        place = self.skip()
        return place, ProgramShape(parameters, self.shape())

    def _parameter(self) -> AnyShape:
        self.take("%")
        if not self.scan(NAME):
            self.expected("the name of a parameter")
        self.expect(":")
        return self.shape()

    def body(self, name: str, written: tuple[int, ProgramShape] | None = None) -> Computation | None:
        """The instructions up to the closing brace, as a computation; None where one of them is at fault."""
        body = Body(self, name)
        begin = self.place
        while not self.take("}"):
            self._instruction(body)
        if body.is_poisoned:
            return None
        computation = body.computation(begin)
        if written and not compatible(written[1].result, computation.root.shape):
            self.faults.append(
                Fault(
                    "shape_mismatch",
                    f"{name!r} is to give {written[1].result}, and its root {computation.root.name!r} "
                    f"is {computation.root.shape}",
                    written[0],
                )
            )
            return None
        return computation

    def _instruction(self, body: Body) -> None:
        """One instruction; after a fault go on at the next line that looks like one."""
        begin = self.skip()
        try:
            body.read()
        except (Fault, Poisoned) as fault:
            body.poison()
            if isinstance(fault, Fault):
                self.faults.append(fault)
            if self.depth or len(self.faults) >= MOST_FAULTS:
                raise self._error() from None
            read = self.text[begin : max(begin, self.place)].rstrip()  # blanks may have been looked through already
            resume = _RESUME.search(self.text, begin + len(read))
            if resume is None:
                raise self._error() from None
            self.place = resume.end()

    def shape(self) -> AnyShape:
        """A usual shape is looked up by its text."""
        match = _SHAPE.match(self.text, self.skip())
        if not match:
            return super().shape()
        found = self.shapes.get(match[0])
        if found is not None and not self.text.startswith("{", match.end()):
            self.place = match.end()
            return found
        begin, found = self.place, super().shape()
        if self.place == match.end():
            self.shapes[self.text[begin : self.place]] = found
        return found

    def region(self) -> Computation:
        """The computation that an attribute names, or that stands there itself in braces."""
        if not self.sees("{"):
            return self._named()
        with self.deeper():
            self.take("{")
            computation = self.body(f"inline.{len(self.inline) + 1}")
        if computation is None:
            raise Poisoned
        self.inline.append(computation)
        return computation

    def _named(self) -> Computation:
        place = self.skip()
        name = self.name("the name of a computation")
        if name not in self.computations:
            hints = did_you_mean(name, self.computations) or ("a computation has to stand before those that call it",)
            self.fail("undefined_name", f"there is no computation {name!r} before this", *hints, place=place)
        computation = self.computations[name]
        if computation is None:
            raise Poisoned
        return computation

    def line(self, place: int) -> int:
        """The line of a place that is not before the last one that was asked for."""
        last, line = self._lines
        line += self.text.count("\n", last, place)
        self._lines = place, line
        return line

    @property
    def known_names(self) -> frozenset[str]:
        """Every word of the text that stands before an `=`: names that made-up ones must not take."""
        if self._known_names is None:
            self._known_names = frozenset(re.findall(r"([A-Za-z_][A-Za-z0-9_.-]*+)[ \t\r\n]*+=", self.text))
        return self._known_names
