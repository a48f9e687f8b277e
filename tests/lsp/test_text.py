"""Positions of an editor and offsets of a text, and edits, against the same in the encoding of the editor."""

from __future__ import annotations

import random

import pytest

from xbuild.lsp.text import Encoding, Position, Text

SOURCES = ("", "a", "\n", "a\r\nb\rc\nd", "é𝛼x\n𝛼𝛼\n", "x\u2028y\x0bz\n", "\ud800 lone\n", "a\n\n\nb")
SIZES = {"utf-8": 1, "utf-16": 2, "utf-32": 4}


def units(text: str, encoding: Encoding) -> int:
    return len(text.encode(f"{encoding}-le" if encoding != "utf-8" else encoding, "surrogatepass")) // SIZES[encoding]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
@pytest.mark.parametrize("source", SOURCES)
def test_each_offset_has_a_position_that_leads_back(source: str, encoding: Encoding) -> None:
    text = Text(source, encoding)
    for offset in range(len(source) + 1):
        found = text.position(offset)
        assert found.character == units(source[text.begins[found.line] : offset], encoding)
        is_inside_line_end = offset and source[offset - 1 : offset + 1] == "\r\n"
        assert text.offset(found) == offset - bool(is_inside_line_end)


@pytest.mark.parametrize(
    ("position", "offset"),
    [((0, 99), 1), ((1, 99), 4), ((9, 0), 8), ((-1, 5), 0), ((1, -3), 3), ((3, 1), 8)],
)
def test_positions_outside_the_text_are_moved_into_it(position: tuple[int, int], offset: int) -> None:
    assert Text("a\r\nb\rc\nd").offset(Position(*position)) == offset


def test_lines_end_where_the_protocol_ends_them() -> None:
    assert Text("a\x0bb\u2028c\x85d\r\ne\rf\ng").begins == [0, 9, 11, 13]


def test_edits_do_what_the_same_edits_do_to_a_list_of_lines() -> None:
    generator = random.Random(3)
    text, plain = Text("one\ntwo 𝛼 three\n"), "one\ntwo 𝛼 three\n"
    for _ in range(300):
        begin, end = sorted(generator.randrange(len(plain) + 1) for _ in "be")
        new = generator.choice(("", "x", "\n", "𝛼", "a\nb"))
        positions = [text.position(begin), text.position(end)]
        generator.shuffle(positions)
        text, plain = text.edited(*positions, new), plain[:begin] + new + plain[end:]
        assert text.source == plain
