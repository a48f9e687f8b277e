"""Data of a step page: values get coarser before any is left out, and the page says so."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import xbuild as xb
from examples.deadlocks import pipeline as crossed_pipeline
from examples.deadlocks import ring as sending_ring
from interpreter import trace
from xbuild.cli import main
from xbuild.core.op import OPS
from xbuild.pages import framed, page_text
from xbuild.pages.data import LEVELS, fitted, page_data, rules, sentence, shades
from xbuild.traces import Trace

from ..browser import pages

EXAMPLES = Path(__file__).parents[2] / "examples"


def _long(count: int = 60) -> Trace:
    @xb.computation(xb.f32[12, 10])
    def program(x: xb.Value) -> xb.Value:
        for _ in range(count):
            x = xb.tanh(x)
        return x

    inputs = np.random.default_rng(0).standard_normal((2, 1, 12, 10)).astype(np.float32)
    return trace(xb.Module("long", program, num_replicas=2), list(inputs))


@pytest.mark.parametrize("room", [200_000, 40_000, 20_000, 12_000, 5_000, 1_000])
def test_values_take_no_more_than_the_room(room: int) -> None:
    found = fitted(_long(), room)
    assert len(found.data["bytes"]) <= room
    assert ("to keep the page small" in found.left_out) == (room < 200_000)
    assert ("step" in found.left_out) == (room < 12_000)
    assert any(ref >= 0 for ref in found.refs)


def test_what_is_left_is_spread_over_time() -> None:
    run = _long()
    found = fitted(run, 2_000)
    steps = sorted({int(run.time[number]) for number, ref in enumerate(found.refs) if ref >= 0})
    assert len(set(np.diff(steps))) == 1
    assert steps[0] <= len(run) // 4
    assert steps[-1] > 0.7 * run.end


def test_coarser_levels_take_less() -> None:
    sizes = [len(fitted(_long(), room).data["bytes"]) for room in (200_000, 40_000, 20_000, 12_000)]
    assert sizes == sorted(sizes, reverse=True)
    assert [level.whole for level in LEVELS] == sorted((level.whole for level in LEVELS), reverse=True)


def _data(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return dict(json.loads(found[1]))


def test_all_types_of_values_are_in_the_page() -> None:
    types = [xb.pred, xb.s8, xb.u16, xb.s64, xb.u64, xb.bf16, xb.f16, xb.f64, xb.c64, xb.c128]
    program = xb.computation(*(each[2] for each in types))(lambda *xs: xb.tuple_(xs))
    values = [np.array([1, 0]).astype(each.dtype) for each in types]
    data = _data(page_text(trace(xb.Module("types", program), [values])))
    kinds = {kind["t"]: kind["f"] for kind in data["values"]["kinds"] if "t" in kind}
    assert kinds == {
        "pred": "u1", "s8": "i4", "u16": "u4", "s64": "i8", "u64": "u8", "bf16": "f4", "f16": "f4", "f64": "f8",
        "c64": "c8", "c128": "c16",
    }  # fmt: skip
    assert base64.b64decode(data["values"]["bytes"])


def test_what_a_program_says_cannot_end_the_script() -> None:
    @xb.custom_call_target("</script><b>")
    def odd(x: Any) -> Any:
        return x

    program = xb.computation(xb.f32[1])(lambda x: xb.custom_call(x, custom_call_target="</script><b>", shape=xb.f32[1]))
    text = page_text(trace(xb.Module("odd", program), [[np.zeros(1, np.float32)]]))
    assert text.count("</script>") == 2


def test_a_frame_for_notebooks() -> None:
    html = pages.loop()._repr_html_()
    assert html == framed(pages.loop())
    assert html.startswith("<iframe ")
    assert "<!doctype" not in html


def test_where_a_device_stands_is_a_spot_even_where_none_came() -> None:
    run = pages.refused(crossed_pipeline.program())
    data = page_data(run)
    first, second = data["stop"]["devices"]
    assert [data["spots"][each["spot"]]["n"] for each in (first, second)] == ["send.5", "recv-done.3"]
    assert len(data["spots"]) > len(run.spots)
    assert first["wants"] == ["recv.6", "after recv-done.3"]
    assert second["wants"] == ["send.10", "after send.5"]


def test_a_device_that_stands_in_a_loop() -> None:
    run = pages.starved()
    data = page_data(run)
    victim, cause = data["stop"]["devices"]
    for each, name in ((victim, "sum"), (cause, "batch")):
        spot = data["spots"][each["spot"]]
        assert (spot["n"], spot["p"]) == (name, ["while.20"])
    assert len(data["spots"]) == len(run.spots)
    assert victim["wants"] == ["sum"]
    assert cause["wants"] == ["an item of its infeed", "which is empty and has no more items"]


def test_a_device_that_stands_in_a_branch() -> None:
    data = page_data(pages.parted())
    spots = [data["spots"][each["spot"]]["p"] if each["spot"] >= 0 else None for each in data["stop"]["devices"]]
    assert spots == [["conditional.20 branch 0"], ["conditional.20 branch 0"], None, ["conditional.20 branch 0"]]


@pytest.mark.parametrize(
    ("program", "names"),
    [
        (
            sending_ring.program,
            {"cause": "all devices of the cycle send", "fix": "move recv.4 before send.3 (checked"},
        ),
        (
            crossed_pipeline.program,
            {
                "cause": "both devices execute their transfers in conflicting orders",
                "fix": "remove one of these",
                "note": "the program runs to completion if each channel has a send buffer of 1",
            },
        ),
    ],
)
def test_reasons_of_the_verdict(program: Any, names: dict[str, str]) -> None:
    found = dict(page_data(pages.refused(program()))["reasons"])
    for name, start in names.items():
        assert found[name].startswith(start)


def test_every_op_has_a_sentence_and_most_have_rules() -> None:
    """What documentation says of shapes is shown; nothing of what follows it."""
    without = {opcode for opcode in OPS if not rules(opcode)}
    assert without == {"replica_id", "partition_id", "get_tuple_element", "after_all"}
    for opcode in OPS:
        assert sentence(opcode)
        text = " ".join(each[1] for each in rules(opcode))
        assert ">>>" not in text
        assert "Raises" not in text
    assert [name for name, _ in rules("dot")] == ["formula", "shapes", "types"]


def test_a_verdict_needs_no_arguments_for_its_page(tmp_path: Path) -> None:
    """`check --page` takes random arguments where none are asked for."""
    out = tmp_path / "page.html"
    result = CliRunner().invoke(main, ["check", f"{EXAMPLES / 'deadlocks' / 'ring.py'}:program", "--page", str(out)])
    assert "deadlock: send.3 of devices 0-3 wait for each other" in result.output
    assert [each["cause"] for each in _data(out.read_text(encoding="utf-8"))["stop"]["devices"]] == [True] * 4


def test_shades_are_parts_of_the_largest() -> None:
    found = shades(np.array([[0.5, -1.0], [0.0, 0.25]], np.float32))
    assert found.dtype == np.int8
    assert found.tolist() == [[64, -127], [0, 32]]
    assert shades(np.zeros((2, 0), np.float32)).shape == (2, 0)
    assert shades(np.array([np.inf, 1.0, 0.0], np.float32)).tolist() == [127, 0, 0]


def _labels_of(header: str, replicas: int = 1, partitions: int = 1) -> list[str]:
    text = f"HloModule m{header}\nENTRY e {{ ROOT x = f32[] parameter(0) }}"
    module = xb.parse_hlo(text, replicas=replicas, partitions=partitions)
    run = trace(module, [[np.float32(1)]] * replicas * partitions)
    labels: list[str] = page_data(run)["labels"]
    return labels


def test_devices_are_named_by_what_differs() -> None:
    assert _labels_of("", replicas=2) == ["replica 0", "replica 1"]
    assert _labels_of("", partitions=2) == ["device 0", "device 1"]
    assert _labels_of("", 2, 2) == [f"replica {r}, partition {p}" for r in range(2) for p in range(2)]


def test_devices_have_their_coordinates_where_the_mesh_is_known() -> None:
    known = ', frontend_attributes={xbuild.mesh="data=2,model=2"}'
    names = [f"device {n} (data={n // 2}, model={n % 2})" for n in range(4)]
    assert _labels_of(known, partitions=4) == names


def test_devices_of_a_partition_have_their_coordinates() -> None:
    double = xb.Module("m", xb.computation(xb.f32[4])(lambda x: x + x))
    partitioned = xb.shard.partition(xb.shard.annotated(double, {0: xb.P("x")}, mesh=xb.Mesh(x=2)))
    run = trace(partitioned.module, partitioned.arguments(np.ones(4, np.float32)))
    assert page_data(run, None, partitioned)["labels"] == ["device 0 (x=0)", "device 1 (x=1)"]
    assert page_data(run)["labels"] == ["device 0 (x=0)", "device 1 (x=1)"]
