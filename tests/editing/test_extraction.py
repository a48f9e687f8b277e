"""Extraction: a part gives what the whole gives, and brings what belongs to it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import Recorder, execute
from shape_inference import Shape, leaves
from tests.editing.corpus_programs import RUN, read
from tests.support.stored_programs import HLO

from ..conformance import corpus

# parts


def whole_run(entry: dict[str, Any]) -> tuple[xb.Module, list[dict[xb.Instruction, Any]]]:
    """A module and the values of its entry's instructions on each device."""
    module = read(entry["file"])
    with np.load(HLO / entry["inputs_file"]) as stored:
        inputs = dict(stored)
    seen = Recorder()
    rows = [corpus.stored_arguments(inputs, device, module.entry) for device in range(module.num_devices)]
    execute(module, rows, observer=seen)
    own = set(module.entry.instructions)
    values: list[dict[xb.Instruction, Any]] = [{} for _ in rows]
    for event in seen.events:
        if event.instruction in own:
            values[event.device][event.instruction] = event.value
    return module, values


@pytest.mark.parametrize("entry", RUN[::3], ids=lambda entry: entry["file"])
def test_a_part_gives_what_the_whole_gives(entry: dict[str, Any]) -> None:
    module, values = whole_run(entry)
    rng = np.random.default_rng(len(entry["file"]))
    for radius in (0, 1, 3):
        around = module.entry.instructions[rng.integers(len(module.entry.instructions))]
        part = xb.extract(module, around, radius)
        assert xb.check(part).kind in ("ok", "depends")
        assert str(xb.parse_hlo(str(part))) == str(part)
        parameters = part.entry.parameters
        if any(i.opcode.startswith("rng") for i in part.entry.instructions) or not all(map(_is_plain, parameters)):
            continue
        given = [[each[module.entry[p.name]] for p in parameters] for each in values]
        _same_values(part, execute(part, given), module, values, entry["tolerance"])


def _is_plain(parameter: xb.Instruction) -> bool:
    return all(isinstance(leaf, Shape) for leaf in leaves(parameter.shape))


def _same_values(
    part: xb.Module, results: list[Any], module: xb.Module, values: list[dict[xb.Instruction, Any]], near: Any
) -> None:
    root = part.entry.root
    made = module.entry._by_name.get(root.name)
    for result, known in zip(results, values, strict=True):
        expected = known[made] if made else tuple(known[module.entry[i.name]] for i in root.operands)
        for ours, theirs in zip(corpus._flat(result), corpus._flat(expected), strict=True):
            assert corpus._apart(ours, theirs, near) is None


def test_a_part_brings_the_other_halves() -> None:
    module = xb.parse_hlo(
        "HloModule m, replica_count=2\nENTRY e { x = f32[4] parameter(0) t = token[] after-all() "
        "r = (f32[4], u32[], token[]) recv(t), channel_id=3, "
        'frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1}}"} '
        "s = (f32[4], u32[], token[]) send(x, t), channel_id=3, "
        'frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1}}"} '
        "sd = token[] send-done(s), channel_id=3 rd = (f32[4], token[]) recv-done(r), channel_id=3, "
        "control-predecessors={sd} g = f32[4] get-tuple-element(rd), index=0 ROOT y = f32[4] negate(g) }"
    )
    part = xb.extract(module, "rd", 0)
    assert [i.name for i in part.entry.instructions] == ["x", "t", "r", "s", "sd", "rd"]
    assert xb.check(part).kind == "ok"
    assert part.num_replicas == 2


def test_a_part_has_a_tuple_of_what_is_used_outside() -> None:
    module = xb.parse_hlo(
        "ENTRY e { x = f32[4] parameter(0) c = f32[] constant(2) tuple = f32[4] broadcast(c), dimensions={} "
        "w = (f32[4], f32[4]) tuple(x, x) g = f32[4] get-tuple-element(w), index=1 a = multiply(tuple, g) "
        "b = tanh(a) d = negate(b) f = abs(b) ROOT t = add(d, add(a, f)) }"
    )
    part = xb.extract(module, "b", 1)
    assert [i.name for i in part.entry.instructions] == ["tuple", "g", "a", "b", "d", "f", "tuple.1"]
    assert [i.name for i in part.entry.root.operands] == ["a", "d", "f"]
    assert [p.name for p in part.entry.parameters] == ["tuple", "g"]
    part = xb.extract(module, "a", 1)
    assert [p.name for p in part.entry.parameters] == ["g", "f"]
