"""The page of a difference: its rows, its sentence, what it holds, and `xbuild diff --page`."""

from __future__ import annotations

import html
import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from tests.commands.command_line import xbuild
from tests.fuzzing.names import HOSTILE, PLACES, text_of
from xbuild.editing.difference import Change
from xbuild.editing.difference_page import KINDS, sections_of

from .corpus_programs import read
from .known_pairs import KINDS as PAIRS
from .test_matching import FUSED, LARGE, PLAIN

SUM = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n\n"
WEIGHTS = "  w = f32[2,2] parameter(1)\n"
STEP = (
    "HloModule step, num_partitions=2\n\n" + SUM + "ENTRY main {\n"
    "  x = f32[2,2]{1,0} parameter(0), sharding={replicated}\n"
    + WEIGHTS + '  y = f32[2,2] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, '
    'metadata={source_file="model.py" source_line=31}\n'
    "  ROOT z = f32[2,2] tanh(y)\n}\n"
)  # fmt: skip
MEETS = "f32[2,2] all-reduce(y), replica_groups={{0,1}}, use_global_device_ids=true, channel_id=1, to_apply=add, "
MEETS += 'metadata={source_file="model.py" source_line=32}'


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])  # type: ignore[no-any-return]


def sentence_in(page: str) -> str:
    found = re.search(r'<p id="sentence">(.*?)</p>', page)
    assert found is not None
    return html.unescape(found[1])


def page_of(before: str, after: str) -> str:
    return xb.diff(*(xb.parse_hlo(text, origins=True) for text in (before, after))).page()


def rows_of(before: str, after: str) -> list[tuple[str, str, str, list[str]]]:
    """The rows that are not equal: the names on both sides, the kind and what changed."""
    rows = (row for each in sections_of(xb.diff(xb.parse_hlo(before), xb.parse_hlo(after))) for row in each.rows)
    return [
        (
            row.before.name if row.before else "",
            row.after.name if row.after else "",
            row.kind,
            [*map(what, row.changes)],
        )
        for row in rows
        if row.kind != "same"
    ]


def what(change: Change) -> str:
    return change.what


EDITS = {
    "operand": ("dot(x, w)", "dot(x, x)", [("y", "y", "changed", ["operand rhs"])]),
    "opcode": ("tanh(y)", "cosine(y)", [("z", "z", "changed", ["opcode"])]),
    "attribute": ("dims={0}", "dims={1}", [("y", "y", "changed", ["rhs_contracting_dims"])]),
    "sharding": ("{replicated}", "{devices=[2,1]0,1}", [("x", "x", "changed", ["sharding"])]),
    "layout": ("{1,0}", "{0,1}", [("x", "x", "layout", ["layout"])]),
    "name": ("ROOT z", "ROOT zz", [("z", "zz", "renamed", ["name"])]),
    "added": ("  ROOT z", "  v = f32[2,2] abs(w)\n  ROOT z", [("", "v", "added", [])]),
    "removed": ("  y =", "  v = f32[2,2] abs(w)\n  y =", [("v", "", "removed", [])]),
}  # fmt: skip


@pytest.mark.parametrize("name", EDITS)
def test_the_kind_of_a_row(name: str) -> None:
    old, new, expected = EDITS[name]
    pair = STEP, STEP.replace(old, new)
    assert rows_of(*(pair[::-1] if name == "removed" else pair)) == expected


def test_an_instruction_that_a_fusion_contains_is_beside_its_partner_and_marked_where_it_was() -> None:
    assert rows_of(PLAIN, FUSED.replace("multiply(t, q)", "multiply(t, p)")) == [
        ("", "p", "added", []), ("", "q", "added", []),
        ("a", "a", "fused", ["computation"]), ("t", "t", "fused", ["computation"]),
        ("m", "m", "fused", ["computation", "operand rhs"]),
        ("a", "", "fused", []), ("t", "", "fused", []), ("m", "", "fused", []), ("", "f", "added", []),
    ]  # fmt: skip


