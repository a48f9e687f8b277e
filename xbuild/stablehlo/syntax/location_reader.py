"""Reader of locations, and of aliases, which may be defined after they are used."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from attrs import evolve

from ..literals.strings import unescaped
from .attribute_reader import AttributeReader
from .attributes import Attribute
from .locations import UNKNOWN, Location
from .types import Type

_DEFINITION = re.compile(r"^[ \t]*+([#!][A-Za-z_][\w$.-]*+)[ \t]*+=[ \t]*+", re.MULTILINE | re.ASCII)
_NAMED = re.compile(r'loc\("([^"\\\n]*+)"\((#\w++)\)\)', re.ASCII)
_ALIAS = re.compile(r"#[\w$.-]++", re.ASCII)
_POSITION = re.compile(r":(\d{1,9}+):(\d{1,9}+)(?:[ ]to[ ](?:\d++)?:\d++)?", re.ASCII)


class LocationReader(AttributeReader):
    """A scanner that reads types, attributes and locations, and knows the aliases of its text."""

    def __init__(self, text: str, place: int = 0) -> None:
        super().__init__(text, place)
        self.definitions = {match[1]: match.end() for match in _DEFINITION.finditer(text)}
        self.locations: dict[str, Location] = {}
        self.attributes: dict[str, Attribute] = {}
        self._open: set[str] = set()

    def definition(self) -> None:
        """Skip the definition of an alias; it is read where it is used, or here to find its faults."""
        begin = self.skip()
        line = self.text.rfind("\n", 0, begin) + 1
        match = _DEFINITION.match(self.text, line)
        if not match or self.text[line:begin].strip():  # after another definition it would be read again
            self.expected("an operation")
        usual = _NAMED.match(self.text, match.end())
        self.place = usual.end() if usual else match.end()
        if usual:
            return
        if match[1].startswith("!"):
            self.type()
        elif self.sees("loc("):
            self.place += 3
            self.bracketed()
        else:
            self.attribute()

    def alias(self, name: str, place: int) -> Type:
        found = self.types.get(name)
        if found is None:
            found = self.types[name] = self._aliased(name, "type", place, self.type)
        return found

    def attribute_alias(self, name: str, place: int) -> Attribute:
        if name not in self.attributes:
            self.attributes[name] = self._aliased(name, "attribute", place, self.attribute)
        return self.attributes[name]

    def _aliased(self, name: str, what: str, place: int, read: Callable[[], Any]) -> Any:
        """What stands at the definition of an alias."""
        if name not in self.definitions:
            hints = self.near(name, self.definitions)
            self.fail("undefined_name", f"there is no {what} {name[:60]!r}", *hints, place=place)
        if name in self._open:
            self.fail("undefined_name", f"{name[:60]!r} is defined by itself", place=place)
        after, self.place = self.place, self.definitions[name]
        self._open.add(name)
        try:
            return read()
        finally:
            self.place = after
            self._open.discard(name)

    def located(self) -> Location:
        """The location that may follow an operation or an argument."""
        if not self.sees("loc("):
            return UNKNOWN
        self.place += 4
        found = self._location()
        self.expect(")", " at the end of the location")
        return found

    def location_alias(self, name: str, place: int) -> Location:
        """The location that an alias stands for."""
        found = self.locations.get(name)
        if found is None:
            found = self.locations[name] = self._defined(name, place)
        return found

    def _defined(self, name: str, place: int) -> Location:
        begin = self.definitions.get(name, 0)
        usual = _NAMED.match(self.text, begin) if begin else None
        if usual and usual[2] not in self._open:
            self._open.add(name)
            try:
                with self.deeper():
                    return _under(usual[1], self.location_alias(usual[2], place))
            finally:
                self._open.discard(name)
        found = self._aliased(name, "location", place, self.located)
        assert isinstance(found, Location)
        return found

    def _location(self) -> Location:
        with self.deeper():
            place = self.skip()
            if self.text.startswith("#", place):
                match = self.scan(_ALIAS)
                return self.location_alias(match[0], place) if match else self.expected("a location")
            if self.text.startswith('"', place):
                return self._quoted()
            word = self.word()
            if word == "unknown":
                return UNKNOWN
            if word == "callsite":
                return self._callsite()
            if word == "fused":
                return self._fused()
            return self.fail("syntax", f"a location is wanted, and {word[:40]!r} is none", place=place)

    def _quoted(self) -> Location:
        text = self.string()
        position = _POSITION.match(self.text, self.place)
        if position:
            self.place = position.end()
            return Location("", text, int(position[1]), int(position[2]))
        if not self.take("("):
            return Location(text)
        child = self._location()
        self.expect(")")
        return _under(text, child)

    def _callsite(self) -> Location:
        """A line of a function, and from where that was called; the first is what is wanted."""
        begin = self.skip()
        self.bracketed()
        end, self.place = self.place, begin
        self.expect("(")
        found = self._location()
        found = evolve(found, name="", function=found.function or found.name)
        if not found.file and self.take_word("at"):
            caller = self._location()
            found = evolve(caller, name="", function=caller.function or caller.name)
        self.place = end
        return found

    def _fused(self) -> Location:
        if self.sees("<"):
            self.bracketed()
        found = self.listed(self._location, "[", "]")
        return next((each for each in found if each.file), next((each for each in found if each.name), UNKNOWN))


def _under(name: str, child: Location) -> Location:
    """A location with a name; the name that it had before is that of the function."""
    return Location(unescaped(name), child.file, child.line, child.column, child.function or child.name)
