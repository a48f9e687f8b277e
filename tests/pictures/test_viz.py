"""Pictures: what is drawn and what is folded, the kept texts, the engine in its child process."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import xbuild as xb
from tests.golden.kept import FOLDER, TEXTS
from xbuild.core.op import OPS
from xbuild.pictures import Drawing, form_of
from xbuild.pictures.formats import engine
from xbuild.pictures.formats.engine import DrawingError, render
from xbuild.pictures.layout import lay_out
from xbuild.pictures.model.drawing import draw, short_shape
from xbuild.pictures.model.kinds import COLLECTIVE, ELEMENTWISE, FLOW, KINDS, OTHER, PARAMETER, kind_of
from xbuild.pictures.model.picture import Box, Picture
from xbuild.pictures.model.themes import DARK, LIGHT, theme_of

from ..golden import programs

o = xb.ops


def has_engine() -> bool:
    try:
        render("digraph { a }", "svg", 30, engine="dot")
    except DrawingError:
        return False
    return True


needs_engine = pytest.mark.skipif(not has_engine(), reason="neither dot nor pygraphviz is here")


def box(picture: Picture, name: str) -> Box:
    return next(each for each in picture.all_boxes() if each.name == name)


@pytest.mark.parametrize("file", [file for file in TEXTS if not file.endswith(".hlo")])
def test_kept_pictures(file: str) -> None:
    assert TEXTS[file]() == (FOLDER / file).read_text(encoding="utf-8")


def test_kinds_follow_the_families() -> None:
    assert [kind_of(opcode) for opcode in ("parameter", "add", "while", "all_reduce")] == [
        PARAMETER, ELEMENTWISE, FLOW, COLLECTIVE,
    ]  # fmt: skip
    assert {opcode for opcode in OPS if kind_of(opcode) is OTHER} == set()
    assert len({kind.letter for kind in KINDS}) == len({kind.fill for kind in KINDS}) == len(KINDS)


def test_small_constants_and_their_broadcasts_are_words_in_their_users() -> None:
    picture = draw(programs.training_step())
    opcodes = [each.title for each in picture.all_boxes()]
    assert "constant" not in opcodes
    assert "broadcast" not in opcodes
    maximum = next(each for each in picture.all_boxes() if each.title == "maximum")
    assert maximum.details == ("rhs = 0",)


def test_a_large_constant_and_a_constant_root_have_boxes() -> None:
    builder = xb.Builder("main")
    large = o.constant(builder, literal=np.arange(100, dtype=np.float32))
    picture = draw(builder.build(o.negate(large)))
    constant = next(each for each in picture.all_boxes() if each.title == "constant")
    assert constant.details == ("{0, 1, 2, 3, 4, 5, 6, 7}",)
    assert len(constant.tooltip) < 200
    builder = xb.Builder("main")
    picture = draw(builder.build(o.constant(builder, literal=np.float32(1))))
    assert [each.is_root for each in picture.all_boxes()] == [True]


def test_elements_of_tuples_are_places_on_the_edges() -> None:
    picture = draw(programs.loop())
    assert not any(each.title == "get-tuple-element" for each in picture.all_boxes())
    collective = next(each for each in picture.all_boxes() if each.title == "all-reduce")
    (edge,) = [each for each in picture.edges if each.head == collective.id]
    assert (edge.at_tail, edge.at_head) == ("[1]", "")


def test_operands_are_numbered_where_there_are_several() -> None:
    x = o.parameter(xb.Builder("main"), number=0, shape=xb.f32[2], name="x")
    y = o.negate(x)
    picture = draw(x.builder.build(o.subtract(o.add(x, x), y)))
    assert [(each.tail, each.head, each.at_head) for each in picture.edges] == [
        ("main/x", "main/negate.1", ""),
        ("main/x", "main/add.2", "0,1"),
        ("main/add.2", "main/subtract.3", "0"),
        ("main/negate.1", "main/subtract.3", "1"),
    ]


def test_simple_reducers_are_words_and_other_regions_frames() -> None:
    picture = draw(programs.loop())
    (entry,) = picture.clusters
    assert [cluster.role for cluster in entry.clusters] == ["condition", "body", "branch 0", "branch 1"]
    assert "by add" in next(each for each in picture.all_boxes() if each.title == "reduce").details
    calls = [each for each in picture.edges if each.what == "call"]
    assert {each.head for each in calls} == {cluster.caller for cluster in entry.clusters}


def test_a_computation_that_is_called_twice_is_drawn_once() -> None:
    @xb.computation(xb.f32[()])
    def squashed(v):
        return o.tanh(o.negate(v))

    x = o.parameter(xb.Builder("main"), number=0, shape=xb.f32[()])
    twice = o.call(o.call(x, to_apply=squashed), to_apply=squashed)
    picture = draw(x.builder.build(twice))
    assert len(picture.clusters[0].clusters) == 1
    assert len([each for each in picture.edges if each.what == "call"]) == 2


def test_channels_tokens_and_control_have_lines_of_their_own() -> None:
    picture = draw(programs.ring(3))
    assert [cluster.title for cluster in picture.clusters] == [f"device {device}: ring" for device in range(3)]
    channels = {(each.tail[:2], each.head[:2]) for each in picture.edges if each.what == "channel"}
    assert channels == {("d0", "d1"), ("d1", "d2"), ("d2", "d0")}
    assert {each.what for each in picture.edges} == {"value", "token", "control", "channel"}


def test_equal_names_of_computations_do_not_meet() -> None:
    picture = draw(programs.ring(2))
    ids = [each.id for each in picture.all_boxes()]
    assert len(set(ids)) == len(ids)
    assert {edge.tail for edge in picture.edges} | {edge.head for edge in picture.edges} <= set(ids)


def test_what_a_computation_uses_and_does_not_hold_is_said() -> None:
    x = o.parameter(xb.Builder("main"), number=0, shape=xb.f32[2], name="x")
    y = o.negate(x).instruction
    picture = draw(xb.Computation("raw", [y], y))
    assert [(each.name, each.title) for each in picture.all_boxes()] == [
        ("x", "not in this computation"),
        ("negate.1", "negate"),
    ]
    assert "not in this computation" in xb.Computation("raw", [], y)._repr_svg_()


def test_long_tuples_are_counted() -> None:
    text = short_shape(xb.TupleShape([xb.f32[128, 128]] * 20))
    assert re.fullmatch(r"\(f32\[128,128\], .*… \d+ more\)", text)
    assert len(text) < 60


def test_layouts_are_shown_where_they_are_not_row_by_row() -> None:
    text = """HloModule layouts

