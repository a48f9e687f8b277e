"""Laws of editing, over the corpus and random programs: text, results, structure, and what a difference names."""

from __future__ import annotations

import contextlib
import functools
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import xbuild as xb
from interpreter import Recorder, execute
from shape_inference import Shape, leaves
from tests.support.random_programs import random_program
from tests.support.stored_programs import HLO, READ
from xbuild.properties.effects import DONE_OF, has_effect

from ..conformance import corpus

MODULES = [entry["file"] for entry in READ]
RUN = [entry for entry in READ if entry["kind"] != "parse-only"]
EDITS = ("rename", "insert", "move", "inline", "dead", "canonical", "unuse")


@functools.cache
def read(file: str) -> xb.Module:
    return xb.parse_hlo((HLO / file).read_text(encoding="utf-8"))


def any_instruction(module: xb.Module, rng: np.random.Generator) -> tuple[xb.Computation, xb.Instruction]:
    computation = module.computations[rng.integers(len(module.computations))]
    return computation, computation.instructions[rng.integers(len(computation.instructions))]


def harmless(module: xb.Module, word: str, rng: np.random.Generator) -> xb.Module:
    """The module after an edit that changes no result."""
    if word == "dead":
        return xb.eliminate_dead_code(module)
    if word == "canonical":
        return xb.canonical(module)
    computation, instruction = any_instruction(module, rng)
    with xb.edit(module) as editor:
        if word == "rename":
            editor.rename(instruction, f"{instruction.name}.renamed")
        elif word in ("insert", "unuse") and is_begun(instruction):
            pass  # nothing but its done may use it
        elif word == "insert":
            editor.replace_uses(instruction, xb.ops.opt_barrier(editor[instruction]))
        elif word == "move" and not has_effect(instruction):
            _, other = any_instruction(xb.Module("m", computation, (computation,)), rng)
            _moved(editor, instruction, other)
        elif word == "inline":
            calls = [i for c in module.computations for i in c.instructions if i.opcode == "call"]
            for call in calls[: rng.integers(1, 3)]:
                editor.inline(call)
        elif word == "unuse":
            with editor.after(instruction):
                xb.ops.tuple_([editor[instruction]] * 2)
    return editor.result


def is_begun(instruction: xb.Instruction) -> bool:
    return instruction.opcode in DONE_OF or instruction.opcode == "async_update"


def _moved(editor: xb.Editor[xb.Module], instruction: xb.Instruction, other: xb.Instruction) -> None:
    with contextlib.suppress(xb.BuildError):  # where it may not stand
        editor.move(instruction, before=other)


@pytest.mark.parametrize("entry", RUN, ids=lambda entry: entry["file"])
def test_harmless_edits_keep_text_and_results(entry: dict[str, Any]) -> None:
    rng = np.random.default_rng(len(entry["file"]))
    module = read(entry["file"])
    for word in rng.choice(EDITS, 8):
        module = harmless(module, word, rng)
    module = xb.eliminate_dead_code(module)
    text = str(module)
    assert str(xb.parse_hlo(text)) == text
    assert corpus._run(HLO, entry, module) is None


@given(st.sampled_from(MODULES), st.lists(st.sampled_from(EDITS), min_size=1, max_size=4), st.integers(0, 2**32))
@settings(max_examples=60)
def test_structure_and_text_of_edits(file: str, words: list[str], seed: int) -> None:
    rng = np.random.default_rng(seed)
    module = read(file)
    for word in words:
        found = harmless(module, word, rng)
        back = xb.parse_hlo(str(found))
        assert str(back) == str(found)
        assert xb.same_structure(back, found)
        assert xb.diff(back, found).same
        assert (found.num_replicas, found.num_partitions) == (module.num_replicas, module.num_partitions)
        if word in ("rename", "canonical") or (word == "move" and not module.is_scheduled):
            assert xb.same_structure(found, module)
            assert str(xb.canonical(found)) == str(xb.canonical(module))
        if word in ("insert", "unuse") and found is not module:
            assert not xb.same_structure(found, module)
        module = found


@pytest.mark.parametrize("file", MODULES)
def test_dead_code_and_canonical_names(file: str) -> None:
    module = read(file)
    lean = xb.eliminate_dead_code(module)
    assert xb.eliminate_dead_code(lean) is lean
    assert [p.name for p in lean.entry.parameters] == [p.name for p in module.entry.parameters]
    named = xb.canonical(module)
    assert str(xb.canonical(named)) == str(named)
    assert len({i.name for c in named.computations for i in c.instructions}) == sum(
        len(c.instructions) for c in named.computations
    )
    found = xb.diff(module, named)
    assert {change.what for each in found.computations for row in each.changed for change in row.changes} <= {
        "name",
        "place",
    }
    assert not any(each.added or each.removed for each in found.computations)
    assert xb.diff(module, module).same
    assert xb.diff(module, module).to_dict() == {"same": True, "changes": [], "computations": []}