@pytest.mark.parametrize("kind", PAIRS)
def test_every_instruction_has_one_row_and_the_sides_keep_their_order(kind: str) -> None:
    for seed in range(8):
        random = np.random.default_rng(seed)
        pair = PAIRS[kind](read(LARGE[random.integers(len(LARGE))]), random)
        for before, after in ((pair.before, pair.after), (pair.after, pair.before)):
            found = xb.diff(before, after)
            sections = sections_of(found)
            rows = [row for each in sections for row in each.rows if not row.is_elsewhere]
            for module, side in ((before, "before"), (after, "after")):
                shown = [getattr(row, side) for row in rows if getattr(row, side) is not None]
                assert len(shown) == len({*shown})
                assert {*shown} == {one for each in module.computations for one in each.instructions}
            for each in sections:
                news = [row.after for row in each.rows if row.after is not None]
                assert news == [*(each.diff.after.instructions if each.diff.after is not None else ())]
                for above, row in pairwise(each.rows):
                    if row.after is None and each.diff.before is not None:  # it follows what preceded it
                        order = each.diff.before.instructions
                        assert above.before is order[order.index(row.before) - 1]
            pairs = {(a, b) for each in found.computations for a, b in each.matched}
            pairs |= {(row.before, row.after) for each in found.computations for row in each.moved}
            assert {(row.before, row.after) for row in rows if row.before and row.after} == pairs
            assert {row.kind for row in rows} <= {*KINDS}


