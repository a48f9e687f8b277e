"""Layouts: nothing overlaps, nothing is cut off, every line begins and ends at its boxes and goes through none."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xbuild as xb
from examples.gallery import programs as shown
from xbuild.pictures.drawing import draw
from xbuild.pictures.geometry import PictureLayout, Rectangle, Route, lines_of, width_of
from xbuild.pictures.layout import Layering, lay_out, layers
from xbuild.pictures.picture import ELEMENTWISE, Box, Cluster, Edge, Picture, Words
from xbuild.pictures.views import View

from ..golden import programs


def corpus(name: str) -> xb.Module:
    return xb.parse_hlo((shown.CORPUS / f"{name}.hlo").read_text())


PROGRAMS = {
    **{name: getattr(programs, name) for name in ("attributes", "devices", "training_step", "loop", "ring")},
    **{name: getattr(shown, name) for name in ("example", "loop", "groups", "attention")},
    "tower": lambda: shown.tower(6),
    **{name: partial(corpus, name) for name in ("nested_calls_0", "switches_0", "mlp_train_0", "c_ring_allreduce_0")},
}


def overlap(a: Rectangle, b: Rectangle) -> bool:
    return a.x < b.right - 0.1 and b.x < a.right - 0.1 and a.y < b.bottom - 0.1 and b.y < a.bottom - 0.1


def inside(inner: Rectangle, outer: Rectangle) -> bool:
    return (
        inner.x >= outer.x - 0.1
        and inner.y >= outer.y - 0.1
        and inner.right <= outer.right + 0.1
        and inner.bottom <= outer.bottom + 0.1
    )


def points(route: Route) -> Iterator[tuple[float, float]]:
    """Points all along a line that goes downwards."""
    for number, ((ax, ay), (bx, by)) in enumerate(zip(route.points, route.points[1:], strict=False)):
        for step in range(11):
            t = step / 10
            if number % 2:  # a cubic curve, upright at both ends
                yield ax + (bx - ax) * (3 - 2 * t) * t * t, ay + (by - ay) * (1.5 * t - 1.5 * t * t + t * t * t)
            else:
                yield ax + (bx - ax) * t, ay + (by - ay) * t


def check(picture: Picture, layout: PictureLayout) -> None:
    for cluster in picture.clusters:
        _check_frame(cluster, layout)
    frames = [layout.clusters[each.id] for each in picture.clusters]
    assert not any(overlap(a, b) for n, a in enumerate(frames) for b in frames[:n])
    assert {id(route.edge) for route in layout.routes} == {id(edge) for edge in picture.edges}
    for route in layout.routes:
        if not route.sideways:
            _check_line(route, layout)


def _check_frame(cluster: Cluster, layout: PictureLayout) -> None:
    frame = layout.clusters[cluster.id]
    parts = [layout.boxes[each.id] for each in cluster.boxes] + [layout.clusters[each.id] for each in cluster.clusters]
    for number, part in enumerate(parts):
        assert inside(part, frame)
        assert not any(overlap(part, other) for other in parts[:number])
    for inner in cluster.clusters:
        _check_frame(inner, layout)


def _check_line(route: Route, layout: PictureLayout) -> None:
    head = layout.boxes[route.edge.head]
    (x, y), (start, _) = route.points[-1], route.points[0]
    assert head.x <= x <= head.right
    assert y == pytest.approx(head.y)
    if route.edge.what != "call":
        tail = layout.boxes[route.edge.tail]
        assert tail.x <= start <= tail.right
        assert route.points[0][1] == pytest.approx(tail.bottom)
    ends = {route.edge.tail, route.edge.head}
    for name, box in layout.boxes.items():
        if name not in ends:
            assert not any(
                box.x + 1 < px < box.right - 1 and box.y + 1 < py < box.bottom - 1 for px, py in points(route)
            )


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_laid_out_with_room_for_everything(name: str) -> None:
    picture = draw(PROGRAMS[name]())
    layout = lay_out(picture)
    check(picture, layout)
    assert layout == lay_out(picture)


@pytest.mark.parametrize("name", PROGRAMS)
def test_words_fit_their_boxes(name: str) -> None:
    picture = draw(PROGRAMS[name]())
    layout = lay_out(picture)
    for box in picture.all_boxes():
        place, lines = layout.boxes[box.id], [*lines_of(box)]
        assert max(width_of(line.text, line.size) for line in lines) < place.width - 24
        assert 14 * len(lines) < place.height


@st.composite
def pictures(draw: st.DrawFn) -> Picture:
    """Any graph, cycles and doubled lines among them, with frames that hang on some boxes."""
    count = draw(st.integers(1, 14))
    ends = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    edges = [Edge(f"b{a}", f"b{b}") for a, b in draw(st.lists(ends, max_size=30)) if a < b]
    boxes = tuple(
        Box(f"b{n}", "x" * draw(st.integers(1, 12)), "add", Words("f32[2]"), ELEMENTWISE) for n in range(count)
    )
    frames = []
    for number, caller in enumerate(draw(st.lists(st.integers(0, count - 1), max_size=3))):
        size = draw(st.integers(1, 6))
        inner = tuple(Box(f"c{number}/{n}", "y", "add", Words("f32[2]"), ELEMENTWISE) for n in range(size))
        frames.append(Cluster(f"c{number}", "frame", inner, caller=f"b{caller}"))
        edges += [Edge(f"c{number}/{n}", f"c{number}/{n + 1}") for n in range(size - 1)]
        edges.append(Edge(f"c{number}/{size - 1}", f"b{caller}", "call"))
    return Picture("any", (Cluster("main", "main", boxes, tuple(frames)),), tuple(edges))


@settings(max_examples=60, deadline=None)
@given(pictures())
def test_any_picture_is_laid_out_with_room_for_everything(picture: Picture) -> None:
    check(picture, lay_out(picture))


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=40))
def test_layers_put_each_node_below_what_it_uses_even_where_there_are_cycles(edges: list[tuple[int, int]]) -> None:
    layering = Layering(10, [edge for edge in edges if edge[0] != edge[1]])
    for number in layering.kept:
        tail, head = layering.edges[number]
        assert layering.layer[tail] < layering.layer[head]
    if all(a < b for a, b in layering.edges):
        assert len(layering.kept) == len(layering.edges)
    assert sorted(node for layer in layers(layering, [100.0] * 10, 250.0) for node in layer) == list(range(10))
    assert max(map(len, layers(layering, [100.0] * 10, 250.0))) <= 4


def test_a_line_of_a_cycle_is_drawn_beside_the_others() -> None:
    boxes = tuple(Box(f"b{n}", f"b{n}", "add", Words("f32[]"), ELEMENTWISE) for n in range(2))
    picture = Picture("c", (Cluster("m", "m", boxes),), (Edge("b0", "b1"), Edge("b1", "b0")))
    layout = lay_out(picture)
    assert [route.sideways for route in layout.routes] == [False, True]


def test_a_very_large_program_is_laid_out_whole_in_pages() -> None:
    module = shown.tower(150)
    picture = View(max_nodes=10**6).apply(draw(module))
    assert picture.size > 3000
    layout = lay_out(picture)
    assert len(layout.boxes) == picture.size
    pages = [place for name, place in layout.clusters.items() if "/page " in name]
    assert len(pages) > 20
    assert not any(overlap(a, b) for n, a in enumerate(pages) for b in pages[:n])
    assert 0.3 < layout.width / layout.height < 6


def test_pages_say_where_their_lines_go() -> None:
    picture = View(max_nodes=10**6).apply(draw(shown.tower(40)))
    words = {box.name: box.details for box in picture.all_boxes()}
    whole = draw(shown.tower(40))
    kept = {(edge.tail, edge.head) for edge in picture.edges}
    names = {box.id: box.name for box in whole.all_boxes()}
    cut = [edge for edge in whole.edges if (edge.tail, edge.head) not in kept]
    assert cut
    for edge in cut:
        told = " ".join(words[names[edge.head]])
        assert f"← {names[edge.tail]}" in told or "more" in told
        assert any(detail.startswith("→ ") for detail in words[names[edge.tail]])


def test_a_picture_of_nothing() -> None:
    layout = lay_out(Picture("empty", (), ()))
    assert (layout.width, layout.height) == (0, 0)
    assert "<svg" in str(xb.viz(xb.Module("one", shown.example().entry), "svg"))


def test_lines_that_go_far_do_not_make_a_picture_wide() -> None:
    """Were all of them straight, a tower of 40 layers and its gradient would be as wide as it is high."""
    text = str(xb.viz(shown.tower(40), "svg"))
    wide, high = map(float, text.partition('viewBox="0 0 ')[2].partition('"')[0].split())
    assert wide < 0.4 * high


def test_many_lines_to_a_box_make_it_no_wider_than_is_needed_to_read() -> None:
    boxes = [Box(f"b{n}", f"b{n}", "add", Words("f32[]"), ELEMENTWISE) for n in range(401)]
    edges = tuple(Edge(f"b{n}", "b400", "value", "", str(n)) for n in range(400))
    found = lay_out(Picture("many", (Cluster("c", "c", tuple(boxes)),), edges))
    assert found.boxes["b400"].width < 700
