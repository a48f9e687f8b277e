"""Which results of a module's entry share memory with its parameters, and which parameters may be overwritten."""

from __future__ import annotations

from attrs import frozen

from shape_inference import AnyShape, Dims, TupleShape

from ...core.graph import Computation
from ..spelling.scanner import Scanner

_KINDS = ("may-alias", "must-alias")


@frozen
class Alias:
    """One entry of input_output_alias: a part of the result, of which parameter, and which part of that."""

    place: int
    output: Dims
    number: int
    index: Dims


def read_input_output_alias(scanner: Scanner) -> list[Alias]:
    """`{ {0}: (1, {}, may-alias), ... }`"""
    return _entries(scanner, _alias)


def read_buffer_donor(scanner: Scanner) -> list[Alias]:
    """`{ (0, {}), ... }`; XLA does not ask whether there are such parameters."""
    _entries(scanner, _donor)
    return []


def _entries(scanner: Scanner, entry: object) -> list[Alias]:
    found: list[Alias] = []
    scanner.expect("{")
    while not scanner.take("}"):
        found.append(entry(scanner))  # type: ignore[operator]
        if not scanner.take(","):
            scanner.expect("}", " or ','")
            break
    return found


def _dims(scanner: Scanner) -> Dims:
    return tuple(scanner.listed(scanner.integer))


def _alias(scanner: Scanner) -> Alias:
    place = scanner.skip()
    output = _dims(scanner)
    scanner.expect(":", ", as in {0}: (1, {}, may-alias),")
    number, index = _parameter(scanner)
    if scanner.take(","):
        kind = scanner.word()
        if kind not in _KINDS:
            scanner.fail("syntax", f"{kind!r} is neither may-alias nor must-alias", *scanner.near(kind, _KINDS))
    scanner.expect(")")
    return Alias(place, output, number, index)


def _donor(scanner: Scanner) -> Alias:
    place = scanner.skip()
    number, index = _parameter(scanner)
    scanner.expect(")")
    return Alias(place, (), number, index)


def _parameter(scanner: Scanner) -> tuple[int, Dims]:
    scanner.expect("(", ", as in (0, {}),")
    place = scanner.skip()
    number = scanner.integer()
    if number < 0:
        scanner.fail("invalid_attribute", f"{number} is no number of a parameter; they count from 0", place=place)
    scanner.expect(",")
    return number, _dims(scanner)


def check_aliases(scanner: Scanner, aliases: list[Alias], entry: Computation) -> None:
    """That each names a part that the result has, and one of a parameter that there is, which no other has."""
    parameters = entry.parameters
    taken: dict[tuple[int, Dims], Dims] = {}
    for each in aliases:
        problem = None
        if not _has(entry.root.shape, each.output):
            problem = f"the result is {entry.root.shape}, which has no element {_shown(each.output)}"
        elif each.number >= len(parameters):
            problem = f"there is no parameter {each.number}; the entry has {len(parameters)}"
        elif not _has(parameters[each.number].shape, each.index):
            shape = parameters[each.number].shape
            problem = f"parameter {each.number} is {shape}, which has no element {_shown(each.index)}"
        elif taken.setdefault((each.number, each.index), each.output) != each.output:
            other = _shown(taken[each.number, each.index])
            problem = f"parameter {each.number} at {_shown(each.index)} is an alias of {other} already"
        if problem:
            scanner.fail(
                "invalid_attribute", f"input_output_alias of {_shown(each.output)}: {problem}", place=each.place
            )


def _has(shape: AnyShape, index: Dims) -> bool:
    for each in index:
        if not isinstance(shape, TupleShape) or not 0 <= each < len(shape):
            return False
        shape = shape.elements[each]
    return True


def _shown(index: Dims) -> str:
    return f"{{{','.join(map(str, index))}}}"