@pytest.mark.parametrize("file", [file for file in MODULES[::3] if not read(file).is_scheduled])
def test_canonical_names_know_no_order_and_no_names(file: str) -> None:
    module, rng = read(file), np.random.default_rng(len(file))
    with xb.edit(module) as editor:
        for computation in module.computations:
            instructions = computation.instructions
            for a, b in rng.integers(len(instructions), size=(50, 2)):
                if not has_effect(instructions[a]):
                    _moved(editor, instructions[a], instructions[b])
            for each, number in zip(instructions, rng.permutation(10**6), strict=False):
                editor.rename(each, f"renamed.{number}")
    assert xb.same_structure(editor.result, module)
    assert str(xb.canonical(editor.result)) == str(xb.canonical(module))


# what a difference names


def changes_of(diff: xb.Diff) -> set[tuple[str, str, str, str]]:
    return {
        (row.after.name, change.what, change.before, change.after)
        for each in diff.computations
        for row in each.changed
        for change in row.changes
    }


@given(st.sampled_from(MODULES), st.integers(0, 2**32))
@settings(max_examples=60)
def test_a_difference_names_an_insertion(file: str, seed: int) -> None:
    module = read(file)
    computation, instruction = any_instruction(module, np.random.default_rng(seed))
    users = [i for i in computation.instructions if instruction in i.operands]
    with xb.edit(module) as editor:
        editor.replace_uses(instruction, xb.ops.opt_barrier(editor[instruction], name="barrier"))
    found = xb.diff(module, editor.result)
    (own,) = [each for each in found.computations if not each.same]
    assert [(i.opcode, i.operands[0].name) for i in own.added] == [("opt_barrier", instruction.name)]
    assert not own.removed
    assert {row.after.name for row in own.changed} == {user.name for user in users}
    assert {(b, a) for _, _, b, a in changes_of(found)} <= {(instruction.name, own.added[0].name)}
    assert [change.what for change in own.changes] == ["root"] * (instruction is computation.root)
    assert xb.diff(editor.result, module).to_dict()["computations"][0]["removed"]


@given(st.sampled_from(MODULES), st.integers(0, 2**32))
@settings(max_examples=60)
def test_a_difference_names_an_operand(file: str, seed: int) -> None:
    module = read(file)
    rng = np.random.default_rng(seed)
    computation, instruction = any_instruction(module, rng)
    assume(instruction.operands)
    place = int(rng.integers(len(instruction.operands)))
    earlier = computation.instructions[: computation.instructions.index(instruction)]
    old = instruction.operands[place]
    others = [i for i in earlier if i.shape.plain() == old.shape.plain() and i is not old]
    assume(others)
    new = others[rng.integers(len(others))]
    with xb.edit(module) as editor:
        editor.replace_operand(instruction, place, new)
    assume(not xb.same_structure(module, editor.result))  # two that are the same but for their names
    found = xb.diff(module, editor.result)
    assert {(name, before, after) for name, _, before, after in changes_of(found)} == {
        (instruction.name, old.name, new.name)
    }
    assert not any(each.added or each.removed for each in found.computations)


@given(st.sampled_from(MODULES), st.integers(0, 2**32))
@settings(max_examples=40)
def test_a_difference_names_a_new_name(file: str, seed: int) -> None:
    module = read(file)
    _, instruction = any_instruction(module, np.random.default_rng(seed))
    with xb.edit(module) as editor:
        editor.rename(instruction, "another.name")
    assert changes_of(xb.diff(module, editor.result)) == {("another.name", "name", instruction.name, "another.name")}


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


# random programs for several devices


@given(st.integers(0, 2**32))
@settings(max_examples=40)
def test_verdicts_stay(seed: int) -> None:
    program = random_program(seed).module
    modules = dict(enumerate([program])) if isinstance(program, xb.Module) else dict(program.modules)
    for edit in (xb.eliminate_dead_code, xb.canonical):
        edited = {device: edit(module) for device, module in modules.items()}
        assert all(xb.same_structure(xb.canonical(m), m) for m in edited.values())
        whole = edited[0] if isinstance(program, xb.Module) else xb.ModuleGroup(edited)
        kind = xb.check(program).kind
        if edit is xb.canonical or kind != "error":  # dead code may be what is wrong
            assert xb.check(whole).kind == kind


