"""Reader of a module's header: its name, its attributes, and the tables of stack frames."""

from __future__ import annotations

from typing import Any

from attrs import Factory, define

from shape_inference.escaping import hlo_kept

from ..spelling.groups import MOST_DEVICES
from ..spelling.notes import Raw, raw
from ..spelling.scanner import NAME, Scanner
from .aliases import Alias, read_buffer_donor, read_input_output_alias

TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")

LAYOUT = "entry_computation_layout"

# In the order of XLA's printer; what stands before the layout, and what after the counts.
BEFORE_COUNTS = (
    "input_output_alias", "buffer_donor", "alias_passthrough_params", LAYOUT,
    "allow_spmd_sharding_propagation_to_parameters", "allow_spmd_sharding_propagation_to_output",
)  # fmt: skip
AFTER_COUNTS = ("frontend_attributes", "origin_recovery_table")
_KNOWN = ("is_scheduled", "replica_count", "num_partitions", *BEFORE_COUNTS, *AFTER_COUNTS)
_READ = {"input_output_alias": read_input_output_alias, "buffer_donor": read_buffer_donor}


@define
class Header:
    """`aliases` are those of input_output_alias; `annotations` hold the attributes that mean nothing here, as they are
    written, and the tables.
    """

    name: str = ""
    num_replicas: int = 1
    num_partitions: int = 1
    is_scheduled: bool = False
    states_counts: bool = False
    annotations: dict[str, Any] = Factory(dict)
    aliases: list[Alias] = Factory(list)


def read_header(scanner: Scanner) -> Header:
    """The header, which may be missing."""
    header = Header()
    if not scanner.take_word("HloModule"):
        return header
    header.name = scanner.name("the name of the module")
    scanner.take(":")  # XLA's own texts have it in one place or another
    seen: set[str] = set()
    while scanner.take(","):
        _attribute(scanner, header, seen)
    _tables(scanner, header)
    return header


def _attribute(scanner: Scanner, header: Header, seen: set[str]) -> None:
    key, place = scanner.key()
    if key not in _KNOWN:
        message = f"a module has no attribute {key!r}; it has {', '.join(_KNOWN)}"
        scanner.fail("unknown_attribute", message, *scanner.near(key, _KNOWN), place=place)
    if key in seen:
        scanner.fail("duplicate_attribute", f"{key} is given twice", place=place)
    seen.add(key)
    if key == "is_scheduled":
        header.is_scheduled = scanner.flag()
    elif key in ("replica_count", "num_partitions"):
        _count(scanner, header, key)
    elif key in _READ:
        place = scanner.skip()
        header.aliases += _READ[key](scanner)
        header.annotations[key] = Raw(scanner.text[place : scanner.place])
    else:
        header.annotations[key] = raw(scanner)


def _count(scanner: Scanner, header: Header, key: str) -> None:
    place = scanner.skip()
    count = scanner.integer()
    if count < 1:
        scanner.fail("syntax", f"{key}={count}, and at least 1 is wanted", place=place)
    devices = count * (header.num_partitions if key == "replica_count" else header.num_replicas)
    if devices > MOST_DEVICES:
        scanner.fail("syntax", f"{key}={count} makes {devices} devices, and {MOST_DEVICES} are the most", place=place)
    header.states_counts = True
    setattr(header, "num_replicas" if key == "replica_count" else key, count)


def _tables(scanner: Scanner, header: Header) -> None:
    begin = scanner.skip()
    while (match := NAME.match(scanner.text, scanner.skip())) and match[0] in TABLES:
        scanner.place = match.end()
        while scanner.text[scanner.skip() : scanner.place + 1].isdecimal():
            scanner.integer()
            raw(scanner)
    if scanner.place > begin:
        header.annotations["stack_tables"] = hlo_kept(scanner.text[begin : scanner.place].rstrip())
