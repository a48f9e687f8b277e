"""Bounds of everything that a program may contain, in one place; SECURITY.md lists them for users.

Every reader and every inference rule takes its bounds from here. Real programs stay far below them; a program above one
is refused with the bound in the message, before its size costs time or memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .rules import refuse

# Arrays and tuples
MAX_RANK = 64  # dimensions of an array, as in NumPy
MAX_EXTENT = 2**63 - 1  # elements along a dimension
LARGEST_ITEM = 16  # bytes of an element of NumPy's largest type
MAX_ELEMENTS = 2**63 - 1  # product of the extents of an array, without those of 0; the bytes follow: at most 2^67
MOST_LEAVES = 100_000  # arrays, tokens and empty tuples in a tuple; an element twice is counted twice
MOST_LEAVES_OF_TEXT = 1 << 20  # those of all tuples of an HLO text, beside one for each of its characters
DEEPEST_TUPLE = 64  # levels of nested tuples

# Devices
MOST_DEVICES = 1 << 20  # devices of a program, a mesh, a tile assignment or a list of groups
MOST_AXES = 64  # axes of a mesh, as dimensions of a NumPy array

# Texts
MAX_DEPTH = 40  # levels of nested brackets, types and attributes
MOST_EXPANDED = 1 << 24  # characters that aliases stand for, or
EXPANSION = 16  # as many times the length of the text
MOST_LISTED = 1 << 20  # elements of an attribute that is a list
LONGEST_EXPRESSION = 2000  # characters of the expression of an extent, such as 2*b + 1

# Child processes that turn input of others into text or pictures
MOST_CONVERTED = 1 << 26  # bytes of text that bytecode becomes, or
CONVERSION = 64  # as many times the length of the input
CHILD_BYTES = 2 << 30  # data of the process that reads bytecode, and CONVERSION times the length of the input
MOST_PAINTED = 1 << 28  # bytes of a picture that graphviz paints


def check_array(dims: Sequence[int]) -> None:
    """Refuse an array with too many dimensions, too long a dimension, or too many elements; extents of 0 do not count.

    NumPy makes no array of shape (0, 2^62, 2^62), though it would be empty, nor one of shape (0, 2^60) in its largest
    type, to which the elements of an empty array may be converted. Arrays that are not empty meet the limit of memory
    when they are computed.
    """
    if len(dims) > MAX_RANK:
        refuse("overflow", f"an array can have at most {MAX_RANK} dimensions, got {len(dims):,}")
    for dim, extent in enumerate(dims):
        if extent > MAX_EXTENT:
            refuse("overflow", f"the extent of dimension {dim} is {_shown(extent)}, more than the limit of 2^63-1")
    size = math.prod(filter(None, dims))
    if size > MAX_ELEMENTS:
        shown = ",".join(map(str, dims))
        shown = shown if len(shown) <= 200 else f"{shown[:197]}..."
        zeros = " (not counting extents of 0)" if 0 in dims else ""
        refuse("overflow", f"the array [{shown}] has {_shown(size)} elements{zeros}, more than the limit of 2^63-1")
    if 0 in dims and size > MAX_ELEMENTS // LARGEST_ITEM:
        shown = ",".join(map(str, dims))
        elements = f"{_shown(size)} elements (not counting extents of 0)"
        refuse("overflow", f"the empty array [{shown}] has {elements}, more than the limit of 2^59-1")


def _shown(number: int) -> str:
    """A number that may have more digits than Python converts."""
    return str(number) if number < 10**40 else f"about 2^{number.bit_length() - 1}"


def check_devices(what: str, sizes: Sequence[int]) -> None:
    """Refuse a mesh or a list of groups with too many axes or too many devices."""
    if len(sizes) > MOST_AXES:
        refuse("invalid_attribute", f"{what} has {len(sizes):,} axes; at most {MOST_AXES} are allowed")
    if math.prod(sizes) > MOST_DEVICES:
        count = _shown(math.prod(sizes))
        refuse("invalid_attribute", f"{what} has {count} devices; at most {MOST_DEVICES:,} are allowed")


def refuse_tuple(count: int, ends: int, depth: int) -> None:
    """Refuse a tuple that is too large, before it is traversed: with shared elements, 40 lines make 2^40 leaves."""
    if ends > MOST_LEAVES:
        has = f"{count:,} arrays and tokens" + (f" and {ends - count:,} empty tuples" if ends > count else "")
        refuse("tuple_too_large", f"the tuple would have {has}; at most {MOST_LEAVES:,} are allowed")
    refuse(
        "tuple_too_large", f"the tuple would be nested {depth} levels deep; at most {DEEPEST_TUPLE} levels are allowed"
    )