def test_structure_has_no_eye_for_names_order_and_numbers_of_channels() -> None:
    text = (
        "HloModule m, replica_count=2\n"
        "s { p = f32[] parameter(0) q = f32[] parameter(1) ROOT r = f32[] add(p, q) }\n"
        "ENTRY e { x = f32[4] parameter(0) a = negate(x) b = tanh(x), metadata={op_name=\"n\"} "
        "d1 = abs(a) d2 = abs(b) "
        "m = f32[4] all-reduce(a), channel_id=7, to_apply=s n = f32[4] all-reduce(b), channel_id=9, to_apply=s "
        "ROOT t = add(m, n), control-predecessors={d1, d2} }"
    )  # fmt: skip
    module = xb.parse_hlo(text)
    alike = {
        "order": text.replace("d1 = abs(a) d2 = abs(b)", "d2 = abs(b) d1 = abs(a)"),
        "names": text.replace("x", "input"),
        "channels": text.replace("=9", "=1"),
        "metadata": text.replace('op_name="n"', 'op_name="k"'),
        "layouts": text.replace("f32[4] ", "f32[4]{0} "),
    }
    for other in alike.values():
        assert xb.same_structure(module, xb.parse_hlo(other))
    others = {
        "channels": text.replace("=9", "=7"),
        "shapes": text.replace("f32[4]", "f32[5]"),
        "operands": text.replace("d1 = abs(a)", "d1 = abs(x)"),
        "control": text.replace("{d1, d2}", "{d1}"),
        "callee": text.replace("add(p, q)", "maximum(p, q)"),
        "replicas": text.replace("replica_count=2", "replica_count=1"),
        "root": text.replace("ROOT t = add", "t = add"),
        "sharding": text.replace("d1 = abs(a)", "d1 = abs(a), sharding={replicated}"),
        "effects": text.replace("m = f32[4] all-reduce(a), channel_id=7, to_apply=s n =", "n =").replace(
            "ROOT t", "m = f32[4] all-reduce(a), channel_id=7, to_apply=s ROOT t"
        ),
    }
    prints = {xb.fingerprint(module), *(xb.fingerprint(xb.parse_hlo(other)) for other in others.values())}
    assert len(prints) == 1 + len(others) - 1  # the last instruction is the root as it was


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (np.float32([1, -0.0]), ("literal", "{1, 0}", "{1, -0.0}")),
        (np.float32([1, 2, 3]), ("literal", "{1, 0}", "{1, 2, 3}")),
        (np.zeros(40, np.float32), ("literal", "{1, 0}", "40 elements")),
        (np.int32([1, 0]), ("literal", "{1, 0}", "{1, 0}")),
    ],
)
def test_a_difference_of_literals(new: Any, expected: tuple[str, str, str]) -> None:
    found = xb.diff(_constant(np.float32([1, 0])), _constant(new))
    assert expected in {change[1:] for change in changes_of(found)}


def test_a_difference_of_long_literals() -> None:
    old = np.arange(60, dtype=np.float32).reshape(6, 10)
    new = old.copy()
    new[2, 3:5] = [7, np.nan]
    (change,) = changes_of(xb.diff(_constant(old), _constant(new)))
    assert change[1:] == ("literal, 2 of 60 elements, the first at [2, 3]", "23", "7")
    assert xb.diff(_constant(new), _constant(new.copy())).same


def _constant(value: Any) -> xb.Computation:
    builder = xb.Builder("c")
    return builder.build(xb.ops.constant(builder, literal=value))


def test_names_that_were_counted_anew_do_not_tell() -> None:
    def program(*, more: bool) -> xb.Computation:
        builder = xb.Builder("main")
        x = xb.ops.parameter(builder, number=0, shape=xb.f32[4], name="x")
        y = xb.ops.negate(x) if more else x
        z = xb.ops.add(xb.ops.tanh(x), xb.ops.abs(x))
        return builder.build(xb.ops.multiply(xb.ops.add(z, x), xb.ops.add(y, z)))

    found = xb.diff(program(more=False), program(more=True))
    (own,) = found.computations
    assert [i.opcode for i in own.added] == ["negate"]
    assert not own.removed
    others = {(what, before, after) for _, what, before, after in changes_of(found) if what != "name"}
    assert others == {("operand lhs", "x", "negate.1")}
