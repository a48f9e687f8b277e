"""Which part of a program is shown: around, paths, collectives, folded scopes and computations, and what is counted."""

from __future__ import annotations

import sys
import time
from contextlib import nullcontext

import networkx as nx
import pytest
from click.testing import CliRunner

import xbuild as xb
from examples.gallery import programs as shown
from xbuild.cli import main
from xbuild.pictures import Drawing, ViewError
from xbuild.pictures.drawing import draw
from xbuild.pictures.folding import fold_scopes, frames
from xbuild.pictures.picture import COLLECTIVE, FOLDED, Picture
from xbuild.pictures.views import View, only_collectives, overview

from ..golden import programs

ROOT_TARGET = "examples/gallery/programs.py:tower"


def names(picture: Picture) -> set[str]:
    return {box.name for box in picture.all_boxes()}


def graph(picture: Picture) -> nx.DiGraph[str]:
    found: nx.DiGraph[str] = nx.DiGraph()
    found.add_nodes_from(box.id for box in picture.all_boxes())
    found.add_edges_from((edge.tail, edge.head) for edge in picture.edges if edge.what != "channel")
    return found


def around(name: str, radius: int) -> Picture:
    return View(around=name, radius=radius).apply(draw(programs.training_step()))


def test_around_an_instruction() -> None:
    assert names(around("dot.3", 0)) == {"dot.3"}
    assert names(around("dot.3", 1)) == {"dot.3", "x", "first", "maximum.5"}
    whole = nx.Graph(graph(draw(programs.training_step())))
    reach = nx.single_source_shortest_path_length(whole, "training_step/dot.3", 2)
    assert {box.id for box in around("dot.3", 2).all_boxes()} == set(reach)


def test_what_is_left_out_is_counted() -> None:
    picture = around("dot.3", 1)
    (first,) = [box for box in picture.all_boxes() if box.name == "maximum.5"]
    assert (first.hidden_before, first.hidden_after) == (0, 3)
    assert first.stubs == ("+3 hidden after",)
    assert picture.notes == ("4 boxes within 1 of dot.3; +15 hidden",)
    for form in ("svg", "dot", "mermaid", "txt"):
        drawing = Drawing(picture)
        assert "hidden after" in str(drawing.render(form))
        assert "+15 hidden" in str(drawing.render(form))


def test_around_a_constant_is_around_what_it_is_a_word_of() -> None:
    constant = next(i.name for i in programs.training_step().entry.instructions if i.opcode == "constant")
    assert "maximum.5" in names(around(constant, 0))


def test_a_walk_does_not_go_through_tuples() -> None:
    builder = xb.Builder("pair")
    x, y = (xb.parameter(builder, number=n, shape=xb.f32[2], name=name) for n, name in enumerate("xy"))
    picture = draw(builder.build(xb.tuple_([xb.negate(x), xb.tanh(y)])))
    assert {box.title for box in View(around="x", radius=9).apply(picture).all_boxes()} == {
        "parameter 0", "negate", "tuple",
    }  # fmt: skip


def test_paths() -> None:
    whole = draw(programs.training_step())
    picture = View(paths=("x", "dot.14")).apply(whole)
    links = graph(whole)
    start, end = "training_step/x", "training_step/dot.14"
    wanted = (nx.descendants(links, start) | {start}) & (nx.ancestors(links, end) | {end})
    assert {box.id for box in picture.all_boxes()} == wanted
    assert names(View(paths=("dot.14", "x")).apply(whole)) == names(picture)
    with pytest.raises(ViewError, match="no path leads from x to labels, or from labels to x"):
        View(paths=("x", "labels")).apply(whole)


def test_names_that_are_not_there() -> None:
    with pytest.raises(ViewError, match=r"the picture has no instruction 'dot\.33'; did you mean 'dot\.3'\?"):
        around("dot.33", 1)
    with pytest.raises(
        ViewError, match="cannot fold 'forwards': the picture has no such computation or scope; did you mean 'forward'"
    ):
        View(fold=("forwards",)).apply(draw(programs.training_step()))
    with pytest.raises(ViewError, match="only='sums': expected 'collectives'"):
        View(only="sums")


def test_only_collectives_keeps_them_and_what_leads_to_them() -> None:
    whole = draw(shown.tower(5))
    picture = only_collectives(whole)
    kept = {box.id for box in picture.all_boxes() if box.kind is COLLECTIVE}
    assert kept == {box.id for box in whole.all_boxes() if box.kind is COLLECTIVE}
    assert nx.is_directed_acyclic_graph(graph(picture))
    before, after = graph(whole), graph(picture)
    for box in kept:
        assert nx.ancestors(before, box) & kept == nx.ancestors(after, box) & kept
    counted = sum(int(box.name.split()[0]) for box in picture.all_boxes() if box.kind is FOLDED)
    single = sum(box.kind is not FOLDED for box in picture.all_boxes())
    assert counted + single == whole.size


