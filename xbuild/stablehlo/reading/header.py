"""What a module's attributes and those of its entry say of the whole: counts of devices, aliases, meshes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from shape_inference import TupleShape

from ...core.graph import Computation
from ...core.identifiers import is_identifier, nearest
from ...text.codecs.aliases import Alias, check_aliases
from ...text.codecs.header import Header
from ...text.spelling.groups import MOST_DEVICES
from ...text.spelling.notes import Raw
from ...text.spelling.scanner import Scanner
from ..syntax.attributes import Record
from ..syntax.trees import Operation
from .notes import shown

if TYPE_CHECKING:
    from .reader import Reader

_COUNTS = {"mhlo.num_replicas": "num_replicas", "mhlo.num_partitions": "num_partitions"}
_MESHES = "xla.sdy.meshes"
GRIDS = ("shard.grid", "mesh.mesh")
_ALIASES = "mhlo.input_output_alias"
_KINDS = {"may_alias": "may-alias", "must_alias": "must-alias"}


def read_header(reader: Reader, header: Header, entry: Operation, computation: Computation) -> None:
    """Fill the header of a module from its tree."""
    attributes = reader.tree.attributes
    name = attributes.get("sym_name", "")
    header.name = name if not name or is_identifier(name) else nearest(name)
    for key, field in _COUNTS.items():
        if key in attributes:
            setattr(header, field, _count(reader, key, attributes[key]))
    header.states_counts = header.num_replicas * header.num_partitions > 1
    if header.num_replicas * header.num_partitions > MOST_DEVICES:
        reader.fail("invalid_attribute", f"{MOST_DEVICES} devices are the most", place=reader.tree.place)
    _count_grid(reader, header)
    _note_aliases(reader, header, entry, computation)
    _note_meshes(reader, header)


def _count(reader: Reader, key: str, value: Any) -> int:
    if not isinstance(value, int) or value < 1:
        reader.fail("invalid_attribute", f"{key} is a number of at least 1", place=reader.tree.place)
    return value


def _count_grid(reader: Reader, header: Header) -> None:
    """The number of partitions is that of the devices of the grid, where the module states none."""
    grids = [each.attributes["shape"] for each in reader.tree.regions[0].operations if each.name in GRIDS]
    counts = [math.prod(sizes) for sizes in grids if isinstance(sizes, tuple) and -1 not in sizes]
    if counts and not header.states_counts and max(counts) <= MOST_DEVICES:
        header.num_partitions, header.states_counts = max(counts), True


def _note_aliases(reader: Reader, header: Header, entry: Operation, computation: Computation) -> None:
    """The results that share memory with arguments, and the arguments that may be overwritten."""
    notes = [each.fields for each in entry.attributes.get("arg_attrs", ())]
    aliases = [*_stated_aliases(reader), *_noted_aliases(reader, entry, computation, notes)]
    donors = [f"({number}, {{}})" for number, fields in enumerate(notes) if fields.get("jax.buffer_donor") is True]
    if aliases:
        check_aliases(Scanner(reader.text), [alias for alias, _ in aliases], computation)
        header.annotations["input_output_alias"] = Raw(f"{{ {', '.join(text for _, text in aliases)} }}")
    if donors:
        header.annotations["buffer_donor"] = Raw(f"{{ {', '.join(donors)} }}")


def _noted_aliases(
    reader: Reader, entry: Operation, computation: Computation, notes: list[Any]
) -> Iterator[tuple[Alias, str]]:
    """The aliases that arguments name."""
    results = len(entry.attributes["function_type"].results)
    is_tuple = isinstance(computation.root.shape, TupleShape) and results != 1
    for number, fields in enumerate(notes):
        output = fields.get("tf.aliasing_output")
        if isinstance(output, int) and 0 <= output < results:
            yield _alias(reader, (output,) if is_tuple else (), number, (), "may-alias")


def _stated_aliases(reader: Reader) -> Iterator[tuple[Alias, str]]:
    """The aliases that XLA's conversion, and PyTorch/XLA, state at the module."""
    stated = reader.tree.attributes.get(_ALIASES, ())
    for entry in stated if isinstance(stated, tuple) else (None,):
        fields = entry.fields if isinstance(entry, Record) else {}
        alias = fields["alias"].fields if isinstance(fields.get("alias"), Record) else {}
        number, kind = alias.get("parameter_number"), alias.get("kind")
        place: Any = fields.get("output_index")
        inside = alias.get("parameter_index", ())
        if type(number) is not int or number < 0 or kind not in _KINDS or not _is_index(place) or not _is_index(inside):
            message = f"{_ALIASES}: an entry is {{alias = {{kind, parameter_index, parameter_number}}, output_index}}"
            reader.fail("invalid_attribute", message, place=reader.tree.place)
        yield _alias(reader, place, number, inside, _KINDS[kind])


def _alias(
    reader: Reader, output: tuple[int, ...], number: int, index: tuple[int, ...], kind: str
) -> tuple[Alias, str]:
    """An alias, and its text in HLO."""
    text = f"{{{','.join(map(str, output))}}}: ({number}, {{{','.join(map(str, index))}}}, {kind})"
    return Alias(reader.tree.place, output, number, index), text


def _is_index(found: Any) -> bool:
    return isinstance(found, tuple) and all(type(each) is int and each >= 0 for each in found)


def _note_meshes(reader: Reader, header: Header) -> None:
    """The meshes of Shardy, under the name that XLA gives them."""
    meshes = [each for each in reader.tree.regions[0].operations if each.name == "sdy.mesh"]
    if meshes:
        words = [f"{each.attributes['sym_name']} = {shown(each.attributes['mesh'])}" for each in meshes]
        quoted = ", ".join(words).replace("\\", "\\\\").replace('"', '\\"')
        header.annotations["frontend_attributes"] = Raw(f'{{{_MESHES}="{{{quoted}}}"}}')
