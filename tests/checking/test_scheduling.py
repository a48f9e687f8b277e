"""The verdict before the run: the cases, orders and schedules, transfers in one program, groups, infeeds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import xbuild as xb
from interpreter import execute
from tests.checking.spmd_programs import spmd, total
from tests.conformance.deadlock import failure, main, unnamed, verdict_failure
from tests.conformance.deadlock_cases.programs import prepared
from tests.support.small_programs import all_reduce, case_of, crossed, transfer
from xbuild.core.op import OPS

FILE = Path(__file__).parents[1] / "data" / "deadlock_cases.json"
CASES: list[dict[str, Any]] = json.loads(FILE.read_text())["cases"]


def parametrized(cases: Sequence[Mapping[str, Any]]) -> Any:
    return pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in cases])


def opcodes(items: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for item in items:
        yield {"host-callback": "custom_call", "compute": "negate"}.get(item["op"], item["op"].replace("-", "_"))
        for inner in (item.get("condition", ()), item.get("body", ()), *item.get("branches", ())):
            yield from opcodes(inner)


def exists(case: Mapping[str, Any]) -> bool:
    return all(opcode in OPS for items in case["programs"].values() for opcode in opcodes(items))


@parametrized(CASES)
def test_verdict(case: Mapping[str, Any]) -> None:
    assert verdict_failure(case, xb.check(prepared(case).program)) is None


@parametrized([case for case in CASES if exists(case)])
def test_case(case: Mapping[str, Any]) -> None:
    assert failure(case) is None


@parametrized([case for case in CASES if case["verdict"] in ("deadlock", "error")])
def test_reports_are_plain(case: Mapping[str, Any]) -> None:
    verdict = xb.check(prepared(case).program)
    text = str(verdict)
    assert text.isascii()
    assert text.startswith(f"{verdict.kind}: ")
    assert len(text.splitlines()) < 30
    assert json.loads(json.dumps(verdict.to_dict()))["kind"] == verdict.kind


# What a runner itself must do.


WRONG = [
    {**crossed(), "verdict": "ok"},
    {**crossed(), "must_name": ["send3"]},
    {**crossed(), "must_name": ["end1"]},
    {**crossed(), "blocked": {"0": ["send1"], "1": ["recv1"]}},
    {**crossed(), "blocked": {"0": ["send1"]}},
    {**crossed("free"), "verdict": "deadlock"},
    {**crossed(), "verdict": "error", "error_kind": "cycle"},
    {**crossed("free"), "verdict": "runtime", "runtime_outcome": "deadlock"},
    case_of([{"op": "no-such-op", "name": "x", "deps": []}]),
]
RIGHT = [
    {**crossed(), "must_name": ["SEND1", "f32( 4 )"], "blocked": {"1": ["send2"], "0": ["send1"]}},
    {**crossed(), "verdict": "ok", "also_accept": ["deadlock"]},
    {**crossed("free"), "verdict": "ok"},
    case_of([all_reduce(1)], [all_reduce(1)]),
]


@pytest.mark.parametrize("case", WRONG)
def test_a_runner_tells_what_is_wrong(case: Mapping[str, Any]) -> None:
    assert failure(case)


@pytest.mark.parametrize("case", RIGHT)
def test_a_runner_lets_pass_what_is_right(case: Mapping[str, Any]) -> None:
    assert failure(case) is None


def test_a_runner_counts_and_tells_by_its_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "cases.json"
    file.write_text(json.dumps({"cases": [*WRONG, *RIGHT]}))
    assert main([str(file)]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == f"{len(RIGHT)} passed, {len(WRONG)} failed"


@pytest.mark.parametrize(
    ("fact", "named"), [("send1", True), ("1", False), ("send", False), ("F32[4]", True), ("w", True), ("3", True)]
)
def test_facts_are_whole_tokens(fact: str, named: bool) -> None:
    assert (not unnamed("send1 of w, trip 3: f32(4) send_done", [fact])) == named


# What is recorded, ordered, given.


def test_the_recorded_order_stays_where_it_runs() -> None:
    (send1, recv1), (send2, recv2) = transfer(1, 0, 1), transfer(2, 1, 0)
    program = prepared(case_of([*recv2, *send1], [*send2, *recv1], schedule="free")).program
    verdict = xb.check(program)
    assert (verdict.kind, verdict.scope) == ("ok", "found")
    assert verdict.orders(0) == ()
    assert verdict.schedule[1] == program.modules[1].entry.instructions  # type: ignore[union-attr]


def test_a_found_order_is_a_whole_order() -> None:
    program = prepared(crossed("free")).program
    verdict = xb.check(program)
    for device, order in verdict.schedule.items():
        entry = program.modules[device].entry  # type: ignore[union-attr]
        place = {instruction: n for n, instruction in enumerate(order)}
        assert set(order) == set(entry.instructions)
        assert all(place[o] < place[i] for i in order for o in (*i.operands, *i.control))
        assert dict(verdict.orders(device)).get(entry, entry.instructions) == order


def test_one_order_by_dependencies_is_every_schedule() -> None:
    (send1, recv1) = transfer(1, 0, 1)
    verdict = xb.check(prepared(case_of(send1, recv1, schedule="free")).program)
    assert (verdict.kind, verdict.scope) == ("ok", "every")


def test_a_schedule_is_given_by_names() -> None:
    program = prepared(crossed("free")).program
    recorded = {d: [i.name for i in m.entry.instructions] for d, m in program.modules.items()}  # type: ignore[union-attr]
    assert xb.check(program, schedule=recorded).kind == "deadlock"
    assert xb.check(program).kind == "ok"
    short = {0: recorded[0][:-1], 1: recorded[1]}
    assert xb.check(program, schedule=short).findings[0].kind == "bad_schedule"
    with pytest.raises(KeyError, match="nonsense"):
        xb.check(program, schedule={0: ["nonsense"]})


def test_send_buffers_let_a_send_go_on() -> None:
    program = prepared(crossed()).program
    refused = xb.check(program)
    assert "send_buffers=1" in refused.findings[0].note
    assert xb.check(program, send_buffers=1).kind == "ok"


def test_schedule_raises_where_there_is_none() -> None:
    with pytest.raises(xb.ScheduleError, match=r"deadlock: \S+ of device 0 and \S+ of device 1 wait for each other"):
        xb.schedule(prepared(crossed()).program)


def test_dead_code_is_checked() -> None:
    assert xb.check(prepared(crossed()).program).refused


# Programs for each device, transfers in one program, groups.


def ring(replicas: int, sends_first: bool, scheduled: bool) -> xb.Module:
    pairs = [(r, (r + 1) % replicas) for r in range(replicas)]

    def program(x: xb.Value) -> xb.Value:
        token = xb.ops.after_all((), builder=x.builder)
        if sends_first:
            sent = xb.ops.send(x, token, channel_id=1, source_target_pairs=pairs)
        posted = xb.ops.recv(token, shape=x.shape, channel_id=1, source_target_pairs=pairs)
        if not sends_first:
            sent = xb.ops.send(x, token, channel_id=1, source_target_pairs=pairs)
        taken = xb.ops.get_tuple_element(xb.ops.recv_done(posted, channel_id=1), index=0)
        xb.ops.send_done(sent, channel_id=1)
        return taken

    return spmd(program, xb.f32[2], replicas=replicas, is_scheduled=scheduled)


@pytest.mark.parametrize("replicas", [2, 3, 64])
def test_a_ring_in_one_program(replicas: int) -> None:
    inputs = [[[float(r), 0.0]] for r in range(replicas)]
    for program in (ring(replicas, False, True), ring(replicas, True, False)):
        assert xb.check(program).kind == "ok"
        assert [result[0] for result in execute(program, inputs)] == [float(r - 1) % replicas for r in range(replicas)]
    refused = xb.check(ring(replicas, True, True))
    assert refused.kind == "deadlock"
    assert refused.repair is not None
    assert refused.repair.text.startswith("move recv")
    assert len(str(refused).splitlines()) < 20


def test_a_chain_in_one_program_has_ends() -> None:
    def program(x: xb.Value) -> xb.Value:
        token, pairs = xb.ops.after_all((), builder=x.builder), [(0, 1), (1, 2)]
        posted = xb.ops.recv(token, shape=x.shape, channel_id=1, source_target_pairs=pairs)
        xb.ops.send_done(xb.ops.send(x, token, channel_id=1, source_target_pairs=pairs), channel_id=1)
        return xb.ops.get_tuple_element(xb.ops.recv_done(posted, channel_id=1), index=0)

    module = spmd(program, xb.f32[()], replicas=3)
    assert xb.check(module).kind == "ok"
    assert execute(module, [[1.0], [2.0], [3.0]]) == [0.0, 1.0, 2.0]


def test_names_tell_collectives_where_ids_are_shared() -> None:
    def module(first: str, second: str) -> xb.Module:
        def program(x: xb.Value) -> xb.Value:
            return total(total(x, channel_id=1, name=first), channel_id=1, name=second)

        return spmd(program, xb.f32[2])

    assert xb.check(xb.ModuleGroup({0: module("a", "b"), 1: module("a", "b")})).kind == "ok"
    assert xb.check(xb.ModuleGroup({0: module("a", "b"), 1: module("b", "a")})).kind == "deadlock"


def test_collectives_that_share_an_id_are_aligned_where_their_names_differ() -> None:
    def module(*names: str) -> xb.Module:
        def program(x: xb.Value) -> xb.Value:
            for name in names:
                x = total(x, channel_id=1, name=name)
            return x

        return spmd(program, xb.f32[2])

    assert xb.check(xb.ModuleGroup({0: module("a", "b"), 1: module("a", "c")})).kind == "error"
    one, two = module("psum.1", "psum.3"), module("psum", "psum.2")
    assert xb.check(xb.ModuleGroup({0: one, 1: two})).kind == "ok"
    assert xb.check(xb.ModuleGroup({0: one, 1: two, 2: module("psum.5", "psum.6")})).kind == "ok"
    results = execute(xb.ModuleGroup({0: one, 1: two}), [[[1.0, 2.0]], [[3.0, 4.0]]])
    assert [each.tolist() for each in results] == [[8.0, 12.0]] * 2


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("is_first", [True, False])
def test_only_the_collective_that_the_other_program_lacks_is_reported(place: int, is_first: bool) -> None:
    def module(lines: list[int], number: int) -> xb.Module:
        body, last = "", "p"
        for line in lines:
            shape = f"f32[{1 + line % 3}]"
            body += f"  s.{number} = {shape} broadcast(z), dimensions={{}}, control-predecessors={{{last}}}\n"
            last = f"psum.{number}"
            body += f"  {last} = {shape} all-reduce(s.{number}), channel_id=1, replica_groups={{{{0,1}}}}, "
            body += f'use_global_device_ids=true, to_apply=add, metadata={{source_file="m.py" source_line={line}}}\n'
            number += 1
        return xb.parse_hlo(
            "HloModule m, num_partitions=2\n\nadd { a = f32[] parameter(0)\n b = f32[] parameter(1)\n"
            " ROOT c = f32[] add(a, b) }\n\nENTRY e {\n p = f32[] parameter(0)\n z = f32[] constant(1)\n"
            f"{body} ROOT r = f32[] copy(p) }}",
            origins=True,
        )

    lines = [21, 24, 25]
    more = [*lines[:place], 30, *lines[place:]]
    both = [module(more, 4), module(lines, 9)]
    verdict = xb.check(xb.ModuleGroup(dict(enumerate(both if is_first else both[::-1]))))
    assert [each.kind for each in verdict.findings] == ["missing_participant"]
    assert [each.source.line for each in verdict.findings[0].instructions if each.source] == [30]
    assert "share channel 1 match by kind" in str(verdict)


def test_devices_that_do_not_exist() -> None:
    send, _ = transfer(1, 0, 7)
    _, recv = transfer(1, 0, 1)
    assert xb.check(prepared(case_of(send, recv)).program).findings[0].kind == "device_out_of_range"


def test_two_peers_that_name_others() -> None:
    send, _ = transfer(1, 0, 1)
    _, recv = transfer(1, 2, 1)
    verdict = xb.check(prepared(case_of(send, recv, [])).program)
    assert verdict.findings[0].kind == "peer_mismatch"
    assert not unnamed(str(verdict), ["send1", "recv1", "0", "2"])


def test_infeed_counts_are_proof() -> None:
    items = [{"op": "infeed", "name": "a", "deps": []}, {"op": "infeed", "name": "b", "deps": ["a"]}]
    program = prepared(case_of(items, items)).program
    assert xb.check(program).kind == "depends"
    assert xb.check(program, infeed={0: 2, 1: 2}).kind == "ok"
    starved = xb.check(program, infeed={0: 2, 1: 1})
    assert (starved.kind, starved.findings[0].kind) == ("deadlock", "infeed_starved")
    assert "the infeed of device 1 holds no item for b" in str(starved)


def test_a_starved_device_is_the_cause_and_not_its_victims() -> None:
    items = [{"op": "infeed", "name": "a", "deps": []}, {**all_reduce(1), "deps": ["a"]}]
    verdict = xb.check(prepared(case_of(items, items, items)).program, infeed=[1, 1, 0])
    assert verdict.findings[0].kind == "infeed_starved"
    assert verdict.findings[0].blocked[2][0].name == "a"
    assert "the infeed of device 2" in str(verdict)


def test_many_devices_of_one_program_need_no_graph() -> None:
    def program(x: xb.Value) -> xb.Value:
        for _ in range(300):
            x = total(xb.ops.multiply(x, x))
        return x

    verdict = xb.check(spmd(program, xb.f32[4], replicas=1024))
    assert (verdict.kind, verdict.scope) == ("ok", "every")
    assert len(verdict.schedule) == 1024