def test_only_collectives_keeps_the_loop_around_one() -> None:
    picture = only_collectives(draw(programs.loop()))
    assert {"while.20", "all-reduce.13"} <= names(picture)


def test_a_folded_scope_is_one_box() -> None:
    picture = View(fold=("forward",)).apply(draw(programs.training_step()))
    (box,) = [each for each in picture.all_boxes() if each.kind is FOLDED]
    assert (box.name, box.details) == ("forward", ("4 ops",))
    assert "dot.3" in box.tooltip
    assert nx.is_directed_acyclic_graph(graph(picture))


def test_a_folded_computation_is_a_number_in_its_caller() -> None:
    picture = View(fold=("next",)).apply(draw(programs.loop()))
    caller = next(box for box in picture.all_boxes() if box.name == "while.20")
    assert "body: +5 hidden" in caller.details
    assert [cluster.name for cluster in picture.clusters[0].clusters] == ["below_ten", "lambda", "lambda.1"]


def test_a_computation_that_is_called_twice_is_folded_into_both_callers() -> None:
    @xb.computation(xb.f32[()])
    def squashed(v: xb.Value) -> xb.Value:
        return xb.ops.tanh(xb.ops.negate(v))

    x = xb.ops.parameter(xb.Builder("main"), number=0, shape=xb.f32[()])
    program = x.builder.build(xb.ops.call(xb.ops.call(x, to_apply=squashed), to_apply=squashed))
    picture = View(fold=("squashed",)).apply(draw(program))
    assert [box.details for box in picture.all_boxes() if box.title == "call"] == [("to_apply: +3 hidden",)] * 2
    assert {edge.what for edge in picture.edges} == {"value"}


@pytest.mark.parametrize("most", [1, 7, 40, 120, 299])
def test_no_more_boxes_than_asked_for(most: int) -> None:
    for program in (shown.tower(20), shown.attention(), programs.ring(6), programs.loop()):
        whole = draw(program)
        picture = View(max_nodes=most).apply(whole)
        assert 0 < picture.size <= most
        assert nx.is_directed_acyclic_graph(graph(picture))
        if whole.size > most:
            assert picture.notes[0].startswith(f"large program: {whole.size:,} boxes drawn as")
            assert "<svg" in str(Drawing(picture).render("svg"))


def test_folded_scopes_make_no_cycle() -> None:
    """A scope that is left and entered again becomes several boxes."""
    builder = xb.Builder("twice")
    x = xb.parameter(builder, number=0, shape=xb.f32[2], name="x")
    for step in range(30):
        with xb.scope("a" if step % 2 else "b"):
            x = xb.tanh(xb.negate(x))
    picture = fold_scopes(draw(builder.build(x)), 40)
    assert nx.is_directed_acyclic_graph(graph(picture))
    assert 30 <= picture.size <= 31


def test_the_command_says_what_it_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "programs", shown)  # other tests have a file of this name
    run = CliRunner().invoke
    done = run(main, ["viz", ROOT_TARGET, "--around", "w1", "--radius", "1"])
    assert done.exit_code == 0, done.output
    assert done.stderr.startswith("notice: ")
    assert "hidden" in done.stderr
    assert "w1" in done.stdout
    done = run(main, ["viz", ROOT_TARGET, "--around", "w100"])
    assert done.exit_code == 2
    assert "the picture has no instruction 'w100'; did you mean" in done.stderr
    done = run(main, ["viz", ROOT_TARGET, "--only", "collectives", "--fold", "nothing"])
    assert done.exit_code == 2
    root = shown.tower().entry.root.name
    done = run(main, ["viz", ROOT_TARGET, "--paths", "w1", root, "--max-nodes", "20", "--theme", "dark"])
    assert done.exit_code == 0, done.output
    assert "large program: " in done.stderr


def chain(length: int, each: int = 0) -> xb.Module:
    """Ops one after the other; with scopes of so many ops each."""
    builder = xb.Builder("chain")
    x = xb.parameter(builder, number=0, shape=xb.f32[2], name="x")
    for number in range(length):
        with xb.scope(f"layer{number // each}") if each else nullcontext():
            x = xb.tanh(x) if number % 3 else xb.cross_replica_sum(x)
    return xb.Module("chain", builder.build(x), num_replicas=2)


