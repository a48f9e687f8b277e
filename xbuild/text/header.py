"""The header of a module: its name and attributes, aliases of buffers, and the tables of stack frames."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from attrs import Factory, define, frozen

from shape_inference import AnyShape, Dims, ProgramShape, TupleShape, XbuildError
from shape_inference.bounds import MOST_DEVICES
from shape_inference.escaping import hlo_kept, hlo_text

from ..core.graph import Computation, MetadataSource
from .annotations import Raw, frontend_text, read_frontend_text, read_raw
from .scanner import NAME, Fault, Scanner

Entry = TypeVar("Entry")

# ----------------------------------------------------------------------------
# Aliases and donors: results that share memory with parameters, and parameters that may be overwritten

ALIASES, DONORS = "input_output_alias", "buffer_donor"
_KINDS = ("may-alias", "must-alias")


@frozen
class Donor:
    """An entry of buffer_donor, `(1, {0})`: a part of a parameter whose memory results may use.

    `text` is the entry in the text.
    """

    number: int
    index: Dims
    text: str


@frozen
class Alias(Donor):
    """An entry of input_output_alias, `{2}: (1, {0}, may-alias)`: a part of the result in the memory of a parameter.

    `kind` is empty if the entry states none, which means may-alias.
    """

    output: Dims
    kind: str = ""
    place: int = 0


def alias(output: Dims, number: int, index: Dims, kind: str, place: int = 0) -> Alias:
    """An alias that was not read from HLO text, with its text."""
    return Alias(number, index, f"{_index_text(output)}: ({number}, {_index_text(index)}, {kind})", output, kind, place)


def donor(number: int, index: Dims) -> Donor:
    """A donor that was not read from HLO text, with its text."""
    return Donor(number, index, f"({number}, {_index_text(index)})")


def entries_text(entries: Iterable[Donor]) -> Raw:
    """The annotation with these aliases or donors."""
    return Raw(f"{{ {', '.join(each.text for each in entries)} }}")


def stated_aliases(annotations: Mapping[str, Any]) -> tuple[Alias, ...]:
    """The aliases in the annotations of a module; none if the text cannot be read, which is then only kept as text.

    >>> stated_aliases({"input_output_alias": "{ {0}: (1, {}, must-alias) }"})
    (Alias(number=1, index=(), text='{0}: (1, {}, must-alias)', output=(0,), kind='must-alias', place=2),)
    """
    return _read_annotation(str(annotations.get(ALIASES, "")), _read_alias)


def stated_donors(annotations: Mapping[str, Any]) -> tuple[Donor, ...]:
    """The donors in the annotations of a module; none if the text cannot be read, which is then only kept as text."""
    return _read_annotation(str(annotations.get(DONORS, "")), _read_donor)


def stated_entry_shape(annotations: Mapping[str, Any]) -> ProgramShape | None:
    """The shapes of parameters and result, with layouts, in the annotations of a module; None if none can be read.

    >>> stated_entry_shape({"entry_computation_layout": "{(f32[8]{0:S(5)})->f32[8]{0}}"}).parameters[0].layout
    {0:S(5)}
    """
    scanner = Scanner(str(annotations.get(LAYOUT, "")))
    try:
        scanner.expect("{")
        parameters = scanner.listed(scanner.shape, "(", ")")
        scanner.expect("->")
        return ProgramShape(tuple(parameters), scanner.shape())
    except Fault:
        return None


@functools.lru_cache
def _read_annotation(text: str, entry: Callable[[Scanner], Entry]) -> tuple[Entry, ...]:
    scanner = Scanner(text)
    try:
        found = _read_entries(scanner, entry) if text else []
    except Fault:
        return ()
    return () if scanner.skip() < len(text) else tuple(found)


def _read_entries(scanner: Scanner, entry: Callable[[Scanner], Entry]) -> list[Entry]:
    """`{ {0}: (1, {}, may-alias), ... }`, or `{ (0, {}), ... }`."""
    found: list[Entry] = []
    scanner.expect("{")
    while not scanner.take("}"):
        found.append(entry(scanner))
        if not scanner.take(","):
            scanner.expect("}", " or ','")
            break
    return found


def _read_index(scanner: Scanner) -> Dims:
    return tuple(scanner.listed(scanner.integer))


def _read_alias(scanner: Scanner) -> Alias:
    place = scanner.skip()
    output = _read_index(scanner)
    scanner.expect(":", ", as in {0}: (1, {}, may-alias)")
    number, index = _read_parameter(scanner)
    kind = ""
    if scanner.take(","):
        kind = scanner.word()
        if kind not in _KINDS:
            scanner.fail("syntax", f"expected may-alias or must-alias, got {kind!r}", *scanner.near(kind, _KINDS))
    scanner.expect(")")
    return Alias(number, index, scanner.text[place : scanner.place], output, kind, place)


def _read_donor(scanner: Scanner) -> Donor:
    place = scanner.skip()
    number, index = _read_parameter(scanner)
    scanner.expect(")")
    return Donor(number, index, scanner.text[place : scanner.place])


def _read_parameter(scanner: Scanner) -> tuple[int, Dims]:
    scanner.expect("(", ", as in (0, {})")
    place = scanner.skip()
    number = scanner.integer()
    if number < 0:
        scanner.fail("invalid_attribute", f"{number} is not a valid parameter number; numbers start at 0", place=place)
    scanner.expect(",")
    return number, _read_index(scanner)


def check_aliases(scanner: Scanner, aliases: list[Alias], entry: Computation) -> None:
    """Check that each alias names existing parts of result and parameter, and that no two share one of a parameter."""
    parameters = entry.parameters
    taken: dict[tuple[int, Dims], Dims] = {}
    for each in aliases:
        problem = None
        if not _has_element(entry.root.shape, each.output):
            problem = f"the result is {entry.root.shape}, which has no element {_index_text(each.output)}"
        elif each.number >= len(parameters):
            problem = f"parameter {each.number} does not exist; the entry computation has {len(parameters)}"
        elif not _has_element(parameters[each.number].shape, each.index):
            shape = parameters[each.number].shape
            problem = f"parameter {each.number} is {shape}, which has no element {_index_text(each.index)}"
        elif taken.setdefault((each.number, each.index), each.output) != each.output:
            other = _index_text(taken[each.number, each.index])
            problem = f"parameter {each.number} at {_index_text(each.index)} is already an alias of {other}"
        if problem:
            scanner.fail(
                "invalid_attribute", f"input_output_alias of {_index_text(each.output)}: {problem}", place=each.place
            )


def _has_element(shape: AnyShape, index: Dims) -> bool:
    for each in index:
        if not isinstance(shape, TupleShape) or not 0 <= each < len(shape):
            return False
        shape = shape.elements[each]
    return True


def _index_text(index: Dims) -> str:
    return f"{{{','.join(map(str, index))}}}"


# ----------------------------------------------------------------------------
# The header of a module: name, attributes, and tables of stack frames

TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")

LAYOUT = "entry_computation_layout"

# In the order of XLA's printer: attributes up to the layout, and those after the counts.
BEFORE_COUNTS = (
    ALIASES, DONORS, "alias_passthrough_params", LAYOUT,
    "allow_spmd_sharding_propagation_to_parameters", "allow_spmd_sharding_propagation_to_output",
)  # fmt: skip
AFTER_COUNTS = ("frontend_attributes", "origin_recovery_table", "debug_attributes", "backend_config")
CONFIGS = "computation_configs"
"""The annotation of a module that holds the backend_config of computations, by name."""
_KNOWN = ("is_scheduled", "replica_count", "num_partitions", *BEFORE_COUNTS, *AFTER_COUNTS)


@define
class Header:
    """The header: `annotations` hold tables, and attributes that xbuild does not interpret, as text."""

    name: str = ""
    num_replicas: int = 1
    num_partitions: int = 1
    is_scheduled: bool = False
    states_counts: bool = False
    annotations: dict[str, Any] = Factory(dict)
    aliases: list[Alias] = Factory(list)


def read_header(scanner: Scanner) -> Header:
    """Read the header, if there is one."""
    header = Header()
    if not scanner.take_word("HloModule"):
        return header
    header.name = scanner.name("the name of the module")
    scanner.take(":")  # some texts of XLA have it
    seen: set[str] = set()
    while scanner.take(","):
        _read_attribute(scanner, header, seen)
    _read_tables(scanner, header)
    return header


def _read_attribute(scanner: Scanner, header: Header, seen: set[str]) -> None:
    key, place = scanner.key()
    if key not in _KNOWN:
        message = f"a module has no attribute {key!r}; it has {', '.join(_KNOWN)}"
        scanner.fail("unknown_attribute", message, *scanner.near(key, _KNOWN), place=place)
    if key in seen:
        scanner.fail("duplicate_attribute", f"{key} appears twice", place=place)
    seen.add(key)
    if key == "is_scheduled":
        header.is_scheduled = scanner.flag()
    elif key in ("replica_count", "num_partitions"):
        _read_count(scanner, header, key)
    elif key in (ALIASES, DONORS):
        place = scanner.skip()
        if key == ALIASES:
            header.aliases += _read_entries(scanner, _read_alias)
        else:  # XLA does not check that these parameters exist
            _read_entries(scanner, _read_donor)
        header.annotations[key] = Raw(scanner.text[place : scanner.place])
    elif key == "frontend_attributes":
        header.annotations[key] = _normalize_frontend(read_raw(scanner))
    else:
        header.annotations[key] = read_raw(scanner)


def _normalize_frontend(text: Raw) -> Raw:
    """Frontend attributes in one spelling: XLA quotes a value unless it is in braces."""
    try:
        return Raw(frontend_text({key: str(value) for key, value in read_frontend_text(text).items()}))
    except XbuildError:
        return text


def _read_count(scanner: Scanner, header: Header, key: str) -> None:
    place = scanner.skip()
    count = scanner.integer()
    if count < 1:
        scanner.fail("syntax", f"{key} must be at least 1, got {count}", place=place)
    devices = count * (header.num_partitions if key == "replica_count" else header.num_replicas)
    if devices > MOST_DEVICES:
        scanner.fail(
            "syntax",
            f"{key}={count} results in {devices} devices, more than the limit of {MOST_DEVICES:,}",
            place=place,
        )
    header.states_counts = True
    setattr(header, "num_replicas" if key == "replica_count" else key, count)


def _read_tables(scanner: Scanner, header: Header) -> None:
    begin = scanner.skip()
    while (match := NAME.match(scanner.text, scanner.skip())) and match[0] in TABLES:
        scanner.place = match.end()
        while scanner.text[scanner.skip() : scanner.place + 1].isdecimal():
            scanner.integer()
            read_raw(scanner)
    if scanner.place > begin:
        header.annotations["stack_tables"] = hlo_kept(scanner.text[begin : scanner.place].rstrip())


# ----------------------------------------------------------------------------
# Tables of stack frames, which give the source lines of instructions

_TABLE = re.compile(rf"^({'|'.join(TABLES)})$", re.MULTILINE)
_STRING = re.compile(r'^(\d{1,18}) "((?:[^"\\\n]|\\.)*)"$', re.MULTILINE)
_RECORD = re.compile(r"^(\d{1,18}) \{([^}\n]*)\}$", re.MULTILINE)
_FIELD = re.compile(r"\b(\w++)=(\d{1,18})(?!\d)")  # longer numbers are not lines or ids

Frames = Mapping[int, MetadataSource]


def read_frames(tables: str) -> dict[int, MetadataSource]:
    """The innermost line of each stack frame, by number; frames with missing entries are omitted.

    >>> read_frames('''FileNames
    ... 1 "model.py"
    ... FunctionNames
    ... 1 "attention"
    ... FileLocations
    ... 1 {file_name_id=1 function_name_id=1 line=47 end_line=47}
    ... StackFrames
    ... 1 {file_location_id=1 parent_frame_id=1}''')
    {1: MetadataSource(file='model.py', line=47, function='attention')}

    Source: xla/hlo/ir/hlo_module_metadata and stack_frames, as the text of a module prints them.
    """
    parts = _TABLE.split(tables)
    table = dict(zip(parts[1::2], parts[2::2], strict=True))
    files, functions = (_parse_strings(table.get(name, "")) for name in ("FileNames", "FunctionNames"))
    places: dict[int, MetadataSource] = {}
    for number, fields in _parse_records(table.get("FileLocations", "")):
        file, line = files.get(fields.get("file_name_id", 0)), fields.get("line")
        if file and line:
            places[number] = MetadataSource(file, line, functions.get(fields.get("function_name_id", 0), "<unknown>"))
    frames = (
        (number, fields.get("file_location_id", 0)) for number, fields in _parse_records(table.get("StackFrames", ""))
    )
    return {number: places[place] for number, place in frames if place in places}


def origin(frames: Frames, metadata: Mapping[str, Any]) -> MetadataSource | None:
    """The source line in metadata: that of the stack frame, or its own."""
    if found := frames.get(metadata.get("stack_frame_id", 0)):
        return found
    file, line = metadata.get("source_file"), metadata.get("source_line")
    if not (isinstance(file, str) and file and isinstance(line, int)):
        return None
    return MetadataSource(file, line, str(metadata.get("op_name", "")))


def _parse_strings(table: str) -> dict[int, str]:
    return {int(number): hlo_text(text) for number, text in _STRING.findall(table)}


def _parse_records(table: str) -> list[tuple[int, dict[str, int]]]:
    found = _RECORD.findall(table)
    return [(int(number), {key: int(value) for key, value in _FIELD.findall(fields)}) for number, fields in found]
