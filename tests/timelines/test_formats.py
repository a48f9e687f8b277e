"""Timelines for other tools: trace events by their format, Chakra by its definition, GOAL by a run of its messages."""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import xbuild as xb
from benchmarks.pipelines import pipeline
from shape_inference import XbuildError
from tests.costs.test_cost import LOOP
from tests.support.random_programs import random_program
from xbuild.cli import main
from xbuild.timelines import exports
from xbuild.timelines.exports import goal_lines, trace_events, write_chakra
from xbuild.timelines.record import expand_spans

MACHINE = xb.Machine(flops=1e9, memory_bandwidth=1e9, links=xb.Link(alpha=1e-5, bandwidth=1e8))
PERMUTE = LOOP.replace(
    "ROOT q = f32[16,16] all-reduce(g), channel_id=2, replica_groups=[2,4]<=[4,2]T(1,0), to_apply=add, "
    "use_global_device_ids=true",
    "ROOT q = f32[16,16] collective-permute(g), channel_id=2, source_target_pairs={{0,1},{1,2},{2,0},{5,6}}",
)


def lines() -> dict[str, xb.Timeline]:
    programs = {"loop": xb.parse_hlo(LOOP), "permute": xb.parse_hlo(PERMUTE), "pipeline": pipeline(4, 8),
                "interleaved": pipeline(2, 4, 2)}  # fmt: skip
    for seed in range(60):
        module = random_program(seed).module
        if xb.check(module).kind == "ok" and len(programs) < 20:
            programs[f"random {seed}"] = module
    return {name: xb.timeline(each, MACHINE) for name, each in programs.items()}


LINES = lines()

# Trace Event Format: every event has ph and pid; complete events (X) name, ts, dur and tid; metadata events (M) a name
# of their own with its argument. Times are microseconds.
EVENT_KEYS = {"X": {"ph", "name", "cat", "ts", "dur", "pid", "tid", "args"}, "M": {"ph", "name", "pid", "tid", "args"}}


@pytest.mark.parametrize("name", LINES)
def test_trace_events_keep_their_format(name: str) -> None:
    line = LINES[name]
    found = json.loads(json.dumps(trace_events(line), allow_nan=False))
    assert {*found} <= {"traceEvents", "displayTimeUnit", "otherData"}
    assert found["displayTimeUnit"] in ("ms", "ns")
    last: dict[tuple[int, int], float] = {}
    for event in sorted(found["traceEvents"], key=lambda each: each.get("ts", -1)):
        assert {*event} - {"cname"} == EVENT_KEYS[event["ph"]]
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name")
            assert isinstance(event["args"]["name"], str)
            continue
        assert 0 <= event["ts"] <= event["ts"] + event["dur"] <= line.seconds * 1e6 * (1 + 1e-9)
        if event["tid"] == 0:  # work and waits of a device never overlap
            thread = event["pid"], event["tid"]
            assert event["ts"] >= last.get(thread, 0) * (1 - 1e-9)
            last[thread] = event["ts"] + event["dur"]
    named = {each["pid"] for each in found["traceEvents"] if each["name"] == "process_name"}
    assert named == {each["pid"] for each in found["traceEvents"]}


def test_a_steady_state_is_drawn_trip_by_trip_or_once() -> None:
    line = xb.timeline(xb.parse_hlo(LOOP.replace("constant(5)", "constant(50)")), MACHINE)
    spans = line.recorder
    assert spans.repeats
    whole = Counter(number for number, _, _ in expand_spans(spans, whole=True))
    assert [whole[number] for number in range(len(spans))] == spans.times().tolist()
    once = [(number, more) for number, _, more in expand_spans(spans, whole=False)]
    assert [number for number, _ in once] == [*range(len(spans))]
    assert max(more for _, more in once) == spans.repeats[0].times - 1


