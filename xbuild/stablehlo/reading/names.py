"""Names of instructions and computations: those of MLIR where HLO text can hold them."""

from __future__ import annotations

import re

from ...core.identifiers import is_identifier, nearest
from ..syntax.trees import Operation

_NUMBER = re.compile(r"\d+(?:#\d+)?", re.ASCII)
_PLAIN = re.compile(r"(?:arg|c|cst)(?:_?\d+)?", re.ASCII)


class Names:
    """The names of one computation, or of the computations of a module."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._last

    def fresh(self, wanted: str) -> str:
        """The name, or where it is taken the name with a number."""
        if wanted not in self._last:
            self._last[wanted] = 0
            return wanted
        number = self._last[wanted]
        while True:
            number += 1
            name = f"{wanted}.{number}"
            if name not in self._last:
                self._last[wanted] = number
                self._last[name] = 0
                return name

    def of(self, operation: Operation, spelling: str) -> str:
        """The name of the instruction that an operation is: `%total` is total, `%3` of an add is add.3."""
        result = operation.results[0] if operation.results else ""
        wanted = result.partition("#")[0]
        if not wanted:
            return self.fresh(spelling)
        if _NUMBER.fullmatch(wanted):
            return self.fresh(f"{_said(operation.location.name) or spelling}.{wanted}")
        return self.fresh(wanted if is_identifier(wanted) else nearest(wanted))

    def element(self, result: str, of: str, index: int) -> str:
        """The name of a result that is an element of a tuple; it is not taken yet."""
        _, _, number = result.partition("#")
        if result and not number and not _NUMBER.fullmatch(result):
            return result if is_identifier(result) else nearest(result)
        return f"{of}.{number or index}"

    def argument(self, name: str, location: str) -> str:
        """The name of an argument: that of its location where the text's own says nothing."""
        said = _said(location) if not name or _PLAIN.fullmatch(name) else ""
        wanted = said or name or "arg"
        return self.fresh(wanted if is_identifier(wanted) else nearest(wanted))


def _said(location: str) -> str:
    """The last part of a location's name, if it is a name."""
    last = location.rpartition("/")[2]
    return last if len(last) < 60 and is_identifier(last) else ""
