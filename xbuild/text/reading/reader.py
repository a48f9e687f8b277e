"""Reader of HLO text: modules and computations; `body` reads the instructions of a computation."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from shape_inference import AnyShape, ProgramShape, compatible
from shape_inference.types import of_one_width

from ...core.graph import Computation, MetadataSource, Module
from ...process.gc_pause import no_collection
from ..codecs.aliases import check_aliases
from ..codecs.header import Header, read_header
from ..spelling.faults import COUNTED_FAULTS, MOST_FAULTS, Fault, HloParseError, Poisoned, parse_error
from ..spelling.scanner import NAME, Scanner
from .body import Body
from .counts import Counted, check_counts, infer_counts, set_counts
from .frames import Frames, origin, read_frames
from .lines import Known
from .parts import SEVERAL, second_of

# The next place where an instruction or the end of a computation can begin.
_RESUME = re.compile(r"\n[ \t\r]*+(?=(?:ROOT[ \t]++)?%?[A-Za-z_][A-Za-z0-9_.-]*+[ \t]++=|\})")

# The next place where a computation can begin.
_NEXT = re.compile(r"\n(?=(?:[ \t]*+ENTRY[ \t]++)?%?[A-Za-z_][A-Za-z0-9_.-]*+[ \t]*+[({])")

_SHAPE = re.compile(r"[a-z]\w*+\[[^\[\]\n]*+\](?:\{[^{}\n]*+\})?|\([^()\n]*+\)", re.ASCII)

_MLIR = re.compile(r"\s*+(?:#[^\n]*+\n\s*+)*+module\s*+(?:@|attributes\b|\{\s*+(?:func\.func|sdy\.mesh)\s++[@\w])")


def parse_hlo(
    text: str | bytes,
    file: str | None = None,
    *,
    origins: bool = False,
    replicas: int | None = None,
    partitions: int | None = None,
) -> Module:
    """The module that HLO text spells, each shape inferred again and compared with the one that is written.

    Layouts, shardings, metadata, backend_config and the like are kept and printed back. `file` is what errors call the
    text. With `origins`, reports name the lines of the program that the metadata state, and not those of the text.
    `replicas` and `partitions` are their numbers, whatever the header states; where neither states any, there are as
    many as groups, pairs and shardings name, and `annotations["inferred_counts"]` of the module says from what.
    Raises HloParseError with up to twenty faults, each with line, column and what was expected.

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
        text = text.decode("utf-8", errors="surrogateescape")
    if not isinstance(text, str):
        raise TypeError(f"HLO text is wanted, and {type(text).__name__} is given")
    check_counts(replicas, partitions)
    with no_collection():
        return Reader(text, file, origins, (replicas, partitions)).module()


