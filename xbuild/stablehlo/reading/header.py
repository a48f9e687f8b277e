"""What a module's attributes and those of its entry say of the whole: counts of devices, aliases, meshes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shape_inference import TupleShape

from ...core.graph import Computation
from ...core.identifiers import is_identifier, nearest
from ...text.codecs.header import Header
from ...text.spelling.groups import MOST_DEVICES
from ...text.spelling.notes import Raw
from ..syntax.trees import Operation
from .notes import shown

if TYPE_CHECKING:
    from .reader import Reader

_COUNTS = {"mhlo.num_replicas": "num_replicas", "mhlo.num_partitions": "num_partitions"}
_MESHES = "xla.sdy.meshes"


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
    _note_aliases(header, entry, computation)
    _note_meshes(reader, header)


def _count(reader: Reader, key: str, value: Any) -> int:
    if not isinstance(value, int) or value < 1:
        reader.fail("invalid_attribute", f"{key} is a number of at least 1", place=reader.tree.place)
    return value


def _note_aliases(header: Header, entry: Operation, computation: Computation) -> None:
    """The results that share memory with arguments, and the arguments that may be overwritten."""
    notes = [each.fields for each in entry.attributes.get("arg_attrs", ())]
    is_tuple = isinstance(computation.root.shape, TupleShape) and len(entry.attributes["function_type"].results) != 1
    aliases = []
    for number, fields in enumerate(notes):
        output = fields.get("tf.aliasing_output")
        if isinstance(output, int) and 0 <= output < len(entry.attributes["function_type"].results):
            aliases.append(f"{{{output if is_tuple else ''}}}: ({number}, {{}}, may-alias)")
    donors = [f"({number}, {{}})" for number, fields in enumerate(notes) if fields.get("jax.buffer_donor") is True]
    if aliases:
        header.annotations["input_output_alias"] = Raw(f"{{ {', '.join(aliases)} }}")
    if donors:
        header.annotations["buffer_donor"] = Raw(f"{{ {', '.join(donors)} }}")


def _note_meshes(reader: Reader, header: Header) -> None:
    """The meshes of Shardy, under the name that XLA gives them."""
    meshes = [each for each in reader.tree.regions[0].operations if each.name == "sdy.mesh"]
    if meshes:
        words = [f"{each.attributes['sym_name']} = {shown(each.attributes['mesh'])}" for each in meshes]
        quoted = ", ".join(words).replace("\\", "\\\\").replace('"', '\\"')
        header.annotations["frontend_attributes"] = Raw(f'{{{_MESHES}="{{{quoted}}}"}}')
