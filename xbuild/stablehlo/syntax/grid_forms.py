"""Pretty forms of MLIR's shard dialect, and of its older name mesh: rows, and the parts that no row can say."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .attributes import Attribute, Dense, Enumeration
from .drafts import Draft
from .forms import part
from .types import OpaqueType, ScalarType

if TYPE_CHECKING:
    from .parser import Parser

_ON = "% on $grid:symbol [ AXES = $grid_axes:ints ]"
_ROWS = f"""
all_gather: {_ON} gather_axis = $gather_axis:int {{}} =arrow
all_reduce: {_ON} [ reduction = &reduction ] {{}} =arrow
all_slice: {_ON} slice_axis = $slice_axis:int {{}} =arrow
all_to_all: {_ON} split_axis = $split_axis:int concat_axis = $concat_axis:int {{}} =arrow
broadcast: {_ON} root = $root:ints {{}} =arrow
gather: {_ON} gather_axis = $gather_axis:int root = $root:ints {{}} =arrow
get_sharding: % {{}} =arrow
grid: $sym_name:name &grid_sizes {{}}
grid_shape: $grid:symbol [ axes = $axes:ints ] {{}} =results
neighbors_linear_indices: on $grid:symbol &device split_axes = $split_axes:ints {{}} : &index_types
process_linear_index: on $grid:symbol {{}} =results
process_multi_index: on $grid:symbol [ axes = $axes:ints ] {{}} =results
recv: {_ON} [ source = $source:ints ] {{}} =arrow
reduce: {_ON} [ reduction = &reduction ] root = $root:ints {{}} =arrow
reduce_scatter: {_ON} [ reduction = &reduction ] &scatter_axis {{}} =arrow
scatter: {_ON} &scatter_axis root = $root:ints {{}} =arrow
send: {_ON} destination = $destination:ints {{}} =arrow
shard: % to % [ annotate_for_users &for_users ] {{}} : &sharded
shard_shape: dims = &dims sharding = % device = &device {{}} : &shard_shape_types
sharding: $grid:symbol split_axes = $split_axes:attribute [ halo_sizes = $halo_sizes:ints ] \
[ sharded_dims_offsets = $sharded_dims_offsets:ints ] {{}} =results
shift: {_ON} shift_axis = $shift_axis:int offset = $offset:int [ rotate &rotate ] {{}} =arrow
update_halo: % on $grid:symbol split_axes = $split_axes:attribute halo_sizes = $halo_sizes:ints {{}} =same
"""
_SIZES = re.compile(r"\s*+((?:\d{1,9}|\?)(?:x(?:\d{1,9}|\?))*+)", re.ASCII)
INDEX = ScalarType("index")
SHARDING = OpaqueType("!shard.sharding")


def rows() -> dict[str, str]:
    """The rows of both names; what is a grid now was a mesh, and its axes mesh_axes."""
    found = {}
    for line in _ROWS.strip().splitlines():
        name, _, row = line.partition(": ")
        found[f"shard.{name}"] = row.replace("AXES", "grid_axes")
        found[f"mesh.{'mesh' + name[4:] if name in ('grid', 'grid_shape') else name}"] = row.replace(
            "AXES", "mesh_axes"
        )
    return found


@part
def grid_sizes(parser: Parser, draft: Draft) -> None:
    """The sizes of a grid, as 2x?x4; -1 for one that is open."""
    for token in ("(", "shape", "="):
        parser.expect(token)
    match = _SIZES.match(parser.text, parser.place)
    words = match[1].split("x") if match else []
    parser.place = match.end() if match else parser.place
    parser.expect(")")
    draft.attributes["shape"] = tuple(-1 if word == "?" else int(word) for word in words)


@part
def reduction(parser: Parser, draft: Draft) -> None:
    """`<max>`, or the attribute in full."""
    if parser.take("<"):
        draft.attributes["reduction"] = Enumeration("shard.partial", parser.word())
        parser.expect(">")
    else:
        draft.attributes["reduction"] = parser.attribute()


@part
def scatter_axis(parser: Parser, draft: Draft) -> None:
    """The dimension that is scattered, by either of its names."""
    if not parser.take_word("scatter_dim"):
        parser.expect_word("scatter_axis")
    parser.expect("=")
    draft.attributes["scatter_axis"] = parser.integer()


@part
def rotate(parser: Parser, draft: Draft) -> None:
    draft.attributes["rotate"] = True


@part
def for_users(parser: Parser, draft: Draft) -> None:
    draft.attributes["annotate_for_users"] = True


@part
def sharded(parser: Parser, draft: Draft) -> None:
    """The type of the tensor; that of the sharding is not written."""
    found = parser.type()
    draft.operand_types, draft.result_types = (found, SHARDING), (found,)


@part
def device(parser: Parser, draft: Draft) -> None:
    _indices(parser, draft, "device")


@part
def dims(parser: Parser, draft: Draft) -> None:
    _indices(parser, draft, "dims")


def _indices(parser: Parser, draft: Draft, name: str) -> None:
    """Numbers and values, as `[1, %n]`; -1 stands for a value, which is an operand."""
    found: list[Attribute] = []

    def item() -> None:
        if parser.sees("%"):
            draft.operands += (parser.value(),)
            found.append(-1)
        else:
            found.append(parser.integer())

    parser.listed(item, "[", "]")
    draft.attributes[name] = tuple(found)


@part
def shard_shape_types(parser: Parser, draft: Draft) -> None:
    """The types of the extents; those of the operands are not written: indices, and the sharding among them."""
    given = draft.attributes["dims"]
    open_dims = sum(each == -1 for each in given) if isinstance(given, tuple) else 0
    count = len(draft.operands)
    draft.operand_types = (*[INDEX] * open_dims, SHARDING, *[INDEX] * (count - open_dims - 1))
    draft.result_types = parser.types_here()


@part
def index_types(parser: Parser, draft: Draft) -> None:
    """The types of results that are indices, as the operands are."""
    draft.operand_types, draft.result_types = (INDEX,) * len(draft.operands), parser.types_here()


@part
def arith_constant(parser: Parser, draft: Draft) -> None:
    """A number with its type, or the elements of a tensor."""
    if parser.sees("dense"):
        found = parser.attribute()
        if isinstance(found, Dense):
            draft.attributes["value"], draft.result_types = found, (found.type,)
            return
    draft.attributes["value"] = parser.number()
    parser.expect(":", " and the type of the number")
    draft.result_types = (parser.type(),)
