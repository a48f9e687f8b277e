"""The formats of pictures: svg, dot, mermaid, png and pdf, notebooks, and graphviz in its child process."""

from __future__ import annotations

import html
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest

import xbuild as xb
from tests.pictures.support import needs_engine
from xbuild.pictures import Drawing, form_of, graphviz
from xbuild.pictures.drawing import draw
from xbuild.pictures.graphviz import DrawingError, render

from ..golden import programs

o = xb.ops


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


@needs_engine
def test_pdf_and_the_name_of_the_format() -> None:
    pdf = xb.viz(programs.loop(), "pdf", seconds=30)
    assert isinstance(pdf, bytes)
    assert pdf.startswith(b"%PDF")


def test_no_such_format_or_theme() -> None:
    wanted = r"'out\.jpeg': expected one of svg, html, png, pdf, dot, mermaid, txt"
    with pytest.raises(ValueError, match=wanted):
        xb.viz(programs.loop(), "out.jpeg")
    with pytest.raises(ValueError, match="theme='blue': expected one of auto, light, dark"):
        xb.viz(programs.loop(), "svg", theme="blue")
    with pytest.raises(TypeError, match="expected a Computation, Module, ModuleGroup, Value or Verdict, got int"):
        xb.viz(3)  # type: ignore[call-overload]


@pytest.mark.parametrize(("name", "form"), [("a.mmd", "mermaid"), ("a.GV", "dot"), ("a.svg", "svg"), ("txt", "txt")])
def test_formats_by_their_endings(name: str, form: str) -> None:
    assert form_of(name) == form


def test_painting_that_takes_too_long_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphviz, "_command", lambda *_: [sys.executable, "-c", "import time; time.sleep(60)"])
    with pytest.raises(
        DrawingError,
        match=r"more than 0\.2 seconds and was stopped; allow more time \(seconds=, --seconds\), or use svg",
    ):
        xb.viz(programs.loop(), "png", seconds=0.2)


def test_a_failing_engine_is_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphviz, "_command", lambda *_: [sys.executable, "-c", "raise SystemExit('no fonts')"])
    with pytest.raises(DrawingError, match=r"graphviz produced no png \(exit code 1\): no fonts"):
        xb.viz(programs.loop(), "png")


def test_only_png_and_pdf_want_an_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(graphviz.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(
        DrawingError,
        match=r"graphviz, which is not installed: run `pip install 'xbuild-hlo\[viz\]'`",
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
    assert graphviz._command("nop2", "svg") == ["/usr/bin/dot", "-Knop2", "-Tsvg"]


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
        "xbuild.pictures.drawing",
        "xbuild.text.printer",
    )
    code = f"import sys, xbuild; xbuild.viz; print([m for m in {optional} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
