"""Parser of operations: pretty forms by their rows, the generic form, and lines like one that was parsed before."""

from __future__ import annotations

import re

from ...text.spelling.faults import COUNTED_FAULTS, MOST_FAULTS, Fault
from . import form_parts as form_parts
from . import region_parts as region_parts
from .attributes import Record
from .drafts import Draft
from .form_rows import OTHERS, ROWS, SHORT
from .forms import compiled
from .lines import Written, line_at
from .location_reader import LocationReader
from .trees import Argument, Form, Operation, Region

_RESULT = re.compile(r"%([\w$.-]++)(?:[ ]*+:[ ]*+(\d{1,6}+))?", re.ASCII)
_LABEL = re.compile(r"\^[\w$.-]++", re.ASCII)
_RESUME = re.compile(r'\n[ \t]*+(?=%[\w$.-]++(?::\d++)? = |"?[a-z_]++\.[a-z_]\w*+|return\b|\})', re.ASCII)


class Parser(LocationReader):
    """Parses one module; `faults` has the first faults, `count` is the number of all."""

    def __init__(self, text: str, place: int = 0) -> None:
        super().__init__(text, place)
        self.faults: list[Fault] = []
        self.count = 0
        self.written: dict[str, Written] = {}

    def module(self) -> Operation:
        """The module of the text; operations without one around them are a module without a name."""
        found: list[Operation] = []
        while self.skip() < len(self.text):
            if self.text[self.place] in "#!":
                self.definition()
            elif self.text.startswith("{-#", self.place):
                self._resources()
            else:
                self._recovering(found)
        if len(found) == 1 and found[0].name == "builtin.module":
            return found[0]
        return Operation(Form("builtin.module", {}, (), ()), regions=(Region((), tuple(found)),))

    def keep(self, fault: Fault) -> None:
        """Record a fault; of very many faults the later ones are only counted."""
        self.count += 1
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(fault)
        self.is_terse = len(self.faults) == MOST_FAULTS

    def _resources(self) -> None:
        end = self.text.find("#-}", self.place)
        if end < 0:
            self.fail("syntax", "'{-#' is never closed")
        self.place = end + 3

    def _recovering(self, found: list[Operation]) -> None:
        """Read an operation; after a fault go on at the next line that looks like one, if braces are balanced."""
        begin = self.skip()
        try:
            found.append(self.operation())
        except Fault as fault:
            if self.count + 1 >= COUNTED_FAULTS:
                raise
            resume = _RESUME.search(self.text, max(self.place, begin + 1) - 1)
            if resume is None or self._opened(begin, resume.start()):
                raise
            self.keep(fault)
            self.place = resume.end()

    def _opened(self, begin: int, end: int) -> bool:
        return self.text.count("{", begin, end) != self.text.count("}", begin, end)

    def operation(self) -> Operation:
        line = line_at(self.text, self.place)
        known = self.written.get(line.key) if line else None
        if line and known and (found := known.operation(self, line)):
            self.place = line.following
            return found
        place = self.place
        found = self._in_full(place)
        if line and line.ends(self.text, self.place) and line.operands == list(found.operands):
            self.written.setdefault(line.key, Written(found.form, found.regions))
        return found

    def _in_full(self, place: int) -> Operation:
        names = self._results() if self.text.startswith("%", place) else []
        draft = Draft(*self._name())
        if self.text[draft.place] == '"':
            self._generic(draft)
        else:
            self._pretty(draft)
        location = self.located()
        form = Form(draft.name, draft.attributes, draft.operand_types, draft.result_types)
        if len(draft.operands) != len(form.operand_types):
            self.fail(
                "arity_mismatch",
                f"{draft.name} has {len(draft.operands)} operands, and {len(form.operand_types)} types are written",
                place=draft.place,
            )
        results = self._named(names, form, draft.place)
        return Operation(form, draft.operands, results, draft.regions, place=place, location=location)

    def _results(self) -> list[tuple[str, int]]:
        """The names before `=`, each with the number of results that it stands for."""
        found: list[tuple[str, int]] = []
        while True:
            match = self.scan(_RESULT)
            if not match:
                self.expected("the name of a result")
            found.append((match[1], int(match[2] or 1)))
            if not self.take(","):
                break
        self.expect("=", f" after %{found[-1][0]}")
        return found

    def _named(self, names: list[tuple[str, int]], form: Form, place: int) -> tuple[str, ...]:
        count = sum(count for _, count in names)
        if names and count != len(form.result_types):
            message = f"{form.name} has {len(form.result_types)} results, and names of {count} are written"
            self.fail("arity_mismatch", message, place=place)
        return tuple([each for name, n in names for each in ([name] if n == 1 else [f"{name}#{k}" for k in range(n)])])

    def _name(self) -> tuple[str, int]:
        place = self.skip()
        if self.text.startswith('"', place):
            return self.string(), place
        name = self.word()
        return SHORT.get(name, name), place

    def _pretty(self, draft: Draft) -> None:
        row = ROWS.get(draft.name)
        if row is None and draft.name.startswith("chlo."):
            row = OTHERS
        if row is None:
            self._no_form(draft)
        else:
            for each in compiled(row):
                each(self, draft)

    def _no_form(self, draft: Draft) -> None:
        if "." not in draft.name:
            self.fail("syntax", f"an operation is wanted, and {draft.name[:40]!r} is none", place=draft.place)
        hints = self.near(draft.name, ROWS)
        quoted = f'"{draft.name}"(...) : (...) -> ...'
        self.fail(
            "unknown_opcode",
            f"{draft.name[:60]} has no short form: it is written as {quoted}",
            *hints,
            place=draft.place,
        )

    def _generic(self, draft: Draft) -> None:
        """`(operands) <{properties}> (regions) {attributes} : function type`."""
        draft.operands = tuple(self.listed(self.value, "(", ")"))
        if self.take("<"):
            draft.attributes.update(self.dictionary())
            self.expect(">", " at the end of the properties")
        if self.sees("("):
            draft.regions = tuple(self.listed(lambda: self.region(()), "(", ")"))
        for each in compiled("{} =function"):
            each(self, draft)

    def region(self, arguments: tuple[Argument, ...]) -> Region:
        """The block between braces, whose arguments stand in it or were read before."""
        begin = self.skip()
        self.expect("{", " and a region")
        with self.deeper():
            if self.scan(_LABEL):
                given = tuple(self.listed(self.argument, "(", ")")) if self.sees("(") else ()
                arguments = given or arguments
                self.expect(":", " after the arguments of the block")
            found: list[Operation] = []
            while not self.take("}"):
                if self.text.startswith("^", self.place):
                    self.fail("syntax", "xbuild has no regions of several blocks")
                if self.skip() >= len(self.text):
                    self.fail("syntax", "this region is never closed", place=begin)
                self._recovering(found)
        return Region(arguments, tuple(found), begin)

    def argument(self) -> Argument:
        """The name, type and location of an argument."""
        name = self.value()
        self.expect(":", f" and the type of %{name}")
        return Argument(name, self.type(), self.located())

    def noted_argument(self, notes: list[Record]) -> Argument:
        """An argument of a function, whose attributes are added to `notes`; one of a declaration may have no name."""
        name = ""
        if self.sees("%"):
            name = self.value()
            self.expect(":", f" and the type of %{name}")
        type_ = self.type()
        notes.append(Record("", self.dictionary() if self.sees("{") else {}, ""))
        return Argument(name, type_, self.located())

    def fields_of(self, kind: str) -> Record:
        """The record of an attribute whose kind is not written, such as the algorithm of a product."""
        begin = self.skip()
        text = self.bracketed()[1:-1]
        return Record(kind, self._fields(kind, begin + 1, text), text.strip())
