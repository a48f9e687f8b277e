"""Laws of editing, over the corpus and random programs: text, results, structure and verdicts."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xbuild as xb
from tests.editing.corpus_programs import MODULES, RUN, any_instruction, read
from tests.support.random_programs import random_program
from tests.support.stored_programs import HLO
from xbuild.properties.effects import DONE_OF, has_effect

from ..conformance import corpus

EDITS = ("rename", "insert", "move", "inline", "dead", "canonical", "unuse")


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
