"""Pictures that move: the figures on the pages are those of `xb.cost`, and the messages compute what a run computes."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import xbuild as xb
from benchmarks.pipelines import N as EXTENT
from benchmarks.pipelines import pipeline_in_order
from shape_inference import XbuildError
from tests.commands.command_line import xbuild
from xbuild.costs.collectives import Algorithm, CollectiveCost
from xbuild.learning.moving import PICTURES, moving_page
from xbuild.timelines.durations import collective_time
from xbuild.timelines.machines import MACHINES, Link

FLAT = ("ring", "halving-doubling", "tree")
WITH_NODES = [name for name, machine in MACHINES.items() if machine.network is not None]


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Opens a picture; at the end nothing may have gone over the network, or to the console."""
    contexts, faults = [], []

    def open_picture(name: str, at: str = "", **options: Any) -> Any:
        (tmp_path / f"{name}.html").write_text(moving_page(name), encoding="utf-8")
        contexts.append(browser.new_context(**options))
        page = contexts[-1].new_page()
        page.on("request", lambda request: None if request.url.startswith("file:") else faults.append(request.url))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: faults.append(message.text))
        page.goto(f"{(tmp_path / f'{name}.html').as_uri()}{at and '#' + at}")
        return page

    yield open_picture
    for context in contexts:
        context.close()
    assert not faults