class Reader(Scanner):
    """Reads one module; a computation that had faults of its own is None, and what needs it is not blamed."""

    def __init__(
        self, text: str, file: str | None = None, origins: bool = False, counts: Counted = (None, None)
    ) -> None:
        super().__init__(text)
        self.file, self.origins, self.counts = file, origins, counts
        self.frames: Frames = {}
        self.header = Header()
        self.computations: dict[str, Computation | None] = {}
        self.order: list[Computation] = []
        self.inline, self.last = 0, ""
        self.started: set[Computation] = set()
        self.faults, self.count = list[Fault](), 0
        self.known: dict[tuple[str, ...], Known] = {}
        self.shapes: dict[str, AnyShape] = {}
        self._lines = (0, 1)
        self._known_names: frozenset[str] | None = None

    def module(self) -> Module:
        try:
            entry = self._read()
        except Fault as fault:
            self.keep(fault)
        except RecursionError:
            self.keep(Fault("syntax", "this is nested too deep", self.place))
        if self.faults:
            raise self._error()
        assert entry is not None  # else there is a fault
        infer_counts(self.header, self.order)
        return Module(
            self.header.name or f"module_{entry.name}",
            entry,
            tuple(self.order),
            num_replicas=self.header.num_replicas,
            num_partitions=self.header.num_partitions,
            is_scheduled=self.header.is_scheduled,
            annotations=self.header.annotations,
        )

    def _error(self) -> HloParseError:
        return parse_error(self.text, self.file, self.faults, self.count)

    def keep(self, fault: Fault) -> None:
        """Record a fault; of very many faults the later ones are only counted."""
        self.count += 1
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(fault)
        self.is_terse = len(self.faults) == MOST_FAULTS

    def _read(self) -> Computation | None:
        if _MLIR.match(self.text):
            hint = "xb.parse_stablehlo reads it, and xb.parse either"
            self.fail("syntax", "this is MLIR, and HLO text is wanted", hint)
        count, place = second_of(self.text)
        if count > 1:
            self.fail("syntax", f"the text has {count} modules, and one is wanted", SEVERAL, place=place)
        if not self._recovers(self._header):
            return None
        set_counts(self.header, *self.counts)
        entry: str | None = None
        while self.skip() < len(self.text) and self.count < COUNTED_FAULTS:
            place = self.skip()
            is_entry = self.take_word("ENTRY")
            if is_entry and entry is not None:
                self.keep(Fault("syntax", f"{entry!r} is the ENTRY already; there is one in a module", place))
            if not self._recovers(self._computation):
                return None
            entry = self.last if is_entry else entry
        if not self.last and not self.count:
            self.expected("a computation")
        if self.count:
            return None
        found = self.computations[self.last if entry is None else entry]
        assert found is not None  # else there is a fault
        check_aliases(self, self.header.aliases, found)
        return found

    def _recovers(self, part: Callable[[], None]) -> bool:
        """Read a part; after a fault go on at the next computation, False where there is none."""
        try:
            part()
        except Fault as fault:
            self.keep(fault)
            following = _NEXT.search(self.text, self.place)
            self.place = following.end() if following else len(self.text)
            return following is not None
        return True

    def _header(self) -> None:
        self.header = read_header(self)
        if self.origins:
            self.frames = read_frames(self.header.annotations.get("stack_tables", ""))

    def _computation(self) -> None:
        place = self.skip()
        name = self.name("the name of a computation")
        if name in self.computations:
            self.fail("duplicate_name", f"there is a computation {name!r} already", place=place)
        try:
            written = self._signature()
            self.expect("{", f" before the instructions of {name!r}")
            computation = self.body(name, written)
        except Fault:
            self.computations[name] = None
            raise
        self.last, self.computations[name] = name, computation
        if computation is not None:
            self.add(computation)
        while self.take(","):
            key, key_place = self.key()
            if key != "execution_thread":
                self.fail("unknown_attribute", f"a computation has no attribute {key!r}", place=key_place)
            self.string()

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
        if written and not (
            compatible(written[1].result, computation.root.shape)
            or (computation.root.name in body.bits and of_one_width(written[1].result, computation.root.shape))
        ):
            message = (
                f"{name!r} is to give {written[1].result}, and its root {computation.root.name!r} "
                f"is {computation.root.shape}"
            )
            self.keep(Fault("shape_mismatch", message, written[0]))
            return None
        return computation

    def _instruction(self, body: Body) -> None:
        """One instruction; after a fault go on at the next line that looks like one."""
        begin = self.place
        try:
            body.read()
        except (Fault, Poisoned) as fault:
            body.poison()
            if isinstance(fault, Fault):
                self.keep(fault)
            if self.depth or self.count >= COUNTED_FAULTS:
                raise self._error() from None
            read = self.text[begin : max(begin, self.place)].rstrip()  # blanks may have been looked through already
            resume = _RESUME.search(self.text, begin + len(read))
            if resume is None:
                raise self._error() from None
            self.place = resume.end()

    def origin(self, metadata: Mapping[str, Any] | None) -> MetadataSource | None:
        """The line of the program that metadata name, where that is asked for."""
        return origin(self.frames, metadata) if metadata and self.origins else None

    def shape(self) -> AnyShape:
        """The shape at this place; shapes that were read before are looked up by their text."""
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
            self.inline += 1
            computation = self.body(f"inline.{self.inline}")
        if computation is None:
            raise Poisoned
        self.add(computation)
        return computation

    def add(self, computation: Computation) -> None:
        """Keep a computation of the module, after those that it calls."""
        self.order.append(computation)

    def _named(self) -> Computation:
        place = self.skip()
        name = self.name("the name of a computation")
        if name not in self.computations:
            hints = self.near(name, self.computations) or ("a computation has to stand before those that call it",)
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