SENTENCES = {
    "a collective": (
        STEP,
        STEP.replace("tanh(y)", "tanh(sum)").replace("  ROOT z", f"  sum = {MEETS}\n  ROOT z"),
        "2 of 8 instructions differ: one all-reduce (model.py:32) added after y; operand of z (<hlo>:14) changed.",
    ),
    "equal": (STEP, STEP, "The programs are the same: 7 instructions."),
    "layout": (
        STEP, STEP.replace("{1,0}", "{0,1}"),
        "The programs are the same: 7 instructions. The layouts of 1 further instruction differ.",
    ),
    "header": (STEP, STEP.replace("=2\n", "=4\n"), "No instruction differs, but names, roots or headers do."),
    "opcode": (
        STEP, STEP.replace("tanh(y)", "cosine(y)"),
        "1 of 7 instructions differs: z (<hlo>:13) is now cosine, not tanh.",
    ),
    "fusion": (
        PLAIN, FUSED,
        "6 of 9 instructions differ: one fusion (<hlo>:12) added after x; 3 instructions fused into fused; "
        "2 parameter instructions added, the first (<hlo>:2).",
    ),
    "no fusion": (
        FUSED, PLAIN,
        "6 of 9 instructions differ: one fusion (<hlo>:12) removed after x; 3 instructions moved out of fused; "
        "2 parameter instructions removed, the first (<hlo>:2).",
    ),
    "places": (
        STEP, STEP.replace("(x, w)", "(x, x)").replace(WEIGHTS, "").replace("  ROOT z", f"{WEIGHTS}  ROOT z"),
        "2 of 7 instructions differ: operand rhs of y (model.py:31) changed; w moved.",
    ),
    "names": (
        STEP, STEP.replace("tanh(y)", "tanh(q)").replace("  y =", "  q ="),
        "1 of 7 instructions differs: y renamed to q.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SENTENCES)
def test_the_sentence(name: str) -> None:
    before, after, expected = SENTENCES[name]
    assert sentence_in(page_of(before, after)) == expected


def test_a_long_sentence_counts_the_rest() -> None:
    lines = [f"  t{n} = f32[4] {op}(x)" for n, op in enumerate(("tanh", "abs", "sine", "cosine", "log", "tanh"))]
    text = "ENTRY main {{\n  x = f32[4] parameter(0)\n{}\n  ROOT r = f32[4] negate(x)\n}}"
    found = sentence_in(page_of(text.format(""), text.format("\n".join(lines))))
    assert found.startswith(
        "6 of 8 instructions differ: 2 tanh instructions added, the first (<hlo>:3) after x; one abs "
    )
    assert found.endswith("; and 2 more.")


def test_names_are_text_and_the_page_is_ascii() -> None:
    """The page of hostile names has the elements of the page of plain names, and shows the names in its data."""

    def made(names: list[str]) -> str:
        programs = (xb.parse_hlo(text_of([[each + more for each in names]], True), origins=True) for more in ("", "2"))
        return xb.diff(*programs).page(names[0], names[1])

    def elements(page: str) -> list[str]:
        return re.findall(r"<(/?[a-z][a-z0-9]*)", re.sub(r"(?s)<script.*?</script>", "<script></script>", page))

    usual = [each for each in elements(made(["a"] * len(PLACES))) if each != "span"]
    for name in HOSTILE:
        page = made([name] * len(PLACES))
        assert page.isascii()
        assert [each for each in elements(page) if each != "span"] == usual
        assert "</" not in json.dumps(data_of(page)["sides"]).replace("<", "")


def test_a_large_constant_is_elided_and_a_long_text_shortened() -> None:
    numbers = np.arange(1 << 20, dtype=np.float32)
    program = xb.computation(xb.f32[1 << 20])(lambda x: x + numbers)
    page = xb.diff(program, program).page()
    assert len(page) < 60_000
    assert any("constant({...})" in text for text in data_of(page)["sides"][0]["texts"])
    long = STEP.replace("tanh(y)", f'tanh(y), backend_config="{"a" * 100_000}"')
    assert len(page_of(long, long)) < 60_000
    assert len(page_of(long, long.replace("aaa", "bbb"))) < 60_000


def test_the_page_of_ten_thousand_instructions() -> None:
    """The page has both programs; its size is about that of their texts."""
    lines = "".join(f"  t.{n} = f32[64,64] add(t.{n - 1}, x)\n" for n in range(1, 10_000))
    begin = "ENTRY main {\n  x = f32[64,64] parameter(0)\n  t.0 = f32[64,64] tanh(x)\n"
    text = f"{begin}{lines}  ROOT r = f32[64,64] negate(t.9999)\n}}"
    page = page_of(text, text.replace("add(t.4999, x)", "subtract(t.4999, x)"))
    data = data_of(page)
    assert [len(side["texts"]) for side in data["sides"]] == [10_002, 10_002]
    assert sum(len(row) > 2 for row in data["sections"][0]["rows"]) == 1
    assert not data["isSmall"]
    assert len(page) < 4 * len(text)


# the command line


def test_the_command_writes_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.hlo").write_text(STEP)
    Path("b.hlo").write_text(STEP.replace("tanh(y)", "cosine(y)"))
    plain, done = xbuild("diff", "a.hlo", "b.hlo"), xbuild("diff", "a.hlo", "b.hlo", "--page", "p.html")
    assert done.exit_code == 1
    assert done.stdout == f"{plain.stdout}wrote p.html: a page for any browser that shows both programs side by side\n"
    assert data_of(Path("p.html").read_text())["names"] == ["a.hlo", "b.hlo"]
    document = xbuild("diff", "a.hlo", "b.hlo", "--json", "--page", "p.html")
    assert json.loads(document.stdout) == json.loads(xbuild("diff", "a.hlo", "b.hlo", "--json").stdout)
    assert "wrote p.html" in document.stderr
    assert xbuild("diff", "a.hlo", "a.hlo", "--page", "p.html").exit_code == 0


@pytest.mark.parametrize(
    ("page", "fault"),
    [
        ("p.txt", "expected a file name that ends in .html"),
        ("no/p.html", "the folder does not exist"),
        ("a.html", "is also the file that the command reads as TARGET, a.html"),
        ("b.html", "is also the file that the command reads as OTHER, b.html"),
    ],
)
def test_a_page_that_cannot_be_written(page: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.html", "b.html"):
        Path(name).write_text(STEP)
    done = xbuild("diff", "a.html", "b.html", "--page", page)
    assert done.exit_code == 2
    assert fault in done.output
    assert Path("a.html").read_text() == Path("b.html").read_text() == STEP