def message_of_chakra() -> dict[str, Any]:
    """The messages that are written, as schema/protobuf/et_def.proto of MLCommons Chakra defines them."""
    protobuf = pytest.importorskip("google.protobuf")
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    assert protobuf
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="et_def.proto", package="ChakraProtoMsg", syntax="proto3")
    attribute = file.message_type.add(name="AttributeProto")
    attribute.field.add(name="name", number=1, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    attribute.oneof_decl.add(name="value")
    for name, number, kind in (("int32_val", 7, kinds.TYPE_INT32), ("int64_val", 9, kinds.TYPE_INT64),
                               ("uint64_val", 13, kinds.TYPE_UINT64), ("bool_val", 27, kinds.TYPE_BOOL),
                               ("string_val", 29, kinds.TYPE_STRING)):  # fmt: skip
        attribute.field.add(name=name, number=number, type=kind, label=kinds.LABEL_OPTIONAL, oneof_index=0)
    head = file.message_type.add(name="GlobalMetadata")
    head.field.add(name="version", number=1, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    node = file.message_type.add(name="Node")
    for name, number, kind in (("id", 1, kinds.TYPE_UINT64), ("name", 2, kinds.TYPE_STRING),
                               ("type", 3, kinds.TYPE_INT32), ("duration_micros", 7, kinds.TYPE_UINT64)):  # fmt: skip
        node.field.add(name=name, number=number, type=kind, label=kinds.LABEL_OPTIONAL)
    for name, number in (("ctrl_deps", 4), ("data_deps", 5)):
        node.field.add(name=name, number=number, type=kinds.TYPE_UINT64, label=kinds.LABEL_REPEATED)
    node.field.add(name="attr", number=10, type=kinds.TYPE_MESSAGE, label=kinds.LABEL_REPEATED,
                   type_name=".ChakraProtoMsg.AttributeProto")  # fmt: skip
    return message_factory.GetMessages([file], descriptor_pool.DescriptorPool())


def chakra(path: Path) -> tuple[Any, list[Any]]:
    """The head and the nodes of a file, each behind its length."""
    from google.protobuf.internal.decoder import _DecodeVarint32
    from google.protobuf.unknown_fields import UnknownFieldSet

    classes, body, place, found = message_of_chakra(), path.read_bytes(), 0, list[Any]()
    while place < len(body):
        size, place = _DecodeVarint32(body, place)
        kind = "ChakraProtoMsg.Node" if found else "ChakraProtoMsg.GlobalMetadata"
        found.append(classes[kind].FromString(body[place : place + size]))
        assert not [*UnknownFieldSet(found[-1])]
        place += size
    return found[0], found[1:]


@pytest.mark.parametrize("name", LINES)
def test_chakra_is_read_by_its_definition(name: str, tmp_path: Path) -> None:
    pytest.importorskip("google.protobuf")
    line = LINES[name]
    files = write_chakra(line, tmp_path / "et")
    groups = json.loads((tmp_path / "et" / "groups.json").read_text())
    assert len(files) == line.num_devices
    sent: Counter[tuple[int, ...]] = Counter()
    met: dict[str, list[tuple[int, ...]]] = {}
    for device, file in zip(line.devices, files, strict=True):
        head, nodes = chakra(file)
        assert head.version
        assert [node.id for node in nodes] == [*range(len(nodes))]
        order = []
        for node in nodes:
            facts = {each.name: getattr(each, each.WhichOneof("value")) for each in node.attr}
            assert all(need < node.id for need in node.data_deps)
            if node.type == 7:
                assert device in groups[facts["pg_name"]]
                order.append((facts["comm_type"], facts["comm_size"], int(facts["pg_name"])))
            if node.type in (5, 6):
                ends = facts["comm_src"], facts["comm_dst"], facts["comm_tag"], facts["comm_size"]
                assert ends[node.type == 6] == device
                sent[ends] += 1 if node.type == 5 else -1
        for _, _, group in order:
            met.setdefault(str(group), [])
    assert not any(sent.values()), "each send has its recv"


def run_goal(text: list[str]) -> dict[int, int]:
    """How many of each rank's operations can run, where a send goes on at once and a recv waits for its message."""
    ranks: dict[int, dict[str, tuple[str, list[str]]]] = {}
    for line in text[1:]:
        if found := re.fullmatch(r"rank (\d+) \{", line):
            here = ranks[int(found[1])] = {}
        elif found := re.fullmatch(r"  (l\d+): (calc \d+|(?:send|recv) \d+b (?:to|from) \d+ tag \d+)", line):
            here[found[1]] = (found[2], [])
        elif found := re.fullmatch(r"  (l\d+) requires (l\d+)", line):
            assert found[2] in here
            here[found[1]][1].append(found[2])
        else:
            assert line == "}"
    mail: Counter[tuple[str, ...]] = Counter()
    done: dict[int, set[str]] = {rank: set() for rank in ranks}
    moved = True
    while moved:
        moved = False
        for rank, lines in ranks.items():
            left = deque(label for label in lines if label not in done[rank])
            for label in left:
                what, needs = lines[label]
                verb, *rest = what.split()
                if not all(need in done[rank] for need in needs):
                    continue
                if verb == "recv":
                    key = (rest[2], str(rank), rest[4], rest[0])
                    if not mail[key]:
                        continue
                    mail[key] -= 1
                elif verb == "send":
                    mail[str(rank), rest[2], rest[4], rest[0]] += 1
                done[rank].add(label)
                moved = True
    assert not any(mail.values())
    return {rank: len(lines) - len(done[rank]) for rank, lines in ranks.items()}


@pytest.mark.parametrize("name", LINES)
def test_a_goal_schedule_runs_to_its_end(name: str) -> None:
    text = [*goal_lines(LINES[name])]
    assert text[0] == f"num_ranks {LINES[name].num_devices}"
    assert not any(run_goal(text).values())


def test_goal_has_the_bytes_of_the_algorithm_and_the_time_of_the_work() -> None:
    line = LINES["loop"]
    text = [*goal_lines(line)]
    first = text[text.index("rank 0 {") + 1 : text.index("}")]
    sent = sum(int(found[1]) for each in first if (found := re.search(r"send (\d+)b", each)))
    assert sent == line.cost.link_bytes
    worked = sum(int(found[1]) for each in first if (found := re.search(r"calc (\d+)", each)))
    assert worked == pytest.approx(line.busy * 1e9, rel=1e-3)


def test_files_that_would_be_too_long_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(exports, "MOST_NODES", 10)
    with pytest.raises(XbuildError, match="more than 10 actions"):
        write_chakra(LINES["loop"], tmp_path / "et")


def test_the_command_writes_the_files(tmp_path: Path) -> None:
    target = tmp_path / "loop.hlo"
    target.write_text(LOOP)
    options = [
        "--trace",
        str(tmp_path / "t.json"),
        "--chakra",
        str(tmp_path / "et"),
        "--goal",
        str(tmp_path / "g.goal"),
    ]
    done = CliRunner().invoke(main, ["cost", str(target), "--machine", "v5e", *options])
    assert done.exit_code == 0
    expected = trace_events(xb.timeline(xb.parse_hlo(LOOP), "v5e"))["traceEvents"]
    written = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert [(each["name"], each.get("ts")) for each in written] == [(each["name"], each.get("ts")) for each in expected]
    assert len([*(tmp_path / "et").glob("*.et")]) == 8
    assert (tmp_path / "g.goal").read_text().startswith("num_ranks 8\n")
    failed = CliRunner().invoke(main, ["cost", str(target), "--machine", "v5e", "--trace", str(tmp_path / "no" / "t")])
    assert failed.exit_code == 1
    assert "cannot write" in failed.stderr
