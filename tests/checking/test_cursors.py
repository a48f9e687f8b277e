"""The fast run in the recorded order gives the same verdict and orders, word for word, as the search."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

import xbuild as xb
from tests.model.compare import disagreement
from tests.model.generator import LARGE, SMALL, WIDE, random_program
from tests.model.writer import written
from xbuild.checking.deadlock.level_run import InOrderRun, LevelRun


def told(seeds: Iterable[int]) -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    for seed in seeds:
        program = random_program(seed, LARGE if seed % 3 == 0 else SMALL)
        module = written(program).module
        verdict = xb.check(module, send_buffers=program.send_buffers, infeed=program.infeed)
        orders = {} if verdict.refused else {d: [i.name for i in order] for d, order in verdict.schedule.items()}
        found.append((str(verdict), orders))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("first", [20_000, 20_100])
def test_both_ways_tell_the_same(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = range(first, first + 100)
    quick = told(seeds)
    monkeypatch.setattr(InOrderRun, "finish", lambda cursors: False)
    monkeypatch.setattr(LevelRun, "_stop_at_cursors", lambda run, cursors: run._search())
    assert quick == told(seeds)


def _sends_first(device: int) -> xb.Module:
    builder = xb.Builder(f"d{device}")
    x = xb.parameter(builder, number=0, shape=xb.f32[2])
    token = xb.ops.after_all((), builder=builder)
    for n in range(2):
        sent = xb.ops.send(x, token, channel_id=2 * n + device + 1)
        posted = xb.ops.recv(token, shape=xb.f32[2], channel_id=2 * n + 2 - device)
        x, arrived = xb.ops.recv_done(posted, channel_id=2 * n + 2 - device)
        token = xb.ops.after_all((xb.ops.send_done(sent, channel_id=2 * n + device + 1), arrived))
    return xb.Module(f"d{device}", builder.build(x))


def test_what_is_taken_early_stands_where_it_was_taken() -> None:
    """Two devices that send before they post: on one of them each recv comes early, and all else stays."""
    verdict = xb.check(xb.ModuleGroup({0: _sends_first(0), 1: _sends_first(1)}))
    order = [i.opcode for i in verdict.schedule[1] if i.opcode in ("send", "recv", "recv_done", "send_done")]
    assert verdict.kind == "ok"
    assert order == ["recv", "send", "recv_done", "send_done"] * 2
    assert verdict.schedule[0] == verdict.asked.program.class_of[0].module.entry.instructions


def test_a_level_is_linked_as_it_was_entered() -> None:
    """What becomes known of a loop later changes nothing of levels that were looked at before."""
    assert disagreement(random_program(305_217, WIDE)) is None