def nested(levels: int, per: int = 1) -> xb.Module:
    """A computation that calls one that calls one, and so on."""
    inner: xb.Computation | None = None
    for number in range(levels):
        builder = xb.Builder(f"level{number}")
        x = xb.parameter(builder, number=0, shape=xb.f32[2], name=f"x{number}")
        for _ in range(per):
            x = xb.tanh(x)
        if inner is not None:
            x = xb.call([x], to_apply=inner)
        inner = builder.build(x)
    assert inner is not None
    return xb.Module("nested", inner)


def test_a_very_large_program_has_an_overview_of_the_whole() -> None:
    picture = View().apply(draw(chain(3000)))
    assert 40 <= picture.size <= 60
    assert picture.notes[0] == f"large program: 3,001 boxes drawn as {picture.size} (--max-nodes 300)"
    assert picture.notes[1].startswith("an overview: ")
    assert sum(int(box.details[0].removesuffix(" ops").replace(",", "")) for box in picture.all_boxes()) == 3001
    first, *_, last = picture.all_boxes()
    assert first.name.startswith("x … ")
    assert last.is_root
    assert nx.is_directed_acyclic_graph(graph(picture))
    for form in ("svg", "dot", "mermaid", "txt"):
        assert "an overview: " in str(Drawing(picture).render(form))


def test_an_overview_counts_kinds_and_ends_its_stretches_where_scopes_end() -> None:
    picture = overview(draw(chain(3000, each=25)), 300)
    assert picture is not None
    first, second, *_, last = picture.all_boxes()
    assert first.details[:4] == ("layer0 … layer1", "51 ops", "33 elementwise", "17 collective")
    assert second.details[:2] == ("layer2 … layer3", "50 ops")
    assert last.details[0].endswith("layer119")
    assert all(int(box.details[1].split()[0]) % 25 == 0 for box in picture.all_boxes() if box is not first)


def test_an_overview_keeps_the_callers_of_the_frames_that_it_shows() -> None:
    program = nested(4, per=500)
    picture = View().apply(draw(program))
    callers = {inner.caller for cluster, _ in frames(picture) for inner in cluster.clusters if inner.caller}
    assert len(callers) == 3
    assert callers <= {box.id for box in picture.all_boxes() if box.title == "call"}
    assert picture.size <= 300


def test_an_overview_of_more_frames_than_boxes_is_none() -> None:
    group = xb.ModuleGroup(dict.fromkeys(range(12), chain(200)))
    assert overview(draw(group), 7) is None
    assert View(max_nodes=7).apply(draw(group)).size == 7


def test_many_parameters_that_the_same_scopes_use_are_one_box() -> None:
    picture = fold_scopes(draw(shown.tower(20)), 16)
    names = [box.name for box in picture.all_boxes() if box.kind is FOLDED]
    assert names == ["x … w19", "forward", "backward"]
    assert nx.is_directed_acyclic_graph(graph(picture))


def test_lines_that_a_picture_has_as_one_are_counted() -> None:
    builder = xb.Builder("pairs")
    x = xb.parameter(builder, number=0, shape=xb.f32[2], name="x")
    with xb.scope("a"):
        ones = [xb.tanh(x), xb.negate(x)]
    with xb.scope("b"):
        twos = [xb.tanh(each) for each in ones]
    picture = View(fold=("a", "b")).apply(draw(builder.build(xb.tuple_(twos))))
    told = {(edge.tail.rpartition("/")[2], edge.head.rpartition("/")[2]): edge.tooltip for edge in picture.edges}
    assert told["a", "b"] == "2 lines; the first: tanh.1 -> tanh.3: f32[2]"
    assert told["x", "a"] == "2 lines; the first: x -> tanh.1: f32[2]"


def test_computations_in_computations_without_end() -> None:
    picture = draw(nested(300))
    assert max(depth for _, depth in frames(picture)) == 99
    deepest = next(
        box for box in picture.all_boxes() if "called computations are nested too deeply to be drawn" in box.details
    )
    assert deepest.title == "call"
    assert "<svg" in str(xb.viz(nested(300), "svg"))


@pytest.mark.parametrize("program", [chain(12_000), chain(12_000, each=40), nested(60, per=200)])
def test_the_time_for_a_picture_grows_with_the_program(program: xb.Module) -> None:
    """On a quiet machine, a hundred thousand instructions take less than five seconds, twelve thousand half of one."""
    start = time.process_time()
    assert "<svg" in str(xb.viz(program, "svg"))
    assert time.process_time() - start < 5