ENTRY main {
  x = f32[3,2]{1,0} parameter(0)
  y = f32[2,3]{0,1} transpose(x), dimensions={1,0}
  z = f32[2,3]{1,0:T(2,128)} copy(y)
  ROOT both = (f32[3,2]{1,0}, f32[2,3]{0,1}) tuple(x, y)
}
"""
    picture = draw(xb.parse_hlo(text))
    assert [each.shape for each in picture.all_boxes()] == [
        "f32[3,2]", "f32[2,3]{0,1}", "f32[2,3]{1,0:T(2,128)}", "(f32[3,2], f32[2,3]{0,1})",
    ]  # fmt: skip
    assert "f32[3,2]{1,0}" in box(picture, "x").tooltip
    assert picture.edges[0].tooltip == "x -> y: f32[3,2]{1,0}"


def test_parameters_of_called_computations_say_where_they_come_from() -> None:
    @xb.computation(xb.f32[()], xb.f32[()])
    def scaled(v, by):
        return o.negate(o.multiply(v, by))

    x = o.parameter(xb.Builder("main"), number=0, shape=xb.f32[()], name="x")
    first = o.call([x, o.constant(x.builder, literal=np.float32(3))], to_apply=scaled)
    picture = draw(x.builder.build(o.call([first, x], to_apply=scaled)))
    inner = {each.title: each.details for each in picture.clusters[0].clusters[0].boxes}
    assert inner["parameter 0"] == ("from x, call.2",)
    assert inner["parameter 1"] == ("from 3, x",)
    branches = [each for each in draw(programs.loop()).all_boxes() if each.title == "parameter 0" and each.details]
    assert [each.details for each in branches] == [("from while.20[1]",)] * 2


def test_text_that_graphviz_reads_as_markup_is_escaped() -> None:
    builder = xb.Builder("main")
    token = o.after_all((), builder=builder)
    fed = o.infeed(token, shape=xb.f32[4], infeed_config='<b>"&')
    text = xb.viz(builder.build(fed), "dot")
    assert isinstance(text, str)
    assert "&lt;b&gt;\\&quot;&amp;" in text


def test_the_same_program_gives_the_same_text() -> None:
    assert xb.viz(programs.ring(), "dot") == xb.viz(programs.ring(), "dot")


PROGRAMS = ["attributes", "devices", "training_step", "loop", "ring"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_svg_has_every_box_with_its_words_and_stands_alone(program: str) -> None:
    drawn = getattr(programs, program)()
    svg = str(xb.viz(drawn, "svg"))
    ids = {element.get("id") for element in ElementTree.fromstring(svg).iter()}
    for each in draw(drawn).all_boxes():
        assert each.id in ids
        assert html.escape(each.shape) in svg
        assert html.escape(each.tooltip.partition("\n")[0]) in svg
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")


@needs_engine
@pytest.mark.parametrize("program", PROGRAMS)
def test_graphviz_reads_and_paints_every_program(program: str, tmp_path: Path) -> None:
    drawn = getattr(programs, program)()
    laid_out = render(str(xb.viz(drawn, "dot")), "svg", 30, engine="dot").decode()
    for each in draw(drawn).all_boxes():
        assert f'id="{each.id}"' in html.unescape(laid_out)
    png = xb.viz(drawn, tmp_path / "out.PNG", seconds=30)
    assert isinstance(png, Path)
    assert png.read_bytes().startswith(b"\x89PNG")


def test_devices_stand_in_their_order() -> None:
    layout = lay_out(draw(programs.ring(4)))
    frames = {each: place for each, place in layout.clusters.items() if each.endswith("/ring")}
    assert sorted(frames, key=lambda each: frames[each].x) == [f"d{n}/ring" for n in range(4)]


@needs_engine
def test_pdf_and_the_name_of_the_format() -> None:
    pdf = xb.viz(programs.loop(), "pdf", seconds=30)
    assert isinstance(pdf, bytes)
    assert pdf.startswith(b"%PDF")


def test_no_such_format_or_theme() -> None:
    wanted = r"'out\.jpeg' is no picture; wanted is one of svg, html, png, pdf, dot, mermaid, txt"
    with pytest.raises(ValueError, match=wanted):
        xb.viz(programs.loop(), "out.jpeg")
    with pytest.raises(ValueError, match="theme='blue': auto, light, dark are what there is"):
        xb.viz(programs.loop(), "svg", theme="blue")
    with pytest.raises(TypeError, match="int has no picture; a Computation, Module, ModuleGroup, Value or Verdict has"):
        xb.viz(3)  # type: ignore[call-overload]


@pytest.mark.parametrize(("name", "form"), [("a.mmd", "mermaid"), ("a.GV", "dot"), ("a.svg", "svg"), ("txt", "txt")])
def test_formats_by_their_endings(name: str, form: str) -> None:
    assert form_of(name) == form


def test_painting_that_takes_too_long_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_command", lambda *_: [sys.executable, "-c", "import time; time.sleep(60)"])
    with pytest.raises(DrawingError, match=r"more than 0\.2 seconds and was stopped; the formats svg, html, mermaid"):
        xb.viz(programs.loop(), "png", seconds=0.2)


def test_a_failing_engine_is_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_command", lambda *_: [sys.executable, "-c", "raise SystemExit('no fonts')"])
    with pytest.raises(DrawingError, match=r"graphviz gave no png \(exit code 1\): no fonts"):
        xb.viz(programs.loop(), "png")


def test_only_png_and_pdf_want_an_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(engine.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(
        DrawingError,
        match=r"graphviz, which is not installed: `pip install 'xbuild-hlo\[viz\]'` brings it",
    ):
        xb.viz(programs.loop(), "png")
    assert "while" in programs.loop()._repr_svg_()
    for form in ("svg", "html", "mermaid", "dot", "txt"):
        assert "while" in str(xb.viz(programs.loop(), form))


def test_graphviz_is_an_extra() -> None:
    found = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert not any("graphviz" in each for each in found["dependencies"])
    extras = {name for name, wanted in found["optional-dependencies"].items() if any("graphviz" in w for w in wanted)}
    assert extras == {"viz"}
    assert "xbuild-hlo[viz]" in found["optional-dependencies"]["demo"]


def test_dot_on_the_path_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/dot")
    assert engine._command("nop2", "svg") == ["/usr/bin/dot", "-Knop2", "-Tsvg"]


def test_notebooks_show_programs_values_and_verdicts() -> None:
    module = programs.loop()
    x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[2], name="x")
    y = xb.tanh(x + 1.0)
    for shown in (module, module.entry, programs.ring(2), xb.viz(module), y, xb.check(module)):
        assert shown._repr_svg_().startswith("<svg")
        assert "<svg" in shown._repr_html_()
    assert isinstance(xb.viz(module), Drawing)
    assert [line.split()[:3] for line in str(xb.viz(y)).splitlines()[1:]] == [
        ["├─", "P", "x"],
        ["├─", "E", "add.3"],
        ["└─", "E", "tanh.4"],
    ]
    assert repr(y) == "%tanh.4: f32[2]"


def test_themes() -> None:
    auto, light, dark = (str(xb.viz(programs.loop(), "svg", theme=theme)) for theme in ("auto", "light", "dark"))
    assert "prefers-color-scheme:dark" in auto
    assert "prefers-color-scheme" not in light + dark
    ground, dark_ground = f".ground{{fill:{LIGHT.ground}}}", f".ground{{fill:{DARK.ground}}}"
    assert (ground in light, dark_ground in light) == (True, False)
    assert (ground in dark, dark_ground in dark) == (False, True)
    # Rules are bound to the theme, so that two pictures may stand on one page.
    assert ".xb.dark .ground" in dark
    assert 'class="xb dark"' in dark
    assert set(re.findall(r"url\(#(xb-\w+)", dark)) == {"xb-dark"}


def _brightness(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    parts = (int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5))
    red, green, blue = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(a: str, b: str) -> float:
    bright, dim = sorted((_brightness(a), _brightness(b)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_words_can_be_read_on_their_ground(theme: str) -> None:
    for kind in KINDS:
        fill, _, ink = kind.colours(theme)
        assert _contrast(fill, ink) >= 4.5, kind.name
    colours = theme_of(theme)
    for ground in (colours.ground, *colours.frames[:2]):
        assert _contrast(colours.ink, ground) >= 7
        assert _contrast(colours.dim, ground) >= 4.5
        for what, line in colours.lines.items():
            assert _contrast(line, ground) >= 2.9, what


def test_every_kind_has_a_letter_an_outline_and_colours_of_its_own() -> None:
    for fact in ("letter", "name", "fill", "dark"):
        assert len({getattr(kind, fact) for kind in KINDS}) == len(KINDS), fact
    # Tuples and what is folded share one: the letter tells them apart.
    assert len({kind.outline for kind in KINDS}) == len(KINDS) - 1


def test_mermaid_reads_no_word_as_markup() -> None:
    builder = xb.Builder("main")
    fed = o.infeed(o.after_all((), builder=builder), shape=xb.f32[4], infeed_config='<b>"end"]')
    text = str(xb.viz(builder.build(fed), "mermaid"))
    assert "#60;b#62;#92;#34;end#92;#34;#93;" in text
    assert text.startswith("flowchart TD\n")


def test_importing_the_package_loads_nothing_that_is_optional() -> None:
    optional = (
        "networkx",
        "pygraphviz",
        "graphviz",
        "click",
        "rich",
        "xbuild.pictures.model.drawing",
        "xbuild.text.writing.printer",
    )
    code = f"import sys, xbuild; xbuild.viz; print([m for m in {optional} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