@pytest.mark.parametrize("name", PICTURES)
@pytest.mark.parametrize("width", [1280, 360])
def test_a_picture_fits_the_window(opened: Callable[..., Any], name: str, width: int) -> None:
    page = opened(name, viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_picture_that_does_not_exist() -> None:
    with pytest.raises(XbuildError, match="picture 'x' does not exist"):
        moving_page("x")


# ----------------------------------------------------------------------------
# All-reduce


def draw_settings(seed: int) -> tuple[int, int, int, str]:
    """Devices, devices in a node, elements of f32, and a machine; the devices divide the elements."""
    draw = random.Random(seed)
    n = draw.randint(2, 16)
    node = draw.choice([size for size in range(1, n + 1) if n % size == 0])
    return n, node, n * draw.choice([1, 3, 1000, 262_144, draw.randint(1, 10**6)]), draw.choice(WITH_NODES)


def costs(n: int, make: Callable[[xb.Value], xb.Value], elements: int) -> list[CollectiveCost]:
    module = xb.Module("m", xb.computation(xb.f32[elements])(make), num_replicas=n)
    return [row.collective for row in xb.cost(module).collectives if row.collective is not None]


def test_figures_are_those_of_cost(opened: Callable[..., Any]) -> None:
    page = opened("all_reduce")
    for seed in range(200):
        n, node, elements, name = draw_settings(seed)
        machine = evolve(MACHINES[name], node=node)
        assert machine.network is not None
        figures = page.evaluate(
            """([n, node, bytes, name]) => Object.fromEntries(
               Object.keys(ALGORITHMS).filter(a => ALGORITHMS[a].fits(n, node))
               .map(a => [a, figuresOf(a, n, node, bytes, DATA.machines[name])]))""",
            [n, node, 4 * elements, name],
        )
        (flat,) = costs(n, xb.cross_replica_sum, elements)
        assert {each.name for each in flat.algorithms} == figures.keys() - {"hierarchical"}
        for each in flat.algorithms:
            path = each.steps * flat.payload if each.name == "tree" else each.link_bytes
            compare(figures[each.name], each.steps, path, each.total_bytes)
        fastest = collective_time(flat, machine, {}, [range(n)])
        assert figures[fastest.algorithm]["seconds"] == pytest.approx(fastest.seconds, rel=1e-6)
        assert min(figures[each]["seconds"] for each in FLAT if each in figures) == pytest.approx(fastest.seconds, 1e-6)
        if "hierarchical" in figures:
            inside = [[each * node + i for i in range(node)] for each in range(n // node)]
            across = [[each * node + i for each in range(n // node)] for i in range(node)]

            def hierarchical(x: xb.Value, inside: Any = inside, across: Any = across, node: int = node) -> xb.Value:
                share = xb.reduce_scatter(x, xb.add, 0, node, replica_groups=inside)
                return xb.all_gather(
                    xb.all_reduce(share, xb.add, replica_groups=across), 0, node, replica_groups=inside
                )

            parts = costs(n, hierarchical, elements)
            rings = [part.algorithms[0] for part in parts]
            links = [machine.link(), machine.network, machine.link()]
            total = sum(each.total_bytes * part.num_groups for each, part in zip(rings, parts, strict=True))
            steps, path = sum(each.steps for each in rings), sum(each.link_bytes for each in rings)
            compare(figures["hierarchical"], steps, path, total)
            seconds = sum(map(seconds_over, rings, links))
            assert figures["hierarchical"]["seconds"] == pytest.approx(seconds, rel=1e-6)


def compare(figures: Any, steps: int, path: int, total: int) -> None:
    assert (figures["steps"], math.ceil(figures["path"]), math.ceil(figures["total"])) == (steps, path, total)


def seconds_over(algorithm: Algorithm, link: Link) -> float:
    return algorithm.steps * link.alpha + algorithm.link_bytes / link.bandwidth


@pytest.mark.parametrize("seed", range(12))
def test_messages_compute_the_sum_that_a_run_computes(opened: Callable[..., Any], seed: int) -> None:
    """Each step is one collective-permute of all chunks; a device takes or adds those that its message names."""
    n, node, _, _ = draw_settings(seed)
    fitting = opened("all_reduce").evaluate(
        """([n, node]) => Object.values(ALGORITHMS).filter(a => a.fits(n, node)).map(a => {
           const steps = a.steps(n, node), chunks = a.chunks(n);
           return [chunks, steps, count(steps.length + 1, done => contents(steps, n, chunks, done))]; })""",
        [n, node],
    )
    for chunks, steps, held in fitting:

        @xb.computation(xb.u32[chunks])
        def program(x: xb.Value, steps: Any = steps, chunks: int = chunks) -> xb.Value:
            values = [x]
            for step in steps:
                adds, takes = np.zeros((2, n, chunks), bool)
                for each in step:
                    (adds if each["adds"] else takes)[each["to"], each["chunks"]] = True
                came = xb.collective_permute(x, [(each["from"], each["to"]) for each in step])
                place = [xb.replica_id(builder=x.builder), xb.constant(x.builder, 0, xb.u32)]
                added, taken = (
                    xb.reshape(xb.dynamic_slice(xb.constant(x.builder, mask), place, [1, chunks]), [chunks])
                    for mask in (adds, takes)
                )
                x = xb.select(taken, came, xb.select(added, xb.add(x, came), x))
                values.append(x)
            return xb.tuple_(*values)

        module = xb.Module("messages", program, num_replicas=n)
        runs = xb.execute(module, [[np.full(chunks, 1 << device, np.uint32)] for device in range(n)])
        np.testing.assert_array_equal(np.array(runs).swapaxes(0, 1), np.array(held))
        assert set(np.array(held[-1]).flat) == {(1 << n) - 1}


def test_the_keyboard_moves_the_picture(opened: Callable[..., Any]) -> None:
    page = opened("all_reduce", "n=4&algorithm=ring")
    assert page.inner_text("#status").startswith("Step 1 of 6: 4 devices send")
    page.focus("#step")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#status").startswith("Step 2 of 6")
    assert "step=1" in page.url
    page.keyboard.press("End")
    assert page.inner_text("#status") == "After 6 steps, every device has the sum of all 4 arrays."
    assert page.locator(".cell.whole").count() == 16
    page.focus("#play")
    page.keyboard.press("Enter")
    assert page.inner_text("#play") == "Pause"


def test_a_finger_moves_the_picture(opened: Callable[..., Any]) -> None:
    page = opened("all_reduce", "n=6", has_touch=True, viewport={"width": 420, "height": 900})
    page.tap("#play")
    page.locator("#status", has_text="Step 2 of 10").wait_for()
    page.tap("#play")
    assert page.inner_text("#play") == "Play"


# ----------------------------------------------------------------------------
# Pipelines


SETTINGS = [(p, m, chunks) for p in (2, 3, 5, 8) for m in (1, 2, 5, 8, 16) for chunks in (1, 2, 3)]


@pytest.mark.parametrize(("p", "m", "chunks"), random.Random(1).sample(SETTINGS, 10))
def test_figures_are_those_of_the_timeline(opened: Callable[..., Any], p: int, m: int, chunks: int) -> None:
    """Each schedule as a program for each stage: it cannot hang, and takes as long as the page says."""
    found = opened("pipeline").evaluate(
        """([p, m, chunks]) => Object.keys(SCHEDULES).filter(a => SCHEDULES[a].fits(p, m, chunks)).map(a =>
           [a, SCHEDULES[a].orders(p, m, chunks), figuresOf(a, p, m, chunks)])""",
        [p, m, chunks],
    )
    assert len(found) == 4 if chunks > 1 and m % p == 0 else 3
    for name, orders, figures in found:
        parts = chunks if name == "interleaved" else 1
        passes = [[(each["kind"], each["chunk"], each["microbatch"]) for each in order] for order in orders]
        assert all(len({*order}) == len(order) == m * parts * (3 if name == "zero-bubble" else 2) for order in passes)
        group = pipeline_in_order(passes, parts)
        assert xb.check(group).kind == "ok"
        line = xb.timeline(group, xb.Machine(flops=2.0 * EXTENT**3, memory_bandwidth=math.inf))
        assert line.seconds / parts == pytest.approx(figures["time"], rel=1e-9)
        assert line.bubble / line.seconds == pytest.approx(figures["waits"], rel=1e-9, abs=1e-9)


def test_figures_are_those_of_the_papers(opened: Callable[..., Any]) -> None:
    """GPipe and 1F1B wait (p - 1)(F + B), interleaved a v-th of it, and ZB-H1 (p - 1)(F + B - W), if m >= p."""
    page = opened("pipeline")
    for p in range(2, 9):
        for m in range(p, 17, p):
            times = page.evaluate(
                "([p, m]) => ['gpipe', '1f1b', 'interleaved', 'zero-bubble'].map(a => figuresOf(a, p, m, 4))", [p, m]
            )
            waits = [each["time"] - 3 * m for each in times]
            assert waits == pytest.approx([3 * (p - 1), 3 * (p - 1), 3 * (p - 1) / 4, p - 1])
            assert [times[0]["held"], times[1]["held"], times[3]["held"]] == [m, p, p]


def test_time_passes_on_a_pipeline(opened: Callable[..., Any]) -> None:
    page = opened("pipeline", "p=2&m=2&schedule=gpipe")
    assert page.locator(".pass.later").count() == 0
    page.focus("#time")
    page.keyboard.press("Home")
    assert page.locator(".pass.later").count() == 8
    page.focus("#play")
    page.keyboard.press("Enter")
    page.locator("#play", has_text="Play").wait_for()
    assert page.locator(".pass.later").count() == 0


# ----------------------------------------------------------------------------
# A layer on a roofline

SPECS = {"data": (xb.P("d"), xb.P()), "columns": (xb.P(), xb.P(None, "d")), "rows": (xb.P(None, "d"), xb.P("d"))}


def test_the_figures_of_a_layer_are_those_of_its_partition(opened: Callable[..., Any]) -> None:
    """The program of a device has the FLOPs and bytes that the page shows; so has the partition by `xb.shard`."""
    page = opened("roofline")
    for seed in range(60):
        draw = random.Random(seed)
        cut, dtype, name = draw.choice([*SPECS]), draw.choice(["bf16", "f32"]), draw.choice([*MACHINES])
        n = 2 ** draw.randint(1, 6)
        sizes = {"B": n * 2 ** draw.randint(0, 9), "D": n * 2 ** draw.randint(0, 9), "F": n * 2 ** draw.randint(0, 9)}
        figures = page.evaluate(
            "([cut, sizes, type, name]) => figuresOf(cut, sizes, type, DATA.devices[name])",
            [cut, sizes | {"n": n}, dtype, name],
        )
        kind = getattr(xb, dtype)
        b, d, f = figures["shapes"]

        @xb.computation(kind[b, d], kind[d, f])
        def part(x: xb.Value, w: xb.Value, cut: str = cut) -> xb.Value:
            product = xb.dot(x, w)
            return xb.cross_replica_sum(product) if cut == "rows" else product

        cost = xb.cost(xb.Module("part", part, num_replicas=n))
        product = next(row for row in cost.rows if row.instruction.opcode == "dot")
        assert (product.flops, product.bytes) == (figures["flops"], figures["product"])
        assert (cost.link_bytes, cost.bytes) == (figures["link"], figures["bytes"])
        whole = xb.computation(kind[sizes["B"], sizes["D"]], kind[sizes["D"], sizes["F"]])(xb.dot)
        specs = dict(zip([each.name for each in whole.parameters], SPECS[cut], strict=True))
        annotated = xb.shard.annotated(xb.Module("whole", whole), specs, mesh=xb.Mesh(d=n))
        partitioned = xb.cost(xb.shard.partition(annotated).module)
        if partitioned.link_bytes != figures["link"]:  # the partitioner gathers x or w if this moves fewer bytes
            assert cut == "rows"
            assert partitioned.link_bytes < figures["link"]
        machine = MACHINES[name]
        assert figures["seconds"]["compute"] == pytest.approx(product.flops / machine.peak(dtype))
        assert figures["seconds"]["memory"] == pytest.approx(product.bytes / machine.memory_bandwidth)
        assert figures["seconds"]["link"] == pytest.approx(cost.link_bytes / machine.link().bandwidth)


def test_a_layer_moves_on_its_roofline(opened: Callable[..., Any]) -> None:
    page = opened("roofline", "B=0&machine=h100&cut=columns")
    assert "bound by its memory" in page.inner_text("#status")
    page.focus("#B")
    page.keyboard.press("End")
    assert "bound by its arithmetic" in page.inner_text("#status")
    page.select_option("#cut", "rows")
    assert "bound by its link" in page.inner_text("#status")
    assert page.locator(".slowed").count() == 1


# ----------------------------------------------------------------------------
# A product that is cut

LAYOUTS = {"whole": xb.P(), "rows": xb.P("d"), "columns": xb.P(None, "d")}


def test_the_bytes_of_a_cut_product_are_those_of_its_partition(opened: Callable[..., Any]) -> None:
    page = opened("cuts")
    for seed in range(60):
        draw = random.Random(seed)
        n, (m, k, f) = 2 ** draw.randint(1, 4), (2 ** draw.randint(4, 14) for _ in range(3))
        cuts = {array: draw.choice([*LAYOUTS]) for array in "ABC"}
        best = page.evaluate("([cuts, sizes]) => bestOf(waysOf(cuts, sizes))", [cuts, {"M": m, "K": k, "N": f, "n": n}])
        product = xb.computation(xb.f32[m, k], xb.f32[k, f])(lambda a, b: xb.dot(a, b, name="C"))
        names = dict(zip("ABC", [*(each.name for each in product.parameters), "C"], strict=True))
        specs = {names[array]: LAYOUTS[cut] for array, cut in cuts.items()}
        module = xb.shard.partition(xb.shard.annotated(xb.Module("m", product), specs, mesh=xb.Mesh(d=n))).module
        cost = xb.cost(module)
        assert (cost.link_bytes, dot_flops(cost)) == (best["link"], best["flops"]), (cuts, m, k, f, n)
        opcodes = sorted(row.instruction.opcode.replace("_", "-") for row in cost.collectives)
        assert opcodes == sorted(filter(None, (move["name"] for move in best["moves"].values())))


def dot_flops(cost: xb.Cost) -> int:
    return sum(row.flops for row in cost.rows if row.instruction.opcode == "dot")


def test_a_click_cuts_a_matrix(opened: Callable[..., Any]) -> None:
    page = opened("cuts", "A=whole&B=whole&C=whole")
    assert page.inner_text("#status").endswith("no collective.")
    page.click(".matrix >> nth=1")
    assert page.input_value("#B") == "rows"
    assert "all-reduce of C" in page.inner_text("#status") or "all-gather of B" in page.inner_text("#status")


# ----------------------------------------------------------------------------
# Lanes

SHAPE = xb.f32[2]


def lane(device: int, order: list[int], meetings: list[Any], size: int) -> xb.Module:
    """The program of a device: its meetings, one after another."""
    builder = xb.Builder(f"device{device}")
    value = xb.parameter(builder, number=0, shape=SHAPE)
    for number in order:
        meeting, channel = meetings[number], number + 1
        if meeting["kind"] == "sum":
            others = [(other,) for other in range(size) if other not in meeting["devices"]]
            value = xb.all_reduce(value, xb.add, [tuple(meeting["devices"]), *others], channel_id=channel)
            continue
        token = xb.ops.after_all((), builder=builder)
        if meeting["devices"][0] == device:
            xb.ops.send_done(xb.ops.send(value, token, channel_id=channel), channel_id=channel)
        else:
            xb.ops.recv_done(xb.ops.recv(token, shape=SHAPE, channel_id=channel), channel_id=channel)
    return xb.Module(f"device{device}", builder.build(value), is_scheduled=True)


def test_lanes_end_as_the_check_says(opened: Callable[..., Any]) -> None:
    """Orders drawn at random hang on the page if and only if the check refuses them, and stop where a run stops."""
    page = opened("lanes")
    programs = page.evaluate("PROGRAMS")
    kinds = set()
    for seed in range(200):
        draw = random.Random(seed)
        program = programs[draw.choice([*programs])]
        orders = [draw.sample(order, len(order)) for order in program["orders"]]
        found = page.evaluate("([meetings, orders]) => run(meetings, orders)", [program["meetings"], orders])
        group = xb.ModuleGroup({n: lane(n, order, program["meetings"], len(orders)) for n, order in enumerate(orders)})
        verdict = xb.check(group)
        assert verdict.kind == ("deadlock" if any(found["stuck"]) else "ok"), orders
        kinds.add(verdict.kind)
        if any(found["stuck"]) and seed < 40:
            with pytest.raises(xb.Stopped) as stopped:
                xb.execute(group, [[np.zeros(2, np.float32)] for _ in orders], check=False)
            stopped_at = [
                state.standing.path[-1].instruction.attributes.channel_id - 1 if state.standing else None
                for state in stopped.value.report.devices
            ]
            places = zip(orders, found["next"], found["stuck"], strict=True)
            assert stopped_at == [order[place] if stuck else None for order, place, stuck in places]
    assert kinds == {"ok", "deadlock"}


def test_cards_move_by_keyboard_and_by_hand(opened: Callable[..., Any]) -> None:
    page = opened("lanes", "program=sums")
    assert page.inner_text("#status").startswith("Deadlock: device 0 stops at loss and waits for device 1")
    assert page.locator(".wait").count() == 2
    page.focus("[data-card='1 norm']")
    page.keyboard.press("ArrowDown")
    assert page.inner_text("#status") == "The program runs to its end: loss, then norm."
    assert page.locator(".wait").count() == 0
    box = page.locator("[data-card='0 norm']").bounding_box()
    page.mouse.move(box["x"] + 20, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 20, box["y"] - 60, steps=4)
    page.mouse.up()
    assert page.inner_text("#status").startswith("Deadlock")


def test_a_command_writes_a_picture(tmp_path: Path) -> None:
    file = tmp_path / "lanes.html"
    assert xbuild("learn", "--picture", "lanes", "-o", file).output == f"wrote {file}: a picture that moves\n"
    assert file.read_text(encoding="utf-8") == moving_page("lanes")
    assert "omit the number" in xbuild("learn", "3", "--picture", "lanes").output
